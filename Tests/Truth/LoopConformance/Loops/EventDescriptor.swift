internal import CLinux

func makeEventDescriptor(_ value: UInt32) -> CInt { stall_eventfd_create() }

// Events that one wait has reported, and the sources they are for.

internal import CLinux

/// Buffers for the events of one wait. Its user gives it back to the loop or deallocates it.
struct DescriptorBatch {
    static let capacity = 256

    /// The events that the kernel has reported.
    let reported: UnsafeMutablePointer<stall_ready>
    /// The same, one event for each source.
    let ready: UnsafeMutablePointer<stall_ready>
    /// One for each event, with a reference of its own.
    let sources: UnsafeMutablePointer<Unmanaged<DescriptorSource>>
    var count = 0
    /// How many descriptors the mode had lost when they were looked up.
    var removals = 0

    init() {
        reported = .allocate(capacity: Self.capacity)
        ready = .allocate(capacity: Self.capacity)
        sources = .allocate(capacity: Self.capacity)
    }

    func deallocate() {
        reported.deallocate()
        ready.deallocate()
        sources.deallocate()
    }
}

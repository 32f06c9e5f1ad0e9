import CLinux
import Foundation
import TestSupport
import Testing

/// Goal: a process that starts and stops monitors for years keeps no page of each.
/// Method: in its own process, monitors one after the other, each with a stall; counts what is mapped.
@Suite struct RecordPagesTests {
    @Test func `the pages of ended monitors are used again, not at once`() async {
        await #expect(processExitsWith: .success) {
            var slots: [UnsafeMutablePointer<stall_open_slot>] = []
            for round in 0..<40 as Range<UInt64> {
                let monitor = stall_process_record_reserve()
                stall_process_record_prepare(monitor, UInt64.random(in: 1 ... .max), round)
                var facts = stall_open_facts()
                let slot = stall_process_record_open(monitor, 1 + round, 2 + round, &facts)
                guard let slot, slot.pointee.began_ns == 1 + round else { exit(1) }
                // A thread may store the end of the previous monitor's stall as late as this.
                guard slot != slots.last else { exit(2) }
                if let late = slots.last { stall_open_slot_end(late, 99) }
                guard slot.pointee.ended_ns == 0 else { exit(3) }
                slots.append(slot)
                stall_process_record_remove(monitor)
            }
            let maps = try String(contentsOfFile: "/proc/self/maps", encoding: .utf8)
            let pages = maps.split(separator: "\n").filter { $0.contains("/dev/shm/stallwatch-") }
            exit(pages.count <= 2 ? 0 : 4)
        }
    }
}

import CLinux
import Testing

@testable import StallCause

/// Goal: what the agent knows of the inside of locks and queues holds in this process.
/// Method: its own experiments. `DoctorCommandTests` has a process where they fail.
@Suite struct LayoutTests {
    @Test func `locks and queues are as the agent knows them`() {
        var unknown = [stall_unknown_layout](repeating: stall_unknown_layout(), count: 8)
        #expect(stall_layouts_probe(&unknown, unknown.count) == 0)
        #expect(stall_mutex_layout_is_known())
        #expect(stall_rwlock_layout_is_known())
        #expect(stall_queue_layout_is_usual())
    }
}

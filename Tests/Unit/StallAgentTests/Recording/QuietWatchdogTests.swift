import Foundation
import TestSupport
import Testing

/// Goal: an app thread that holds the heap's lock cannot block the watchdog, which never takes it.
/// Method: a program whose malloc counts by thread has stalls of every kind: asleep, computing, on a lock, in a poll,
/// on a queue, in an exhausted pool, with all threads captured.
@Suite struct QuietWatchdogTests {
    @Test func `the watchdog neither allocates nor frees while stalls are seen`() throws {
        try withTemporaryDirectory { directory in
            let program = try BuiltProgram("host-safety", ["allocations", directory.path])
            let (status, output, _) = program.finish()
            #expect(output.contains("watchdog allocations=0 frees=0 flushed=1"), "\(output)")
            #expect(status == 0)
        }
    }
}

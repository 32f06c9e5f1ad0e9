import Foundation
import TestSupport
import Testing

/// Goal: the watchdog can be blocked by no thread of the app that holds the heap's lock: it never asks for it.
/// Method: a program whose malloc counts by thread plays stalls of every shape: asleep, computing, behind a lock, in a poll, on a
/// queue, in an exhausted pool, with all threads looked at.
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

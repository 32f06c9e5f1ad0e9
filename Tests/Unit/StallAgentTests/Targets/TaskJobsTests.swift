import CLinux
import Dispatch
import Glibc
import TestSupport
import Testing

@testable import StallAgent

/// Goal: jobs of tasks are marked as long as a monitor watches them, whatever other monitors do meanwhile.
/// Method: monitors that start nothing; one ends while the other begins, some thousand times. In its own process: the
/// hook is the process's.
@Suite struct TaskJobsTests {
    @Test func `the end of one monitor leaves the hook of another that begins`() async {
        await #expect(processExitsWith: .success) {
            let monitors = try (0..<2).map { _ in
                var configuration = StallMonitor.Configuration(app: "test", version: "1")
                configuration.isEnabled = false
                return try StallMonitor.start(configuration)
            }
            let queue = DispatchQueue(label: "ends")
            _ = TaskJobs.begin(for: monitors[0], threshold: nil)
            for round in 0..<20_000 {
                let (ending, beginning) = (monitors[round % 2], monitors[(round + 1) % 2])
                let hasEnded = DispatchSemaphore(value: 0)
                queue.async {
                    TaskJobs.end(for: ending)
                    hasEnded.signal()
                }
                guard TaskJobs.begin(for: beginning, threshold: nil) else { exit(2) }
                hasEnded.wait()
                guard stall_jobs_are_marked() else { exit(1) }
            }
            for monitor in monitors { TaskJobs.end(for: monitor) }
            exit(stall_jobs_are_marked() ? 3 : 0)
        }
    }
}

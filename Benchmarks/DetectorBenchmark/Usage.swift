// What the kernel says a process has used.

import CLinux
import Foundation

/// Times in seconds, since some point that cancels out.
struct Usage {
    var wall: Double
    /// CPU time of the calling thread.
    var thread: Double
    /// CPU time of all threads.
    var process: Double
    /// Context switches of all threads.
    var switches: Double

    static func now() -> Usage {
        var usage = rusage()
        getrusage(__rusage_who_t(RUSAGE_SELF.rawValue), &usage)
        return Usage(
            wall: seconds(CLOCK_MONOTONIC), thread: seconds(CLOCK_THREAD_CPUTIME_ID),
            process: seconds(CLOCK_PROCESS_CPUTIME_ID),
            switches: Double(usage.ru_nvcsw + usage.ru_nivcsw))
    }

    static func - (left: Self, right: Self) -> Self {
        Usage(
            wall: left.wall - right.wall, thread: left.thread - right.thread,
            process: left.process - right.process, switches: left.switches - right.switches)
    }

    private static func seconds(_ clock: clockid_t) -> Double {
        var time = timespec()
        clock_gettime(clock, &time)
        return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
    }
}

/// CPU seconds of the thread that watches all loops; 0 where there is none.
func watchdogSeconds() -> Double {
    let tasks = (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/task")) ?? []
    let nanoseconds = tasks.compactMap { task -> Double? in
        let folder = "/proc/self/task/\(task)"
        guard let name = try? String(contentsOfFile: folder + "/comm", encoding: .utf8),
            name.hasPrefix("stall-watchdog"),
            let schedule = try? String(contentsOfFile: folder + "/schedstat", encoding: .utf8)
        else { return nil }
        return schedule.split(separator: " ").first.flatMap { Double($0) }
    }
    return nanoseconds.reduce(0, +) / 1e9
}

// Where a hung test is: the values of a report.

internal import StallModel

/// A thread that a test holds.
struct BlockedThread {
    var id: ThreadID
    var name: String
    /// From where it is blocked out to the test's function, without the runtime's functions between.
    var frames: [Frame]
    var wait: WaitFinding
    /// The threads that hold what it waits for, each what the one before it waits for.
    var holders: [BlockedThread] = []
    /// Of one that runs: the CPU time of its whole life.
    var cpuTime = Duration.zero

    /// The innermost line of the package.
    var place: (file: String, line: Int)? { frames.ownPlace }
}

/// The wait of a thread.
struct WaitFinding {
    var isRunning = false
    /// `a semaphore`, `the end of process 17 'sleep'`
    var object: String
    var cause = CauseClass.unknown
    /// `thread 12 'main'`, each holding what the one before it waits for.
    var holders: [String] = []
    var holderIDs: [ThreadID] = []
    /// The last holder waits for one of the others.
    var isCircular = false

    var sentence: String {
        if isRunning { return "it computes" }
        var text = "it waits for " + object
        if !holders.isEmpty {
            text += ", held by " + holders.joined(separator: ", which waits for a lock held by ")
        }
        return isCircular ? text + ": a deadlock" : text
    }
}

/// A task without a thread.
struct WaitingTask {
    var id: UInt64
    var isEnqueued: Bool
    /// From where it will resume out to the test's function.
    var frames: [Frame]
    /// `a continuation, in withCheckedContinuation`
    var awaits: String
    /// The task or tasks that it awaits.
    var awaited: [WaitingTask] = []
    /// Of an awaited task: the thread that runs it.
    var thread: ThreadID?

    var place: (file: String, line: Int)? { frames.ownPlace }
}

extension [Frame] {
    /// The innermost line of a file that people wrote.
    fileprivate var ownPlace: (file: String, line: Int)? {
        lazy.compactMap { frame in
            guard frame.isOwn, let file = frame.file, let line = frame.line, line > 0 else {
                return nil
            }
            return (file, line)
        }.first
    }
}

extension Frame {
    /// Of the tests' own image, and not generated.
    var isOwn: Bool {
        // SwiftPM compiles a file of its own, with the entry point.
        return imagePath?.hasSuffix(".xctest") == true && !isGenerated
            && file?.contains("/.build/") != true && function?.hasPrefix("static Runner.") != true
            && function != "main"
    }

    /// Macros' expansions and the compiler's adapters.
    var isGenerated: Bool {
        if file?.contains("@__swiftmacro_") == true { return true }
        guard let function else { return false }
        return ["partial apply for ", "thunk for ", "merged partial apply", "reabstraction thunk"]
            .contains { function.hasPrefix($0) } || function.contains("TestfMp_")
    }

    /// Part of the runtime that runs a job.
    var runsJob: Bool {
        guard let function else { return false }
        return function.hasPrefix("swift_job_run")
            || function.contains("runJobInEstablishedExecutorContext")
    }

    /// Whether it is the test's function, or a closure in it.
    func isOf(_ test: TestDescription) -> Bool {
        guard let function, !isGenerated else { return false }
        if let file, let known = test.path ?? test.fileID,
            file.split(separator: "/").last != known.split(separator: "/").last
        {
            return false
        }
        return test.isNamed(in: function)
    }
}

// A report of hung tests as JSON lines: `stallctl.hung-run/1`, then `stallctl.hung-test/1` for each test and
// `stallctl.hung-process/1` for each process.

internal import Foundation
internal import StallFormats
internal import StallModel

extension HangReport {
    var jsonLines: [String] {
        let tests: [any Encodable] = tests.map { HungTestLine($0, of: self) }
        let processes: [any Encodable] = processes.map { HungProcessLine($0, of: self) }
        return ([HungRunLine(self)] + tests + processes)
            .compactMap { try? JSONLines.line($0).trimmingCharacters(in: .newlines) }
    }
}

private struct HungRunLine: Encodable {
    var schema = "stallctl.hung-run/1"
    var reason: String
    var reasonMs: Double
    var started: Int
    var ended: Int
    var unfinished: Int

    init(_ report: HangReport) {
        (reason, reasonMs) = report.reason.words
        (started, ended) = (report.startedCount, report.endedCount)
        unfinished = report.tests.count
    }
}

extension HangJudge.Reason {
    fileprivate var words: (String, Double) {
        switch self {
        case .noProgress(let time): ("no_progress", time.milliseconds)
        case .deadline(let time): ("deadline", time.milliseconds)
        }
    }
}

private struct HungTestLine: Encodable {
    var schema = "stallctl.hung-test/1"
    var reason: String
    var reasonMs: Double
    var id: String
    var name: String
    var file: String?
    var line: Int?
    var elapsedMs: Double?
    var cases: [String]
    var waitsForPool: Bool
    var threads: [ThreadLine]
    var tasks: [TaskLine]

    init(_ test: HangReport.HungTest, of report: HangReport) {
        (reason, reasonMs) = report.reason.words
        id = test.description.id
        name = test.description.name
        file = test.description.path ?? test.description.fileID
        line = test.description.line
        elapsedMs = test.elapsed?.milliseconds
        cases = test.cases
        waitsForPool = test.waitsForPool
        threads = test.threads.map { ThreadLine($0) }
        tasks = test.tasks.map { TaskLine($0) }
    }
}

private struct HungProcessLine: Encodable {
    var schema = "stallctl.hung-process/1"
    var process: Int32
    var command: String
    var threads: Int
    var poolThreads: Int
    var enqueuedTasks: Int
    var busy: [BusyLine]
    var failure: String?

    struct BusyLine: Encodable {
        var thread: Int32
        var test: String?
        var file: String?
        var line: Int?
        var waitsFor: String?
    }

    init(_ process: HangReport.ExaminedProcess, of report: HangReport) {
        self.process = process.id
        command = process.command
        threads = process.threadCount
        poolThreads = process.poolSize
        enqueuedTasks = process.enqueuedCount
        failure = process.failure
        busy = process.busy.map { thread in
            BusyLine(
                thread: thread.id.rawValue, test: report.test(of: thread.id)?.description.id,
                file: thread.place?.file, line: thread.place?.line,
                waitsFor: thread.wait.isRunning ? nil : thread.wait.object)
        }
    }
}

private struct ThreadLine: Encodable {
    var thread: Int32
    var name: String
    var file: String?
    var line: Int?
    var isRunning: Bool
    var waitsFor: String?
    var heldBy: [String]
    var isDeadlock: Bool
    var frames: [FrameLine]

    init(_ thread: BlockedThread) {
        self.thread = thread.id.rawValue
        name = thread.name
        file = thread.place?.file
        line = thread.place?.line
        isRunning = thread.wait.isRunning
        waitsFor = thread.wait.isRunning ? nil : thread.wait.object
        heldBy = thread.wait.holders
        isDeadlock = thread.wait.isCircular
        frames = thread.frames.map { FrameLine($0) }
    }
}

private struct TaskLine: Encodable {
    var task: UInt64
    var state: String
    var thread: Int32?
    var file: String?
    var line: Int?
    var awaits: String
    var frames: [FrameLine]
    var awaited: [TaskLine]

    init(_ task: WaitingTask) {
        self.task = task.id
        state = task.thread != nil ? "running" : task.isEnqueued ? "enqueued" : "suspended"
        thread = task.thread?.rawValue
        file = task.place?.file
        line = task.place?.line
        awaits = task.awaits
        frames = task.frames.map { FrameLine($0) }
        awaited = task.awaited.map { TaskLine($0) }
    }
}

private struct FrameLine: Encodable {
    var function: String
    var file: String?
    var line: Int?

    init(_ frame: Frame) {
        function = frame.title
        file = frame.file
        line = frame.line
    }
}

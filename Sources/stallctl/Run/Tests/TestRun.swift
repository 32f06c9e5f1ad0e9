// A run of `swift test`: follows its event stream and its processes, and reports hung tests.

internal import Foundation
internal import Glibc
internal import StallInspection
internal import StallModel

/// The form of a report of hung tests.
enum HangFormat: String, CaseIterable { case text, github, json }

struct TestRun: ~Copyable {
    /// The status of this process if it ended the tests, as timeout(1) has it.
    static let killedStatus: CInt = 124
    static let interval = Duration.milliseconds(250)

    private let format: HangFormat
    private var stream: TestEventStream
    private var progress: TestProgress
    private var judge: HangJudge
    /// Created by this process for the stream, unless the user named a file.
    private let ownFolder: String?
    private var runningTests: [RunningProcess] = []
    private var looks = 0
    private(set) var hasKilled = false
    /// XCTest's tests in progress, as they were seen last; nil: none.
    private var xctest: Set<String>?
    private var nextXCTestLook: MonotonicInstant
    private let xctestInterval: Duration
    /// Where the tests of reports are kept, if they are to be.
    private var store: HangStore?

    /// The command to execute: with a stream, if it had none.
    let command: [String]

    init(
        _ test: SwiftTestCommand, _ command: [String], _ names: SwiftTestCommand.StreamOptions,
        _ limits: HangJudge.Limits, _ format: HangFormat, store: HangStore? = nil
    ) throws {
        let now = Self.now
        self.format = format
        progress = TestProgress(at: now)
        xctestInterval = max(.seconds(1), (limits.test ?? .seconds(60)) / 4)
        nextXCTestLook = now + xctestInterval
        judge = HangJudge(limits, at: now)
        self.store = store
        if let path = test.streamPath {
            // SwiftPM changes to the package's folder before it looks at the path.
            let folder = path.hasPrefix("/") ? "" : (test.packagePath.map { $0 + "/" } ?? "")
            stream = TestEventStream(path: folder + path)
            ownFolder = nil
            self.command = command
            return
        }
        let folder: String
        do throws(ScratchFolder.Failure) {
            let current = FileManager.default.currentDirectoryPath
            folder = try ScratchFolder.make(named: "stallctl-tests", orIn: [current])
        } catch {
            throw RunProblem(
                "the tests are not followed: \(error.reason); set TMPDIR to a directory that this user can write"
            )
        }
        ownFolder = folder
        stream = TestEventStream(path: folder + "/events.jsonl")
        self.command = test.command(streamingTo: folder + "/events.jsonl", names)
    }

    /// Deletes the stream, unless the user named its file.
    func removeStream() {
        guard let ownFolder else { return }
        unlink(ownFolder + "/events.jsonl")
        rmdir(ownFolder)
    }

    private static var now: MonotonicInstant {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return MonotonicInstant(
            nanoseconds: UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec))
    }

    /// Called every `interval` while the command runs.
    mutating func look() {
        let now = Self.now
        for event in stream.read() { progress.note(event, at: now) }
        looks += 1
        if looks % 4 == 1 { findTests() }
        let hasLookedAtXCTest = lookAtXCTest(at: now)
        closeEnded(hasLookedAtXCTest)
        let isFollowed = runningTests.contains(where: \.usesSwiftTesting) || xctest != nil
        let change = isFollowed ? progress.lastChange : nil
        switch judge.verdict(lastChange: change, at: now) {
        case .goesOn: break
        case .hangs(let reason): report(reason)
        case .kill:
            say("stallctl: the tests are ended")
            hasKilled = true
            ProcessTree.end(below: getpid())
        }
    }

    /// Another test than before is progress.
    private mutating func lookAtXCTest(at now: MonotonicInstant) -> Bool {
        guard now >= nextXCTestLook else { return false }
        nextXCTestLook = now + xctestInterval
        let current = XCTestPosition.current(of: runningTests)
        if current != xctest { progress.noteProcesses(at: now) }
        xctest = current
        return true
    }

    /// Closes the stored reports of tests that have ended.
    private mutating func closeEnded(_ hasLookedAtXCTest: Bool) {
        guard store?.isEmpty == false else { return }
        let unfinished = Set(progress.unfinished.map(\.test.id))
        let current = hasLookedAtXCTest ? xctest : nil
        store?.close(now: .now) { test, process, isStreamed in
            isStreamed
                ? !unfinished.contains(test)
                : current.map { !$0.contains("\(process) \(test)") } ?? false
        }
    }

    /// After the end of the command.
    mutating func closeStore() {
        store?.closeAll(now: .now, wereKilled: hasKilled)
        sayFailureOfStore()
    }

    private func sayFailureOfStore() {
        guard let failure = store?.failure else { return }
        say("stallctl: the hung tests are not stored: \(failure)".printable)
    }

    /// Progress is also that a process with tests starts or ends.
    private mutating func findTests() {
        let isSame =
            !runningTests.isEmpty
            && runningTests.allSatisfy { RunningProcess($0.id)?.startTicks == $0.startTicks }
        if isSame { return }
        let found = ProcessTree.descendants(of: getpid()).filter(\.runsTests)
        if found.map(\.startTicks) != runningTests.map(\.startTicks) {
            progress.noteProcesses(at: Self.now)
        }
        runningTests = found
    }

    private mutating func report(_ reason: HangJudge.Reason) {
        let report = HangReport(
            reason: reason, progress: progress, examining: runningTests, now: Date())
        switch format {
        case .text: for line in report.textLines { say(line) }
        case .github: for line in report.gitHubLines { say(line) }
        case .json: for line in report.jsonLines { say(line) }
        }
        store?.record(report, now: .now)
    }
}

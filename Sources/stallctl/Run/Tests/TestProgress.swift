// The state of a run of tests, from its event stream.

internal import Foundation
internal import StallModel

struct TestProgress {
    /// A test that has started and not ended.
    struct Unfinished: Equatable {
        var test: TestDescription
        /// On the wall clock, as the stream says.
        var started: Date?
        /// Of a parameterized test: the cases that have started and not ended, by their arguments.
        var cases: [String] = []
    }

    /// The last start or end of a test or of a case.
    private(set) var lastChange: MonotonicInstant
    private(set) var endedCount = 0
    private(set) var startedCount = 0
    private var tests: [String: TestDescription] = [:]
    private var unfinishedTests: [String: Unfinished] = [:]
    private var order: [String] = []

    init(at now: MonotonicInstant) { lastChange = now }

    /// In the order in which they were started, without suites.
    var unfinished: [Unfinished] {
        order.compactMap { unfinishedTests[$0] }.filter { !$0.test.isSuite }
    }

    /// Processes that run tests have started or ended.
    mutating func noteProcesses(at now: MonotonicInstant) { lastChange = max(lastChange, now) }

    mutating func note(_ event: TestEvent, at now: MonotonicInstant) {
        switch event {
        case .described(let test):
            tests[test.id] = test
            unfinishedTests[test.id]?.test = test
            return
        case .other: return
        case .started(let id, let time):
            // A suite has no file in its id.
            let test = tests[id] ?? TestDescription(id: id, name: id)
            if unfinishedTests.updateValue(Unfinished(test: test, started: time), forKey: id) == nil
            {
                order.append(id)
            }
            if !test.isSuite { startedCount += 1 }
        case .ended(let id):
            guard let ended = unfinishedTests.removeValue(forKey: id) else { break }
            order.removeAll { $0 == id }
            if !ended.test.isSuite { endedCount += 1 }
        case .caseStarted(let id, let name, _): unfinishedTests[id]?.cases.append(name)
        case .caseEnded(let id, let name):
            guard let index = unfinishedTests[id]?.cases.firstIndex(of: name) else { break }
            unfinishedTests[id]?.cases.remove(at: index)
        case .runStarted:
            // The stream's file is written by one process at a time.
            unfinishedTests = [:]
            order = []
        case .runEnded: break
        }
        lastChange = now
    }
}

import Foundation
import StallArchive
import StallIngest
import StallModel
import StallQuery
import StallStore
import StoreTestSupport
import TestSupport
import Testing

/// Goal: of equally long records of one stall the same one stays in any order of import, whatever they differ in.
/// Method: three clones with a report for each field that the model's types have. The records of a report differ in that
/// field alone; the clones are imported in all six orders. A new field fails here until it has values.
@Suite struct ReportContentTests {
    let directory = try! TemporaryDirectory()

    typealias Change = @Sendable (inout StallReport, Int) -> Void

    /// For each field, the values that the three records have.
    static let changes: [String: Change] = [
        "StallReport.loop": { $0.loop = ["a", "b", "c"][$1] },
        "StallReport.mode": { $0.mode = ["a", "b", "c"][$1] },
        "StallReport.phase": { $0.phase = [.block, .timer, .source][$1] },
        "StallReport.activity": { $0.activity = ["a", nil, "c"][$1] },
        "StallReport.start": { $0.start.microseconds += [0, 1, 100_000_000_000][$1] },
        "StallReport.cpuTime": { $0.cpuTime = .microseconds($1) },
        "StallReport.delayedTime": { $0.delayedTime = .microseconds($1) },
        "StallReport.threshold": { $0.threshold = .milliseconds(100 + $1) },
        "StallReport.detectionDelay": { $0.detectionDelay = .microseconds($1) },
        "StallReport.verdict": { $0.verdict = [.stalled, .starved, .stopped][$1] },
        "StallReport.samples": { $0.samples += $0.samples.prefix($1) },
        "StallReport.cause": { if $1 == 1 { $0.cause = nil } },
        "StallReport.threads": { $0.threads += $0.threads.prefix($1) },
        "StallReport.skippedThreadCount": { $0.skippedThreadCount = $1 },
        "StallReport.agentTime": { $0.agentTime = .microseconds($1) },
        "StallOutcome.ending": {
            if $0.state == .hang { $0.outcome.ending = [.killed, .crash, .exit][$1] }
        },
        "Sample.offset": { $0.samples[1].offset = .milliseconds(200 + $1) },
        "Sample.weight": { $0.samples[1].weight = .milliseconds(200 + $1) },
        "Sample.isLate": { $0.samples[1].isLate = $1 == 1 },
        "Sample.thread": { $0.samples[1].thread = ThreadID(rawValue: Int32($1 + 5)) },
        "Sample.method": { $0.samples[1].method = [nil, .signal, .signalFree][$1] },
        "Sample.isTruncated": { $0.samples[1].isTruncated = $1 == 1 },
        "Sample.captureCost": { $0.samples[1].captureCost = .microseconds(20 + $1) },
        "Sample.failure": { $0.samples[1].failure = ["a", nil, "c"][$1] },
        "Sample.locations": { $0.samples[1].locations.removeLast($1) },
        "ThreadSnapshot.thread": { $0.threads[0].thread = ThreadID(rawValue: Int32($1 + 5)) },
        "ThreadSnapshot.name": { $0.threads[0].name = ["a", nil, "c"][$1] },
        "ThreadSnapshot.role": { $0.threads[0].role = [.holder, .member, .other][$1] },
        "ThreadSnapshot.method": { $0.threads[0].method = [nil, .signal, .signalFree][$1] },
        "ThreadSnapshot.isTruncated": { $0.threads[0].isTruncated = $1 == 1 },
        "ThreadSnapshot.failure": { $0.threads[0].failure = ["a", nil, "c"][$1] },
        "ThreadSnapshot.locations": { $0.threads[0].locations.removeLast($1) },
        "StallCause.cause": { $0.cause?.cause = [.lock, .cpu, .disk][$1] },
        "StallCause.confidence": { $0.cause?.confidence = [0.5, 0.98, 1.0 / 3][$1] },
        "StallCause.shares": { $0.cause?.shares.removeLast($1) },
        "StallCause.evidence": { $0.cause?.evidence.removeLast($1) },
        "StallCause.holder": { if $1 == 1 { $0.cause?.holder = nil } },
        "CauseShare.cause": { $0.cause?.shares[1].cause = [.sleep, .cpu, .disk][$1] },
        "CauseShare.fraction": { $0.cause?.shares[1].fraction = Double($1) / 10 },
        "CauseEvidence.name": { $0.cause?.evidence[0].name = ["a", "b", "system call"][$1] },
        "CauseEvidence.value": {
            $0.cause?.evidence[0].value = ["futex 1", "futex 2", "read"][$1]
        },
        "LockHolder.thread": { $0.cause?.holder?.thread = ThreadID(rawValue: Int32($1 + 5)) },
        "LockHolder.name": { $0.cause?.holder?.name = ["a", nil, "c"][$1] },
        "LockHolder.isDeadlock": { $0.cause?.holder?.isDeadlock = $1 == 1 },
    ]

    /// Fields of one stall that came equally far, which all its records share, and names, which are a location's.
    static let common: Set = [
        "StallReport.id", "StallReport.run", "StallReport.duration", "StallReport.outcome",
        "StallOutcome.state", "Sample.frames", "ThreadSnapshot.frames",
    ]

    private func base(_ generator: inout ReportGenerator, _ state: StallState) -> StallReport {
        let stack = (0..<4).map { generator.location(depth: $0) }
        let thread = ThreadID(rawValue: 4711)
        var report = StallReport(
            id: generator.report().id, run: generator.run, loop: "main", mode: "default",
            phase: .timer, start: generator.run.started, duration: .milliseconds(900),
            threshold: .milliseconds(250), state: state,
            samples: [100, 300, 600].map {
                Sample(
                    offset: .milliseconds($0), weight: .milliseconds(300), thread: thread,
                    method: .signalFree, locations: stack)
            },
            cause: StallCause(
                .lock, confidence: 0.98, shares: [CauseShare(.lock, 0.9), CauseShare(.cpu, 0.1)],
                evidence: [
                    CauseEvidence("system call", "futex 0x7"), CauseEvidence("lock", "a mutex"),
                ],
                holder: LockHolder(thread: thread, name: "compactor", isDeadlock: false)),
            threads: [
                ThreadSnapshot(
                    thread: thread, name: "compactor", role: .holder, method: .signalFree,
                    locations: stack)
            ])
        if state == .hang { report.outcome.ending = .killed }
        return report
    }

    private func fields(_ value: Any) -> [String] {
        Mirror(reflecting: value).children.map { "\(type(of: value)).\($0.label!)" }
    }

    @Test func `every field of a report has values to differ in`() {
        var generator = ReportGenerator(seed: 1)
        let report = base(&generator, .hang)
        let parts: [Any] = [
            report, report.outcome, report.samples[0], report.threads[0], report.cause!,
            report.cause!.shares[0], report.cause!.evidence[0], report.cause!.holder!,
        ]
        #expect(Set(parts.flatMap(fields)) == Self.common.union(Self.changes.keys))
    }

    @Test(arguments: [StallState.open, .hang, .ended])
    func `the record that stays does not depend on the order of import`(state: StallState) throws {
        var generator = ReportGenerator(seed: 1)
        let names = Self.changes.keys.sorted()
        let reports = names.map { _ in base(&generator, state) }
        let files = (0..<3).map { directory("\($0).sqlite") }
        for (number, file) in files.enumerated() {
            // Each in a store of its own: with its own identity, and other numbers of rows.
            let store = try AgentStore(path: file, run: generator.run)
            for (report, name) in zip(reports, names).rotated(by: number) {
                var report = report
                Self.changes[name]!(&report, number)
                try store.record(report, images: generator.images)
            }
            try store.close()
        }

        func stored(_ files: [String], _ name: String) throws -> [UniqueID: Set<StallReport>] {
            let central = directory("\(name).sqlite")
            let ingest = try Ingest(into: central)
            for file in files { #expect(try ingest.run([file]).skippedCount == 0) }
            try ingest.close()
            #expect(try checkStore(path: central).isEmpty)
            let all = try ReportStore.open(path: central).reports(ReportFilter())
            return Dictionary(grouping: all, by: \.id).mapValues { Set($0) }
        }
        let single = try files.map { try stored([$0], "only-\($0.suffix(8).first!)") }
        var answers: [[UniqueID: Set<StallReport>]] = []
        for first in 0..<3 {
            for second in 0..<3 where second != first {
                let order = [first, second, 3 - first - second]
                answers.append(try stored(order.map { files[$0] }, "all-\(first)\(second)"))
            }
        }
        for (report, name) in zip(reports, names) {
            let records = single.reduce(into: Set()) { $0.formUnion($1[report.id] ?? []) }
            // Only a hang has an ending to be chosen.
            #expect(records.count > 1 || name == "StallOutcome.ending" && state != .hang, "\(name)")
            let kept = Set(answers.map { $0[report.id] ?? [] })
            #expect(kept.count == 1, "\(name) \(state): \(kept.count) answers")
            #expect(kept.first?.isSubset(of: records) == true, "\(name)")
            if state != .ended { #expect(kept.first?.count == 1, "\(name)") }
        }
    }
}

extension Sequence {
    fileprivate func rotated(by count: Int) -> [Element] {
        Array(dropFirst(count)) + Array(prefix(count))
    }
}

// A hung test as a report of a stall, so that a store can keep it: the loop is the test, which has been busy since it
// started. Facts that are not known of a test are left out.

internal import StallModel

extension HangReport {
    /// The report of a test that still hangs.
    ///
    /// - Parameters:
    ///   - run: The process that the test is in.
    ///   - id: Of the report; its time is the test's start.
    ///   - limit: After which a test without progress is reported.
    func stall(
        of test: HungTest, in run: ProcessRun, id: UniqueID, start: UnixTime, limit: Duration
    ) -> StallReport {
        let duration = duration(of: test)
        let threshold = min(limit, duration)
        var report = StallReport(
            id: id, run: run, loop: String(test.description.idWithoutFile), mode: "test",
            phase: .marked,
            activity: test.cases.first, start: start, duration: duration, threshold: threshold,
            detectionDelay: duration - threshold, state: .open)
        if let thread = test.threads.first {
            report.cpuTime = min(duration, thread.cpuTime)
            report.samples = [sample(duration, thread.id, thread.frames)]
            report.threads =
                thread.holders.map { Self.snapshot($0, .holder) }
                + test.threads.dropFirst().filter { other in
                    !thread.holders.contains { $0.id == other.id }
                }.map { Self.snapshot($0, .other) }
        } else if let task = test.tasks.first {
            // No thread has it.
            report.samples = [sample(duration, ThreadID(rawValue: 0), task.frames)]
        }
        report.cause = cause(of: test)
        return report
    }

    /// How long a test has run. Without a start, as in XCTest, it is the time without progress.
    func duration(of test: HungTest) -> Duration {
        if let elapsed = test.elapsed { return elapsed }
        guard case .noProgress(let time) = reason else { return .zero }
        return time
    }

    private func sample(_ duration: Duration, _ thread: ThreadID, _ frames: [Frame]) -> Sample {
        Sample(
            offset: duration, weight: duration, thread: thread, method: .signalFree,
            locations: frames.locations, frames: frames)
    }

    private static func snapshot(_ thread: BlockedThread, _ role: ThreadRole) -> ThreadSnapshot {
        ThreadSnapshot(
            thread: thread.id, name: thread.name, role: role, method: .signalFree,
            locations: thread.frames.locations, frames: thread.frames)
    }

    private func cause(of test: HungTest) -> StallCause {
        var evidence = [CauseEvidence(EvidenceName.test.rawValue, test.description.name)]
        if let place = test.place {
            evidence.append(CauseEvidence(EvidenceName.testLine.rawValue, place))
        }
        guard let thread = test.threads.first else {
            let awaited =
                test.tasks.first?.awaits ?? (test.waitsForPool ? "a free thread of the pool" : nil)
            evidence += awaited.map { [CauseEvidence(EvidenceName.awaits.rawValue, $0)] } ?? []
            return StallCause(
                .unknown, confidence: 0.5, shares: [CauseShare(.unknown, 1)], evidence: evidence)
        }
        let wait = thread.wait
        if !wait.isRunning {
            evidence.append(CauseEvidence(EvidenceName.waitsFor.rawValue, wait.object))
        }
        var cause = StallCause(
            wait.cause, confidence: wait.cause == .unknown ? 0.5 : 0.95,
            shares: [CauseShare(wait.cause, 1)], evidence: evidence)
        cause.holder = thread.holders.first.map {
            LockHolder(thread: $0.id, name: $0.name, isDeadlock: wait.isCircular)
        }
        return cause
    }
}

extension StallReport {
    /// The functions at its locations, innermost first, as a store takes them.
    var names: [CodeLocation: [Frame]] {
        (samples.map(\.frames) + threads.map(\.frames)).reduce(into: [:]) { names, frames in
            for group in frames.byLocation {
                let location = group[0].location
                // Of a stack that ends within the functions of one location, only the inner ones are there.
                if names[location, default: []].count < group.count { names[location] = group }
            }
        }
    }
}

extension Frame {
    fileprivate var location: CodeLocation {
        CodeLocation(
            imagePath: imagePath, buildID: buildID, offset: offset, kind: kind,
            isGuessed: isGuessed)
    }
}

extension [Frame] {
    fileprivate var locations: [CodeLocation] { byLocation.map { $0[0].location } }

    /// Inlined functions are before the one that contains them.
    fileprivate var byLocation: [[Frame]] {
        var groups: [[Frame]] = []
        for frame in self {
            if let last = groups.last?.last, last.isInlined, last.location == frame.location {
                groups[groups.count - 1].append(frame)
            } else {
                groups.append([frame])
            }
        }
        return groups
    }
}

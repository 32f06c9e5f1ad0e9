// Samples of many threads as runs: a run ends when its thread was not sampled for long. Stacks are numbers of lines.

/// A thread, and when it was sampled.
struct SampledThread {
    var command: ArraySlice<UInt8>
    var pid: Int32?
    var tid: Int32
    /// In nanoseconds, from 0 to `UsualInterval.latest`.
    var time: Int64?
}

/// A thread's consecutive samples.
struct SampleRun {
    /// As much as a store takes of one stall, and a bound of memory.
    static let (sampleLimit, frameLimit) = (4096, 1 << 18)

    struct Entry {
        /// Where its frames begin in the run's.
        var start: Int
        var time: Int64?
        var count: Int64
        var isTruncated: Bool
    }

    var pid: Int32?
    var tid: Int32
    var name: [UInt8]
    var line: Int
    var entries: [Entry] = []
    var frames: [Int32] = []
    var (first, last): (Int64?, Int64?) = (nil, nil)
    /// The usual time between samples, as far as it is known at the end.
    var interval: Int64?

    func frames(of entry: Int) -> ArraySlice<Int32> {
        let end = entry + 1 < entries.count ? entries[entry + 1].start : frames.count
        return frames[entries[entry].start..<end]
    }

    var isFull: Bool { entries.count >= Self.sampleLimit || frames.count >= Self.frameLimit }

    mutating func add(_ stack: [Int32], at time: Int64?, isTruncated: Bool) {
        last = time ?? last
        if let place = entries.indices.last, frames(of: place).elementsEqual(stack) {
            entries[place].count += 1
            return
        }
        entries.append(
            Entry(start: frames.count, time: time, count: 1, isTruncated: isTruncated))
        frames += stack
    }
}

extension SampleRun {
    /// - Parameter frames: Gives the frames of a stack, innermost first.
    func report(
        app: [UInt8]?, frames: (ArraySlice<Int32>) -> [ForeignFrame]
    ) -> ForeignReport {
        var report = ForeignReport(kind: .samples, line: line)
        report.pid = pid
        report.app = app.map { $0[...].text } ?? ""
        if let first, let last, last > first || interval != nil {
            report.duration = .nanoseconds(last - first) + .nanoseconds(interval ?? 0)
        }
        var thread = ForeignThread(
            number: tid, name: name.isEmpty ? nil : name[...].text, isMain: pid == tid)
        // Equal stacks share their frames.
        var stacks: [ArraySlice<Int32>: [ForeignFrame]] = [:]
        thread.samples = entries.indices.map { place in
            let entry = entries[place]
            let numbers = self.frames(of: place)
            let made = stacks[numbers] ?? frames(numbers)
            stacks[numbers] = made
            var sample = ForeignSample(frames: made, count: entry.count)
            if let time = entry.time, let first { sample.offset = .nanoseconds(time - first) }
            sample.isTruncated = entry.isTruncated
            return sample
        }
        report.threads = [thread]
        return report
    }
}

/// Puts each sample into the run of its thread.
struct SampleRuns {
    private struct Thread: Hashable {
        var pid: Int32?
        var tid: Int32
    }

    /// More threads, or more frames in all, end all runs.
    private static let (threadLimit, frameLimit) = (4096, 1 << 23)
    /// A gap that is shorter than this ends no run.
    private static let shortestGap: Int64 = 100_000_000

    private var open: [Thread: Int] = [:]
    private var runs: [SampleRun] = []
    private var ended: [SampleRun] = []
    private var takenCount = 0
    private var frameCount = 0
    private var usual = UsualInterval()

    /// - Parameter line: Of the event.
    mutating func add(
        _ stack: [Int32], of event: SampledThread, line: Int, isTruncated: Bool
    ) {
        let thread = Thread(pid: event.pid, tid: event.tid)
        if open[thread] == nil, open.count >= Self.threadLimit { endAll() }
        let new = SampleRun(
            pid: event.pid, tid: event.tid, name: Array(event.command), line: line,
            first: event.time, last: event.time)
        let place: Int
        if let found = open[thread] {
            place = found
            if endsRun(runs[place], before: event) { end(place, startingWith: new) }
        } else {
            place = runs.count
            open[thread] = place
            runs.append(new)
        }
        let count = runs[place].frames.count
        runs[place].add(stack, at: event.time, isTruncated: isTruncated)
        frameCount += runs[place].frames.count - count
        if frameCount > Self.frameLimit { endAll() }
    }

    private mutating func endsRun(_ run: SampleRun, before event: SampledThread) -> Bool {
        if run.isFull || !run.name.elementsEqual(event.command) { return true }
        guard let last = run.last, let time = event.time else { return false }
        // Times are below 2^63 and not negative: their difference fits.
        let gap = time - last
        guard gap >= 0 else { return true }
        if gap > 0 { usual.add(gap) }
        guard gap >= Self.shortestGap, let interval = usual.median else { return false }
        return gap / 10 > interval || (gap / 10 == interval && gap % 10 > 0)
    }

    private mutating func end(_ place: Int, startingWith new: SampleRun) {
        var run = new
        swap(&run, &runs[place])
        frameCount -= run.frames.count
        run.interval = usual.median
        ended.append(run)
    }

    /// Ends all runs, in the order of their first lines.
    mutating func endAll() {
        for place in runs.indices.sorted(by: { runs[$0].line < runs[$1].line }) {
            runs[place].interval = usual.median
            ended.append(runs[place])
        }
        (open, runs, frameCount) = ([:], [], 0)
    }

    mutating func takeEnded() -> SampleRun? {
        guard takenCount < ended.count else {
            (ended, takenCount) = ([], 0)
            return nil
        }
        takenCount += 1
        return ended[takenCount - 1]
    }
}

/// The median of the first intervals between two samples of a thread: one clock drives all threads' samples.
struct UsualInterval {
    private static let limit = 511
    /// Twice as much is a duration: 126 years.
    static let latest: Int64 = 4_000_000_000_000_000_000
    private var sorted: [Int64] = []

    /// The lower one of two.
    var median: Int64? { sorted.isEmpty ? nil : sorted[(sorted.count - 1) / 2] }

    mutating func add(_ interval: Int64) {
        guard sorted.count < Self.limit else { return }
        var range = sorted.indices
        while !range.isEmpty {
            let middle = range.lowerBound + range.count / 2
            if sorted[middle] < interval {
                range = middle + 1..<range.upperBound
            } else {
                range = range.lowerBound..<middle
            }
        }
        sorted.insert(interval, at: range.lowerBound)
    }
}

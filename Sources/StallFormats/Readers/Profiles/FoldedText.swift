// Folded stacks, as FlameGraph's scripts write them and most profilers can: `root;caller;leaf 42`.
//
// There is no header, no time and no unit. Equal stacks are summed up, so that a profile of any size is read in bounded
// memory; FoldedStacks.swift writes the format.
//
// **Source:** brendangregg/FlameGraph, stackcollapse-perf.pl; swift-profile-recorder, FlamegraphCollapsed.swift.

internal import StallModel
internal import StallQuery

/// Reads folded stacks: a report for each thread, or several of one with very many stacks, at the end of the text.
struct FoldedText: FormatReader {
    /// Bounds of the distinct stacks that are kept; more of them end the reports early.
    private static let (stackLimit, byteLimit) = (1 << 20, 1 << 26)

    /// The most frames of a report, but for the last stack.
    private static let elementLimit = 1 << 20

    private(set) var lines: TextLines
    private var stacks = TextNumbers()
    private var elements = FoldedElements()
    /// Of each stack, in thousandths: a profile may have decimals.
    private var totals: [Total] = []
    private var hasDecimals = false
    private var isOfOneProfile = false
    /// The stacks of each thread whose report comes, the next one last.
    private var groups: [Group] = []
    /// The commands of main threads.
    private var apps: [Int32: String] = [:]

    private struct Group {
        var thread: FoldedThread?
        var place: Int
        var stacks: ArraySlice<Int>
    }

    private struct Total {
        var count: Int64
        var line: Int
        /// The times of swift-profile-recorder's samples.
        var times: ClosedRange<Int64>?
    }

    init(_ lines: TextLines, _ options: ReadingOptions) { self.lines = lines }

    static func recognizes(_ beginning: TextBeginning) -> Bool {
        // The last one may be cut off.
        let whole = beginning.lines.count > 1 ? beginning.lines.dropLast() : beginning.lines[...]
        let filled = whole.lazy.filter { !$0.utf8.allSatisfy(\.isBlank) }
        let (all, good) = filled.reduce(into: (0, 0)) { counts, line in
            counts.0 += 1
            if FoldedLine(ArraySlice(line.utf8)) != nil { counts.1 += 1 }
        }
        // Sentences, tables of values, code and JSON have such lines as well, but spaces at their semicolons and braces, and
        // quotation marks first. Names of closures have braces: `main::{{closure}}`.
        let likeProse = filled.count { line in
            ["; ", " ;", " {", "{ "].contains { line.contains($0) }
                || ["\"", "{\"", "[\""].contains { line.drop { $0 == " " }.hasPrefix($0) }
        }
        return good > 0 && good * 100 >= all * 95 && filled.contains { $0.utf8.contains(0x3b) }
            && likeProse * 20 <= all
    }

    mutating func next() throws(LineFault) -> ForeignReport? {
        while true {
            if var group = groups.popLast() {
                let part = takePart(of: &group)
                let report = report(part, of: group)
                if !group.stacks.isEmpty { groups.append(group) }
                if groups.isEmpty {
                    stacks.removeAll()
                    totals.removeAll()
                }
                return report
            }
            guard let line = lines.next()?[...] else {
                groupStacks()
                if groups.isEmpty { return nil }
                continue
            }
            if line.allSatisfy(\.isBlank) { continue }
            guard let line = FoldedLine(line) else {
                throw LineFault(line: lines.number, reason: "is no stack with a count behind it")
            }
            // In such a file all lines are; in others a name may end with a number.
            if !line.isDifference { isOfOneProfile = true }
            guard isOfOneProfile else {
                throw LineFault(
                    line: lines.number, reason: "has two counts, of two profiles that are compared")
            }
            add(line)
            if stacks.count > Self.stackLimit || stacks.byteCount > Self.byteLimit { groupStacks() }
        }
    }

    private mutating func add(_ line: FoldedLine) {
        let number = stacks.number(of: line.stack)
        if number == totals.count { totals.append(Total(count: 0, line: lines.number)) }
        var count = line.thousandths
        if let time = line.time {
            count = 1000
            let times = totals[number].times ?? time...time
            totals[number].times = min(times.lowerBound, time)...max(times.upperBound, time)
        }
        hasDecimals = hasDecimals || count % 1000 != 0
        let (sum, overflow) = totals[number].count.addingReportingOverflow(count)
        totals[number].count = overflow ? .max : sum
    }

    // MARK: Reports

    /// A group for each thread, in the order of the text.
    private mutating func groupStacks() {
        var places: [FoldedThread?: Int] = [:]
        for number in totals.indices where totals[number].count > 0 {
            let thread = FoldedThread(stack: stacks[number])
            if let place = places[thread] {
                groups[place].stacks.append(number)
            } else {
                places[thread] = groups.count
                groups.append(Group(thread: thread, place: groups.count, stacks: [number]))
            }
        }
        apps = [:]
        for case let thread? in groups.lazy.map(\.thread) where thread.isMain {
            if let pid = thread.pid { apps[pid] = thread.name }
        }
        groups.reverse()
        if groups.isEmpty {
            stacks.removeAll()
            totals.removeAll()
        }
    }

    /// Takes as many stacks as a store takes of one report.
    private func takePart(of group: inout Group) -> ArraySlice<Int> {
        var elements = 0
        let part = group.stacks.prefix(SampleRun.sampleLimit).prefix { number in
            defer { elements += 1 + stacks[number].count { $0 == 0x3b } }
            return elements <= Self.elementLimit
        }
        group.stacks = group.stacks[part.endIndex...]
        return part
    }

    private mutating func report(_ numbers: ArraySlice<Int>, of group: Group) -> ForeignReport {
        let thread = group.thread
        var report = ForeignReport(
            kind: .samples, line: numbers.first.map { totals[$0].line } ?? 0)
        report.pid = thread?.pid
        if hasDecimals { report.countOfSample = 1000 }
        report.app = thread?.pid.map { apps[$0] ?? "" } ?? thread?.app ?? ""
        let number = thread?.tid ?? Int32(truncatingIfNeeded: group.place + 1)
        var made = ForeignThread(
            number: number, name: thread?.name, isMain: thread?.isMain ?? false)
        let times = numbers.compactMap { totals[$0].times }
        let first = times.map(\.lowerBound).min()
        if let first, let last = times.map(\.upperBound).max() {
            report.start = UnixTime(microseconds: first / 1000)
            if last > first { report.duration = .nanoseconds(last - first) }
        }
        made.samples = numbers.map { number in
            var sample = ForeignSample(
                frames: FoldedLine.frames(of: stacks[number], thread, &elements))
            let count = totals[number].count
            sample.count = hasDecimals ? count : count / 1000
            if let first, let time = totals[number].times?.lowerBound {
                sample.offset = .nanoseconds(time - first)
            }
            return sample
        }
        report.threads = [made]
        return report
    }
}

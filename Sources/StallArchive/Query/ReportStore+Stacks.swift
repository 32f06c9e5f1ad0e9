// The rows that call trees and rankings by all functions of a stack need: every stall once, with its stacks as numbers,
// and every function on them once.

package import StallModel
package import StallQuery
package import StallStore

extension ReportStore {
    /// The stacks of the stalls that the filter selects, added up.
    ///
    /// **Cost:** time grows with the reports, memory with the different sets of stacks.
    package func stackSets(_ filter: ReportFilter) throws(StoreError) -> StackSets {
        try answer { connection in
            var sets = StackSets()
            let loops = try LoopKinds(connection) { sets.number(ofExecutable: $0) }
            var filter = filter
            filter.verdicts = filter.verdicts ?? [.stalled]
            let condition = Condition(filter)
            let rows = try connection.prepare(
                """
                select report.loop, report.duration_ns, report.samples
                from \(connection.reports(filter)) where \(condition.sql)
                """)
            try condition.bind(to: rows)
            var stacks = SampleStacks()
            while try rows.step() {
                guard let loop = try loops.loop(rows.integer()) else {
                    throw rows.damage("a report of no loop")
                }
                let duration = try rows.duration_ns()
                try stacks.read(rows, in: duration)
                sets.add(stacks.stall, lasting_ns: duration, executable: loop.executable)
            }
            return sets
        }
    }

    /// The stalls that the filter selects.
    ///
    /// **Cost:** 32 bytes for each, and the rows that they share.
    package func stallTable(
        _ filter: ReportFilter, expected: Int
    ) throws(StoreError) -> StallTable {
        try answer { connection in
            var table = StallTable()
            let loops = try LoopKinds(connection) { table.sets.number(ofExecutable: $0) }
            let watched = try WatchedLoops(connection)
            let condition = Condition(filter)
            let rows = try connection.prepare(
                """
                select report.verdict, report.state, report.loop, report.source, report.cause,
                    report.duration_ns, report.samples, report.delayed_ns, report.start_us,
                    report.seq
                from \(connection.reports(filter)) where \(condition.sql)
                """)
            try condition.bind(to: rows)
            table.runs = loops.runs
            table.stalls.reserveCapacity(min(max(expected, 0), 1 << 24))
            var facts = KeyNumbers()
            var counts = Array(repeating: 0, count: 256)
            var stacks = SampleStacks()
            while try rows.step() {
                let verdict: StallVerdict = try rows.value()
                counts[Int(verdict.rawValue)] += 1
                guard verdict == .stalled else {
                    rows.skipRest()
                    continue
                }
                let state: StallState = try rows.value()
                table.openCount += state == .open ? 1 : 0
                table.hangCount += state == .hang ? 1 : 0
                let (loopNumber, source) = try (rows.integer(), rows.integer())
                guard let loop = loops.loop(loopNumber) else {
                    throw rows.damage("a report of no loop")
                }
                let key = KindCause(
                    kind: loop.kind, cause: try rows.causeClass(),
                    isWatched: watched.contains(source: source, loop: loopNumber))
                let number = facts.add(key.number)
                if number == table.facts.count {
                    let kind = loops.kinds[Int(loop.kind)]
                    table.facts.append(
                        StallTable.Facts(
                            run: kind.run, loop: kind.name, cause: key.cause,
                            isWatched: key.isWatched))
                }
                let duration = try rows.duration_ns()
                try stacks.read(rows, in: duration)
                let set = table.sets.number(
                    of: stacks.stall.stacks, executable: loop.executable)
                if stacks.stall.stacks.count > 1 {
                    table.weights.append(contentsOf: stacks.stall.weights)
                }
                let delayed = try rows.delayed_ns(in: duration)
                if delayed > 0 { table.delayed_ns[table.stalls.count] = delayed }
                table.stalls.append(
                    StallTable.Stall(
                        start_us: try rows.time_us(), duration_ns: duration,
                        source: source, seq: try rows.integer(), facts: number,
                        set: Int32(set)))
            }
            for (raw, count) in counts.enumerated() where count > 0 {
                guard let verdict = StallVerdict(rawValue: UInt8(raw)) else { continue }
                table.counts[verdict] = count
            }
            return table
        }
    }

    package func reportID(source: Int64, seq: Int64) throws(StoreError) -> UniqueID? {
        try answer { connection in
            let rows = try connection.prepare(
                "select id from report where source = ? and seq = ?")
            try rows.bind(source, seq)
            return try rows.step() ? rows.uniqueID() : nil
        }
    }

    /// The functions on stacks as numbers.
    package func functions(
        ofStacks stacks: [Int64], _ number: (Frame) -> Int32
    ) throws(StoreError) -> StackFunctions {
        try answer { connection in
            var reader = try FunctionReader(connection)
            if try reader.areMost(stacks) {
                return try reader.functions(ofMost: stacks, number)
            }
            var functions = StackFunctions(stackCount: stacks.count)
            for (index, stack) in stacks.enumerated() {
                functions.set(
                    try reader.functions(ofStack: stack, number), ofStack: Int32(index))
            }
            return functions
        }
    }
}

private struct KindCause {
    var kind: Int32
    var cause: CauseClass?
    var isWatched: Bool

    /// Another for each.
    var number: Int64 {
        Int64(kind) << 16 | (cause.map { Int64($0.rawValue) << 8 } ?? 0xff00) | (isWatched ? 1 : 0)
    }
}

/// The stacks of one report after the other, in the same memory.
package struct SampleStacks {
    package private(set) var stall = StallStacks()
    private var duration_ns: Int64 = 0
    private var samples: [(offset_ns: Int64, weight_ns: Int64?, stack: Int64)] = []

    package init() {}

    /// Reads the samples that are not late and have a stack.
    mutating func read(_ rows: Statement, in duration_ns: Int64) throws(StoreError) {
        guard read(rows.blob(), in: duration_ns, { $0 }) else {
            throw rows.damage("a report's samples are not a list")
        }
    }

    /// - Parameter number: A stack's number by its encoded bytes; nil for none.
    /// - Returns: Whether the bytes are a list of samples.
    package mutating func read(
        _ bytes: UnsafeRawBufferPointer, in duration_ns: Int64, _ number: (Int64) -> Int64?
    ) -> Bool {
        stall.removeAll()
        while !samples.isEmpty { samples.removeLast() }
        self.duration_ns = max(0, duration_ns)
        var packed = PackedSamples(bytes)
        var isOneStack = true
        while let sample = packed.nextStack() {
            guard let stack = number(sample.stack) else { return false }
            isOneStack = isOneStack && (samples.first?.stack ?? stack) == stack
            samples.append((max(0, sample.offset_ns), sample.weight_ns, stack))
        }
        guard !packed.isDamaged else { return false }
        if isOneStack {
            // A weight is a part of the duration, and this one is all of it.
            if let sample = samples.first { stall.add(sample.stack, weight: self.duration_ns) }
            return true
        }
        var from: Int64 = 0
        for index in samples.indices {
            stall.add(samples[index].stack, weight: weight(of: index, &from))
        }
        return true
    }

    /// Calls `body` with the stack of each sample, and the time that the sample stands for.
    package func forEachSample(_ body: (_ stack: Int64, _ weight_ns: Int64) -> Void) {
        var from: Int64 = 0
        for index in samples.indices { body(samples[index].stack, weight(of: index, &from)) }
    }

    /// As `sampleWeights` has it: half-way to its neighbours.
    private func weight(of index: Int, _ from: inout Int64) -> Int64 {
        var until = duration_ns
        if index + 1 < samples.count {
            until = Int64(
                (UInt64(samples[index].offset_ns) + UInt64(samples[index + 1].offset_ns)) / 2)
        }
        let implied = max(0, until - from)
        from = max(from, until)
        return samples[index].weight_ns ?? implied
    }
}

// What call trees and rankings by all functions of a stack read: every stall once, with its stacks as numbers, and every
// function on them once.

package import StallModel
package import StallStore

extension ReportStore {
    /// The stacks of the stalls that the filter selects, added up.
    ///
    /// **Cost:** time grows with the reports, memory with the different sets of stacks.
    package func stackSets(_ filter: ReportFilter) throws(StoreError) -> StackSets {
        try answer { connection in
            let reader = try SummaryReader(connection)
            var filter = filter
            filter.verdicts = filter.verdicts ?? [.stalled]
            let condition = Condition(filter)
            let rows = try connection.prepare(
                """
                select report.loop, report.duration_ns, report.samples
                from \(connection.reports(filter)) where \(condition.sql)
                """)
            try condition.bind(to: rows)
            var sets = StackSets()
            let executables = reader.loops.mapValues { loop in
                sets.number(ofExecutable: reader.runs[loop.run].buildID)
            }
            var stacks = SampleStacks()
            while try rows.step() {
                guard let executable = try executables[rows.integer(at: 0)] else {
                    throw rows.damage("a report of no loop")
                }
                let duration = try rows.duration_ns(at: 1)
                try stacks.read(rows, at: 2, in: duration)
                sets.add(stacks.stall, lasting_ns: duration, executable: executable)
            }
            return sets
        }
    }

    /// The stalls that the filter selects.
    ///
    /// **Cost:** 32 bytes for each, and what they share.
    package func stallTable(
        _ filter: ReportFilter, expected: Int
    ) throws(StoreError) -> StallTable {
        try answer { connection in
            var table = StallTable()
            let reader = try SummaryReader(connection)
            let watched = try WatchedLoops(connection)
            let condition = Condition(filter)
            let rows = try connection.prepare(
                """
                select report.loop, report.verdict, report.state, report.cause, report.source,
                    report.seq, report.start_us, report.duration_ns, report.samples
                from \(connection.reports(filter)) where \(condition.sql)
                """)
            try condition.bind(to: rows)
            table.runs = reader.runs
            table.stalls.reserveCapacity(min(max(expected, 0), 1 << 24))
            let executables = reader.loops.mapValues { loop in
                table.sets.number(ofExecutable: reader.runs[loop.run].buildID)
            }
            var facts: [LoopCause: Int32] = [:]
            var stacks = SampleStacks()
            while try rows.step() {
                let verdict: StallVerdict = try rows.value(at: 1)
                table.counts[verdict, default: 0] += 1
                guard verdict == .stalled else { continue }
                let state: StallState = try rows.value(at: 2)
                table.openCount += state == .open ? 1 : 0
                table.hangCount += state == .hang ? 1 : 0
                let (loop, source) = try (rows.integer(at: 0), rows.integer(at: 4))
                guard let executable = executables[loop] else {
                    throw rows.damage("a report of no loop")
                }
                let key = LoopCause(
                    loop: loop, cause: try rows.causeClass(at: 3),
                    isWatched: watched.contains(source: source, loop: loop))
                let number = facts[key] ?? Int32(table.facts.count)
                if number == table.facts.count {
                    facts[key] = number
                    let facts = reader.loops[loop]!
                    table.facts.append(
                        StallTable.Facts(
                            run: facts.run, loop: facts.name, cause: key.cause,
                            isWatched: key.isWatched))
                }
                let duration = try rows.duration_ns(at: 7)
                try stacks.read(rows, at: 8, in: duration)
                let set = table.sets.number(of: stacks.stall.stacks, executable: executable)
                if stacks.stall.stacks.count > 1 { table.weights += stacks.stall.weights }
                table.stalls.append(
                    StallTable.Stall(
                        start_us: try rows.integer(at: 6), duration_ns: duration,
                        source: source, seq: try rows.integer(at: 5), facts: number,
                        set: Int32(set)))
            }
            return table
        }
    }

    package func reportID(source: Int64, seq: Int64) throws(StoreError) -> UniqueID? {
        try answer { connection in
            let rows = try connection.prepare(
                "select id from report where source = ? and seq = ?")
            try rows.bind(source, seq)
            return try rows.step() ? rows.uniqueID(at: 0) : nil
        }
    }

    /// The functions on stacks as numbers.
    package func functions(
        ofStacks stacks: [Int64], _ number: (Frame) -> Int32
    ) throws(StoreError) -> StackFunctions {
        try answer { connection in
            var reader = try FunctionReader(connection)
            var functions = StackFunctions()
            for stack in stacks {
                functions.add(stack: stack, try reader.functions(ofStack: stack, number))
            }
            return functions
        }
    }
}

private struct LoopCause: Hashable {
    var loop: Int64
    var cause: CauseClass?
    var isWatched: Bool
}

/// The stacks of one report after the other, in the same memory.
struct SampleStacks {
    private(set) var stall = StallStacks()
    private var weights: [Int64] = []
    private var samples: [(offset_ns: Int64, weight_ns: Int64?, stack: Int64)] = []

    /// Reads the samples that are not late and have a stack.
    mutating func read(_ rows: Statement, at column: CInt, in duration_ns: Int64) throws(StoreError)
    {
        stall.removeAll()
        samples.removeAll(keepingCapacity: true)
        var packed = PackedSamples(rows.blob(at: column))
        while let sample = packed.next() {
            guard let stack = sample.stack, !sample.isLate else { continue }
            samples.append((max(0, sample.offset_ns), sample.weight_ns, stack))
        }
        guard !packed.isDamaged else { throw rows.damage("a report's samples are not a list") }
        // As `sampleWeights` has it: half-way to its neighbours.
        var from: Int64 = 0
        weights.removeAll(keepingCapacity: true)
        for index in samples.indices {
            var until = max(0, duration_ns)
            if index + 1 < samples.count {
                until = Int64(
                    (UInt64(samples[index].offset_ns) + UInt64(samples[index + 1].offset_ns)) / 2)
            }
            let implied = max(0, until - from)
            from = max(from, until)
            let weight = samples[index].weight_ns ?? implied
            weights.append(weight)
            stall.add(samples[index].stack, weight: weight)
        }
    }

    /// Calls `body` with the stack of each sample, and what the sample stands for.
    func forEachSample(_ body: (_ stack: Int64, _ weight_ns: Int64) -> Void) {
        for (sample, weight) in zip(samples, weights) { body(sample.stack, weight) }
    }
}

/// Reads the functions of stacks: each place once, and each function once whatever places it has.
struct FunctionReader {
    private let findStack, findPlace, findFunction, findImage: Statement
    private var images: [Int64: (path: String?, buildID: BuildID?)] = [:]
    /// Whether rows of functions have names. Their texts are not held: they are most of what a store is.
    private var areNamed: [Int64: Bool] = [:]
    private var last: (row: Int64, function: Function)?
    /// By the number of a location, twice, plus one where it was guessed.
    private var places: [UInt64: [Int32]] = [:]
    private var numbers: [Key: Int32] = [:]

    private struct Function {
        var name, rawName, file: String?
    }
    private struct Key: Hashable {
        var function: Int64
        var image: Int64
        /// Only where no name tells functions apart.
        var offset: UInt64
        var flags: UInt8
    }

    init(_ connection: Connection) throws(StoreError) {
        findStack = try connection.prepare("select locations from stack where id = ?")
        findPlace = try connection.prepare(
            """
            select location.image, location.offset, location.kind, location_frame.function,
                ifnull(location_frame.is_inlined, 0)
            from location left join location_frame on location_frame.location = location.id
            where location.id = ? order by location_frame.position
            """)
        findFunction = try connection.prepare(
            "select name, raw_name, file from function where id = ?")
        findImage = try connection.prepare("select path, build_id from image where id = ?")
    }

    mutating func functions(ofStack stack: Int64, _ number: (Frame) -> Int32) throws -> [Int32] {
        try findStack.bind(stack)
        guard try findStack.step() else { return [] }
        guard let entries = [StackEntry](encoded: findStack.blob(at: 0)) else {
            throw findStack.damage("stack \(stack) is not a list of locations")
        }
        findStack.reset()
        var functions: [Int32] = []
        functions.reserveCapacity(entries.count + 4)
        for entry in entries { functions += try place(entry, number) }
        return functions
    }

    private mutating func place(
        _ entry: StackEntry, _ number: (Frame) -> Int32
    ) throws -> [Int32] {
        let key = UInt64(bitPattern: entry.location) << 1 | (entry.isGuessed ? 1 : 0)
        if let known = places[key] { return known }
        var found: [Int32] = []
        try findPlace.bind(entry.location)
        while try findPlace.step() {
            let image = try findPlace.integer(at: 0)
            let offset = UInt64(bitPattern: try findPlace.integer(at: 1))
            let kind: CodeAddressKind = try findPlace.value(at: 2)
            let row = findPlace.optionalInteger(at: 3)
            let isInlined = try findPlace.integer(at: 4) != 0
            let isNamed = try row.map { try self.isNamed($0) } ?? false
            let key = Key(
                function: row ?? -1, image: image, offset: isNamed ? 0 : offset,
                flags: kind.rawValue << 2 | (isInlined ? 2 : 0) | (entry.isGuessed ? 1 : 0))
            if let known = numbers[key] {
                found.append(known)
                continue
            }
            let (path, buildID) = try self.image(image)
            let function = try row.map { try self.function($0) }
            var frame = Frame(
                CodeLocation(
                    imagePath: path, buildID: buildID, offset: key.offset, kind: kind,
                    isGuessed: entry.isGuessed))
            frame.function = function?.name
            frame.rawName = function?.rawName
            frame.file = function?.file
            frame.isInlined = isInlined
            let known = number(frame)
            numbers[key] = known
            found.append(known)
        }
        guard !found.isEmpty else {
            throw findPlace.damage(
                "a stack refers to location \(entry.location), which is missing")
        }
        places[key] = found
        return found
    }

    private mutating func isNamed(_ row: Int64) throws(StoreError) -> Bool {
        if let known = areNamed[row] { return known }
        let isNamed = try function(row).name != nil
        areNamed[row] = isNamed
        return isNamed
    }

    private mutating func function(_ row: Int64) throws(StoreError) -> Function {
        if let last, last.row == row { return last.function }
        try findFunction.bind(row)
        var function = Function()
        if try findFunction.step() {
            function = Function(
                name: findFunction.optionalText(at: 0), rawName: findFunction.optionalText(at: 1),
                file: findFunction.optionalText(at: 2))
        }
        findFunction.reset()
        last = (row, function)
        return function
    }

    private mutating func image(_ row: Int64) throws(StoreError) -> (String?, BuildID?) {
        if let known = images[row] { return known }
        try findImage.bind(row)
        var image: (path: String?, buildID: BuildID?) = (nil, nil)
        if try findImage.step() {
            image = (
                findImage.optionalText(at: 0), findImage.optionalBytes(at: 1).map(BuildID.init)
            )
        }
        findImage.reset()
        images[row] = image
        return image
    }
}

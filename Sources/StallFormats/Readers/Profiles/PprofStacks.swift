// The samples of a profile.proto as distinct stacks with their counts, by thread.

internal import StallModel

/// The stacks of a profile.
struct PprofStacks {
    /// A thread and its process, as labels name them; strings by their numbers, of which 0 is none.
    struct Key: Hashable {
        var pid, tid: Int32?
        var name = 0
        /// Those that `stallctl export` writes.
        var loop = 0
        var app = 0
        var version = 0
    }

    struct Group {
        var key: Key
        var stacks: [Int] = []
    }

    /// More of either are a fault. A stack's outer locations are dropped.
    private static let (stackLimit, byteLimit, groupLimit) = (1 << 20, 1 << 27, 1 << 16)
    private static let depthLimit = SampledTree.frameLimit + 1

    private(set) var groups: [Group] = []
    private(set) var counts: [Int64] = []
    var tables: PprofTables
    private let bytes: [UInt8]
    private let value: Int
    let unit: PprofUnit
    private var places: [Key: Int] = [:]
    private var labels: [Int: Label] = [:]
    /// The number of the group and those of the locations, in eight bytes each.
    private var stacks = TextNumbers()

    private enum Label { case pid, tid, name, loop, app, version, other }

    init(_ bytes: [UInt8]) throws(NoStall) {
        self.bytes = bytes
        tables = try PprofTables(bytes)
        (value, unit) = try tables.shownValue()
        var fields = ProtobufFields(bytes)
        while let (field, value) = fields.next() {
            guard field == 2, case .bytes(let range) = value else { continue }
            try add(range)
        }
        guard !groups.isEmpty else { throw NoStall("has no samples") }
    }

    /// The locations of a stack, innermost first.
    func locations(of stack: Int) -> [UInt64] {
        let bytes = stacks[stack].dropFirst(8)
        return stride(from: bytes.startIndex, to: bytes.endIndex, by: 8).map { start in
            bytes[start..<start + 8].reversed().reduce(0) { $0 << 8 | UInt64($1) }
        }
    }

    /// As many as a store takes, those with the greatest counts, in the order of the profile.
    func kept(_ numbers: [Int]) -> [Int] {
        guard numbers.count > SampleRun.sampleLimit else { return numbers }
        return numbers.sorted { (counts[$0], $1) > (counts[$1], $0) }
            .prefix(SampleRun.sampleLimit).sorted()
    }

    private mutating func add(_ range: Range<Int>) throws(NoStall) {
        var (key, count, place) = (Key(), Int64(0), 0)
        var stack: [UInt64] = []
        var fields = ProtobufFields(bytes, range)
        while let (field, value) = fields.next() {
            switch (field, value) {
            case (1, .number(let number)): if stack.count < Self.depthLimit { stack.append(number) }
            case (1, .bytes(let range)):
                var numbers = ProtobufFields(bytes, range)
                while stack.count < Self.depthLimit, let number = numbers.number() {
                    stack.append(number)
                }
            case (2, .number(let number)):
                if place == self.value { count = Int64(bitPattern: number) }
                place += 1
            case (2, .bytes(let range)):
                var numbers = ProtobufFields(bytes, range)
                while place <= self.value, let number = numbers.number() {
                    if place == self.value { count = Int64(bitPattern: number) }
                    place += 1
                }
            case (3, .bytes(let range)): take(PprofMessage(bytes, range), &key)
            default: break
            }
        }
        guard count > 0 else { return }
        try add(stack, count, key)
    }

    private mutating func add(
        _ stack: [UInt64], _ count: Int64, _ key: Key
    ) throws(NoStall) {
        let group = places[key] ?? groups.count
        if group == groups.count {
            places[key] = group
            groups.append(Group(key: key))
        }
        var text: [UInt8] = []
        text.reserveCapacity(8 * (stack.count + 1))
        for number in [UInt64(group)] + stack {
            withUnsafeBytes(of: number.littleEndian) { text.append(contentsOf: $0) }
        }
        let number = stacks.number(of: text[...])
        if number == counts.count {
            counts.append(0)
            groups[group].stacks.append(number)
        }
        counts[number].addSaturated(count)
        guard groups.count <= Self.groupLimit else {
            throw NoStall("has more than \(Self.groupLimit) threads")
        }
        guard stacks.count <= Self.stackLimit, stacks.byteCount <= Self.byteLimit else {
            throw NoStall("has more than \(Self.stackLimit) stacks")
        }
    }

    private mutating func take(_ message: PprofMessage, _ key: inout Key) {
        let (name, text) = (message.int(1), message.int(2))
        let label = labels[name] ?? self.label(tables.string(name))
        labels[name] = label
        switch label {
        case .pid: key.pid = number(message) ?? key.pid
        case .tid: key.tid = number(message) ?? key.tid
        case .name: key.name = text
        case .loop: key.loop = text
        case .app: key.app = text
        case .version: key.version = text
        case .other: break
        }
        // Without a loop they are labels of the program, of whatever meaning.
    }

    private func label(_ name: String) -> Label {
        switch name {
        case "pid", "process_id": .pid
        case "tid", "thread id", "thread_id": .tid
        case "thread", "thread name", "thread_name", "thread_comm": .name
        case "loop": .loop
        case "app": .app
        case "version": .version
        default: .other
        }
    }

    /// A label's number, or the digits of its text.
    private mutating func number(_ message: PprofMessage) -> Int32? {
        let number = Int64(bitPattern: message[3])
        if number != 0 { return Int32(exactly: number).flatMap { $0 >= 0 ? $0 : nil } }
        return Int32(tables.string(message.int(2))).flatMap { $0 >= 0 ? $0 : nil }
    }
}

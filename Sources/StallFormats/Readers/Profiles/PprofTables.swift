// The strings, functions, mappings and locations of a profile.proto. A field may be missing or of another type than the
// format says: then it has its default.
//
// **Source:** google/pprof, proto/profile.proto.

internal import StallModel

/// The tables that a profile's samples refer to.
struct PprofTables {
    struct Mapping {
        var start, limit, fileOffset: UInt64
        var path, buildID: Int
    }

    struct Function {
        var name, systemName, file: Int
    }

    struct Location {
        /// In `mappings`; nil without one.
        var mapping: UInt64
        var address: UInt64
        /// In `lines`, innermost first.
        var lines: Range<Int>
    }

    struct Line {
        var function: UInt64
        var number: Int64
    }

    /// The type and the unit of a sample's value, as strings.
    struct ValueType {
        var type, unit: Int
    }

    /// More of either are a fault: an empty message takes two bytes, and its entry fifty.
    private static let (entryLimit, stringLimit, mappingLimit) = (1 << 20, 1 << 22, 1 << 16)
    /// Functions of one location, and bytes of a string: many frames may have the same one.
    private static let (lineLimit, textLimit) = (1000, 1 << 16)

    private let bytes: [UInt8]
    private var strings: [Range<Int>] = []
    private var mappings: [UInt64: Mapping] = [:]
    private(set) var mainMapping: Mapping?
    private var functions: [UInt64: Function] = [:]
    private var locations: [UInt64: Location] = [:]
    private var lines: [Line] = []
    private var texts: [Int: String] = [:]
    private var known: [UInt64: [ForeignFrame]] = [:]
    private(set) var sampleTypes: [ValueType] = []
    private(set) var defaultType = 0
    private(set) var time: Int64 = 0
    private var periodType: ValueType?
    private var period: Int64 = 0

    /// - Throws: Why the bytes are no profile, as a clause.
    init(_ bytes: [UInt8]) throws(NoStall) {
        self.bytes = bytes
        var fields = ProtobufFields(bytes)
        while let (field, value) = fields.next() {
            switch (field, value) {
            case (1, .bytes(let range)):
                let message = message(range)
                sampleTypes.append(ValueType(type: message.int(1), unit: message.int(2)))
                guard sampleTypes.count <= 1 << 10 else { throw NoStall("has too many values") }
            case (3, .bytes(let range)): try addMapping(message(range))
            case (4, .bytes(let range)): try addLocation(range)
            case (5, .bytes(let range)):
                let message = message(range)
                functions[message[1]] = Function(
                    name: message.int(2), systemName: message.int(3), file: message.int(4))
                guard functions.count <= Self.entryLimit else {
                    throw NoStall("has more than \(Self.entryLimit) functions")
                }
            case (6, .bytes(let range)):
                strings.append(range)
                guard strings.count <= Self.stringLimit else {
                    throw NoStall("has more than \(Self.stringLimit) strings")
                }
            case (9, .number(let number)): time = Int64(bitPattern: number)
            case (11, .bytes(let range)):
                let message = message(range)
                periodType = ValueType(type: message.int(1), unit: message.int(2))
            case (12, .number(let number)): period = Int64(bitPattern: number)
            case (14, .number(let number)): defaultType = Int(exactly: number) ?? 0
            default: break
            }
        }
        if fields.isBroken { throw NoStall("is cut off or broken at byte \(fields.place)") }
    }

    private func message(_ range: Range<Int>) -> PprofMessage { PprofMessage(bytes, range) }

    private mutating func addMapping(_ message: PprofMessage) throws(NoStall) {
        let mapping = Mapping(
            start: message[2], limit: message[3], fileOffset: message[4],
            path: message.int(5), buildID: message.int(6))
        // The first one is the program's, by the format.
        if mappings.isEmpty { mainMapping = mapping }
        mappings[message[1]] = mapping
        guard mappings.count <= Self.mappingLimit else {
            throw NoStall("has more than \(Self.mappingLimit) mappings")
        }
    }

    private mutating func addLocation(_ range: Range<Int>) throws(NoStall) {
        let first = lines.count
        var fields = ProtobufFields(bytes, range)
        while let (field, value) = fields.next() {
            guard field == 4, case .bytes(let range) = value else { continue }
            let line = message(range)
            lines.append(Line(function: line[1], number: Int64(bitPattern: line[2])))
        }
        let message = message(range)
        locations[message[1]] = Location(
            mapping: message[2], address: message[3], lines: first..<lines.count)
        guard locations.count <= Self.entryLimit, lines.count <= 2 * Self.entryLimit else {
            throw NoStall("has more than \(Self.entryLimit) locations")
        }
    }

    // MARK: Look-ups

    /// Empty for one that is not there. Each is made once.
    mutating func string(_ number: Int) -> String {
        if let text = texts[number] { return text }
        guard strings.indices.contains(number) else { return "" }
        let text = String(
            decoding: bytes[strings[number].prefix(Self.textLimit)], as: UTF8.self)
        texts[number] = text
        return text
    }

    /// The times of a profile without a default that has several, as that of ddtrace: the first of these is taken.
    private static let times = ["wall", "wall-time", "cpu", "cpu-time"]

    /// The value that a profile shows first: the one it names, or the last.
    ///
    /// Times are taken before counts: of Go's contentions the delays, of its samples the CPU time. Of several times the one
    /// that passed is taken, then the CPU's, rather than the waits for locks that are listed behind them.
    ///
    /// - Throws: Why no value says for how long something was done, as a clause.
    mutating func shownValue() throws(NoStall) -> (place: Int, unit: PprofUnit) {
        let units = sampleTypes.map { PprofUnit(type: string($0.type), unit: string($0.unit)) }
        guard !units.isEmpty else { return (0, .count) }
        let name = string(defaultType)
        let shown = name.isEmpty ? nil : sampleTypes.firstIndex { string($0.type) == name }
        for isWanted in [PprofUnit.isTime, PprofUnit.isCount] {
            if let shown, isWanted(units[shown]) { return (shown, units[shown]) }
            for name in Self.times {
                let place = sampleTypes.indices.first {
                    isWanted(units[$0]) && string(sampleTypes[$0].type) == name
                }
                if let place { return (place, units[place]) }
            }
            if let last = units.lastIndex(where: isWanted) { return (last, units[last]) }
        }
        let last = sampleTypes[shown ?? sampleTypes.count - 1]
        throw NoStall("is of \(string(last.type)) in \(string(last.unit)), not of time")
    }

    /// The time that a sample stands for in a profile that counts them; nil if unknown.
    mutating func sampleInterval() -> Duration? {
        guard let type = periodType,
            case .time(let nanoseconds) = PprofUnit(
                type: string(type.type), unit: string(type.unit)), period > 0
        else { return nil }
        let (product, overflow) = period.multipliedReportingOverflow(by: nanoseconds)
        return overflow ? nil : .nanoseconds(product)
    }

    /// The frames of a location, innermost first.
    mutating func frames(of id: UInt64) -> [ForeignFrame] {
        guard let location = locations[id] else { return [] }
        if let frames = known[id] { return frames }
        var outer = ForeignFrame()
        let mapping = mappings[location.mapping]
        if let mapping {
            let path = string(mapping.path)
            outer.image = path.isEmpty ? nil : path
            outer.buildID = BuildID(hexadecimal: string(mapping.buildID))
        }
        if location.address != 0 {
            outer.offset = mapping?.offset(of: location.address) ?? location.address
        }
        var frames: [ForeignFrame] = []
        for place in location.lines.prefix(Self.lineLimit) {
            var frame = outer
            if let function = functions[lines[place].function] {
                frame.function = name(of: function)
                let file = string(function.file)
                frame.file = file.isEmpty ? nil : file
            }
            if frame.file != nil, let number = Int32(exactly: lines[place].number), number > 0 {
                frame.line = Int(number)
            }
            frame.isInlined = place < location.lines.upperBound - 1
            frames.append(frame)
        }
        if frames.isEmpty, outer.offset != nil { frames = [outer] }
        known[id] = frames
        return frames
    }

    /// The mangled name where it can be demangled here: the other may have lost parts.
    private mutating func name(of function: Function) -> String? {
        let raw = string(function.systemName)
        if ["$s", "_$s", "$S", "_$S", "_Z"].contains(where: raw.hasPrefix) { return raw }
        let name = string(function.name)
        if !name.isEmpty { return name }
        return raw.isEmpty ? nil : raw
    }
}

extension PprofTables.Mapping {
    /// From the load address. An address that is not within the mapping is one already: profiles that were symbolized
    /// elsewhere have such.
    fileprivate func offset(of address: UInt64) -> UInt64 {
        guard start <= address, address < limit else { return address }
        return (address - start) &+ fileOffset
    }
}

/// The numbers of a message whose fields are few.
struct PprofMessage {
    private var numbers: (UInt64, UInt64, UInt64, UInt64, UInt64, UInt64) = (0, 0, 0, 0, 0, 0)

    init(_ bytes: [UInt8], _ range: Range<Int>) {
        var fields = ProtobufFields(bytes, range)
        while let (field, value) = fields.next() {
            guard case .number(let number) = value else { continue }
            switch field {
            case 1: numbers.0 = number
            case 2: numbers.1 = number
            case 3: numbers.2 = number
            case 4: numbers.3 = number
            case 5: numbers.4 = number
            case 6: numbers.5 = number
            default: break
            }
        }
    }

    /// A field's number; 0 if it is missing.
    subscript(field: Int) -> UInt64 {
        switch field {
        case 1: numbers.0
        case 2: numbers.1
        case 3: numbers.2
        case 4: numbers.3
        case 5: numbers.4
        case 6: numbers.5
        default: 0
        }
    }

    /// The number of a string; 0 is the empty one.
    func int(_ field: Int) -> Int { Int(exactly: self[field]) ?? 0 }
}

/// The unit of a value.
enum PprofUnit: Equatable {
    /// A number of nanoseconds.
    case time(nanoseconds: Int64)
    /// Samples.
    case count
    /// Bytes, objects: nothing that lasts.
    case other

    init(type: String, unit: String) {
        switch unit.lowercased() {
        case "nanoseconds", "nanosecond", "ns": self = .time(nanoseconds: 1)
        case "microseconds", "microsecond", "us": self = .time(nanoseconds: 1000)
        case "milliseconds", "millisecond", "ms": self = .time(nanoseconds: 1_000_000)
        case "seconds", "second", "s": self = .time(nanoseconds: 1_000_000_000)
        case "count", "samples", "": self = Self.isOfSamples(type.lowercased()) ? .count : .other
        default: self = .other
        }
    }

    /// Whether a count is of times that a stack was seen, not of what the program made, threw or missed.
    private static func isOfSamples(_ type: String) -> Bool {
        let others = ["alloc", "exception", "heap", "object", "space"]
        let names = ["", "contentions", "count", "cpu", "cycles", "events", "hits", "wall"]
        return type.contains("sample") && !others.contains { type.contains($0) }
            || names.contains(type)
    }

    static func isTime(_ unit: PprofUnit) -> Bool {
        if case .time = unit { true } else { false }
    }

    static func isCount(_ unit: PprofUnit) -> Bool { unit == .count }
}

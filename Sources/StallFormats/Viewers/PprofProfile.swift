// The profile of `go tool pprof`, Pyroscope, Parca, Grafana and Datadog, before compression: how many stalls and nanoseconds each
// stack stands for, by app, version, loop, cause and group.
//
// Source: google/pprof, proto/profile.proto. Fields of one message come in any order, so that samples are written while they are
// seen, and the messages that they refer to at the end.

package import StallModel
package import StallQuery

package struct PprofProfile: ViewerWriter {
    package static let order = CursorOrder.stored

    private struct Entry: Hashable {
        var stack: Int64
        var labels: Int
    }

    private struct Labels: Hashable {
        var app, version, loop, cause, title: String
    }

    private struct Sample {
        var entry: Entry
        var stalls: Int64 = 0
        var time_ns: Int64 = 0
    }

    /// A function by the numbers of its strings.
    private struct Function: Hashable {
        var name, rawName, file: Int64
    }

    private struct Mapping: Hashable {
        var path: String
        var buildID: BuildID?
    }

    private let entryCapacity: Int
    private static let noStack: Int64 = .min

    private var text: ByteText
    private let span: (first: UnixTime, last: UnixTime)?
    private var frames = ViewerFrames()
    /// In the order in which their entries were seen: the numbers of stacks depend on the order of ingest.
    private var samples: [Sample] = []
    private var places: [Entry: Int] = [:]
    private var labels: [Labels: Int] = [:]
    private var labelList: [Labels] = []
    /// The locations of stacks, innermost first, as they are written: where each is in `listed`, one after another. Those of
    /// `samples`' stacks are there until they are written down.
    private var stacks: [Int64: Range<Int>] = [:]
    private var listed: [UInt8] = []
    private static let listCapacity = 8 << 20
    /// A location is a function with those that were inlined into it.
    private var locations: [[Int32]: Int64] = [:]
    private var mappings: [Mapping: Int64] = [:]
    private var functions: [Function: Int64] = [:]
    private var strings: [String: Int64] = [:]
    private var program: BuildID?

    /// - Parameters:
    ///   - span: When the first and the last of the stalls began.
    ///   - entryCapacity: How many stacks with their labels are added up before they are written down.
    package init(
        span: (first: UnixTime, last: UnixTime)?, entryCapacity: Int = 16_000,
        to sink: @escaping ByteSink
    ) {
        text = ByteText(sink)
        self.entryCapacity = entryCapacity
        self.span = span
        _ = number(of: "")
        var header = ProtobufMessage()
        let (stalls, count) = (number(of: "stalls"), number(of: "count"))
        let (duration, unit) = (number(of: "duration"), number(of: "nanoseconds"))
        header.add(1, Self.valueType(stalls, count))
        header.add(1, Self.valueType(duration, unit))
        if let span {
            header.add(9, span.first.microseconds.nanosecondsClamped)
            header.add(
                10, (span.last.microseconds &- span.first.microseconds).nanosecondsClamped)
        }
        header.add(11, Self.valueType(number(of: "stall"), unit))
        header.add(12, 1)
        header.add(14, duration)
        text.append(header.bytes)
    }

    private static func valueType(_ type: Int64, _ unit: Int64) -> ProtobufMessage {
        var message = ProtobufMessage()
        message.add(1, type)
        message.add(2, unit)
        return message
    }

    package mutating func add(_ stall: ViewerStall) throws {
        // Between stalls: writing the entries down forgets the numbers of their labels.
        if samples.count >= entryCapacity || listed.count >= Self.listCapacity { try settle() }
        let trace = stall.trace
        program = program ?? trace.run.buildID
        let key = Labels(
            app: trace.run.app, version: trace.run.version, loop: trace.loop,
            cause: trace.cause?.cause.word ?? "", title: stall.title)
        let label = labels[key] ?? labelList.count
        if label == labelList.count {
            labels[key] = label
            labelList.append(key)
        }
        let parts = trace.parts
        guard let heaviest = parts.max(by: { $0.duration_ns < $1.duration_ns }) else {
            return try add(
                Self.noStack, stalls: 1, max(0, trace.duration.nanoseconds), label, stall)
        }
        // A stall is counted once, on the stack that it showed longest.
        var isCounted = false
        for part in parts {
            let counts = !isCounted && part.stack == heaviest.stack
            isCounted = isCounted || counts
            try add(part.stack, stalls: counts ? 1 : 0, part.duration_ns, label, stall)
        }
    }

    private mutating func add(
        _ stack: Int64, stalls: Int64, _ time_ns: Int64, _ label: Int, _ stall: ViewerStall
    ) throws {
        if stacks[stack] == nil {
            let numbers =
                stack == Self.noStack
                ? [frames.number(of: ViewerFrames.noStack)]
                : try frames.read(stack, in: stall)
            let message = ProtobufMessage(packed: 1, locations(of: numbers))
            stacks[stack] = listed.count..<listed.count + message.bytes.count
            listed += message.bytes
        }
        let entry = Entry(stack: stack, labels: label)
        let place = places[entry] ?? samples.count
        if place == samples.count {
            places[entry] = place
            samples.append(Sample(entry: entry))
        }
        samples[place].stalls += stalls
        samples[place].time_ns.addSaturated(time_ns)
    }

    private mutating func locations(of numbers: [Int32]) -> [Int64] {
        var list: [Int64] = []
        var lines: [Int32] = []
        for (index, number) in numbers.enumerated() {
            lines.append(number)
            guard !frames.frames[Int(number)].isInlined || index == numbers.count - 1 else {
                continue
            }
            list.append(location(of: lines))
            lines.removeAll(keepingCapacity: true)
        }
        return list
    }

    /// The number of a location; a new one is written down.
    private mutating func location(of lines: [Int32]) -> Int64 {
        if let known = locations[lines] { return known }
        let id = Int64(locations.count) + 1
        locations[lines] = id
        let outer = frames.frames[Int(lines[lines.count - 1])]
        var location = ProtobufMessage()
        location.add(1, id)
        if let path = outer.imagePath {
            let mapping = Mapping(path: path, buildID: outer.buildID)
            let number = mappings[mapping] ?? Int64(mappings.count) + 1
            mappings[mapping] = number
            location.add(2, number)
        }
        location.add(3, Int64(bitPattern: outer.offset))
        for number in lines {
            let frame = frames.frames[Int(number)]
            var line = ProtobufMessage()
            line.add(1, function(of: frame))
            line.add(2, Int64(frame.line ?? 0))
            location.add(4, line)
        }
        var message = ProtobufMessage()
        message.add(4, location)
        text.append(message.bytes)
        return id
    }

    private mutating func function(of frame: Frame) -> Int64 {
        let key = Function(
            name: number(of: frame.title), rawName: number(of: frame.rawName ?? frame.title),
            file: number(of: frame.file ?? ""))
        if let known = functions[key] { return known }
        let id = Int64(functions.count) + 1
        functions[key] = id
        var function = ProtobufMessage()
        function.add(1, id)
        function.add(2, key.name)
        function.add(3, key.rawName)
        function.add(4, key.file)
        var message = ProtobufMessage()
        message.add(5, function)
        text.append(message.bytes)
        return id
    }

    /// The number of a string; a new one is written down.
    private mutating func number(of string: String) -> Int64 {
        if let known = strings[string] { return known }
        let number = Int64(strings.count)
        strings[string] = number
        var message = ProtobufMessage()
        message.add(6, Array(string.utf8))
        text.append(message.bytes)
        return number
    }

    /// Writes the sums down; readers add up a stack that comes again.
    private mutating func settle() throws {
        let names = ["app", "version", "loop", "cause", "group"].map { number(of: $0) }
        var rendered = [[UInt8]?](repeating: nil, count: labelList.count)
        var (content, message) = (ProtobufMessage(), ProtobufMessage())
        for sample in samples {
            let label = sample.entry.labels
            let tail = rendered[label] ?? labelBytes(labelList[label], names)
            rendered[label] = tail
            content.removeAll()
            content.add(written: listed[stacks[sample.entry.stack]!])
            content.add(packed: 2, [sample.stalls, sample.time_ns])
            content.add(written: tail[...])
            message.removeAll()
            message.add(2, content)
            text.append(message.bytes)
            try text.settle()
        }
        samples.removeAll(keepingCapacity: true)
        places.removeAll(keepingCapacity: true)
        if listed.count >= Self.listCapacity {
            stacks.removeAll(keepingCapacity: true)
            listed.removeAll(keepingCapacity: true)
        }
        labels.removeAll(keepingCapacity: true)
        labelList.removeAll(keepingCapacity: true)
    }

    private mutating func labelBytes(_ labels: Labels, _ names: [Int64]) -> [UInt8] {
        var message = ProtobufMessage()
        let texts = [labels.app, labels.version, labels.loop, labels.cause, labels.title]
        for (name, text) in zip(names, texts) where !text.isEmpty {
            var label = ProtobufMessage()
            label.add(1, name)
            label.add(2, number(of: text))
            message.add(3, label)
        }
        return message.bytes
    }

    package mutating func finish() throws {
        try settle()
        // Readers take the first one for the program.
        let order = mappings.sorted {
            (isProgram($0.key) ? 0 : 1, $0.value) < (isProgram($1.key) ? 0 : 1, $1.value)
        }
        for (mapping, id) in order {
            let path = number(of: mapping.path)
            let buildID = number(of: mapping.buildID?.description ?? "")
            var message = ProtobufMessage()
            message.add(1, id)
            message.add(5, path)
            message.add(6, buildID)
            for field in 7...10 { message.add(field, true) }
            var outer = ProtobufMessage()
            outer.add(3, message)
            text.append(outer.bytes)
        }
        try text.flush()
    }

    private func isProgram(_ mapping: Mapping) -> Bool {
        program != nil && mapping.buildID == program
    }
}

extension Int64 {
    fileprivate var nanosecondsClamped: Int64 {
        let (product, overflow) = multipliedReportingOverflow(by: 1000)
        return overflow ? (self > 0 ? .max : .min) : product
    }
}

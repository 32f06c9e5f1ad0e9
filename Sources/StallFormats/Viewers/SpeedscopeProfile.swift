// The file format of speedscope.app: one profile a loop, each different stack once with the time lost in it.
//
// Source: jlfwong/speedscope, src/lib/file-format-spec.ts. The frames, which the profiles index, come after them: the
// order of keys in JSON is free, and a frame is known only when it was seen.

import StallModel
package import StallQuery

package struct SpeedscopeProfile: ViewerWriter {
    package static let order = CursorOrder.stored

    private struct Entry: Hashable {
        var profile: Int
        var stack: Int64
    }

    private struct Profile {
        var name: String
        var total_ns: Int64 = 0
        var samples = SpilledText()
        var weights = SpilledText()
    }

    /// Loops past a readable number share the last profile.
    private static let largestProfileCount = 64
    private let entryCapacity: Int
    private static let noStack: Int64 = .min

    private var text: ByteText
    private let name: String
    private var frames = ViewerFrames()
    private var profiles: [Profile] = []
    private var profileNumbers: [String: Int] = [:]
    /// In the order in which they were seen: the numbers of stacks depend on the order of ingest.
    private var samples: [(entry: Entry, time_ns: Int64)] = []
    private var places: [Entry: Int] = [:]
    /// The stacks of `samples`, root first and rendered; each once.
    private var rendered: [Int64: [UInt8]] = [:]

    /// - Parameters:
    ///   - name: The document's name in the viewer.
    ///   - entryCapacity: How many stacks are added up before they are written down.
    package init(name: String, entryCapacity: Int = 16_000, to sink: @escaping ByteSink) {
        self.name = name
        self.entryCapacity = entryCapacity
        text = ByteText(sink)
    }

    package mutating func add(_ stall: ViewerStall) throws {
        let profile = number(ofProfile: "\(stall.trace.run.app) \(stall.trace.loop)")
        let parts = stall.trace.parts
        if parts.isEmpty {
            try add(Self.noStack, stall.trace.duration.nanoseconds, to: profile, stall)
        }
        for part in parts { try add(part.stack, part.duration_ns, to: profile, stall) }
    }

    private mutating func add(
        _ stack: Int64, _ time_ns: Int64, to profile: Int, _ stall: ViewerStall
    ) throws {
        if rendered[stack] == nil {
            let numbers =
                stack == Self.noStack
                ? [frames.number(of: ViewerFrames.noStack)]
                : try frames.numbers(of: stack, in: stall)
            var bytes: [UInt8] = [0x5b]
            for (index, number) in numbers.reversed().enumerated() {
                if index > 0 { bytes.append(0x2c) }
                bytes.append(decimal: Int64(number))
            }
            bytes.append(0x5d)
            rendered[stack] = bytes
        }
        let time_ns = max(0, time_ns)
        let entry = Entry(profile: profile, stack: stack)
        let place = places[entry] ?? samples.count
        if place == samples.count {
            places[entry] = place
            samples.append((entry, 0))
        }
        samples[place].time_ns.addSaturated(time_ns)
        profiles[profile].total_ns.addSaturated(time_ns)
        if samples.count >= entryCapacity { try settle() }
    }

    private mutating func number(ofProfile name: String) -> Int {
        if let number = profileNumbers[name] { return number }
        let isLast = profiles.count == Self.largestProfileCount - 1
        if profiles.count < Self.largestProfileCount {
            profiles.append(Profile(name: isLast ? "other loops" : name))
        }
        let number = profiles.count - 1
        if !isLast, number < Self.largestProfileCount - 1 { profileNumbers[name] = number }
        return number
    }

    /// Writes the sums down; a stack that comes again is one more sample.
    private mutating func settle() throws {
        for (entry, time_ns) in samples {
            let profile = profiles[entry.profile]
            let separator: [UInt8] = profile.samples.isEmpty ? [] : [0x2c]
            try profile.samples.append { $0 += separator + rendered[entry.stack]! }
            try profile.weights.append {
                $0 += separator
                $0.append(nanoseconds: time_ns, digits: 6)
            }
        }
        samples.removeAll(keepingCapacity: true)
        places.removeAll(keepingCapacity: true)
        rendered.removeAll(keepingCapacity: true)
    }

    package mutating func finish() throws {
        try settle()
        text.append(#"{"$schema":"https://www.speedscope.app/file-format-schema.json","exporter":"#)
        text.append("stallctl@\(stallwatchVersion)".jsonBytes)
        text.append(",\"name\":")
        text.append(name.jsonBytes)
        text.append(",\"activeProfileIndex\":0,\"profiles\":[")
        if profiles.isEmpty { profiles = [Profile(name: "no stalls")] }
        for (index, profile) in profiles.enumerated() {
            text.append(index > 0 ? ",\n" : "\n")
            text.append(#"{"type":"sampled","name":"#)
            text.append(profile.name.jsonBytes)
            text.append(#","unit":"milliseconds","startValue":0,"endValue":"#)
            var end: [UInt8] = []
            end.append(nanoseconds: profile.total_ns, digits: 6)
            text.append(end)
            text.append(",\"samples\":[")
            try write(profile.samples)
            text.append("],\"weights\":[")
            try write(profile.weights)
            text.append("]}")
        }
        text.append("],\"shared\":{\"frames\":[")
        for (index, frame) in frames.frames.enumerated() {
            text.append(index > 0 ? ",\n" : "\n")
            text.append("{\"name\":")
            text.append(frame.title.jsonBytes)
            if let file = frame.file ?? frame.imagePath {
                text.append(",\"file\":")
                text.append(file.jsonBytes)
            }
            if frame.file != nil, let line = frame.line {
                text.append(",\"line\":\(line)")
            }
            text.append("}")
            try text.settle()
        }
        text.append("]}}\n")
        try text.flush()
    }

    private mutating func write(_ column: SpilledText) throws {
        try text.flush()
        try column.drain { piece in
            text.append(piece)
            try text.flush()
        }
    }
}

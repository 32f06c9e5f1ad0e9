// Lines of reports whose stacks are numbers. A location is on thousands of stacks: its frames are written once, and
// copied.

internal import StallModel
package import StallQuery

/// Writes reports as lines, byte for byte as ``ReportText`` does.
package struct OutlineLines {
    private var text = JSONText()
    // The frames of the report at hand, written beforehand.
    private var frames = JSONText()
    private var part = JSONText()

    private var numbers = FrameNumbers()
    /// The functions' titles and images as members of JSON, by number.
    private var functions: [[UInt8]] = []
    /// By number; nil where nothing was written yet, or was forgotten.
    private var places: [WrittenPlace?] = []
    private var writtenBytes = 0
    private var runs: [UniqueID: RunImages] = [:]
    /// The images of the report at hand, by number of path.
    private var used: Set<Int32> = []
    private var onStack: [Int32] = []

    /// Beyond that, the text written for locations is forgotten.
    private static let capacity = 16 << 20
    private static let runCapacity = 256

    package init() {}

    /// The report as one line with its line end.
    package mutating func line(
        _ outline: ReportOutline, _ lookup: any OutlineLookup
    ) throws -> [UInt8] {
        let report = outline.report
        let row = ReportText(report, group: outline.group, origin: outline.origin)
        let run = try images(of: report.run.id, lookup)
        used.removeAll(keepingCapacity: true)
        var numbered = NumberedSamples()
        let samples = try samples(of: outline, run, lookup, &numbered)
        let threads = try threads(of: outline, run, lookup)
        let timeline = try timeline(of: numbered)
        text.removeAll()
        try row.write(
            to: &text, images: images(of: run), samples: samples, threads: threads,
            timeline: timeline)
        text.syntax("\n")
        return text.bytes
    }

    // MARK: Samples and threads

    private mutating func samples(
        of outline: ReportOutline, _ run: RunImages, _ lookup: any OutlineLookup,
        _ numbered: inout NumberedSamples
    ) throws -> WrittenJSON {
        part.removeAll()
        part.syntax("[")
        for (index, outlined) in outline.samples.enumerated() {
            var sample = outlined.sample
            sample.isTruncated = try readStack(outlined.stack, lookup)
            let frames = try writeFrames(run)
            if !sample.isLate, !frames.isEmpty {
                numbered.entries.append(NumberedSamples.Entry(sample, frames))
            }
            if index > 0 { part.syntax(",") }
            try SampleText(sample: sample, stack: WrittenJSON(bytes: self.frames.bytes))
                .write(to: &part)
        }
        part.syntax("]")
        return WrittenJSON(bytes: part.bytes)
    }

    private mutating func threads(
        of outline: ReportOutline, _ run: RunImages, _ lookup: any OutlineLookup
    ) throws -> WrittenJSON {
        var sampleCounts: [ThreadID: Int] = [:]
        for sample in outline.samples { sampleCounts[sample.sample.thread, default: 0] += 1 }
        part.removeAll()
        part.syntax("[")
        for (thread, count) in sampleCounts.sorted(by: { $0.key.rawValue < $1.key.rawValue }) {
            if part.bytes.count > 1 { part.syntax(",") }
            try ThreadText(stalled: thread, sampleCount: count).write(to: &part)
        }
        for outlined in outline.threads {
            var thread = outlined.thread
            thread.isTruncated = try readStack(outlined.stack, lookup)
            _ = try writeFrames(run)
            if part.bytes.count > 1 { part.syntax(",") }
            try ThreadText(thread: thread, stack: WrittenJSON(bytes: frames.bytes))
                .write(to: &part)
        }
        part.syntax("]")
        return WrittenJSON(bytes: part.bytes)
    }

    // MARK: Frames

    /// The frames of one location.
    private struct WrittenPlace {
        var imageNumber: Int32?
        var offset: UInt64
        /// Each from behind the address on, which is another one in each process.
        var frames: [(number: FrameNumber, json: [UInt8])]
    }

    /// The text before a frame's other members where its address is unknown.
    private static let withoutAddress = Array(#"{"address":null"#.utf8)

    /// Reads the locations on a stack into `onStack`, and writes those that are new.
    ///
    /// - Returns: Whether the stack is deeper than what was recorded.
    private mutating func readStack(_ stack: Int64?, _ lookup: any OutlineLookup) throws -> Bool {
        onStack.removeAll(keepingCapacity: true)
        guard let stack else { return false }
        let isTruncated = try lookup.places(ofStack: stack, &onStack)
        if writtenBytes > Self.capacity {
            places = Array(repeating: nil, count: places.count)
            writtenBytes = 0
        }
        for place in onStack {
            if places.count <= Int(place) {
                places += repeatElement(nil, count: Int(place) - places.count + 1)
            }
            if places[Int(place)] == nil {
                places[Int(place)] = try written(lookup.frames(ofPlace: place))
            }
        }
        return isTruncated
    }

    private mutating func written(_ frames: [Frame]) throws -> WrittenPlace {
        var place = WrittenPlace(
            imageNumber: frames.first?.imagePath.map { numbers.path($0) },
            offset: frames.first?.offset ?? 0, frames: [])
        for frame in frames {
            let number = numbers.number(of: frame)
            if Int(number.function) == functions.count {
                self.frames.removeAll()
                self.frames.beginObject()
                try self.frames.member("function", frame.title)
                try self.frames.member("image", frame.imagePath)
                functions.append(Array(self.frames.bytes.dropFirst()))
            }
            self.frames.removeAll()
            try FrameText(frame: frame, loadAddress: nil).write(to: &self.frames)
            let json = Array(self.frames.bytes.dropFirst(Self.withoutAddress.count))
            place.frames.append((number, json))
            writtenBytes += json.count + MemoryLayout<WrittenPlace>.size
        }
        return place
    }

    /// Writes the frames of the stack at hand as an array into `frames`.
    private mutating func writeFrames(_ run: RunImages) throws -> [FrameNumber] {
        var found: [FrameNumber] = []
        found.reserveCapacity(onStack.count)
        frames.removeAll()
        frames.syntax("[")
        for number in onStack {
            guard let place = places[Int(number)] else { continue }
            var load: UInt64? = 0
            if let image = place.imageNumber {
                load = run.loadAddresses[image]
                used.insert(image)
            }
            for frame in place.frames {
                if !found.isEmpty { frames.syntax(",") }
                found.append(frame.number)
                if let load {
                    frames.syntax(#"{"address":"0x"#)
                    frames.hexadecimal(load &+ place.offset)
                    frames.syntax("\"")
                } else {
                    frames.raw(Self.withoutAddress)
                }
                frames.raw(frame.json)
            }
        }
        frames.syntax("]")
        return found
    }

    // MARK: Timeline

    private mutating func timeline(of samples: NumberedSamples) throws -> WrittenJSON {
        part.removeAll()
        part.syntax("[")
        // Most functions of a stack were on it all the time: their numbers are written once.
        var last: NumberedSamples.Presence?
        var (from, rest): ([UInt8], [UInt8]) = ([], [])
        for (function, presence) in samples.functions {
            if presence != last {
                last = presence
                frames.removeAll()
                frames.beginObject()
                try frames.member("from_ms", presence.from.milliseconds)
                frames.syntax(",")
                from = frames.bytes
                frames.removeAll()
                try frames.member("share", presence.share)
                try frames.member("until_ms", presence.until?.milliseconds)
                frames.endObject()
                rest = frames.bytes
            }
            if part.bytes.count > 1 { part.syntax(",") }
            part.raw(from)
            part.raw(functions[Int(function)])
            part.raw(rest)
        }
        part.syntax("]")
        return WrittenJSON(bytes: part.bytes)
    }

    // MARK: Images

    /// The images of a process run.
    private struct RunImages {
        var loadAddresses: [Int32: UInt64] = [:]
        var images: [(path: Int32, json: [UInt8])] = []
    }

    private mutating func images(
        of run: UniqueID, _ lookup: any OutlineLookup
    ) throws -> RunImages {
        if let known = runs[run] { return known }
        var images = RunImages()
        for image in try lookup.images(ofRun: run) {
            let path = numbers.path(image.path)
            if images.loadAddresses[path] == nil {
                images.loadAddresses[path] = image.loadAddress
            }
            part.removeAll()
            try image.write(to: &part)
            images.images.append((path, part.bytes))
        }
        if runs.count == Self.runCapacity { runs.removeAll(keepingCapacity: true) }
        runs[run] = images
        return images
    }

    /// Those on the stacks of the report at hand.
    private mutating func images(of run: RunImages) -> WrittenJSON {
        part.removeAll()
        part.syntax("[")
        for image in run.images where used.contains(image.path) {
            if part.bytes.count > 1 { part.syntax(",") }
            part.raw(image.json)
        }
        part.syntax("]")
        return WrittenJSON(bytes: part.bytes)
    }
}

// Trace events as JSON, for Perfetto and chrome://tracing. A loop is a track and a stall a slice on it, with the
// functions that were on its stack nested in it as long as they were seen. The holder of a lock has a track below the
// loop that waits, and an arrow leads from the one that waits to the one that holds.
//
// Source: the Trace Event Format. Times are microseconds since the first stall: a number of JSON holds nanoseconds of a month
// exactly, but not those since 1970. Slices of one track must nest, so stalls of one loop that overlap are on tracks of their own.

package import StallModel
package import StallQuery

package struct ChromeTrace: ViewerWriter {
    package static let order = CursorOrder.byLoop

    private struct Loop: Hashable {
        var run: UniqueID
        var name: String
    }

    private var text: ByteText
    private let origin: UnixTime
    private let isApp: (Frame, BuildID?) -> Bool
    private var frames = ViewerFrames()
    /// `"cat":"app","name":"load()"` of each frame.
    private var names: [[UInt8]] = []
    /// One process of the trace for each life of a process: the kernel gives out a number again.
    private var processes: [UniqueID: Int64] = [:]
    private var threadCount: Int64 = 0
    private var loop: Loop?
    /// Where the last stall of each track of this loop ended, in nanoseconds, and the tracks.
    private var tracks: [(end_ns: Int64, thread: Int64, holder: Int64?)] = []
    private var flowCount: Int64 = 0
    private var isFirst = true

    /// - Parameters:
    ///   - origin: When the first of the stalls began: the beginning of the trace.
    ///   - isApp: Whether a frame is the app's own.
    package init(
        origin: UnixTime, isApp: @escaping (Frame, BuildID?) -> Bool, to sink: @escaping ByteSink
    ) {
        text = ByteText(sink)
        self.origin = origin
        self.isApp = isApp
        text.append(
            "{\"displayTimeUnit\":\"ms\",\"otherData\":{\"producer\":\"stallctl \(stallwatchVersion)\",\"origin_us\":\"\(origin.microseconds)\"},\"traceEvents\":["
        )
    }

    package mutating func add(_ stall: ViewerStall) throws {
        let trace = stall.trace
        let process = try number(of: trace.run)
        let key = Loop(run: trace.run.id, name: trace.loop)
        if loop != key {
            loop = key
            tracks.removeAll()
        }
        let begin_ns = nanoseconds(trace.start)
        let duration_ns = max(0, trace.duration.nanoseconds)
        let track = track(from: begin_ns, for: duration_ns, of: trace.loop, in: process)
        let thread = tracks[track].thread
        slice(process, thread, begin_ns, duration_ns)
        text.append("\"cat\":\"stall\",\"name\":")
        text.append(stall.title.jsonBytes)
        addArguments(trace)
        try addFrames(stall, trace.parts, process, thread, begin_ns)
        if trace.cause?.cause == .lock, let holder = trace.holder {
            try addHolder(holder, of: stall, track, process, begin_ns, duration_ns)
        }
        try text.settle()
    }

    package mutating func finish() throws {
        text.append("\n]}\n")
        try text.flush()
    }

    /// Nanoseconds since the beginning of the trace.
    private func nanoseconds(_ time: UnixTime) -> Int64 {
        let (since, overflow) = time.microseconds.subtractingReportingOverflow(origin.microseconds)
        let (product, isTooLarge) = since.multipliedReportingOverflow(by: 1000)
        return overflow || isTooLarge ? 0 : product
    }

    // MARK: - Tracks

    private mutating func number(of run: ProcessRun) throws -> Int64 {
        if let known = processes[run.id] { return known }
        let number = Int64(processes.count) + 1
        processes[run.id] = number
        name(
            "process_name", "\(run.app) \(run.version), \(run.host), pid \(run.pid)",
            number, 0)
        return number
    }

    /// The first track that is free by then; a new one when none is.
    private mutating func track(
        from begin_ns: Int64, for duration_ns: Int64, of loop: String, in process: Int64
    ) -> Int {
        let (end_ns, overflow) = begin_ns.addingReportingOverflow(duration_ns)
        var index = tracks.firstIndex { $0.end_ns <= begin_ns } ?? tracks.count
        if overflow { index = tracks.count }
        if index == tracks.count {
            let name = index == 0 ? loop : "\(loop) (\(index + 1))"
            tracks.append((0, newThread(name, in: process), nil))
        }
        tracks[index].end_ns = overflow ? .max : end_ns
        return index
    }

    private mutating func newThread(_ label: String, in process: Int64) -> Int64 {
        threadCount += 1
        name("thread_name", label, process, threadCount)
        event("M", process, threadCount)
        text.append(",\"name\":\"thread_sort_index\",\"args\":{\"sort_index\":")
        text.append(threadCount)
        text.append("}}")
        return threadCount
    }

    private mutating func name(
        _ kind: String, _ label: String, _ process: Int64, _ thread: Int64
    ) {
        event("M", process, thread)
        text.append(",\"name\":\"\(kind)\",\"args\":{\"name\":")
        text.append(label.jsonBytes)
        text.append("}}")
    }

    // MARK: - Slices

    /// The functions on the stack, the outermost first, each as long as it was seen without a break.
    private mutating func addFrames(
        _ stall: ViewerStall, _ parts: [StackPart], _ process: Int64, _ thread: Int64,
        _ begin_ns: Int64
    ) throws {
        // Parts in time; a function that continues is one slice. Written when it begins, since its end is found by looking on.
        var stacks: [(begin_ns: Int64, end_ns: Int64, frames: [Int32])] = []
        for part in parts where part.duration_ns > 0 {
            let numbers = try frames.numbers(of: part.stack, in: stall)
            let end_ns = part.begin_ns + part.duration_ns
            if let last = stacks.last, last.frames == numbers, last.end_ns == part.begin_ns {
                stacks[stacks.count - 1].end_ns = end_ns
            } else {
                stacks.append((part.begin_ns, end_ns, numbers))
            }
        }
        while names.count < frames.frames.count {
            let frame = frames.frames[names.count]
            let category = isApp(frame, stall.trace.run.buildID) ? "app" : "system"
            names.append(
                Array("\"cat\":\"\(category)\",\"name\":".utf8) + frame.title.jsonBytes)
        }
        for (index, stack) in stacks.enumerated() {
            let shared =
                index == 0 ? 0 : stack.frames.sharedCallers(with: stacks[index - 1].frames)
            for depth in shared..<max(shared, stack.frames.count) {
                var end_ns = stack.end_ns
                for next in stacks[(index + 1)...] {
                    guard stack.frames.sharedCallers(with: next.frames) > depth else { break }
                    end_ns = next.end_ns
                }
                slice(process, thread, begin_ns + stack.begin_ns, end_ns - stack.begin_ns)
                text.append(names[Int(stack.frames[stack.frames.count - 1 - depth])])
                text.append("}")
            }
        }
    }

    /// The holder's track, its one stack for as long as the stall lasted, and the arrow to it.
    private mutating func addHolder(
        _ holder: TracedThread, of stall: ViewerStall, _ track: Int, _ process: Int64,
        _ begin_ns: Int64, _ duration_ns: Int64
    ) throws {
        let thread: Int64
        if let known = tracks[track].holder {
            thread = known
        } else {
            thread = newThread("\(stall.trace.loop): lock holder", in: process)
            tracks[track].holder = thread
        }
        let label = "\(holder.thread.rawValue)" + (holder.name.map { " '\($0)'" } ?? "")
        slice(process, thread, begin_ns, duration_ns)
        text.append("\"cat\":\"holder\",\"name\":")
        text.append("thread \(label) holds the lock".jsonBytes)
        text.append("}")
        if let stack = holder.stack {
            let part = StackPart(stack: stack, begin_ns: 0, duration_ns: duration_ns)
            try addFrames(stall, [part], process, thread, begin_ns)
        }
        flowCount += 1
        for (phase, end) in [("s", tracks[track].thread), ("f", thread)] {
            event(phase, process, end)
            text.append(",\"ts\":")
            text.append(microseconds(begin_ns))
            text.append(",\"id\":")
            text.append(flowCount)
            text.append(",\"cat\":\"lock\",\"name\":\"waits for\"")
            text.append(phase == "f" ? ",\"bp\":\"e\"}" : "}")
        }
    }

    private mutating func addArguments(_ trace: StallTrace) {
        text.append(",\"args\":{\"id\":\"\(trace.id)\",\"state\":\"\(trace.state.word)\"")
        if let cause = trace.cause {
            text.append(",\"cause\":\"\(cause.cause.word)\"")
            for evidence in cause.evidence {
                text.append(",")
                text.append(evidence.name.jsonBytes)
                text.append(":")
                text.append(evidence.value.jsonBytes)
            }
        }
        text.append("}}")
    }

    private mutating func slice(
        _ process: Int64, _ thread: Int64, _ begin_ns: Int64, _ duration_ns: Int64
    ) {
        event("X", process, thread)
        text.append(",\"ts\":")
        text.append(microseconds(begin_ns))
        text.append(",\"dur\":")
        text.append(microseconds(duration_ns))
        text.append(",")
    }

    private mutating func event(_ phase: String, _ process: Int64, _ thread: Int64) {
        text.append(isFirst ? "\n{\"ph\":\"" : ",\n{\"ph\":\"")
        isFirst = false
        text.append(phase)
        text.append("\",\"pid\":")
        text.append(process)
        text.append(",\"tid\":")
        text.append(thread)
    }

    private func microseconds(_ nanoseconds: Int64) -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.append(nanoseconds: nanoseconds, digits: 3)
        return bytes
    }
}

extension [Int32] {
    /// How many of the outermost frames are the same.
    fileprivate func sharedCallers(with other: [Int32]) -> Int {
        var shared = 0
        while shared < count, shared < other.count,
            self[count - 1 - shared] == other[other.count - 1 - shared]
        { shared += 1 }
        return shared
    }
}

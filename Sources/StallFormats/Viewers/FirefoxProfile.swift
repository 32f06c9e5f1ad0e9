// The processed profile of the Firefox Profiler, version 66, as samply writes it: a loop is a thread, a stack that was seen is a
// sample with its milliseconds as weight, and a stall is a marker.
//
// Source: firefox-devtools/profiler, src/types/profile.ts, and samply's fxprof-processed-profile. Newer versions of the app
// upgrade older profiles, and refuse newer ones: so the number stays.

package import StallModel
package import StallQuery

package struct FirefoxProfile: ViewerWriter {
    package static let order = CursorOrder.byLoop

    private struct Loop: Hashable {
        var run: UniqueID
        var name: String
    }

    /// A node of the tree of stacks: a frame under its caller.
    private struct Node: Hashable {
        var caller: Int32
        var frame: Int32
    }

    /// The columns of the thread that is being written.
    private final class Columns {
        let stacks = SpilledText()
        let times = SpilledText()
        let weights = SpilledText()
        let markerData = SpilledText()
        let markerNames = SpilledText()
        let markerStarts = SpilledText()
        let markerEnds = SpilledText()
        let markerPhases = SpilledText()
        let markerCategories = SpilledText()
        var sampleCount: Int64 = 0
        var markerCount: Int64 = 0
        var lastTime_ns: Int64 = 0

        func add(_ text: SpilledText, _ count: Int64, _ write: (inout [UInt8]) -> Void) throws {
            try text.append {
                if count > 0 { $0.append(0x2c) }
                write(&$0)
            }
        }
    }

    private var text: ByteText
    private let origin: UnixTime
    private let product: String
    private let isApp: (Frame, BuildID?) -> Bool
    private var frames = ViewerFrames()
    private var isAppFrame: [Bool] = []
    private var nodes: [Node: Int32] = [:]
    private var nodeList: [Node] = []
    private var strings: [String: Int32] = [:]
    private var stringList: [String] = []
    private var loop: (key: Loop, run: ProcessRun)?
    private var columns = Columns()
    private var threadCount: Int64 = 0

    private static let categories = ["Other", "App", "System"]

    package init(
        product: String, origin: UnixTime, isApp: @escaping (Frame, BuildID?) -> Bool,
        to sink: @escaping ByteSink
    ) {
        text = ByteText(sink)
        self.product = product
        self.origin = origin
        self.isApp = isApp
        text.append("{\"threads\":[")
    }

    package mutating func add(_ stall: ViewerStall) throws {
        let trace = stall.trace
        let key = Loop(run: trace.run.id, name: trace.loop)
        if let loop, loop.key != key { try finishThread() }
        loop = (key, trace.run)
        let begin_ns = max(
            0, (trace.start.microseconds &- origin.microseconds).multipliedClamped(by: 1000))
        for part in trace.parts where part.duration_ns > 0 {
            let node = try node(of: part.stack, in: stall)
            let (samples, columns) = (columns.sampleCount, columns)
            try columns.add(columns.stacks, samples) { $0.append(decimal: Int64(node)) }
            // In order, as readers expect; only stalls of loops with the same name overlap.
            columns.lastTime_ns = max(
                columns.lastTime_ns, begin_ns.addedClamped(part.begin_ns))
            try columns.add(columns.times, samples) {
                $0.append(nanoseconds: columns.lastTime_ns, digits: 6)
            }
            try columns.add(columns.weights, samples) {
                $0.append(nanoseconds: part.duration_ns, digits: 6)
            }
            columns.sampleCount += 1
        }
        try addMarker(stall, begin_ns)
        try text.settle()
    }

    private mutating func addMarker(_ stall: ViewerStall, _ begin_ns: Int64) throws {
        let trace = stall.trace
        let (name, count, columns) = (number(of: "Stall"), columns.markerCount, columns)
        try columns.add(columns.markerData, count) {
            $0 += "{\"type\":\"stall\",\"group\":".utf8
            $0 += stall.title.jsonBytes
            $0 += ",\"cause\":\"\(trace.cause?.cause.word ?? "")\",\"id\":\"\(trace.id)\"}".utf8
        }
        try columns.add(columns.markerNames, count) { $0.append(decimal: Int64(name)) }
        try columns.add(columns.markerStarts, count) {
            $0.append(nanoseconds: begin_ns, digits: 6)
        }
        try columns.add(columns.markerEnds, count) {
            let end_ns = begin_ns.addedClamped(max(0, trace.duration.nanoseconds))
            $0.append(nanoseconds: end_ns, digits: 6)
        }
        try columns.add(columns.markerPhases, count) { $0.append(0x31) }
        try columns.add(columns.markerCategories, count) { $0.append(0x30) }
        columns.markerCount += 1
    }

    private mutating func node(of stack: Int64, in stall: ViewerStall) throws -> Int32 {
        let numbers = try frames.numbers(of: stack, in: stall)
        while isAppFrame.count < frames.frames.count {
            isAppFrame.append(isApp(frames.frames[isAppFrame.count], stall.trace.run.buildID))
        }
        var caller: Int32 = -1
        for frame in numbers.reversed() {
            let node = Node(caller: caller, frame: frame)
            if let known = nodes[node] {
                caller = known
            } else {
                caller = Int32(nodeList.count)
                nodes[node] = caller
                nodeList.append(node)
            }
        }
        return caller
    }

    private mutating func number(of string: String) -> Int32 {
        if let known = strings[string] { return known }
        let number = Int32(stringList.count)
        strings[string] = number
        stringList.append(string)
        return number
    }

    // MARK: - Threads

    private mutating func finishThread() throws {
        guard let (key, run) = loop else { return }
        text.append(threadCount > 0 ? ",\n" : "\n")
        threadCount += 1
        text.append("{\"name\":")
        text.append(key.name.jsonBytes)
        text.append(
            ",\"isMainThread\":\(threadCount == 1),\"processType\":\"default\",\"processName\":")
        text.append("\(run.app) \(run.version)".jsonBytes)
        // The kernel gives out a number again.
        text.append(
            ",\"pid\":\"\(run.pid)-\(threadCount)\",\"tid\":\"\(threadCount)\",\"registerTime\":0,\"unregisterTime\":null,\"processStartupTime\":0,\"processShutdownTime\":null,\"pausedRanges\":[],\"showMarkersInTimeline\":true,\"samples\":{\"stack\":["
        )
        let columns = columns
        try write(columns.stacks, "],\"time\":[")
        try write(columns.times, "],\"weight\":[")
        try write(
            columns.weights,
            "],\"weightType\":\"tracing-ms\",\"length\":\(columns.sampleCount)},\"markers\":{\"data\":["
        )
        try write(columns.markerData, "],\"name\":[")
        try write(columns.markerNames, "],\"startTime\":[")
        try write(columns.markerStarts, "],\"endTime\":[")
        try write(columns.markerEnds, "],\"phase\":[")
        try write(columns.markerPhases, "],\"category\":[")
        try write(columns.markerCategories, "],\"length\":\(columns.markerCount)}}")
        columns.sampleCount = 0
        columns.markerCount = 0
        columns.lastTime_ns = 0
        loop = nil
    }

    private mutating func write(_ column: SpilledText, _ next: String) throws {
        try column.drain { piece in
            text.append(piece)
            try text.settle()
        }
        text.append(next)
    }

    // MARK: - Tables

    package mutating func finish() throws {
        try finishThread()
        text.append("\n],\"meta\":")
        addMeta()
        text.append(",\"libs\":[")
        let libraries = addLibraries()
        text.append(
            "],\"pages\":[],\"counters\":[],\"profilerOverhead\":[],\"shared\":{\"frameTable\":")
        try addFrameTable()
        text.append(",\"funcTable\":")
        try addFunctionTable(libraries)
        text.append(",\"stackTable\":")
        try addStackTable()
        text.append(
            ",\"nativeSymbols\":{\"libIndex\":[],\"address\":[],\"name\":[],\"functionSize\":[],\"length\":0},\"resourceTable\":"
        )
        try addResourceTable(libraries)
        text.append(",\"sources\":")
        try addSources()
        text.append(
            ",\"sourceLocationTable\":{\"source\":[],\"line\":[],\"column\":[],\"length\":0},\"stringArray\":"
        )
        let list = stringList
        try addList(list.count) { list[$0].jsonBytes }
        text.append("}}\n")
        try text.flush()
    }

    private mutating func addMeta() {
        let colors = ["grey", "blue", "lightblue"]
        let categories = zip(Self.categories, colors).map {
            "{\"name\":\"\($0)\",\"color\":\"\($1)\",\"subcategories\":[\"Other\"]}"
        }
        text.append("{\"version\":24,\"preprocessedProfileVersion\":66,\"product\":")
        text.append(product.jsonBytes)
        text.append(",\"interval\":1,\"startTime\":")
        var start: [UInt8] = []
        start.append(nanoseconds: origin.microseconds, digits: 3)
        text.append(start)
        text.append(
            ",\"processType\":0,\"stackwalk\":1,\"debug\":false,\"categories\":[\(categories.joined(separator: ","))],\"markerSchema\":[{\"name\":\"stall\",\"display\":[\"marker-chart\",\"marker-table\",\"timeline-overview\"],\"chartLabel\":\"{marker.data.group}\",\"tooltipLabel\":\"{marker.data.group}\",\"tableLabel\":\"{marker.data.group}\",\"fields\":[{\"key\":\"group\",\"label\":\"Group\",\"format\":\"string\"},{\"key\":\"cause\",\"label\":\"Cause\",\"format\":\"string\"},{\"key\":\"id\",\"label\":\"Report\",\"format\":\"string\"}]}],\"sampleUnits\":{\"time\":\"ms\",\"eventDelay\":\"ms\",\"threadCPUDelta\":\"\\u00b5s\"},\"symbolicated\":true,\"usesOnlyOneStackType\":true,\"sourceCodeIsNotOnSearchfox\":true,\"extensions\":{\"length\":0,\"id\":[],\"name\":[],\"baseURL\":[]},\"pausedRanges\":[],\"importedFrom\":\"stallwatch\"}"
        )
    }

    /// The images on stacks, by their numbers.
    private mutating func addLibraries() -> [String: Int] {
        var numbers: [String: Int] = [:]
        for frame in frames.frames {
            guard let path = frame.imagePath, numbers[path] == nil else { continue }
            text.append(numbers.isEmpty ? "\n" : ",\n")
            numbers[path] = numbers.count
            let (name, path8) = ((frame.imageName ?? path).jsonBytes, path.jsonBytes)
            let id = frame.buildID?.description
            for (label, value) in [
                ("{\"name\":", name), (",\"path\":", path8), (",\"debugName\":", name),
                (",\"debugPath\":", path8),
                (",\"breakpadId\":", (id?.uppercased() ?? "").jsonBytes),
                (",\"codeId\":", id?.jsonBytes ?? Array("null".utf8)),
            ] {
                text.append(label)
                text.append(value)
            }
            text.append(",\"arch\":null}")
        }
        return numbers
    }

    private mutating func addFrameTable() throws {
        let count = frames.frames.count
        let list = frames.frames
        text.append("{\"address\":")
        try addList(count) { _ in Array("-1".utf8) }
        text.append(",\"inlineDepth\":")
        try addList(count) { _ in [0x30] }
        text.append(",\"category\":")
        let isApp = isAppFrame
        try addList(count) { [isApp[$0] ? 0x31 : 0x32] }
        text.append(",\"subcategory\":")
        try addList(count) { _ in [0x30] }
        text.append(",\"func\":")
        try addList(count) { Array(String($0).utf8) }
        for name in ["nativeSymbol", "innerWindowID"] {
            text.append(",\"\(name)\":")
            try addList(count) { _ in Array((name == "innerWindowID" ? "0" : "null").utf8) }
        }
        text.append(",\"line\":")
        try addList(count) { Array((list[$0].line.map(String.init) ?? "null").utf8) }
        for name in ["column", "originalLocation"] {
            text.append(",\"\(name)\":")
            try addList(count) { _ in Array("null".utf8) }
        }
        text.append(",\"length\":\(count)}")
    }

    /// A function a frame: frames of one function differ in their line.
    private mutating func addFunctionTable(_ libraries: [String: Int]) throws {
        let list = frames.frames
        let names = list.map { number(of: $0.title) }
        text.append("{\"name\":")
        try addList(list.count) { Array(String(names[$0]).utf8) }
        for name in ["isJS", "relevantForJS"] {
            text.append(",\"\(name)\":")
            try addList(list.count) { _ in Array("false".utf8) }
        }
        text.append(",\"resource\":")
        try addList(list.count) {
            Array(String(list[$0].imagePath.flatMap { libraries[$0] } ?? -1).utf8)
        }
        let sources = sourceNumbers
        text.append(",\"source\":")
        try addList(list.count) {
            Array((list[$0].file.flatMap { sources.numbers[$0] }.map(String.init) ?? "null").utf8)
        }
        for name in ["lineNumber", "columnNumber", "originalLocation"] {
            text.append(",\"\(name)\":")
            try addList(list.count) { _ in Array("null".utf8) }
        }
        text.append(",\"length\":\(list.count)}")
    }

    private var sourceNumbers: (numbers: [String: Int], list: [String]) {
        var (numbers, list): ([String: Int], [String]) = ([:], [])
        for case let file? in frames.frames.lazy.map(\.file) where numbers[file] == nil {
            numbers[file] = list.count
            list.append(file)
        }
        return (numbers, list)
    }

    private mutating func addSources() throws {
        let list = sourceNumbers.list
        let names = list.map { number(of: $0) }
        text.append("{\"id\":")
        try addList(list.count) { _ in Array("null".utf8) }
        text.append(",\"filename\":")
        try addList(list.count) { Array(String(names[$0]).utf8) }
        for (name, value) in [
            ("startLine", "1"), ("startColumn", "1"), ("sourceMapURL", "null"),
        ] {
            text.append(",\"\(name)\":")
            try addList(list.count) { _ in Array(value.utf8) }
        }
        text.append(",\"length\":\(list.count)}")
    }

    private mutating func addStackTable() throws {
        let list = nodeList
        text.append("{\"frame\":")
        try addList(list.count) { Array(String(list[$0].frame).utf8) }
        // How far back the caller is; 0 where there is none.
        text.append(",\"prefixOffset\":")
        try addList(list.count) {
            Array(String(list[$0].caller < 0 ? 0 : $0 - Int(list[$0].caller)).utf8)
        }
        text.append(",\"length\":\(list.count)}")
    }

    private mutating func addResourceTable(_ libraries: [String: Int]) throws {
        let paths = libraries.sorted { $0.value < $1.value }.map(\.key)
        let names = paths.map { path in
            number(of: path.split(separator: "/").last.map(String.init) ?? path)
        }
        text.append("{\"lib\":")
        try addList(paths.count) { Array(String($0).utf8) }
        text.append(",\"name\":")
        try addList(paths.count) { Array(String(names[$0]).utf8) }
        text.append(",\"host\":")
        try addList(paths.count) { _ in Array("null".utf8) }
        text.append(",\"type\":")
        try addList(paths.count) { _ in [0x31] }
        text.append(",\"length\":\(paths.count)}")
    }

    private mutating func addList(_ count: Int, _ item: (Int) -> [UInt8]) throws {
        text.append("[")
        for index in 0..<count {
            if index > 0 { text.append(",") }
            text.append(item(index))
            try text.settle()
        }
        text.append("]")
    }
}

extension Int64 {
    fileprivate func multipliedClamped(by factor: Int64) -> Int64 {
        let (product, overflow) = multipliedReportingOverflow(by: factor)
        return overflow ? (self > 0 ? .max : .min) : product
    }

    fileprivate func addedClamped(_ other: Int64) -> Int64 {
        var sum = self
        sum.addSaturated(other)
        return sum
    }
}

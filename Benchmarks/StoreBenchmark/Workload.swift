// The reports that are measured with. The same ones in every run: the generator is seeded.

import StallModel
import StallStore

/// Reports as a fleet makes them: few functions are hot, samples of one stall share most of their
/// stack.
struct Workload {
    var random: SplitMix
    let images: [Image]
    private var clock: Int64 = 1_700_000_000_000_000
    private let paths: [[CodeLocation]]

    private static let functionSize: UInt64 = 32

    struct SplitMix: RandomNumberGenerator {
        var state: UInt64
        mutating func next() -> UInt64 {
            state &+= 0x9e37_79b9_7f4a_7c15
            var word = state
            word = (word ^ word >> 30) &* 0xbf58_476d_1ce4_e5b9
            word = (word ^ word >> 27) &* 0x94d0_49bb_1331_11eb
            return word ^ word >> 31
        }
    }

    init(seed: UInt64) {
        var random = SplitMix(state: seed)
        let images = (0..<8 as Range<UInt8>).map { number in
            let start = UInt64(number + 1) << 32
            return Image(
                path: "/opt/fleet/lib\(number).so",
                buildID: BuildID(bytes: [number, 1, 2, 3, 4, 5, 6, 7]),
                loadAddress: start, endAddress: start + 0x100_0000)
        }
        self.images = images
        // 2,000 ways into the code; each stall follows one and varies near its leaf.
        paths = (0..<2_000).map { (path: Int) -> [CodeLocation] in
            let depths = 0..<Int.random(in: 15...45, using: &random)
            return depths.reversed().map { (depth: Int) -> CodeLocation in
                let function = (depth < 12 ? path / 100 : path) * 64 + depth
                let image = images[depth % 8]
                return CodeLocation(
                    imagePath: image.path, buildID: image.buildID,
                    offset: UInt64(function) * Self.functionSize,
                    kind: .returnAddress)
            }
        }
        self.random = random
    }

    mutating func run(_ number: Int) -> ProcessRun {
        let time = UnixTime(microseconds: clock)
        return ProcessRun(
            id: UniqueID(version7At: time, random: &random), app: "app-\(number % 20)",
            version: "2.\(number % 10).0", buildID: images[0].buildID, host: "web-\(number % 500)",
            pid: Int32(number) + 2, bootID: "not of this machine", startTicks: 1, started: time)
    }

    /// - Parameter path: Which app's ways into the code it takes; nil goes by the process.
    mutating func report(_ run: ProcessRun, path app: Int? = nil) -> StallReport {
        clock += 900_000
        let start = UnixTime(microseconds: clock)
        // An app has a hundred ways to stall, of which few are hot.
        let uniform = Double.random(in: 0..<1, using: &random)
        let way = Int(uniform * uniform * uniform * 100)
        let path = paths[(app ?? Int(run.pid) % 20) * 100 + way]
        let duration = Duration.microseconds(Int.random(in: 250_000...3_000_000, using: &random))
        // As an agent samples: at growing intervals while the stall lasts.
        let offsets = (0..<Int.random(in: 1...4, using: &random))
            .map { Duration.milliseconds(125 << $0) }.filter { $0 < duration }
        let weights = sampleWeights(offsets.map(\.nanoseconds), of: duration.nanoseconds)
        // A loop that works is seen in one function and another, one that waits in the same one.
        let isBusy = Int.random(in: 0..<10, using: &random) < 3
        return StallReport(
            id: UniqueID(version7At: start, random: &random), run: run, loop: "main",
            mode: "default", phase: .timer,
            start: start,
            duration: duration,
            cpuTime: .microseconds(Int.random(in: 0...250_000, using: &random)),
            threshold: .milliseconds(250),
            detectionDelay: .microseconds(Int.random(in: 50...3_000, using: &random)),
            state: .ended,
            samples: zip(offsets, weights).map { offset, weight in
                var locations = path
                locations[0].kind = .interrupted
                locations[0].offset += random.next(upperBound: 8)
                if isBusy {
                    locations[0].offset += Self.functionSize * random.next(upperBound: 4)
                }
                return Sample(
                    offset: offset, weight: .nanoseconds(weight),
                    thread: ThreadID(rawValue: run.pid), method: .signalFree,
                    captureCost: .microseconds(Int.random(in: 10...90, using: &random)),
                    locations: locations)
            })
    }

    /// Records a report as an agent does, with symbols of locations that were not looked up before.
    func record(_ report: StallReport, to store: AgentStore) throws {
        try store.record(report, images: images)
        let unknown = try store.unsymbolized(report.samples.flatMap(\.locations))
        guard !unknown.isEmpty else { return }
        try store.symbolize(
            Dictionary(uniqueKeysWithValues: unknown.map { ($0, frames($0)) }))
    }

    func frames(_ location: CodeLocation) -> [Frame] {
        var frame = Frame(location)
        let function = location.offset / Self.functionSize
        let (type, method) = ("Type\(function / 24)", "method\(function)")
        frame.function = "\(type).\(method)(entry:at:)"
        frame.rawName =
            "$s5fleet\(type.count)\(type)C\(method.count)\(method)5entry2atySS_SitF"
        frame.file = "/src/Fleet/\(type).swift"
        frame.line = Int(location.offset % 1_000) + 1
        return [frame]
    }
}

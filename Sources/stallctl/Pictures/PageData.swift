// The data of the page's script, as JSON inside of the page. Names are interned, trees are lists of numbers: a page of
// 500 groups is handed over by mail.

internal import Foundation
internal import StallAnalysis
internal import StallModel
internal import StallQuery

/// The data of a page. Only page.js reads it.
struct PageData: Encodable {
    struct Group: Encodable {
        var id: String
        var title: String
        /// Microseconds on each side.
        var total: [Int64]
        /// For each call its name, its depth and its microseconds on each side, callers first.
        var tree: [Int64]
        var example: Example?
        /// The part of the time, its count and its microseconds.
        var trend: [[Int64]]
        var bins: [Int]
        var locks: [Lock]
        var versions: [Named]
        var hosts: [Named]
        var systems: [Named]
        var devices: [Named]
    }

    struct Example: Encodable {
        var id: String
        var us: Int64
        /// Names, the outermost first.
        var stacks: [[Int]]
        /// From, to and the stack, in microseconds.
        var parts: [[Int64]]
        var holder: Holder?
    }

    struct Holder: Encodable {
        var label: String
        var stack: [Int]
    }

    struct Lock: Encodable {
        var waiter: Int
        var holder: Int
        var count: Int
        var us: Int64
        var deadlock: Bool
    }

    struct Named: Encodable {
        var name: Int
        var count: Int
        var us: Int64
    }

    struct Mark: Encodable {
        /// In parts of the time from the beginning.
        var at: Double
        var name: Int
    }

    var sides: [String]
    /// The watched hours of each side; without them times are compared as they are.
    var hours: [Double]?
    /// The function, its image and whether it is the app's (`a`), a wait (`w`) or of a system (`s`).
    var names: [[String]] = []
    var start: Int64
    var step: Int64
    var count: Int
    var unit: String
    var marks: [Mark] = []
    var bins = PicturedTime.bins
    var groups: [Group] = []

    private var numbers: [PicturedFrame: Int] = [:]

    private enum CodingKeys: String, CodingKey {
        case sides, hours, names, start, step, count, unit, marks, bins, groups
    }

    init(time: PicturedTime, sides: [String], hours: [Double]? = nil) {
        self.sides = sides.map(\.forPicture)
        self.hours = hours
        start = time.start.microseconds / 1_000_000
        step = time.step_us / 1_000_000
        count = time.count
        unit = time.unit.rawValue
        // A page of hundreds of marks has none that can be read.
        marks = time.versions.prefix(40).map { name, first in
            let since = Double(first.microseconds - time.start.microseconds)
            return Mark(at: since / Double(time.step_us), name: number(of: name))
        }
    }

    mutating func number(of frame: PicturedFrame) -> Int {
        if let known = numbers[frame] { return known }
        numbers[frame] = names.count
        names.append([
            frame.function.forPicture, frame.image?.forPicture ?? "", frame.kind.rawValue,
        ])
        return names.count - 1
    }

    mutating func number(of name: String) -> Int {
        number(of: PicturedFrame(function: name, image: nil, kind: .system))
    }

    /// Adds a group.
    mutating func add(
        id: String, title: String, _ picture: GroupPicture, totals: [Duration],
        example: StallReport?, rules: GroupingRules
    ) {
        var tree: [Int64] = []
        for node in picture.flame.nodes {
            tree += [Int64(number(of: node.frame)), Int64(node.depth)]
            tree += node.times.map(\.microseconds)
        }
        groups.append(
            Group(
                id: id, title: title.forPicture, total: totals.map(\.microseconds), tree: tree,
                example: example.map { self.example($0, rules) },
                trend: picture.trend.sorted { $0.key < $1.key }.map {
                    [Int64($0.key), Int64($0.value.count), $0.value.time.microseconds]
                }, bins: picture.bins,
                locks: picture.locks.prefix(12).map { edge, total in
                    Lock(
                        waiter: number(of: "\(edge.loop) in \(edge.waiter)"),
                        holder: number(of: edge.holder), count: total.count,
                        us: total.time.microseconds, deadlock: edge.isDeadlock)
                },
                versions: named(picture.versions), hosts: named(picture.hosts),
                systems: named(picture.systems), devices: named(picture.devices)))
    }

    private mutating func named(_ names: [(name: String, total: CountAndTime)]) -> [Named] {
        names.prefix(20).map {
            Named(name: number(of: $0.name), count: $0.total.count, us: $0.total.time.microseconds)
        }
    }

    private mutating func example(_ report: StallReport, _ rules: GroupingRules) -> Example {
        var classifier = FrameClassifier(rules: rules)
        var (stacks, known): ([[Int]], [[Int]: Int]) = ([], [:])
        func stack(_ frames: [Frame], _ data: inout PageData) -> [Int] {
            // A picture of thousands of rows is none.
            frames.reversed().prefix(300).map { frame in
                data.number(of: classifier.picture(of: frame, executable: report.run.buildID))
            }
        }
        var parts: [[Int64]] = []
        let samples = report.samples.filter { !$0.isLate && !$0.frames.isEmpty }
        let trace = StallTrace(
            id: report.id, run: report.run, loop: report.loop, start: report.start,
            duration: report.duration, state: report.state, cause: nil,
            stacks: samples.enumerated().map { WeightedStack(stack: Int64($0), weight: $1.weight) })
        // Without a duration nothing is drawn in time.
        for part in report.duration.isUnknownLength ? [] : trace.parts {
            let names = stack(samples[Int(part.stack)].frames, &self)
            let number = known[names] ?? stacks.count
            if number == stacks.count {
                known[names] = number
                stacks.append(names)
            }
            let (from, to) = (part.begin_ns / 1000, (part.begin_ns + part.duration_ns) / 1000)
            if let last = parts.last, last[2] == Int64(number) {
                parts[parts.count - 1][1] = to
            } else {
                parts.append([from, to, Int64(number)])
            }
        }
        let holder = report.cause?.holder.map { holder in
            let thread = report.threads.first {
                $0.role == .holder && $0.thread == holder.thread
            }
            let label = "thread \(holder.thread.rawValue)" + (holder.name.map { " '\($0)'" } ?? "")
            return Holder(
                label: label.forPicture, stack: thread.map { stack($0.frames, &self) } ?? [])
        }
        return Example(
            id: report.id.description, us: report.duration.microseconds, stacks: stacks,
            parts: parts, holder: holder)
    }

    /// The data as the content of a script element that is not run: no `<` ends it.
    func json() throws -> String {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        let text = String(decoding: try encoder.encode(self), as: UTF8.self)
        return text.replacing("<", with: "\\u003c").replacing(">", with: "\\u003e")
            .replacing("&", with: "\\u0026")
    }
}

extension Duration {
    fileprivate var microseconds: Int64 { nanoseconds / 1000 }
}

// Generic code, called with several types, and what protocols lead to.

let genericSites: [Site] = [
    Site(
        "generic function",
        variants: [
            { sink += largest($0, [1, 5, 2]) ?? 0 },
            { sink += largest($0, ["a", "bb"])?.count ?? 0 },
        ]),
    Site(
        "generic struct",
        variants: [
            {
                var stack = Stack<Int>(); sink += stack.push(3, $0)
            },
            {
                var stack = Stack<String>(); sink += stack.push("x", $0)
            },
        ]),
    Site(
        "generic class",
        variants: [
            { sink += Pool<Int>(1).take($0) }, { sink += Pool<[String]>(["a"]).take($0) },
        ]),
    Site("constrained extension") { sink += ["x", "yy"].joinedLength($0) },
    Site(
        "protocol extension",
        variants: [
            { sink += Circle().outline($0) }, { sink += Square().outline($0) },
        ]),
    Site("opaque result") { sink += makeCounter($0).reduce(0, +) },
    Site(
        "generic with a closure",
        variants: [
            { leaf in sink += retry(leaf) { 3 } }, { leaf in sink += retry(leaf) { "abc" }.count },
        ]),
    Site("key path") { sink += [Sensor(leaf: $0)].map(\.reading)[0] },
    Site("parameter pack") { sink += countAll($0, 1, "a", 2.5) },
]

@inline(never) func largest<Value: Comparable>(_ leaf: Leaf, _ values: [Value]) -> Value? {
    let found = values.max()
    stall(leaf)
    return sink >= Int.min ? found : nil
}

struct Stack<Element> {
    private var elements: [Element] = []

    @inline(never) mutating func push(_ element: Element, _ leaf: Leaf) -> Int {
        elements.append(element)
        stall(leaf)
        return elements.count
    }
}

final class Pool<Resource> {
    private var free: [Resource]

    init(_ first: Resource) { free = [first] }

    @inline(never) func take(_ leaf: Leaf) -> Int {
        stall(leaf)
        return free.popLast() == nil ? 0 : 6
    }
}

extension Sequence where Element == String {
    @inline(never) func joinedLength(_ leaf: Leaf) -> Int {
        stall(leaf)
        return reduce(0) { $0 + $1.utf8.count }
    }
}

protocol Shape {
    var sides: Int { get }
    func draw(_ leaf: Leaf) -> Int
}

extension Shape {
    @inline(never) func outline(_ leaf: Leaf) -> Int {
        let count = sides
        stall(leaf)
        return count * 5
    }
}

struct Circle: Shape {
    var sides: Int { 1 }

    @inline(never) func draw(_ leaf: Leaf) -> Int {
        stall(leaf)
        return 314
    }
}

struct Square: Shape {
    var sides: Int { 4 }

    @inline(never) func draw(_ leaf: Leaf) -> Int {
        sink += 1
        stall(leaf)
        return sides * sides
    }
}

@inline(never) func makeCounter(_ leaf: Leaf) -> some Sequence<Int> {
    stall(leaf)
    return stride(from: 1, through: 9, by: 4)
}

@inline(never) func retry<Answer>(_ leaf: Leaf, _ body: () -> Answer) -> Answer {
    for _ in 0..<2 { _ = body() }
    stall(leaf)
    return body()
}

struct Sensor {
    var leaf: Leaf

    var reading: Int {
        @inline(never) get {
            stall(leaf)
            return 20 + (sink & 1)
        }
    }
}

@inline(never) func countAll<each Value>(_ leaf: Leaf, _ values: repeat each Value) -> Int {
    var count = 0
    for _ in repeat each values { count += 1 }
    stall(leaf)
    return count
}

let protocolSites: [Site] = [
    Site("witness through any") { sink += anyShape(0).draw($0) },
    Site("another witness through any") { sink += anyShape(1).draw($0) },
    Site("witness through a generic") { sink += measure(Triangle(), $0) },
    Site("static requirement") { sink += build(Cabin.self, $0) },
    Site("property requirement") {
        let found: any Labeled = Tag(leaf: $0); sink += found.label.count
    },
    Site("class protocol") {
        let found: any Delegate = Controller(); sink += found.didLoad($0)
    },
    Site("comparable") { leaf in sink += [Rank(2, leaf), Rank(1, leaf)].sorted()[0].value },
    Site("hashable") { sink += Set([Token(leaf: $0)]).count },
    Site("iterator") { for value in Countdown(leaf: $0) { sink += value } },
    Site("description") { sink += "\(Badge(leaf: $0))".count },
]

@inline(never) func anyShape(_ number: Int) -> any Shape { number == 0 ? Circle() : Square() }

@inline(never) func measure(_ shape: some Shape, _ leaf: Leaf) -> Int { shape.draw(leaf) + 1 }

struct Triangle: Shape {
    var sides: Int { 3 }

    @inline(never) func draw(_ leaf: Leaf) -> Int {
        stall(leaf)
        return sides << 4
    }
}

protocol Buildable {
    static func make(_ leaf: Leaf) -> Int
}

struct Cabin: Buildable {
    @inline(never) static func make(_ leaf: Leaf) -> Int {
        stall(leaf)
        return 77
    }
}

@inline(never) func build<Kind: Buildable>(_ kind: Kind.Type, _ leaf: Leaf) -> Int {
    kind.make(leaf) - 1
}

protocol Labeled {
    var label: String { get }
}

struct Tag: Labeled {
    var leaf: Leaf

    var label: String {
        @inline(never) get {
            stall(leaf)
            return "tag"
        }
    }
}

protocol Delegate: AnyObject {
    func didLoad(_ leaf: Leaf) -> Int
}

final class Controller: Delegate {
    private var loads = 0

    @inline(never) func didLoad(_ leaf: Leaf) -> Int {
        loads += 1
        stall(leaf)
        return loads
    }
}

struct Rank: Comparable {
    var value: Int
    var leaf: Leaf

    init(_ value: Int, _ leaf: Leaf) { (self.value, self.leaf) = (value, leaf) }

    static func == (left: Rank, right: Rank) -> Bool { left.value == right.value }

    @inline(never) static func < (left: Rank, right: Rank) -> Bool {
        stall(left.leaf)
        return left.value < right.value
    }
}

struct Token: Hashable {
    var leaf: Leaf

    static func == (left: Token, right: Token) -> Bool { true }

    @inline(never) func hash(into hasher: inout Hasher) {
        stall(leaf)
        hasher.combine(7)
    }
}

struct Countdown: Sequence, IteratorProtocol {
    var leaf: Leaf
    var left = 2

    @inline(never) mutating func next() -> Int? {
        guard left > 0 else { return nil }
        left -= 1
        stall(leaf)
        return left
    }
}

struct Badge: CustomStringConvertible {
    var leaf: Leaf

    var description: String {
        @inline(never) get {
            stall(leaf)
            return "badge"
        }
    }
}

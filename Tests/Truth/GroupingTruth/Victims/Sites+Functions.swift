// Plain functions, methods, initializers and accessors.

let functionSites: [Site] = [
    Site("free function", loadAlbum),
    Site("labels") {
        moveItem($0, from: 3, to: 4); visited()
    },
    Site("throwing") {
        try? parseManifest($0, "a=b"); visited()
    },
    Site("inout") {
        var list = [3, 1]; compact(&list, $0); sink += list.count
    },
    Site("variadic") { sink += summarize($0, 1, 2, 3) },
    Site("tuple") { sink += minAndMax($0, [4, 2]).max },
    Site("default argument") { sink += fetch($0).count },
    Site("operator") { sink += (Vector(x: 1, leaf: $0) <+> Vector(x: 2, leaf: $0)).x },
    Site("recursive") { sink += walk($0, depth: 3) },
    Site("never inlined private") { sink += checksum($0, [1, 2, 3]) },
]

@inline(never) func loadAlbum(_ leaf: Leaf) {
    stall(leaf)
    sink += 11
}

@inline(never) func moveItem(_ leaf: Leaf, from: Int, to: Int) {
    sink += from * to
    stall(leaf)
    sink -= to
}

struct ParseError: Error {}

@inline(never) func parseManifest(_ leaf: Leaf, _ text: String) throws {
    guard text.contains("=") else { throw ParseError() }
    stall(leaf)
    sink += text.utf8.count
}

@inline(never) func compact(_ list: inout [Int], _ leaf: Leaf) {
    list.append(sink)
    stall(leaf)
    list.removeAll { $0 == 1 }
}

@inline(never) func summarize(_ leaf: Leaf, _ values: Int...) -> Int {
    stall(leaf)
    return values.reduce(0, +)
}

@inline(never) func minAndMax(_ leaf: Leaf, _ values: [Int]) -> (min: Int, max: Int) {
    var (low, high) = (Int.max, Int.min)
    for value in values { (low, high) = (min(low, value), max(high, value)) }
    stall(leaf)
    return (low, high)
}

@inline(never) func fetch(_ leaf: Leaf, retries: Int = 3, path: String = "/index") -> String {
    stall(leaf)
    return path + String(retries)
}

struct Vector {
    var x: Int
    var leaf: Leaf
}
infix operator <+> : AdditionPrecedence

@inline(never) func <+> (left: Vector, right: Vector) -> Vector {
    stall(left.leaf)
    return Vector(x: left.x ^ right.x, leaf: right.leaf)
}

@inline(never) func walk(_ leaf: Leaf, depth: Int) -> Int {
    guard depth > 0 else {
        stall(leaf)
        return sink & 7
    }
    return walk(leaf, depth: depth - 1) + depth
}

@inline(never) private func checksum(_ leaf: Leaf, _ bytes: [UInt8]) -> Int {
    var hash: UInt32 = 2_166_136_261
    for byte in bytes { hash = (hash ^ UInt32(byte)) &* 16_777_619 }
    stall(leaf)
    return Int(hash % 97)
}

let typeSites: [Site] = [
    Site("struct method") { sink += Rect(width: 3).area($0) },
    Site("mutating method") {
        var rect = Rect(width: 4); rect.grow($0); sink += rect.width
    },
    Site("class method") { sink += Album(name: "a").open($0) },
    Site("override") {
        let album: Album = SharedAlbum(name: "b"); sink += album.refresh($0)
    },
    Site("static method") {
        Album.purge($0); visited()
    },
    Site("class func") {
        SharedAlbum.register($0); visited()
    },
    Site("enum method") { sink += Format.wide.render($0) },
    Site("initializer") { sink += Thumbnail(loading: $0).size },
    Site("convenience initializer") { sink += Album(cloning: $0).name.count },
    Site("deinitializer") {
        makeAndDropLease($0); visited()
    },
    Site("getter") { sink += Gauge(leaf: $0).level },
    Site("setter") {
        var gauge = Gauge(leaf: $0); gauge.target = 5; sink += gauge.stored
    },
    Site("observer") {
        let player = Player(leaf: $0); player.volume = 7; sink += player.volume
    },
    Site("subscript") { sink += Grid(leaf: $0)[2, 3] },
    Site("lazy property") {
        let page = Page(leaf: $0); sink += page.words.count
    },
    Site("extension of Array") { sink += [3, 4].digest($0) },
    Site("extension of Int") { sink += 12.digitSum($0) },
    Site("nested type") { sink += Editor.Cursor.Blink(rate: 3).tick($0) },
]

struct Rect {
    var width: Int

    @inline(never) func area(_ leaf: Leaf) -> Int {
        stall(leaf)
        return width * width
    }

    @inline(never) mutating func grow(_ leaf: Leaf) {
        width += 2
        stall(leaf)
        width *= 2
    }
}

class Album {
    var name: String

    init(name: String) { self.name = name }

    @inline(never) convenience init(cloning leaf: Leaf) {
        stall(leaf)
        self.init(name: "clone \(sink & 1)")
    }

    @inline(never) func open(_ leaf: Leaf) -> Int {
        stall(leaf)
        return name.count + 1
    }

    @inline(never) func refresh(_ leaf: Leaf) -> Int { name.count }

    @inline(never) static func purge(_ leaf: Leaf) {
        sink &= 0xffff
        stall(leaf)
        sink |= 1
    }

    @inline(never) class func register(_ leaf: Leaf) { sink += 1 }
}

class SharedAlbum: Album {
    @inline(never) override func refresh(_ leaf: Leaf) -> Int {
        name += "!"
        stall(leaf)
        return name.utf8.count
    }

    @inline(never) override class func register(_ leaf: Leaf) {
        stall(leaf)
        sink = sink &* 31
    }
}

enum Format: Int {
    case narrow, wide

    @inline(never) func render(_ leaf: Leaf) -> Int {
        switch self {
        case .narrow: return 1
        case .wide:
            stall(leaf)
            return rawValue << 3
        }
    }
}

struct Thumbnail {
    var size: Int

    @inline(never) init(loading leaf: Leaf) {
        stall(leaf)
        size = 64 + (sink & 1)
    }
}

final class Lease {
    let leaf: Leaf

    init(leaf: Leaf) { self.leaf = leaf }

    deinit {
        stall(leaf)
        sink += 1
    }
}

@inline(never) func makeAndDropLease(_ leaf: Leaf) {
    let leases = [Lease(leaf: leaf)]
    sink += leases.count
}

struct Gauge {
    var leaf: Leaf
    var stored = 0

    var level: Int {
        @inline(never) get {
            stall(leaf)
            return stored + 9
        }
    }

    var target: Int {
        get { stored }
        @inline(never) set {
            stall(leaf)
            stored = newValue * 2
        }
    }
}

final class Player {
    let leaf: Leaf

    init(leaf: Leaf) { self.leaf = leaf }

    var volume = 0 {
        didSet {
            stall(leaf)
            sink += volume - oldValue
        }
    }
}

struct Grid {
    var leaf: Leaf

    subscript(row: Int, column: Int) -> Int {
        @inline(never) get {
            stall(leaf)
            return row * 10 + column
        }
    }
}

final class Page {
    let leaf: Leaf
    lazy var words: [String] = split()

    init(leaf: Leaf) { self.leaf = leaf }

    @inline(never) private func split() -> [String] {
        stall(leaf)
        return "a page of words".split(separator: " ").map(String.init)
    }
}

extension Array where Element == Int {
    @inline(never) func digest(_ leaf: Leaf) -> Int {
        var total = count
        for element in self { total = total &* 17 &+ element }
        stall(leaf)
        return total & 63
    }
}

extension Int {
    @inline(never) func digitSum(_ leaf: Leaf) -> Int {
        stall(leaf)
        return String(self).utf8.reduce(0) { $0 + Int($1) - 48 }
    }
}

enum Editor {
    struct Cursor {
        struct Blink {
            var rate: Int

            @inline(never) func tick(_ leaf: Leaf) -> Int {
                stall(leaf)
                return rate | 8
            }
        }
    }
}

// What Swift programs compute: formats, texts, and the language's own ways to call.

import Foundation

struct Order: Codable, Equatable {
    var id: Int
    var name: String
    var lines: [Double]
}

let someOrders = (0..<50).map { Order(id: $0, name: "order \($0)", lines: [1.5, 2.5, Double($0)]) }
let someJSON = try! JSONEncoder().encode(someOrders)
let someText = (0..<200).map { "line \($0): user\($0)@example.org paid \($0 * 3) EUR" }.joined(
    separator: "\n")

@inline(never) func encodeOrders() {
    let encoder = JSONEncoder()
    while !isEnough() { sink &+= (try? encoder.encode(someOrders).count) ?? 0 }
}

@inline(never) func decodeOrders() {
    let decoder = JSONDecoder()
    while !isEnough() { sink &+= (try? decoder.decode([Order].self, from: someJSON).count) ?? 0 }
}

@inline(never) func parseObjects() {
    while !isEnough() {
        sink &+= ((try? JSONSerialization.jsonObject(with: someJSON)) as? [Any])?.count ?? 0
    }
}

@inline(never) func archivePlist() {
    let encoder = PropertyListEncoder()
    while !isEnough() { sink &+= (try? encoder.encode(someOrders).count) ?? 0 }
}

@inline(never) func matchRegex() {
    let regex = #/([a-z]+[0-9]+)@([a-z.]+)/#
    while !isEnough() { sink &+= someText.matches(of: regex).count }
}

@inline(never) func matchNSRegex() {
    let regex = try! NSRegularExpression(pattern: "([a-z]+[0-9]+)@([a-z.]+)")
    let range = NSRange(someText.startIndex..., in: someText)
    while !isEnough() { sink &+= regex.numberOfMatches(in: someText, range: range) }
}

@inline(never) func formatDates() {
    let formatter = DateFormatter()
    formatter.dateFormat = "yyyy-MM-dd HH:mm:ss"
    while !isEnough() {
        sink &+= formatter.string(from: Date(timeIntervalSince1970: Double(sink & 0xffff))).count
    }
}

@inline(never) func formatNumbers() {
    while !isEnough() { sink &+= String(format: "%08.3f %d", Double(sink & 0xff), 4).count }
}

@inline(never) func splitText() {
    while !isEnough() { sink &+= someText.split(separator: " ").count }
}

@inline(never) func normalizeText() {
    while !isEnough() { sink &+= someText.lowercased().reversed().count }
}

@inline(never) func encodeBase64() {
    while !isEnough() { sink &+= someJSON.base64EncodedString().count }
}

@inline(never) func compareOrders() {
    let other = someOrders
    while !isEnough() { sink &+= other == someOrders ? 1 : 2 }
}

@inline(never) func makeIdentifiers() {
    while !isEnough() { sink &+= UUID().uuidString.count }
}

@inline(never) func addDecimals() {
    var sum = Decimal(1)
    while !isEnough() { for number in 1..<100 { sum += Decimal(number) / 7 } }
    sink &+= sum.isZero ? 0 : 1
}

/// The compiler may attribute the time to generated code (`or`), and the closure of the list may be the only caller.
private func cpu(
    _ name: String, in function: String, or made: String? = nil, _ body: @escaping () -> Void
) -> Site {
    var site = Site(name, in: function, for: [.cpu], caller: "varinit in languageSites") { _ in body
    }
    if let made { site.functions.append(made) }
    return site
}

let formatSites: [Site] = [
    cpu("JSONEncoder", in: "encodeOrders()", or: "Order.encode(to:)") { encodeOrders() },
    cpu("JSONDecoder", in: "decodeOrders()", or: "Order.init(from:)") { decodeOrders() },
    cpu("JSONSerialization", in: "parseObjects()") { parseObjects() },
    cpu("PropertyListEncoder", in: "archivePlist()", or: "Order.encode(to:)") { archivePlist() },
    cpu("Regex", in: "matchRegex()") { matchRegex() },
    cpu("NSRegularExpression", in: "matchNSRegex()") { matchNSRegex() },
    cpu("DateFormatter", in: "formatDates()") { formatDates() },
    cpu("String(format:)", in: "formatNumbers()") { formatNumbers() },
    cpu("split", in: "splitText()") { splitText() },
    cpu("Unicode", in: "normalizeText()") { normalizeText() },
    cpu("base64", in: "encodeBase64()") { encodeBase64() },
    cpu("equality", in: "compareOrders()") { compareOrders() },
    cpu("UUID", in: "makeIdentifiers()") { makeIdentifiers() },
    cpu("Decimal", in: "addDecimals()") { addDecimals() },
]

// MARK: - The language

/// Some arithmetic that no optimizer folds.
@inline(__always) func mix(_ value: Int) -> Int {
    var value = value
    for step in 0..<400 { value = (value &* 6_364_136_223_846_793_005) ^ (value >> 13) &+ step }
    return value
}

@inline(never) func sumGenerically<Values: Sequence>(_ values: Values) -> Int
where Values.Element: BinaryInteger {
    var sum = 0
    while !isEnough() { for value in values { sum &+= mix(Int(value)) } }
    return sum
}

protocol Shape {
    func area() -> Int
}

struct Square: Shape {
    var side: Int
    @inline(never) func area() -> Int {
        var sum = 0
        while !isEnough() { sum &+= mix(side) }
        return sum
    }
}

class Account {
    @inline(never) func settle() -> Int { 0 }
}

final class SavingsAccount: Account {
    var rate = 3
    @inline(never) override func settle() -> Int {
        var sum = 0
        while !isEnough() { sum &+= mix(rate) }
        return sum
    }
}

@inline(never) func computeFibonacci() {
    while !isEnough() { sink &+= fibonacci(18 &+ (sink & 3)) }
}

@inline(never) func fibonacci(_ number: Int) -> Int {
    number < 2 ? number : fibonacci(number - 1) &+ fibonacci(number - 2)
}

@inline(never) func descend(_ depth: Int) -> Int {
    if depth == 0 {
        usleep(stallMicroseconds)
        return sink
    }
    return descend(depth - 1) &+ depth
}

@inline(never) func sortDescending() {
    var numbers = (0..<3000).map { mix($0) }
    while !isEnough() {
        numbers.shuffle()
        numbers.sort { left, right in left > right }
    }
    sink &+= numbers[0]
}

@inline(never) func mapAndFilter() {
    while !isEnough() { sink &+= (0..<500).map { mix($0) }.filter { $0 & 1 == 0 }.reduce(0, &+) }
}

@inline(never) func countWords() {
    while !isEnough() {
        var counts: [Substring: Int] = [:]
        for word in someText.split(separator: " ") { counts[word, default: 0] += 1 }
        sink &+= counts.count
    }
}

struct Grid {
    var cells = [Int](repeating: 1, count: 64)

    var checksum: Int {
        @inline(never) get {
            var sum = 0
            while !isEnough() { for cell in cells { sum &+= mix(cell) } }
            return sum
        }
    }

    subscript(row: Int) -> Int {
        @inline(never) get {
            var sum = row
            while !isEnough() { sum &+= mix(cells[row & 63]) }
            return sum
        }
    }

    @inline(never) init() {}

    @inline(never) init(slowly: Bool) { while !isEnough() { cells[0] &+= mix(cells[1]) } }

    @inline(never) mutating func blur() {
        while !isEnough() {
            for index in 1..<63 { cells[index] = mix(cells[index - 1] &+ cells[index + 1]) }
        }
    }

    @inline(never) static func combine() -> Int {
        var sum = 0
        while !isEnough() { sum &+= mix(sum) }
        return sum
    }

    @inline(never) static func + (left: Grid, right: Grid) -> Grid {
        var sum = left
        while !isEnough() { sum.cells[0] &+= mix(right.cells[0]) }
        return sum
    }
}

final class Holder {
    @inline(never) deinit { while !isEnough() { sink &+= mix(sink) } }
}

@inline(never) func dropHolder() {
    var holder: Holder? = Holder()
    sink &+= 1
    holder = nil
    sink &+= holder == nil ? 1 : 0
}

enum ParseError: Error { case bad(Int) }

@inline(never) func parseNumber(_ number: Int) throws -> Int {
    if number & 1 == 1 { throw ParseError.bad(number) }
    return mix(number)
}

@inline(never) func parseAll() {
    while !isEnough() { for number in 0..<200 { sink &+= (try? parseNumber(number)) ?? 1 } }
}

indirect enum Tree {
    case leaf
    case node(Tree, Int, Tree)

    @inline(never) func sum() -> Int {
        switch self {
        case .leaf: 0
        case .node(let left, let value, let right): left.sum() &+ value &+ right.sum()
        }
    }

    static func full(_ depth: Int) -> Tree {
        depth == 0 ? .leaf : .node(full(depth - 1), depth, full(depth - 1))
    }
}

@inline(never) func walkTree(_ tree: Tree) { while !isEnough() { sink &+= tree.sum() } }

extension Array where Element == Int {
    @inline(never) func digest() -> Int {
        var sum = 0
        while !isEnough() { for value in self { sum &+= mix(value) } }
        return sum
    }
}

@inline(never) func withLocalFunction() {
    @inline(never) func inner(_ seed: Int) -> Int {
        var sum = seed
        while !isEnough() { sum &+= mix(sum) }
        return sum
    }
    sink &+= inner(3)
}

@inline(never) func runLater(_ work: () -> Int) -> Int { work() &+ 1 }

@inline(never) func viaClosure() {
    let seed = sink
    sink &+= runLater {
        var sum = seed
        while !isEnough() { sum &+= mix(sum) }
        return sum
    }
}

@inline(never) func viaKeyPath(_ path: KeyPath<Grid, Int>) { sink &+= Grid()[keyPath: path] }

@inline(never) func anyShapes(_ shapes: [any Shape]) {
    for shape in shapes { sink &+= shape.area() }
}

/// May be inlined into its caller: debug information identifies inlined functions.
func tidyUp() {
    usleep(stallMicroseconds)
    sink &+= 1
}

@inline(never) func hashMany() {
    while !isEnough() {
        var hasher = Hasher()
        for number in 0..<500 { hasher.combine(number) }
        sink ^= hasher.finalize()
    }
}

@inline(never) func iterateLazily() {
    while !isEnough() {
        sink &+=
            (0..<1000).lazy.map { mix($0) }.filter { $0 & 3 == 0 }.first { $0 & 1023 == 5 } ?? 0
    }
}

let languageSites: [Site] = [
    cpu("generic function", in: "sumGenerically(_:)") {
        sink &+= sumGenerically([UInt8](repeating: 3, count: 64))
    },
    cpu("witness", in: "Square.area()") { anyShapes([Square(side: 3)]) },
    cpu("override", in: "SavingsAccount.settle()") { [account = SavingsAccount() as Account] in
        sink &+= account.settle()
    },
    cpu("recursion", in: "fibonacci(_:)", or: "computeFibonacci()") { computeFibonacci() },
    Site("deep recursion", in: "descend(_:)", for: [.sleep]) { _ in { sink &+= descend(700) } },
    Site("very deep recursion", in: "descend(_:)", for: [.sleep]) { _ in { sink &+= descend(5000) }
    },
    cpu("sort with a closure", in: "sortDescending()") { sortDescending() },
    cpu("map, filter, reduce", in: "mapAndFilter()") { mapAndFilter() },
    cpu("dictionary", in: "countWords()") { countWords() },
    cpu("getter", in: "Grid.checksum.getter") { [grid = Grid()] in sink &+= grid.checksum },
    cpu("subscript", in: "Grid.subscript.getter") { [grid = Grid()] in sink &+= grid[sink & 7] },
    cpu("initializer", in: "Grid.init(slowly:)") { sink &+= Grid(slowly: true).cells[0] },
    cpu("mutating method", in: "Grid.blur()") {
        var grid = Grid(); grid.blur(); sink &+= grid.cells[3]
    },
    cpu("static method", in: "Grid.combine()") { sink &+= Grid.combine() },
    cpu("operator", in: "Grid.+ infix(_:_:)") { [grid = Grid()] in sink &+= (grid + grid).cells[0]
    },
    cpu("deinit", in: "Holder.deinit") { dropHolder() },
    cpu("errors", in: "parseAll()", or: "parseNumber(_:)") { parseAll() },
    cpu("indirect enum", in: "Tree.sum()", or: "walkTree(_:)") { [tree = Tree.full(12)] in
        walkTree(tree)
    },
    cpu("extension of Array", in: "Array.digest()") { [numbers = Array(0..<100)] in
        sink &+= numbers.digest()
    },
    cpu("local function", in: "inner(_:) in withLocalFunction()") { withLocalFunction() },
    cpu("closure", in: "viaClosure()") { viaClosure() },
    cpu("key path", in: "Grid.checksum.getter") { viaKeyPath(\Grid.checksum) },
    Site("inlined function", in: "tidyUp()", for: [.sleep]) { _ in { tidyUp() } },
    cpu("hashing", in: "hashMany()") { hashMany() },
    cpu("lazy sequence", in: "iterateLazily()") { iterateLazily() },
]

// Everyday code that computes too long on a loop, and sleeps behind one more layer of an app.

import CStallSites
import Foundation

@inline(never) func parseDates() {
    let formatter = ISO8601DateFormatter()
    while !isEnough() {
        sink &+= formatter.date(from: "2026-11-2\(sink & 7)T10:00:00Z") == nil ? 1 : 2
    }
}

@inline(never) func compareVersions() {
    while !isEnough() {
        sink &+= "1.2.\(sink & 63)".compare("1.10.3", options: .numeric).rawValue
    }
}

@inline(never) func escapeAddresses() {
    while !isEnough() {
        let text = "a b/\(sink & 31)?"
        sink &+= text.addingPercentEncoding(withAllowedCharacters: .urlHostAllowed)?.count ?? 0
    }
}

@inline(never) func normalizePaths() {
    while !isEnough() {
        let path = "/a/./b/../c\(sink & 15)" as NSString
        sink &+= path.standardizingPath.utf8.count
    }
}

@inline(never) func measureDistances(_ names: [String]) {
    while !isEnough() {
        var row = Array(0...names[1].utf8.count)
        for (index, letter) in names[0].utf8.enumerated() {
            var previous = row[0]
            row[0] = index + 1
            for (column, other) in names[1].utf8.enumerated() {
                let cost = previous + (letter == other ? 0 : 1)
                previous = row[column + 1]
                row[column + 1] = min(cost, min(row[column], row[column + 1]) + 1)
            }
        }
        sink &+= row.last ?? 0
    }
}

@inline(never) func sieve() {
    while !isEnough() {
        var isPrime = [Bool](repeating: true, count: 20_000)
        for number in 2..<141 where isPrime[number] {
            for multiple in stride(from: number * number, to: 20_000, by: number) {
                isPrime[multiple] = false
            }
        }
        sink &+= isPrime.reduce(0) { $0 + ($1 ? 1 : 0) }
    }
}

@inline(never) func multiplyMatrices() {
    let size = 40
    var (left, right) = (
        [Double](repeating: 1.5, count: size * size), [Double](repeating: 0.5, count: size * size)
    )
    while !isEnough() {
        var product = [Double](repeating: 0, count: size * size)
        for row in 0..<size {
            for column in 0..<size {
                var sum = 0.0
                for index in 0..<size {
                    sum += left[row * size + index] * right[index * size + column]
                }
                product[row * size + column] = sum
            }
        }
        (left, right) = (right, product)
    }
    sink &+= left[3] > 0 ? 1 : 2
}

@inline(never) func diffLines() {
    let old = (0..<60).map { "line \($0 % 17)" }
    let new = (0..<60).map { "line \($0 % 13)" }
    while !isEnough() { sink &+= new.difference(from: old).count }
}

@inline(never) func permute(_ items: inout [Int], _ count: Int) -> Int {
    if count == 1 { return items[0] }
    var sum = 0
    for index in 0..<count {
        sum &+= permute(&items, count - 1)
        items.swapAt(count % 2 == 0 ? index : 0, count - 1)
    }
    return sum
}

@inline(never) func permuteAll() {
    var items = Array(0..<6)
    while !isEnough() { sink &+= permute(&items, 6) }
}

@inline(never) func groupWords() {
    let words = (0..<400).map { "word \(($0 * 31) % 57)" }
    while !isEnough() { sink &+= Dictionary(grouping: words, by: \.count).count }
}

@inline(never) func formatPrices() {
    let formatter = NumberFormatter()
    formatter.numberStyle = .decimal
    while !isEnough() {
        sink &+= formatter.string(from: NSNumber(value: sink & 0xffff))?.count ?? 0
    }
}

@inline(never) func reverseText() {
    while !isEnough() { sink &+= String("straße \(sink & 255)".reversed()).utf8.count }
}

@inline(never) func findRanges() {
    let text = String(repeating: "abc def ", count: 200)
    while !isEnough() { sink &+= text.range(of: "def a\(sink & 1)") == nil ? 1 : 2 }
}

@inline(never) func checksum(_ bytes: [UInt8]) {
    while !isEnough() {
        var (low, high) = (1, 0)
        for byte in bytes {
            low = (low + Int(byte)) % 65_521
            high = (high + low) % 65_521
        }
        sink ^= high << 16 | low
    }
}

final class SearchTree {
    var left: SearchTree?
    var right: SearchTree?
    let key: Int
    init(_ key: Int) { self.key = key }

    @inline(never) func insert(_ new: Int) {
        if new < key {
            if let left { left.insert(new) } else { left = SearchTree(new) }
        } else {
            if let right { right.insert(new) } else { right = SearchTree(new) }
        }
    }
}

@inline(never) func growTree() {
    while !isEnough() {
        let root = SearchTree(500)
        for number in 0..<300 { root.insert((number * 7919) % 1009) }
        sink &+= root.left?.key ?? 0
    }
}

struct LifeBoard {
    var cells: [UInt8]
    let width = 64

    @inline(never) mutating func advance() {
        var next = cells
        for row in 1..<(width - 1) {
            for column in 1..<(width - 1) {
                var count = 0
                for (down, right) in [
                    (-1, -1), (-1, 0), (-1, 1), (0, -1), (0, 1), (1, -1), (1, 0), (1, 1),
                ] {
                    count += Int(cells[(row + down) * width + column + right])
                }
                next[row * width + column] =
                    count == 3 || count == 2 && cells[row * width + column] == 1 ? 1 : 0
            }
        }
        cells = next
    }
}

@inline(never) func playLife() {
    var grid = LifeBoard(cells: (0..<4096).map { UInt8(($0 * 7) % 3 == 0 ? 1 : 0) })
    while !isEnough() { grid.advance() }
    sink &+= Int(grid.cells[100])
}

enum FormulaToken { case number(Int), plus, times, end }

struct FormulaParser {
    var tokens: [FormulaToken]
    var position = 0

    @inline(never) mutating func expression() -> Int {
        var sum = product()
        while case .plus = tokens[position] {
            position += 1
            sum &+= product()
        }
        return sum
    }

    @inline(never) mutating func product() -> Int {
        var result = 1
        while case .number(let number) = tokens[position] {
            result &*= number
            position += 1
            guard case .times = tokens[position] else { break }
            position += 1
        }
        return result
    }
}

@inline(never) func evaluateFormulas() {
    let tokens: [FormulaToken] =
        (0..<60).flatMap { [.number($0), .times, .number(3), .plus] } + [.number(1), .end]
    while !isEnough() {
        var parser = FormulaParser(tokens: tokens)
        sink &+= parser.expression()
    }
}

// MARK: - Layers of an app

// No two of these functions have the same instructions: compilers would keep one of them, under its name.

protocol Repository { func fetch(_ key: Int) -> Int }
struct SlowRepository: Repository {
    @inline(never) func fetch(_ key: Int) -> Int {
        usleep(stallMicroseconds)
        return key ^ sink
    }
}

struct CachedRepository: Repository {
    let inner: any Repository
    @inline(never) func fetch(_ key: Int) -> Int { inner.fetch(key) &+ 1 }
}

@inline(never) func showDetails(_ repository: any Repository) { sink &+= repository.fetch(4) }

final class DetailPresenter {
    weak var view: DetailScreen?
    @inline(never) func reload() { view?.refresh(after: 1) }
}

final class DetailScreen {
    var count = 0
    @inline(never) func refresh(after delay: Int) {
        count &+= delay
        Thread.sleep(forTimeInterval: stallSeconds)
        count &+= 1
    }
}

@propertyWrapper struct Throttled {
    var stored: Int
    var wrappedValue: Int {
        @inline(never) get {
            usleep(stallMicroseconds)
            return stored &+ sink
        }
    }
}

struct Preferences { @Throttled(stored: 3) var volume: Int }

@resultBuilder enum ListBuilder {
    @inline(never) static func buildBlock(_ parts: Int...) -> Int {
        usleep(stallMicroseconds)
        return parts.reduce(0, &+)
    }
}

@inline(never) func buildList(@ListBuilder _ body: () -> Int) -> Int { body() &+ 1 }

@dynamicMemberLookup struct DynamicSettings {
    subscript(dynamicMember name: String) -> Int {
        @inline(never) get {
            usleep(stallMicroseconds)
            return name.utf8.count &+ sink
        }
    }
}

struct MenuAction {
    @inline(never) func callAsFunction(_ times: Int) -> Int {
        usleep(stallMicroseconds)
        return times &- sink
    }
}

@inline(never) func retry(_ times: Int, _ body: () throws -> Int) rethrows -> Int {
    var sum = 0
    for _ in 0..<times { sum &+= try body() }
    return sum
}

@inline(never) func loadWithRetries() {
    sink &+= retry(2) {
        usleep(stallMicroseconds / 2)
        return sink & 1
    }
}

@inline(never) func interleave() {
    while !isEnough() {
        var (left, right) = ((0..<200).makeIterator(), (200..<400).makeIterator())
        while let one = left.next(), let other = right.next() { sink &+= mix(one ^ other) }
    }
}

@inline(never) func hashPasswords() {
    while !isEnough() {
        var state: UInt64 = 0xcbf2_9ce4_8422_2325
        for byte in "correct horse battery staple".utf8 {
            state = (state ^ UInt64(byte)) &* 0x100_0000_01b3
        }
        sink ^= Int(truncatingIfNeeded: state)
    }
}

@inline(never) func zipNames() {
    let names = (0..<100).map { "name \($0)" }
    while !isEnough() { sink &+= zip(names, names.dropFirst()).filter { $0 < $1 }.count }
}

private func work(_ name: String, in functions: String..., body: @escaping () -> Void) -> Site {
    var site = Site(name, in: functions[0], for: [.cpu]) { _ in body }
    site.functions = functions
    return site
}

private func nap(_ name: String, in functions: String..., body: @escaping () -> Void) -> Site {
    var site = Site(name, in: functions[0], for: [.sleep]) { _ in body }
    site.functions = functions
    return site
}

let everydaySites: [Site] = [
    work("ISO8601DateFormatter", in: "parseDates()") { parseDates() },
    work("numeric comparison", in: "compareVersions()") { compareVersions() },
    work("percent encoding", in: "escapeAddresses()") { escapeAddresses() },
    work("standardizing paths", in: "normalizePaths()") { normalizePaths() },
    work("edit distance", in: "measureDistances(_:)") {
        measureDistances(["stallwatch", "watchdog"])
    },
    work("sieve", in: "sieve()") { sieve() },
    work("matrices", in: "multiplyMatrices()") { multiplyMatrices() },
    work("difference(from:)", in: "diffLines()") { diffLines() },
    work("permutations", in: "permute(_:_:)", "permuteAll()") { permuteAll() },
    work("Dictionary(grouping:)", in: "groupWords()") { groupWords() },
    work("NumberFormatter", in: "formatPrices()") { formatPrices() },
    work("reversed text", in: "reverseText()") { reverseText() },
    work("range(of:)", in: "findRanges()") { findRanges() },
    work("two iterators", in: "interleave()") { interleave() },
    work("FNV hash", in: "hashPasswords()") { hashPasswords() },
    work("zip and filter", in: "zipNames()") { zipNames() },
    work("checksum", in: "checksum(_:)") { checksum([UInt8](repeating: 7, count: 3000)) },
    work("tree", in: "SearchTree.insert(_:)", "growTree()") { growTree() },
    work("game of life", in: "LifeBoard.advance()", "playLife()") { playLife() },
    work(
        "parser", in: "FormulaParser.product()", "FormulaParser.expression()", "evaluateFormulas()"
    ) { evaluateFormulas() },
    nap("repository behind another", in: "SlowRepository.fetch(_:)") {
        showDetails(CachedRepository(inner: SlowRepository()))
    },
    nap("weak reference", in: "DetailScreen.refresh(after:)") {
        let (presenter, screen) = (DetailPresenter(), DetailScreen())
        presenter.view = screen
        presenter.reload()
        sink &+= screen.count
    },
    nap("property wrapper", in: "Throttled.wrappedValue.getter", "Preferences.volume.getter") {
        sink &+= Preferences().volume
    },
    nap("result builder", in: "static ListBuilder.buildBlock(_:)", "ListBuilder.buildBlock(_:)") {
        sink &+= buildList {
            sink
            3
        }
    },
    nap(
        "dynamic member", in: "DynamicSettings.subscript.getter",
        "DynamicSettings.subscript(dynamicMember:)"
    ) {
        sink &+= DynamicSettings().brightness
    },
    nap("callAsFunction", in: "MenuAction.callAsFunction(_:)") { sink &+= MenuAction()(3) },
    nap("rethrowing function", in: "loadWithRetries()") { loadWithRetries() },
]

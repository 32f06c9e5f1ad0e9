import StallModel
import StallQuery
import TestSupport
import Testing

/// A dictionary says the same.
struct NumberTableTests {
    @Test(arguments: 1...4 as ClosedRange<UInt64>)
    func `keys have the number of their first occurrence`(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        // Close together, at both sides of where small keys end, in one slot before the multiplier, and the ends.
        let keys: [Int64] = (0..<20_000).map { _ in
            switch Int.random(in: 0..<5, using: &random) {
            case 0: .random(in: 0..<3000, using: &random)
            case 1: (1 << 18) + .random(in: -2000..<2000, using: &random)
            case 2: .random(in: 0..<2000, using: &random) << 44
            case 3: -.random(in: 0..<2000, using: &random)
            default: [.min, .max, 0, -1].randomElement(using: &random)!
            }
        }
        var expected: [Int64: Int32] = [:]
        var table = KeyNumbers()
        for key in keys {
            #expect(table.number(of: key) == expected[key])
            let number = expected[key] ?? Int32(expected.count)
            expected[key] = number
            #expect(table.add(key) == number)
            #expect(table.number(of: key) == number)
        }
        #expect(table.count == expected.count)
        #expect(table.keys.enumerated().allSatisfy { expected[$1] == Int32($0) })
    }

    @Test(arguments: 1...4 as ClosedRange<UInt64>)
    func `lists have the number of their first occurrence`(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        var expected: [[Int32]: Int32] = [:]
        var table = NumberLists()
        for _ in 0..<20_000 {
            let list: [Int32] = (0..<Int.random(in: 0...4, using: &random)).map { _ in
                [.min, .max, -1, 0, 1, 2, 3, 4, 5, 6].randomElement(using: &random)!
            }
            let number = expected[list] ?? Int32(expected.count)
            expected[list] = number
            #expect(table.add(list) == number)
            #expect(Array(table[number]) == list)
        }
        #expect(table.count == expected.count)
    }

    @Test func `weights come back as they were added, however large`() {
        let most = Int64(UInt32.max)
        let weights = [0, 1, most - 1, most, most + 1, .max, 7, -1, .min, 2]
        var list = StackWeights()
        list.append(contentsOf: Array(weights[..<4]))
        list.append(contentsOf: Array(weights[4...]))
        #expect(Array(list) == weights)
    }
}

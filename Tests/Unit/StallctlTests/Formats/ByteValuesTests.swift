import StallAnalysis
import StallFormats
import StallModel
import StallQuery
import TestSupport
import Testing

/// Goal: values that exports append as bytes are those that other outputs write as text.
/// Method: both ways are compared at the limits of their ranges and for random values.
@Suite struct ByteValuesTests {
    private var random = SeededGenerator(seed: 36)

    private func text(_ body: (inout [UInt8]) -> Void) -> String {
        var bytes: [UInt8] = []
        body(&bytes)
        return String(decoding: bytes, as: UTF8.self)
    }

    /// Numbers of any size, small ones too.
    private mutating func number(below limit: Int64) -> Int64 {
        Int64.random(in: 0..<limit, using: &random) >> Int64.random(in: 0..<60, using: &random)
    }

    @Test mutating func `milliseconds are those of Double`() {
        var values: [Int64] = [
            0, 1, 99, 100, 101, 1_000_000, 250_000_000, 999_999_999_999_999, 1_000_000_000_000_000,
            .max, -1, -250_500_000, .min,
        ]
        values += (0..<20_000).map { _ in number(below: .max) }
        values += (0..<20_000).map { _ in number(below: 1_000_000_000_000_000) }
        for value in values {
            let duration = Duration.nanoseconds(value)
            #expect(text { $0.append(milliseconds: duration) } == "\(duration.milliseconds)")
        }
    }

    @Test mutating func `times are those of RFC 3339`() {
        let last: Int64 = 253_402_300_799_999_999
        var values: [Int64] = [
            0, 951_782_400_000_000, 951_868_799_999_999, 951_868_800_000_000, 4_107_542_400_000_000,
            last, last + 1, -1, .min, .max,
        ]
        values += (0..<20_000).map { _ in number(below: last) }
        for value in values {
            let time = UnixTime(microseconds: value)
            var bytes: [UInt8] = []
            let isWritten = bytes.append(rfc3339: time)
            #expect(isWritten == (0...last ~= value))
            if isWritten { #expect(String(decoding: bytes, as: UTF8.self) == time.rfc3339) }
            if !isWritten { #expect(bytes.isEmpty) }
        }
    }

    @Test mutating func `identifiers and whole numbers are as described`() {
        for _ in 0..<1000 {
            let id = UniqueID((random.next(), random.next()))
            #expect(text { $0.append(id) } == id.description)
            let number = Int64(bitPattern: random.next())
            #expect(text { $0.append(decimal: number) } == "\(number)")
        }
        #expect(text { $0.append(decimal: .min) } == "\(Int64.min)")
    }
}

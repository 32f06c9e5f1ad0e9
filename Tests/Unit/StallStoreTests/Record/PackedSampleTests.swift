import StallModel
import StallStore
import TestSupport
import Testing

/// Goal: a report's samples are the same after they were encoded, are short where agents write them, and lists of older
/// programs and broken ones are read for what they are.
/// Method: random samples; a list that an agent of schema version 14 wrote; bytes that are no list.
@Suite struct PackedSampleTests {
    private func decoded(_ bytes: [UInt8]) -> [StoredSample]? {
        bytes.withUnsafeBytes { [StoredSample](encoded: $0) }
    }

    /// These numbers in a row.
    private func list(_ numbers: UInt64...) -> [UInt8] {
        var bytes: [UInt8] = []
        for number in numbers { bytes.append(leb128: number) }
        return bytes
    }

    @Test(arguments: 1...20 as ClosedRange<UInt64>)
    func `samples come back as they were`(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        let unit: Int64 = seed % 2 == 0 ? 1000 : 1
        func time() -> Int64 {
            let limit = Int64(1) << Int64.random(in: 0...44, using: &random)
            return Int64.random(in: 0..<limit, using: &random) * unit
        }
        for count in 0..<40 {
            let samples = (0..<count).map { _ in
                StoredSample(
                    offset_ns: time(), weight_ns: Bool.random(using: &random) ? nil : time(),
                    isLate: Bool.random(using: &random), thread: .random(in: 1...3, using: &random),
                    method: [nil, .signal, .signalFree].randomElement(using: &random)!,
                    stack: [nil, 1, 2, .max].randomElement(using: &random)!,
                    captureCost_ns: time(),
                    failure: [nil, "", "größer"].randomElement(using: &random)!)
            }
            #expect(decoded(samples.encoded) == samples)
        }
    }

    /// A wait of 2 s, sampled six times: 59 bytes before.
    @Test func `the samples of a wait take five bytes each`() {
        let samples = [125_240, 156_691, 219_362, 344_410, 594_568, 1_094_636].map { offset in
            StoredSample(
                offset_ns: offset * 1000, isLate: false, thread: 5680, method: .signalFree,
                stack: 70_000, captureCost_ns: 57_000)
        }
        #expect(samples.encoded.count == 31)
    }

    /// Each entry is read from the store: three million took 10 s and 2 GB.
    @Test func `a stack of more entries than any agent's is no list`() {
        for (count, isList) in [(1 << 16, true), (1 << 16 | 1, false), (1 << 20 | 1, false)] {
            let entries = [UInt8](repeating: 2, count: count).withUnsafeBytes {
                [StackEntry](encoded: $0)
            }
            #expect((entries != nil) == isList, "\(count)")
        }
    }

    @Test func `a list of before schema version 17 is read`() {
        let bytes = list(
            82, 125_240_051, 312_556, 5680, 1, 26, 156_691_324, 99, 57_616, 2, 77, 500, 7, 0)
        #expect(
            decoded(bytes) == [
                StoredSample(
                    offset_ns: 125_240_051, isLate: false, thread: 5680, method: .signalFree,
                    stack: 1, captureCost_ns: 312_556),
                StoredSample(
                    offset_ns: 156_691_324, weight_ns: 99, isLate: false, thread: 5680,
                    method: .signalFree, stack: 2, captureCost_ns: 57_616),
                StoredSample(
                    offset_ns: 500, isLate: true, thread: 5680, captureCost_ns: 7, failure: ""),
            ])
    }

    @Test func `what is no list is refused`() {
        // The thread, and the stack, of no sample before.
        #expect(decoded(list(8, 8, 1, 1)) == nil)
        #expect(decoded(list(8, 2 + 64, 1, 1, 7)) == nil)
        // An unknown flag, in lists of both kinds.
        #expect(decoded(list(8, 256, 1, 1, 7)) == nil)
        #expect(decoded(list(128, 1, 1, 7)) == nil)
        // More than ten years.
        #expect(decoded(list(8, 0, 2 * (UInt64(ValueLimits.duration_ns) / 1000 + 1), 1, 7)) == nil)
        #expect(decoded(list(8, 0, UInt64.max >> 1, 1, 7)) == nil)
        #expect(decoded(list(9, 0, 2 * (UInt64(ValueLimits.duration_ns) + 1), 1, 7)) == nil)
        // Before the start of the stall.
        #expect(decoded(list(8, 0, 1, 1, 7)) == nil)
        // Ends in the middle.
        #expect(decoded(list(8, 2, 1, 1, 7)) == nil)
        #expect(decoded(list(8)) == [])
    }
}

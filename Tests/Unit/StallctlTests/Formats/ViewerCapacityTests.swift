import Foundation
import StallFormats
import StallModel
import StallQuery
import TestSupport
import Testing

/// Goal: a writer whose table fills says the same as one that has room, wherever in a stall it fills.
/// Method: random stalls of several stacks each, written with tables of one entry, a few, and many; the samples are decoded
/// here and added up.
@Suite struct ViewerCapacityTests {
    /// What is added up: the functions of a stack, and the texts of its labels.
    private typealias Totals = [[String]: Int64]

    private let stalls: [ViewerStall] = {
        var random = SeededGenerator(seed: 11)
        return (0..<200).map { number in
            // The last stack of some stalls is one that the next stall begins with.
            let stacks = (0..<Int.random(in: 0...6, using: &random)).map { _ in
                WeightedStack(
                    stack: Int64.random(in: 1...9, using: &random),
                    weight: .nanoseconds(Int64.random(in: 1...900, using: &random)))
            }
            var run = SampleReports.run()
            run.version = "\(number % 5).0"
            let trace = StallTrace(
                id: SampleReports.id(UInt64(number + 1)), run: run, loop: "loop \(number % 3)",
                start: SampleReports.noon, duration: .nanoseconds(1000 + Int64(number)),
                state: .ended, cause: nil, stacks: stacks)
            return ViewerStall(trace, title: "group \(number % 7)") { stack in
                [SampleReports.frame("f\(stack)"), SampleReports.frame("main", offset: 64)]
            }
        }
    }()

    @Test(arguments: [1, 2, 3, 7, 64])
    func `a pprof table that fills in the middle of a stall loses nothing`(
        capacity: Int
    ) throws {
        #expect(try pprof(capacity: capacity) == pprof(capacity: 50_000))
        #expect(
            try pprof(capacity: capacity).values.reduce(0, +)
                == stalls.reduce(0) { $0 + $1.trace.duration.nanoseconds })
    }

    @Test(arguments: [1, 2, 3, 7, 64])
    func `a speedscope table that fills in the middle of a stall loses nothing`(
        capacity: Int
    ) throws {
        #expect(try speedscope(capacity: capacity) == speedscope(capacity: 50_000))
    }

    private func speedscope(capacity: Int) throws -> Totals {
        var bytes: [UInt8] = []
        var writer = SpeedscopeProfile(name: "test", entryCapacity: capacity) { bytes += $0 }
        for stall in stalls { try writer.add(stall) }
        try writer.finish()
        let document = try #require(
            try JSONSerialization.jsonObject(with: Data(bytes)) as? [String: Any])
        let shared = try #require(document["shared"] as? [String: Any])
        let frames = try #require(shared["frames"] as? [[String: Any]])
        var totals: Totals = [:]
        for case let profile as [String: Any] in try #require(document["profiles"] as? [Any]) {
            let samples = try #require(profile["samples"] as? [[Int]])
            let weights = try #require(profile["weights"] as? [Double])
            #expect(samples.count == weights.count)
            for (sample, weight) in zip(samples, weights) {
                let names = sample.compactMap { frames[$0]["name"] as? String }
                totals[names + ["\(profile["name"] ?? "")"], default: 0] +=
                    Int64((weight * 1e6).rounded())
            }
        }
        return totals
    }

    private func pprof(capacity: Int) throws -> Totals {
        var bytes: [UInt8] = []
        var writer = PprofProfile(span: nil, entryCapacity: capacity) { bytes += $0 }
        for stall in stalls { try writer.add(stall) }
        try writer.finish()
        let message = fields(bytes[...])
        let strings = message.filter { $0.number == 6 }.map {
            String(decoding: $0.bytes, as: UTF8.self)
        }
        func table(_ number: Int) -> [UInt64: [Field]] {
            Dictionary(
                uniqueKeysWithValues: message.filter { $0.number == number }.map {
                    let entry = fields($0.bytes)
                    return (entry[0].value, entry)
                })
        }
        let (locations, functions) = (table(4), table(5))
        var totals: Totals = [:]
        for sample in message where sample.number == 2 {
            let parts = fields(sample.bytes)
            var key: [String] = []
            for location in numbers(parts[0].bytes) {
                let line = try #require(locations[location]?.first { $0.number == 4 })
                let function = try #require(functions[fields(line.bytes)[0].value])
                key.append(strings[Int(function[1].value)])
            }
            for label in parts where label.number == 3 {
                key += fields(label.bytes).map { strings[Int($0.value)] }
            }
            totals[key, default: 0] += Int64(numbers(parts[1].bytes)[1])
        }
        return totals
    }

    // MARK: - The wire format of protocol buffers

    private struct Field {
        var number: Int
        var value: UInt64 = 0
        var bytes: ArraySlice<UInt8> = []
    }

    private func varint(_ rest: inout ArraySlice<UInt8>) -> UInt64 {
        var (value, shift): (UInt64, UInt64) = (0, 0)
        while let byte = rest.popFirst() {
            value |= UInt64(byte & 0x7f) << shift
            shift += 7
            if byte < 0x80 { break }
        }
        return value
    }

    private func fields(_ bytes: ArraySlice<UInt8>) -> [Field] {
        var (rest, list): (ArraySlice<UInt8>, [Field]) = (bytes, [])
        while !rest.isEmpty {
            let key = varint(&rest)
            var field = Field(number: Int(key >> 3))
            if key & 7 == 2 {
                let count = Int(varint(&rest))
                field.bytes = rest.prefix(count)
                rest = rest.dropFirst(count)
            } else {
                field.value = varint(&rest)
            }
            list.append(field)
        }
        return list
    }

    private func numbers(_ bytes: ArraySlice<UInt8>) -> [UInt64] {
        var (rest, list): (ArraySlice<UInt8>, [UInt64]) = (bytes, [])
        while !rest.isEmpty { list.append(varint(&rest)) }
        return list
    }
}

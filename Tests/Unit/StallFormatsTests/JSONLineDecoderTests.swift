import Foundation
import Testing

@testable import StallFormats

/// Goal: lines are decoded as Foundation decodes them, and what is not JSON is refused.
/// Method: random and damaged texts, decoded by both.
@Suite struct JSONLineDecoderTests {
    struct Node: Decodable, Equatable {
        var name: String
        var count: Int?
        var small: Int32?
        var large: UInt64?
        var part: Double?
        var isOn: Bool?
        var pairs: [[Int]]?
        var nodes: [Node]?
        var exact: Decimal?
    }

    struct Random: RandomNumberGenerator {
        var state: UInt64
        mutating func next() -> UInt64 {
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            return state ^ state >> 29
        }
    }

    func foundation(_ bytes: [UInt8]) -> Node? {
        try? JSONDecoder().decode(Node.self, from: Data(bytes))
    }

    func ours(_ bytes: [UInt8]) -> Node? { try? JSONLineDecoder.decode(Node.self, from: bytes) }

    func text(_ random: inout Random, depth: Int = 0) -> String {
        func pick(_ words: [String]) -> String { words.randomElement(using: &random)! }
        var members = [
            #""name":"# + pick([#""a""#, #""""#, #""\u00e9\ud83d\ude00\n\"\\\/""#, #""é😀 x""#])
        ]
        let numbers = [
            "0", "-0", "7", "-12", "1.0", "1e3", "1E-2", "2147483647", "2147483648", "0.1",
            "9007199254740993", "18446744073709551615", "18446744073709551616", "123456789.123456",
            "1e22", "1e300", "1e999", "4.35", "0.000001", "179769313486231570000", "null",
            #""7""#, "true", "-9223372036854775808", "5e-324", "99999999999999999",
        ]
        for key in ["count", "small", "large", "part", "exact"]
        where Bool.random(using: &random) { members.append("\"\(key)\": \(pick(numbers))") }
        members.append(#""isOn":"# + pick(["true", "false", "null"]))
        members.append(#""pairs":"# + pick(["[]", "[[1,2],[3]]", "[ [ ] ]", "null", "[[null]]"]))
        members.append(#""other":{"x":[1,{"y":null}],"name":"b"}"#)
        if depth < 3, Bool.random(using: &random) {
            let count = Int.random(in: 0...3, using: &random)
            let nodes = (0..<count).map { _ in text(&random, depth: depth + 1) }
            members.append("\"nodes\" : [\(nodes.joined(separator: " ,"))]")
        }
        if Int.random(in: 0...5, using: &random) == 0 { members.append(#""name":"second""#) }
        if Int.random(in: 0...5, using: &random) == 0 { members.append(#""cou\u006et":5"#) }
        members.shuffle(using: &random)
        return "{" + members.joined(separator: ",") + "}"
    }

    @Test func `what both decode is equal`() {
        var random = Random(state: 1)
        for _ in 0..<3000 {
            let text = text(&random)
            let bytes = Array(text.utf8)
            #expect(ours(bytes) == foundation(bytes), "\(text)")
        }
    }

    /// Foundation looks at no value that was not asked for; we refuse a line that is not JSON in any of them.
    @Test func `damaged text is never read otherwise`() {
        var random = Random(state: 2)
        var refused = 0
        for _ in 0..<6000 {
            var bytes = Array(text(&random).utf8)
            for _ in 0...Int.random(in: 0...2, using: &random) {
                let place = Int.random(in: 0..<bytes.count, using: &random)
                switch Int.random(in: 0...2, using: &random) {
                case 0:
                    bytes[place] = Array("{}[],:\"\\0e-.x \u{1}".utf8).randomElement(
                        using: &random)!
                case 1: bytes.remove(at: place)
                default:
                    bytes.insert(bytes[Int.random(in: 0..<bytes.count, using: &random)], at: place)
                }
            }
            guard String(validating: bytes, as: UTF8.self) != nil else { continue }
            if let node = ours(bytes) {
                #expect(node == foundation(bytes), "\(String(decoding: bytes, as: UTF8.self))")
            } else {
                refused += 1
                // Foundation takes a comma behind the last element.
                let text = String(decoding: bytes, as: UTF8.self)
                if text.contains(/,\s*[\]}]/) { continue }
                let isJSON = (try? JSONSerialization.jsonObject(with: Data(bytes))) != nil
                #expect(
                    !isJSON || foundation(bytes) == nil,
                    "\(String(decoding: bytes, as: UTF8.self))")
            }
        }
        #expect(refused > 1000)
    }

    @Test(arguments: [
        "", " ", "{", "}", #"{"name"}"#, #"{"name":}"#, #"{"name":"a",}"#, #"{"name":"a"}}"#,
        #"{"name":"a"} x"#, #"{name:"a"}"#, #"{'name':'a'}"#, #"{"name":"a","x":01}"#,
        #"{"name":"a","x":1.}"#, #"{"name":"a","x":.5}"#, #"{"name":"a","x":+1}"#,
        #"{"name":"a","x":-}"#, #"{"name":"a","x":1e}"#, #"{"name":"a","x":NaN}"#,
        #"{"name":"a","x":tru}"#, #"{"name":"\x"}"#, #"{"name":"\u12"}"#, #"{"name":"\ud800"}"#,
        #"{"name":"\udc00"}"#, #"{"name":"\ud800\u0041"}"#, #"{"name":"\"#, #"{"name":"a"#,
        #"{"name":"\u00g0"}"#, "{\"name\":\"a\u{1f}\"}", "{\"name\":\"a\n\"}",
        #"{"name":"a" "x":1}"#, "/**/{\"name\":\"a\"}", #"["name","a"]"#,
        "\u{feff}{\"name\":\"a\"}",
    ])
    func `what is not JSON, or no object, is refused`(text: String) {
        #expect(throws: DecodingError.self) {
            try JSONLineDecoder.decode(Node.self, from: Array(text.utf8))
        }
    }

    @Test func `nesting has a limit, and width has none`() throws {
        func nested(_ depth: Int) -> [UInt8] {
            Array(
                (#"{"name":"a","x":"# + String(repeating: "[", count: depth)
                    + String(repeating: "]", count: depth) + "}").utf8)
        }
        #expect(ours(nested(510)) != nil)
        #expect(ours(nested(100_000)) == nil)
        let wide = #"{"x":["# + String(repeating: "{},", count: 100_000) + #"0],"name":"a"}"#
        #expect(ours(Array(wide.utf8))?.name == "a")
    }

    /// The place in an error is found behind the fact.
    @Test(arguments: [
        (
            #"{"name":"a","nodes":[{"name":"b"},{"name":"c","nodes":[{"name":7}]}]}"#,
            "nodes.1.nodes.0.name"
        ),
        (#"{"name":"a","nodes":[{"name":"b"},{"count":1}]}"#, "nodes.1"),
        (#"{"name":"a","pairs":[[1],[2,"x"]]}"#, "pairs.1.1"),
        (#"{"name":"a","pairs":[[1],[2,null]]}"#, "pairs.1.1"),
        (#"{"x":1}"#, ""),
    ])
    func `an error names its place`(text: String, place: String) throws {
        func path(_ decode: () throws -> Node) -> String? {
            do { _ = try decode() } catch let error as DecodingError {
                let context =
                    switch error {
                    case .keyNotFound(_, let context), .valueNotFound(_, let context),
                        .typeMismatch(_, let context), .dataCorrupted(let context):
                        context
                    @unknown default: nil as DecodingError.Context?
                    }
                return context?.codingPath.map { $0.intValue.map(String.init) ?? $0.stringValue }
                    .joined(separator: ".")
            } catch {}
            return nil
        }
        let bytes = Array(text.utf8)
        #expect(path { try JSONLineDecoder.decode(Node.self, from: bytes) } == place)
        #expect(path { try JSONDecoder().decode(Node.self, from: Data(bytes)) } == place)
    }
}

import Foundation
import Testing

/// Goal: a name stands for one thing, wherever a reader meets it.
/// Method: the declarations of all sources, as text.
@Suite struct NameTests {
    private static let declaration = SourcePattern(
        #"^(?:@?[A-Za-z()]+ )*(?:struct|class|enum|actor|protocol|typealias) ([A-Z]\w*)"#)

    /// The type that a line declares outside of other types and for other files.
    static func declaredType(_ line: String) -> String? {
        guard !line.hasPrefix(" "), !line.hasPrefix("private "), !line.hasPrefix("fileprivate ")
        else { return nil }
        return declaration.group(in: line)
    }

    @Test func `no two types share a name`() throws {
        var places: [String: Set<String>] = [:]
        for module in try SourceTree.modules() {
            for (path, lines) in try SourceTree.files(of: module) {
                for name in lines.compactMap(Self.declaredType) {
                    places[name, default: []].insert(path)
                }
            }
        }
        #expect(places.count > 500)
        // Its substitute where a trait is off.
        places["StallTracer"]?.remove("StallTracing/MissingTrait.swift")
        for (name, paths) in places where paths.count > 1 {
            Issue.record("\(name) is declared in \(paths.sorted())")
        }
    }

    @Test(
        arguments: [
            ("struct Row {", "Row"), ("package final class Rows: Sendable {", "Rows"),
            ("@MainActor public enum Kind {", "Kind"), ("private struct Row {", nil),
            ("    struct Inner {", nil), ("/// struct Row", nil), ("extension Row {", nil),
        ] as [(String, String?)])
    func `a type's declaration is recognized`(line: String, name: String?) {
        #expect(Self.declaredType(line) == name)
    }

    /// One fact of a report, from the agent's measurement to a browser: each file that names it is one that a new fact
    /// changes, too.
    ///
    /// How a stall ended is measured by the detector, judged by readers of what a process left, and shown by `list`
    /// besides: it goes through all others as a `StallOutcome`.
    @Test(
        arguments: [
            (fact: "agent_ns agent_ms agentMs agentTime", limit: 8),
            (fact: "ending StallEnding", limit: 12),
        ])
    func `few files name one fact of a report`(fact: String, limit: Int) throws {
        let spelling = SourcePattern("\\b(?:\(fact.replacing(" ", with: "|")))\\b")
        var found: [String] = []
        for module in try SourceTree.modules() {
            for (path, lines) in try SourceTree.files(of: module)
            where lines.contains(where: { line in
                spelling.isIn(line) && !line.drop(while: { $0 == " " }).hasPrefix("//")
            }) {
                found.append(path)
            }
        }
        #expect(found.count > 2)
        #expect(found.count <= limit, "\(found)")
    }

    /// A column that comes between two others shifts the numbers behind it; there were 875 such reads.
    @Test func `few columns of a row are read by their numbers`() throws {
        let read = SourcePattern(#"\(\s*at: [0-9]"#)
        var count = 0
        for module in try SourceTree.modules() {
            for (_, lines) in try SourceTree.files(of: module) {
                count += read.count(in: lines.joined(separator: "\n"))
            }
        }
        #expect(count > 0)
        #expect(count <= 160)
    }
}

import Foundation
import TestSupport
import Testing

/// Goal: what apps can use changes only on purpose.
/// Method: every declaration of the modules that says `public`, as its source has it, against `docs/api.txt`.
/// `RECORD_SNAPSHOTS=1` rewrites the file; review the diff.
@Suite struct PublicInterfaceTests {
    @Test func `the public interface is the recorded one`() throws {
        let file = Repository.root.appending(path: "docs/api.txt")
        let interface = try Self.interface()
        if ProcessInfo.processInfo.environment["RECORD_SNAPSHOTS"] == "1" {
            try interface.write(to: file, atomically: true, encoding: .utf8)
        }
        let recorded = try String(contentsOf: file, encoding: .utf8)
        let lines = (
            old: recorded.components(separatedBy: "\n"),
            new: interface.components(separatedBy: "\n")
        )
        #expect(lines.old.filter { !lines.new.contains($0) } == [], "no longer public")
        #expect(lines.new.filter { !lines.old.contains($0) } == [], "newly public")
        #expect(recorded == interface)
    }

    @Test func `a declaration includes its context, not its body`() {
        let lines = """
            public struct A: Sendable {
                /// public in words
                public let b: Int
                public init(
                    b: Int = 1
                ) throws(E) { self.b = b }
                var c: Int
                public static func start()
                    -> A
                {
                    self
                }
            }
            public enum F {
                case g(Int), h
            }
            extension A {
                public func d() -> Int { 1 }
            }
            """.components(separatedBy: "\n")
        #expect(
            Self.declarations(lines) == [
                "public struct A: Sendable", "A: public let b: Int",
                "A: public init(b: Int = 1) throws(E)", "A: public static func start() -> A",
                "public enum F", "F: case g(Int), h", "A: public func d() -> Int",
            ])
    }

    static func interface() throws -> String {
        var text = ""
        for module in try SourceTree.modules() where module != "stallctl" {
            let found = try SourceTree.files(of: module).flatMap { declarations($0.lines) }.sorted()
            if !found.isEmpty { text += "\(module)\n" + found.map { "    \($0)\n" }.joined() }
        }
        return text
    }

    /// The public declarations among the lines of a file formatted by `swift format`: nesting follows from indentation.
    static func declarations(_ lines: [String]) -> [String] {
        var found: [String] = []
        var scopes: [(indent: Int, name: String, isPublicEnum: Bool)] = []
        var index = 0
        while index < lines.count {
            let line = lines[index]
            index += 1
            let text = line.drop { $0 == " " }
            let indent = line.count - text.count
            guard !text.isEmpty, !text.hasPrefix("//") else { continue }
            if !text.hasPrefix("}") {
                while let last = scopes.last, last.indent >= indent { scopes.removeLast() }
            }
            let words = text.split(separator: " ").filter { !$0.hasPrefix("@") }
            // A case of a public enum is public without saying so.
            let isCase =
                words.first == "case"
                && scopes.last.map { $0.isPublicEnum && $0.indent + 4 == indent } == true
            let isPublic = isCase || words.contains("public") && !words.contains("import")
            var declaration = String(text)
            if isPublic {
                // An open declaration continues on the next lines.
                while index < lines.count {
                    let next = lines[index].drop { $0 == " " }
                    let goesOn = ["->", "where ", "throws"].contains { next.hasPrefix($0) }
                    if isWhole(declaration) && !(goesOn && !declaration.contains("{")) { break }
                    declaration +=
                        declaration.hasSuffix("(") || next.hasPrefix(")") ? next : " " + next
                    index += 1
                }
                let outer = scopes.map(\.name).joined(separator: ".")
                found.append((outer.isEmpty ? "" : outer + ": ") + withoutBody(declaration))
            }
            let kinds = ["struct", "class", "enum", "extension", "protocol", "actor"]
            if let kind = words.firstIndex(where: { kinds.contains(String($0)) }),
                kind + 1 < words.count,
                declaration.contains("{")
            {
                let name = String(words[kind + 1].prefix { !":<{".contains($0) })
                scopes.append((indent, name, words[kind] == "enum" && words.contains("public")))
            }
        }
        return found
    }

    private static func isWhole(_ text: String) -> Bool {
        var depth = 0
        for character in text {
            if "([".contains(character) { depth += 1 }
            if ")]".contains(character) { depth -= 1 }
            if character == "{", depth == 0 { return true }
        }
        // A return type or a conformance may stand on the next line.
        return depth == 0 && !text.hasSuffix(",") && !text.hasSuffix(":") && !text.hasSuffix("->")
    }

    /// The text up to the body, or to the value of a stored property.
    private static func withoutBody(_ text: String) -> String {
        var depth = 0
        for index in text.indices {
            if "([".contains(text[index]) { depth += 1 }
            if ")]".contains(text[index]) { depth -= 1 }
            if depth == 0, text[index] == "{" || text[index...].hasPrefix("= ") {
                return text[..<index].trimmingCharacters(in: .whitespaces)
            }
        }
        return text
    }
}

// Parses a rules file, one rule per line:
//
//     wait disk  module photos  function Store.flush* "closure in Cache.*"   # a comment
//     action     selector glob  selector glob glob
//
// GroupingRule.swift has the actions and selectors; docs/grouping.md explains them with examples.

internal import StallModel
internal import StallQuery

/// The rules of one file, in order.
struct RulesText {
    /// The supported format. A file may declare its format in the first line: `rules 1`.
    static let version = "1"

    private(set) var rules: [GroupingRule] = []
    /// All words that grouping depends on: files with the same words group alike.
    private(set) var words: [[String]] = []

    /// - Parameter file: The name in error messages; nil for the built-in rules.
    init(_ text: String, file: String?) throws(RulesError) {
        let lines = text.split(omittingEmptySubsequences: false, whereSeparator: \.isNewline)
        for (index, line) in lines.enumerated() {
            var reader = RuleReader(file: file, line: index + 1)
            try reader.split(line)
            if reader.take("rules") {
                try reader.take("format \(Self.version)") { $0 == Self.version ? $0 : nil }
                try reader.takeEnd()
            } else if !reader.isAtEnd {
                rules.append(try reader.rule())
                if rules.last?.action == .allow { continue }
            }
            words.append(reader.words.map(\.text))
        }
        words.removeAll(where: \.isEmpty)
    }
}

/// Parses one line, word by word.
private struct RuleReader {
    struct Word {
        var text: String
        /// Quoted words are globs and names, never keywords.
        var isQuoted: Bool
    }

    let file: String?
    let line: Int
    private(set) var words: [Word] = []
    private var next = 0

    init(file: String?, line: Int) {
        self.file = file
        self.line = line
    }

    var isAtEnd: Bool { next == words.count }

    private func error(expected: String) -> RulesError {
        RulesError(
            file: file ?? "built-in rules", line: line,
            found: isAtEnd ? nil : words[next].text, expected: expected)
    }

    /// Words are separated by spaces; quotes keep them in one; `#` before a word begins a comment.
    mutating func split(_ line: Substring) throws(RulesError) {
        var rest = line.drop(while: \.isWhitespace)
        while let first = rest.first, first != "#" {
            if first == "\"" {
                guard let end = rest.dropFirst().firstIndex(of: "\"") else {
                    throw RulesError(
                        file: file ?? "built-in rules", line: self.line, found: String(rest),
                        expected: "a closing \"")
                }
                words.append(
                    Word(
                        text: String(rest[rest.index(after: rest.startIndex)..<end]), isQuoted: true
                    ))
                rest = rest[rest.index(after: end)...]
            } else {
                let word = rest.prefix { !$0.isWhitespace }
                words.append(Word(text: String(word), isQuoted: false))
                rest = rest[word.endIndex...]
            }
            rest = rest.drop(while: \.isWhitespace)
        }
    }

    mutating func take(_ keyword: String) -> Bool {
        guard !isAtEnd, !words[next].isQuoted, words[next].text == keyword else { return false }
        next += 1
        return true
    }

    @discardableResult
    mutating func take<Value>(
        _ expected: String, _ read: (String) -> Value?
    ) throws(RulesError) -> Value {
        guard !isAtEnd, let value = read(words[next].text) else { throw error(expected: expected) }
        next += 1
        return value
    }

    func takeEnd() throws(RulesError) {
        guard isAtEnd else { throw error(expected: "the end of the line") }
    }

    mutating func rule() throws(RulesError) -> GroupingRule {
        let name = try take(
            "an action: " + listed(Self.actions), { Self.actions.contains($0) ? $0 : nil })
        let action = try action(named: name)
        var rule = GroupingRule(action, file: file, line: line)
        let selectors = action.selectors
        let expected = "a selector: " + listed(selectors)
        repeat {
            let selector = try take(expected) { selectors.contains($0) ? $0 : nil }
            var globs: [Glob] = []
            while !isAtEnd, words[next].isQuoted || !Self.keywords.contains(words[next].text) {
                if selector == "kind" {
                    let kinds = FrameKind.allCases.map(\.rawValue)
                    rule.kinds.append(try take("a kind: " + listed(kinds), FrameKind.init))
                } else {
                    globs.append(Glob(words[next].text))
                    next += 1
                }
            }
            guard !globs.isEmpty || !rule.kinds.isEmpty else {
                throw error(expected: "what the \(selector) must be, such as photos* or \"init *\"")
            }
            switch selector {
            case "image": rule.images += globs
            case "module": rule.modules += globs
            case "function": rule.functions += globs
            case "path": rule.paths += globs
            default: break
            }
        } while !isAtEnd && !(action.isMerge && words[next].text == "into")
        if action.isMerge { rule.action = .merge(into: try target()) }
        try takeEnd()
        return rule
    }

    private static let actions = [
        "app", "skip", "keep", "stop", "wait", "base", "merge", "split", "allow",
        "system", "kernel", "thunk", "runtime", "allocator", "monitor",
    ]
    private static let keywords: Set = ["image", "module", "function", "path", "kind", "into"]

    private mutating func action(named name: String) throws(RulesError) -> RuleAction {
        switch name {
        case "keep": return .keep
        case "stop": return .stop
        case "allow": return .allow
        case "merge": return .merge(into: "")  // its name follows the selectors
        case "wait":
            let classes = WaitClass.allCases.map(\.rawValue)
            return .wait(try take("what is waited for: " + listed(classes), WaitClass.init))
        case "base":
            for base in [RuleAction.Base.loop, .entry] where take(base.rawValue) {
                return .base(base)
            }
            return .base(.plain)
        case "split":
            guard take("by") else { throw error(expected: "'by'") }
            let keys = SplitKey.allCases.map(\.rawValue)
            return .split(
                by: try take("what to split by: " + listed(keys), SplitKey.init))
        default:
            return .classify(name == "skip" ? .skipped : FrameClass(rawValue: name)!)
        }
    }

    private mutating func target() throws(RulesError) -> String {
        guard take("into") else { throw error(expected: "'into' and the name of the group") }
        return try take("the name of the group") { $0.isEmpty ? nil : $0 }
    }
}

extension RuleAction {
    fileprivate var isMerge: Bool { if case .merge = self { true } else { false } }

    fileprivate var selectors: [String] {
        switch self {
        case .merge, .split: ["image", "module", "function", "path"]
        case .allow: ["image", "function"]
        default: ["image", "module", "function", "kind"]
        }
    }
}

/// `a`, `a or b`, `a, b or c`.
private func listed(_ words: [String]) -> String {
    words.dropLast().joined(separator: ", ") + " or " + words.last!
}

// A rule that merges several groups, as `merge` writes it. RulesText.swift reads it.

import StallModel
package import StallQuery

/// The line of a rules file that merges several groups.
package struct MergeRule {
    package let text: String

    /// - Parameter name: The name of the merged group; nil for that of the first one.
    package init(_ groups: [StallAggregate], into name: String?) {
        let paths = groups.map { $0.frames.joined(separator: " <- ").quotedGlob }
        let into = name ?? groups[0].frames.joined(separator: " <- ").withoutQuotes
        text = "merge path " + paths.joined(separator: " ") + " into \"\(into)\""
    }

    /// The lines of a rules file with this one before all other rules, because the first rule that matches a group
    /// decides.
    ///
    /// - Parameters:
    ///   - rules: The contents of the file; empty for a new one.
    ///   - file: Its name in error messages.
    package func lines(before rules: String, file: String) throws(RulesError) -> [String] {
        var lines = rules.split(separator: "\n", omittingEmptySubsequences: false)
            .map(String.init)
        if lines.last == "" { lines.removeLast() }
        // The format line and the file's leading comments stay at the top.
        let first = lines.firstIndex {
            !$0.hasPrefix("#") && !$0.hasPrefix("rules ") && !$0.isEmpty
        }
        lines.insert(text, at: first ?? lines.count)
        _ = try GroupingRules(lines.joined(separator: "\n"), file: file)
        return lines
    }
}

extension String {
    /// A quoted glob that matches this text and no other. Characters that cannot stand in a line between quotes are
    /// written as their number: quotes, line ends, and marks that would join the quote before them.
    fileprivate var quotedGlob: String {
        let escaped = unicodeScalars.map { scalar -> String in
            if "*?\\".unicodeScalars.contains(scalar) { return "\\" + String(scalar) }
            let isPlain =
                scalar != "\"" && !scalar.steersTerminal && !scalar.properties.isGraphemeExtend
            return isPlain ? String(scalar) : "\\u{" + String(scalar.value, radix: 16) + "}"
        }
        return "\"" + escaped.joined() + "\""
    }

    fileprivate var withoutQuotes: String {
        String(map { $0 == "\"" || $0.isNewline ? "'" : $0 })
    }
}

// Syntax errors in a rules file.

/// The first syntax error in a rules file.
package struct RulesError: Error, Equatable, CustomStringConvertible {
    package var file: String
    /// From 1.
    package var line: Int
    /// The unexpected word; nil at the end of the line.
    package var found: String?
    package var expected: String

    package var description: String {
        let found = found.map { "not '\($0)'" } ?? "but the line ends there"
        return "\(file):\(line): expected \(expected), \(found)"
    }
}

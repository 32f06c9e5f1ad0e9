// What is wrong with a rules file.

/// The first thing in a rules file that could not be understood.
package struct RulesError: Error, Equatable, CustomStringConvertible {
    package var file: String
    /// From 1.
    package var line: Int
    /// The word that was not understood; nil at the end of the line.
    package var found: String?
    package var expected: String

    package var description: String {
        let found = found.map { "not '\($0)'" } ?? "but the line ends there"
        return "\(file):\(line): expected \(expected), \(found)"
    }
}

import Foundation

/// A regular expression of ICU's: Swift's own takes a minute for all lines of Sources in a debug build.
struct SourcePattern: Sendable {
    private let expression: NSRegularExpression

    init(_ pattern: String) {
        expression = try! NSRegularExpression(pattern: pattern)
    }

    func isIn(_ text: String) -> Bool {
        expression.firstMatch(in: text, range: Self.whole(text)) != nil
    }

    func count(in text: String) -> Int {
        expression.numberOfMatches(in: text, range: Self.whole(text))
    }

    /// The first group of the first match.
    func group(in text: String) -> String? {
        expression.firstMatch(in: text, range: Self.whole(text))
            .flatMap { Range($0.range(at: 1), in: text) }
            .map { String(text[$0]) }
    }

    private static func whole(_ text: String) -> NSRange {
        NSRange(location: 0, length: text.utf16.count)
    }
}

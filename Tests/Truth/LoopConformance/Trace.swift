// Comparing two traces: the same tokens in the same order, times within one step of the rounding.

package enum Trace {
    package static func tokens(_ text: String) -> [String] {
        text.split(separator: " ").map(String.init)
    }

    package static func agree(_ left: [String], _ right: [String], allowsSpuriousWakeUp: Bool)
        -> Bool
    {
        if sameTokens(left, right) { return true }
        guard allowsSpuriousWakeUp else { return false }
        return withoutOneWakeUp(left).contains { sameTokens($0, right) }
            || withoutOneWakeUp(right).contains { sameTokens(left, $0) }
    }

    private static func sameTokens(_ left: [String], _ right: [String]) -> Bool {
        left.count == right.count && zip(left, right).allSatisfy(sameToken)
    }

    private static func sameToken(_ left: String, _ right: String) -> Bool {
        if left == right { return true }
        let (leftText, leftTime) = split(left)
        let (rightText, rightTime) = split(right)
        guard let leftTime, let rightTime else { return false }
        return leftText == rightText && abs(leftTime - rightTime) <= 10
    }

    private static func split(_ token: String) -> (Substring, Int?) {
        guard let at = token.lastIndex(of: "@") else { return (token[...], nil) }
        return (token[..<at], Int(token[token.index(after: at)...]))
    }

    /// All ways to leave out one iteration that slept and then served nothing.
    private static func withoutOneWakeUp(_ tokens: [String]) -> [[String]] {
        guard tokens.count >= 4 else { return [] }
        return tokens.indices.dropLast(3).filter { tokens[$0..<$0 + 4] == ["A", "T", "S", "W"] }.map
        {
            var shorter = tokens
            shorter.removeSubrange($0..<$0 + 4)
            return shorter
        }
    }
}

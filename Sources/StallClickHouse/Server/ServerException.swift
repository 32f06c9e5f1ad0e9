// The error message of a server: `Code: 60, e.displayText() = DB::Exception: ..., e.what() = DB::Exception`, since
// version 20 `Code: 60. DB::Exception: ... (UNKNOWN_TABLE) (version ...)`.

/// A server's own error, in its words.
struct ServerException {
    private let store: String
    private let code: Int
    private let text: String

    var error: ClickHouseError { .server(store: store, code: code, text: text) }

    /// Nil for a text that is none.
    init?(_ text: String, store: String) {
        guard text.hasPrefix("Code: "),
            let code = Int(text.dropFirst(6).prefix { $0.isASCII && $0.isNumber })
        else { return nil }
        (self.store, self.code) = (store, code)
        self.text = Self.reason(text)
    }

    /// One that follows rows, where a server had begun to answer.
    init?(in text: String, store: String) {
        guard text.firstRange(of: "DB::Exception: ") != nil,
            let place = text.firstRange(of: "Code: ")
        else { return nil }
        self.init(String(text[place.lowerBound...]), store: store)
    }

    private static func reason(_ text: String) -> String {
        var rest = text[...]
        // The message of a shard is nested in that of the server.
        while let mark = rest.firstRange(of: "DB::Exception: ") { rest = rest[mark.upperBound...] }
        // The rest is for programmers of the server.
        if let mark = rest.firstRange(of: ", e.what() =") { rest = rest[..<mark.lowerBound] }
        return line(String(rest))
    }

    /// The beginning, as one line.
    static func line(_ text: String) -> String {
        String(text.drop(while: \.isWhitespace).prefix { !$0.isNewline }.prefix(300))
    }
}

// The reply to a request: an answer, of whatever kind, or none. Any program may answer.

/// An answer over HTTP.
package struct HTTPAnswer: Hashable, Sendable {
    package var status: Int
    /// In lower case; of several of one name the last.
    package var fields: [String: String]
    package var body: [UInt8]
    /// Whether a connection that was cut would have been noticed: HTTP/1 knows answers that end with it.
    package var endIsKnown = true

    package init(status: Int, fields: [String: String] = [:], body: [UInt8] = []) {
        self.status = status
        self.fields = fields
        self.body = body
    }

    /// Reads the heads of all answers of one request, as `curl --dump-header` writes them: those of a proxy and `100
    /// Continue` come before the one that counts, the last.
    package init?(heads: [UInt8], body: [UInt8]) {
        var (status, fields) = (Int?.none, [String: String]())
        var isFirstVersion = false
        for line in String(decoding: heads, as: UTF8.self).split(whereSeparator: \.isNewline) {
            if line.hasPrefix("HTTP/") {
                let parts = line.split(separator: " ", omittingEmptySubsequences: true)
                status = parts.count > 1 ? Int(parts[1]) : nil
                fields = [:]
                isFirstVersion = line.hasPrefix("HTTP/1")
            } else if let colon = line.firstIndex(of: ":") {
                let value = line[line.index(after: colon)...].drop { $0 == " " || $0 == "\t" }
                fields[line[..<colon].lowercased()] = String(value)
            }
        }
        guard let status, (100...999).contains(status) else { return nil }
        self.init(status: status, fields: fields, body: body)
        endIsKnown =
            !isFirstVersion || fields["content-length"] != nil || fields["transfer-encoding"] != nil
    }

    /// How many seconds it asks to wait; nil where it does not, or gives a date, which needs clocks that agree.
    package var retryAfter: Int? {
        fields["retry-after"].flatMap { Int($0) }.map { min(max($0, 0), 86_400) }
    }
}

/// The outcome of a request.
package enum HTTPReply: Hashable, Sendable {
    case answer(HTTPAnswer)
    /// No answer came, or not all of it: the request's body may be stored or not.
    case failed(reason: String)
    /// Neither did all of it come in all of the time that the request had.
    case timedOut(reason: String)
    /// No attempt will do: a certificate that is not trusted, an address that is none.
    case refused(reason: String)
}

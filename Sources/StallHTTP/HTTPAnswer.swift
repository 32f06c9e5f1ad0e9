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
                // The blanks on both sides are not part of it (RFC 9110, 5.5).
                var value = line[line.index(after: colon)...].drop { $0 == " " || $0 == "\t" }
                while let last = value.last, last == " " || last == "\t" { value.removeLast() }
                fields[line[..<colon].lowercased()] = String(value)
            }
        }
        guard let status, (100...999).contains(status) else { return nil }
        self.init(status: status, fields: fields, body: body)
        endIsKnown =
            !isFirstVersion || fields["content-length"] != nil || fields["transfer-encoding"] != nil
    }

    /// How many seconds it asks to wait; nil where it does not, or gives a date, which needs clocks that agree. A number of
    /// any length is one.
    package var retryAfter: Int? {
        guard var digits = fields["retry-after"]?.utf8[...] else { return nil }
        while let last = digits.last, [0x20, 0x09].contains(last) { digits.removeLast() }
        while let first = digits.first, [0x20, 0x09].contains(first) { digits.removeFirst() }
        let isNegative = digits.first == 0x2d
        if isNegative { digits.removeFirst() }
        guard !digits.isEmpty, digits.allSatisfy({ 0x30...0x39 ~= $0 }) else { return nil }
        let longest = 86_400
        return isNegative ? 0 : digits.reduce(0) { min($0 * 10 + Int($1 - 0x30), longest) }
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

// A request and its answer as values, so that everything but the sockets can be tested without a network.

/// The head of an HTTP request.
package struct CollectorRequest: Sendable {
    package var method: String
    /// Path and query exactly as sent: nothing is decoded, so nothing can be hidden by encoding it.
    package var target: String
    /// By lower-case name; several fields of one name are joined with a comma, which no field of ours allows.
    package var fields: [String: String]
    /// The peer's address without its port; limits of failed logins are kept by it.
    package var peer: String

    package init(
        method: String, target: String, fields: [String: String] = [:], peer: String = "local"
    ) {
        (self.method, self.target, self.fields, self.peer) = (method, target, fields, peer)
    }

    /// The path, without the query.
    var path: Substring { target.prefix { $0 != "?" } }

    /// The bearer token, or the password of basic authentication, for browsers.
    var token: String? {
        guard let field = fields["authorization"], let space = field.firstIndex(of: " ") else {
            return nil
        }
        let credentials = field[field.index(after: space)...].drop { $0 == " " }
        switch field[..<space].lowercased() {
        case "bearer": return String(credentials)
        case "basic":
            guard let bytes = [UInt8](base64: credentials),
                let colon = bytes.firstIndex(of: UInt8(ascii: ":"))
            else { return nil }
            return String(validating: bytes[(colon + 1)...], as: UTF8.self)
        default: return nil
        }
    }
}

/// An HTTP answer.
package struct CollectorAnswer: Sendable, Equatable {
    package var status: Int
    package var fields: [(name: String, value: String)] = []
    package var body: [UInt8]

    package static func == (left: CollectorAnswer, right: CollectorAnswer) -> Bool {
        left.status == right.status && left.body == right.body
            && left.fields.map(\.name) == right.fields.map(\.name)
            && left.fields.map(\.value) == right.fields.map(\.value)
    }

    /// Text, such as metrics or a page.
    init(_ status: Int, type: String, _ text: String) {
        self.status = status
        fields = [("content-type", type)]
        body = Array(text.utf8)
    }

    /// A JSON object of numbers, in the order given.
    init(_ status: Int, _ numbers: KeyValuePairs<String, Int64>) {
        let text = numbers.map { "\"\($0)\":\($1)" }.joined(separator: ",")
        self.init(status, type: Self.json, "{\(text)}\n")
    }

    /// A refusal, with its reason.
    init(_ status: Int, error: String, retryAfter seconds: Int? = nil) {
        self.init(status, type: Self.json, "{\"error\":\(error.quotedForJSON)}\n")
        if let seconds { fields.append(("retry-after", "\(seconds)")) }
    }

    static let json = "application/json"
}

extension String {
    /// The text as a JSON string. Characters that control a terminal are escaped, too.
    var quotedForJSON: String {
        var text = "\""
        for scalar in unicodeScalars {
            switch scalar {
            case "\"": text += "\\\""
            case "\\": text += "\\\\"
            case _ where scalar.value < 0x20 || (0x7f...0x9f).contains(scalar.value):
                let digits = String(scalar.value, radix: 16)
                text += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
            default: text.unicodeScalars.append(scalar)
            }
        }
        return text + "\""
    }
}

extension [UInt8] {
    /// Reads base64 with its padding; nil for anything else.
    ///
    /// **Source:** RFC 4648, section 4.
    init?(base64 text: some StringProtocol) {
        let digits = Array(text.utf8)
        guard digits.count % 4 == 0 else { return nil }
        self = []
        reserveCapacity(digits.count / 4 * 3)
        for start in stride(from: 0, to: digits.count, by: 4) {
            let isLast = start + 4 == digits.count
            let padding = isLast ? digits[start...].reversed().prefix { $0 == 0x3d }.count : 0
            guard padding <= 2 else { return nil }
            var value: UInt32 = 0
            for digit in digits[start..<start + 4 - padding] {
                guard let six = Self.base64Value(digit) else { return nil }
                value = value << 6 | six
            }
            value <<= 6 * UInt32(padding)
            for index in 0..<3 - padding {
                append(UInt8(truncatingIfNeeded: value >> UInt32(16 - 8 * index)))
            }
        }
    }

    private static func base64Value(_ digit: UInt8) -> UInt32? {
        switch digit {
        case 0x41...0x5a: UInt32(digit - 0x41)
        case 0x61...0x7a: UInt32(digit - 0x61 + 26)
        case 0x30...0x39: UInt32(digit - 0x30 + 52)
        case 0x2b: 62
        case 0x2f: 63
        default: nil
        }
    }
}

// A request as the program `curl` gets it: in a file of options, never in arguments, which every user of the machine
// can read.

/// A request over HTTP.
package struct HTTPRequest: Hashable, Sendable {
    package var method: String
    package var url: String
    package var fields: [(name: String, value: String)] {
        get { names.map { ($0[0], $0[1]) } }
        set { names = newValue.map { [$0.name, $0.value] } }
    }
    private var names: [[String]] = []
    /// Nil without one.
    package var body: [UInt8]?
    /// The certificate authority to trust, instead of the system's.
    package var authorityFile: String?
    /// A user's name and password, sent as HTTP has them; nil without.
    package var user: (name: String, password: String)? {
        get { login.map { ($0[0], $0[1]) } }
        set { login = newValue.map { [$0.name, $0.password] } }
    }
    private var login: [String]?
    package var limits = HTTPLimits()

    package init(method: String, url: String, body: [UInt8]? = nil, authorityFile: String? = nil) {
        self.method = method
        self.url = url
        self.body = body
        self.authorityFile = authorityFile
    }

    /// The options, as `curl --config` reads them. Redirects are not followed: a token is for one address.
    ///
    /// - Parameters:
    ///   - bodyPath: Where curl reads the body.
    ///   - headPath: Where it writes the heads of answers.
    ///   - outputPath: Where it writes the body of the answer.
    func options(bodyPath: String, headPath: String, outputPath: String) -> String {
        var lines = [
            option("url", url), option("request", method), option("dump-header", headPath),
            option("output", outputPath), "silent", "show-error", "globoff",
            option("proto", "=http,https"),
            option("connect-timeout", "\(min(limits.connect_s, limits.silence_s ?? .max))"),
            option("max-time", "\(limits.answer_s)"),
            option("max-filesize", "\(limits.answerBytes)"),
            option("user-agent", "stallctl"),
            // One answer for each request, at once.
            option("header", "Expect:"),
        ]
        lines += names.map { option("header", "\($0[0]): \($0[1])") }
        if let silence = limits.silence_s {
            lines += [option("speed-limit", "1"), option("speed-time", "\(silence)")]
        }
        if let login { lines.append(option("user", "\(login[0]):\(login[1])")) }
        if body != nil { lines.append(option("data-binary", "@\(bodyPath)")) }
        if let authorityFile { lines.append(option("cacert", authorityFile)) }
        return lines.joined(separator: "\n") + "\n"
    }

    private func option(_ name: String, _ value: String) -> String {
        var quoted = ""
        for scalar in value.unicodeScalars {
            switch scalar {
            case "\\", "\"": quoted += "\\\(scalar)"
            // None of them belongs into a header or an address.
            case "\n", "\r", "\0", "\t": quoted += " "
            default: quoted.unicodeScalars.append(scalar)
            }
        }
        return "\(name) = \"\(quoted)\""
    }
}

/// How long a request may take, and how long its answer may be. A slower server is tried again.
package struct HTTPLimits: Hashable, Sendable {
    /// Seconds until there is a connection.
    package var connect_s = 10
    /// Seconds until the end of the answer.
    package var answer_s = 120
    /// Seconds without a byte in either direction; nil without a limit but the above.
    package var silence_s: Int?
    package var answerBytes = 1 << 20

    package init() {}
}

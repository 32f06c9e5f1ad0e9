// Where a cluster is: `clickhouse://user@host:port/database?cluster=name`. A password is in none of it, because every user
// of the machine can read a command line.

/// The address of a database on a server of ClickHouse, and of the cluster that it stands for.
package struct ClickHouseAddress: Hashable, Sendable {
    package var host: String
    package var port: Int
    package var user = "default"
    package var database = "default"
    /// The cluster's name in the server's configuration; nil for a server on its own.
    package var cluster: String?
    var isEncrypted = false
    /// A file whose first line is the password.
    package var passwordFile: String?
    /// The certificate authority to trust, instead of the system's.
    package var authorityFile: String?
    /// Seconds that a statement may take.
    package var timeout_s = 600

    static let scheme = "clickhouse://"

    /// Whether a store's name is an address, and not a path.
    package static func isAddress(_ store: String) -> Bool { store.hasPrefix(scheme) }

    package init(_ text: String) throws(ClickHouseError) {
        func bad(_ detail: String) -> ClickHouseError { .badAddress(detail: detail) }
        guard Self.isAddress(text) else { throw bad("it does not begin with \(Self.scheme)") }
        let parts = text.dropFirst(Self.scheme.count)
            .split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
        let path = parts[0].split(separator: "/", omittingEmptySubsequences: false)
        guard path.count <= 2 else { throw bad("more than a database follows the port") }
        let place = path[0].split(separator: "@", omittingEmptySubsequences: false)
        guard place.count <= 2, let server = place.last, !server.isEmpty else {
            throw bad("expected user@host:port after \(Self.scheme)")
        }
        if place.count == 2 {
            guard !place[0].contains(":") else {
                throw bad(
                    "a password in it is visible to all users; use $\(Self.passwordVariable) or ?password-file="
                )
            }
            user = try Self.decoded(place[0])
        }
        if path.count == 2, !path[1].isEmpty { database = try Self.decoded(path[1]) }
        if parts.count == 2 {
            for option in parts[1].split(separator: "&") {
                let pair = option.split(
                    separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
                guard pair.count == 2, !pair[1].isEmpty else { throw bad("\(option) has no value") }
                let value = try Self.decoded(pair[1])
                switch pair[0] {
                case "cluster": cluster = value
                case "tls" where value == "0" || value == "1": isEncrypted = value == "1"
                case "password-file": passwordFile = value
                case "ca-file": authorityFile = value
                case "timeout":
                    guard let seconds = Int(value), 1...86_400 ~= seconds else {
                        throw bad("\(option): expected seconds from 1 to 86400")
                    }
                    timeout_s = seconds
                default:
                    throw bad(
                        "\(option): expected cluster=, tls=1, password-file=, ca-file= or timeout="
                    )
                }
            }
        }
        (host, port) = try Self.hostAndPort(server, default: isEncrypted ? 8443 : 8123)
        // A header and an address end at these.
        for name in [user, database, cluster ?? ""]
        where name.unicodeScalars.contains(where: { $0.value < 32 }) {
            throw bad("a control character in a name")
        }
        guard !user.contains(":") else { throw bad("a colon in the user's name") }
    }

    /// Where the password is looked up when no file is named.
    package static let passwordVariable = "STALLCTL_CLICKHOUSE_PASSWORD"

    /// The server's address, over HTTP.
    package var url: String { "\(isEncrypted ? "https" : "http")://\(host):\(port)/" }

    /// The address for messages, as it was given but for its files.
    package var description: String {
        let options =
            (cluster.map { ["cluster=\(Self.encoded($0))"] } ?? [])
            + (isEncrypted ? ["tls=1"] : [])
        return
            "\(Self.scheme)\(Self.encoded(user))@\(host):\(port)/\(Self.encoded(database))"
            + (options.isEmpty ? "" : "?" + options.joined(separator: "&"))
    }

    private static func hostAndPort(
        _ text: Substring, default port: Int
    ) throws(ClickHouseError) -> (String, Int) {
        let isBracketed = text.hasPrefix("[")
        let end = isBracketed ? text.firstIndex(of: "]") : text.firstIndex(of: ":")
        let host: Substring
        var rest: Substring = ""
        if isBracketed {
            guard let end else { throw .badAddress(detail: "\(text): ] is missing") }
            (host, rest) = (text[...end], text[text.index(after: end)...])
        } else {
            host = text[..<(end ?? text.endIndex)]
            if let end { rest = text[end...] }
        }
        let allowed: (Character) -> Bool = {
            $0.isASCII && ($0.isLetter || $0.isNumber || "-._[]:%".contains($0))
        }
        guard !host.isEmpty, host.allSatisfy(allowed) else {
            throw .badAddress(detail: "\(text): expected a host's name")
        }
        guard !rest.isEmpty else { return (String(host), port) }
        guard rest.hasPrefix(":"), let port = UInt16(rest.dropFirst()), port > 0 else {
            throw .badAddress(detail: "\(text): expected a port from 1 to 65535")
        }
        return (String(host), Int(port))
    }

    /// Text with its `%41`s as letters.
    private static func decoded(_ text: Substring) throws(ClickHouseError) -> String {
        var bytes: [UInt8] = []
        var rest = text.utf8[...]
        while let byte = rest.popFirst() {
            guard byte == UInt8(ascii: "%") else {
                bytes.append(byte)
                continue
            }
            guard let decoded = UInt8(String(decoding: rest.prefix(2), as: UTF8.self), radix: 16),
                rest.count >= 2
            else { throw .badAddress(detail: "\(text): expected two hexadecimal digits after %") }
            bytes.append(decoded)
            rest = rest.dropFirst(2)
        }
        guard let decoded = String(validating: bytes, as: UTF8.self) else {
            throw .badAddress(detail: "\(text): expected UTF-8")
        }
        return decoded
    }

    /// Text as a part of an address.
    static func encoded(_ text: String) -> String {
        var encoded = ""
        for byte in text.utf8 {
            let character = Character(UnicodeScalar(byte))
            if character.isASCII,
                character.isLetter || character.isNumber || "-._~".contains(character)
            {
                encoded.append(character)
            } else {
                encoded += "%" + (byte < 16 ? "0" : "") + String(byte, radix: 16, uppercase: true)
            }
        }
        return encoded
    }
}

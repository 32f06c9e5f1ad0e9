// Tokens: random text that its owner shows, of which the collector keeps a hash.

internal import StallFormats
internal import StallModel

/// The right that a token gives.
package enum TokenRight: String, Sendable, CaseIterable {
    /// Push lines of its apps.
    case write
    /// Ask for reports of its apps.
    case read
}

/// A token as it is kept.
package struct CollectorToken: Sendable, Hashable {
    /// The SHA-256 of the token. A token has 256 random bits, so that no slower hash is needed: it cannot be guessed.
    package var hash: [UInt8]
    package var right: TokenRight
    /// The apps that it is for; `*` for every app.
    package var apps: [String]

    /// Names it in lists and logs: the first digits of its hash.
    package var id: String { String(hash.hexadecimal.prefix(12)) }

    package func allows(app: String) -> Bool { apps.contains("*") || apps.contains(app) }

    /// Makes a token.
    ///
    /// - Returns: The text to hand over, which is kept nowhere, and the token as it is kept.
    package static func make(
        _ right: TokenRight, apps: [String]
    ) -> (text: String, token: CollectorToken) {
        // The generator of the system: getrandom(2).
        var random = SystemRandomNumberGenerator()
        let bytes = (0..<32).map { _ in UInt8.random(in: .min ... .max, using: &random) }
        let text = "swc_" + bytes.hexadecimal
        return (text, CollectorToken(hash: hash(of: text), right: right, apps: apps))
    }

    static func hash(of text: String) -> [UInt8] { SHA256.digest(Array(text.utf8)) }
}

/// The tokens of a file.
package struct CollectorTokens: Sendable, Equatable {
    package var tokens: [CollectorToken] = []

    package init() {}

    /// The token of this text. The time it takes reveals nothing of the tokens: it compares hashes, all bytes of all of
    /// them.
    func token(_ text: String) -> CollectorToken? {
        let hash = CollectorToken.hash(of: text)
        var found: CollectorToken?
        for token in tokens where Self.isEqual(token.hash, hash) { found = token }
        return found
    }

    private static func isEqual(_ left: [UInt8], _ right: [UInt8]) -> Bool {
        guard left.count == right.count else { return false }
        var difference: UInt8 = 0
        for index in left.indices { difference |= left[index] ^ right[index] }
        return difference == 0
    }

    // MARK: - The file

    /// Reads a file: one token per line, `sha256:HASH write|read APP...`. In the name of an app a percent sign with two
    /// digits stands for a byte, such as that of a space.
    package init(_ text: String) throws(TokenFileError) {
        for (number, line) in text.split(separator: "\n", omittingEmptySubsequences: false)
            .enumerated()
        {
            let words = line.split(whereSeparator: { $0 == " " || $0 == "\t" || $0 == "\r" })
            guard let first = words.first, !first.hasPrefix("#") else { continue }
            guard first.hasPrefix("sha256:"), words.count >= 3,
                let hash = [UInt8](hexadecimal: first.dropFirst("sha256:".count)), hash.count == 32,
                let right = TokenRight(rawValue: String(words[1]))
            else { throw .badLine(number + 1) }
            var apps: [String] = []
            for word in words[2...] {
                guard let app = String(word).removingTokenEscapes else {
                    throw .badLine(number + 1)
                }
                apps.append(app)
            }
            tokens.append(CollectorToken(hash: hash, right: right, apps: apps))
        }
    }

    /// The file's text.
    package var text: String {
        "# Tokens of stall-collector: hash, right, apps. Written by stall-collector token.\n"
            + tokens.map { token in
                let apps = token.apps.map(\.addingTokenEscapes).joined(separator: " ")
                return "sha256:\(token.hash.hexadecimal) \(token.right.rawValue) \(apps)\n"
            }.joined()
    }
}

/// Why a token file cannot be used.
package enum TokenFileError: Error, Equatable, CustomStringConvertible {
    case badLine(Int)
    case unreadable(String, errno: CInt)
    case tooLong
    case notAFile
    case empty

    package var description: String {
        switch self {
        case .badLine(let number):
            "line \(number) of the token file is not 'sha256:HASH write|read APP...'"
        case .unreadable(let call, let errno): "\(call) failed with errno \(errno)"
        case .notAFile: "the token file is not a regular file"
        case .empty: "the token file is empty: 'stall-collector token add' adds a token"
        case .tooLong: "the token file is larger than 4 MB"
        }
    }
}

extension String {
    /// Spaces, percent signs and control characters, as percent signs with two digits for each byte.
    fileprivate var addingTokenEscapes: String {
        var text = ""
        for byte in utf8 {
            if byte > 0x20 && byte != 0x25 && byte != 0x7f && byte < 0x80 {
                text.unicodeScalars.append(Unicode.Scalar(byte))
            } else {
                text += "%" + [byte].hexadecimal
            }
        }
        return text
    }

    fileprivate var removingTokenEscapes: String? {
        var (bytes, rest) = ([UInt8](), Substring(self).utf8)
        while let byte = rest.popFirst() {
            guard byte == 0x25 else {
                bytes.append(byte)
                continue
            }
            guard rest.count >= 2,
                let escaped = [UInt8](hexadecimal: Substring(rest.prefix(2)))
            else { return nil }
            bytes += escaped
            rest = rest.dropFirst(2)
        }
        return String(validating: bytes, as: UTF8.self)
    }
}

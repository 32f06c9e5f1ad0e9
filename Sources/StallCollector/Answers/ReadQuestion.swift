// A reader's question about the collected reports: the same questions as stallctl's, with the same answers.

internal import StallModel

/// A question of a reader.
package struct ReadQuestion: Sendable {
    /// `GET /v1/top`, `/v1/report` and so on; `GET /` is the page of `report`.
    package enum Kind: String, Sendable, CaseIterable {
        case report, top, diff, trend, list, show, status
    }

    package var kind: Kind
    /// The query, decoded; several of one name are kept.
    package var parameters: [(name: String, value: String)]
    /// The apps that the token is for; empty for every app.
    package var apps: [String]

    package func value(_ name: String) -> String? { parameters.last { $0.name == name }?.value }
    package func values(_ name: String) -> [String] {
        parameters.filter { $0.name == name }.map(\.value)
    }

    /// Reads the query of a target.
    ///
    /// **Source:** URL standard, "application/x-www-form-urlencoded parsing".
    static func parameters(of target: String) -> [(name: String, value: String)]? {
        guard let mark = target.firstIndex(of: "?") else { return [] }
        var parameters: [(name: String, value: String)] = []
        for pair in target[target.index(after: mark)...].split(separator: "&") {
            let parts = pair.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            guard let name = decoded(parts[0]), let value = decoded(parts.count > 1 ? parts[1] : "")
            else { return nil }
            parameters.append((name, value))
        }
        return parameters
    }

    private static func decoded(_ text: Substring) -> String? {
        var (bytes, rest) = ([UInt8](), text.utf8)
        while let byte = rest.popFirst() {
            switch byte {
            case UInt8(ascii: "+"): bytes.append(0x20)
            case UInt8(ascii: "%"):
                guard rest.count >= 2, let escaped = [UInt8](hexadecimal: Substring(rest.prefix(2)))
                else { return nil }
                bytes += escaped
                rest = rest.dropFirst(2)
            default: bytes.append(byte)
            }
        }
        return String(validating: bytes, as: UTF8.self)
    }
}

/// Answers the questions of readers, on any thread.
package protocol CollectorReader: Sendable {
    /// - Throws: ``ReadQuestionError`` for a question that is wrong, anything else for a store that cannot be read.
    func answer(_ question: ReadQuestion) throws -> ReadAnswer
}

/// The answer to a reader.
package enum ReadAnswer: Sendable {
    /// JSON, one object per line.
    case lines([String])
    /// A page, with the policy that it is shown under.
    case page([UInt8], policy: String)
    case nothing(String)
}

/// An invalid question.
package struct ReadQuestionError: Error, CustomStringConvertible {
    package var description: String

    package init(_ description: String) { self.description = description }
}

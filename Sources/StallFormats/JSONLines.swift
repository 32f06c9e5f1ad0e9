// JSON, one object a line. Foundation encodes; what it leaves to terminals is taken care of here.

internal import Foundation

package enum JSONLines {
    /// The object on one line with its line end; keys in snake case and in alphabetical order.
    ///
    /// Control, direction and separator characters are written as escapes everywhere, so that a
    /// terminal shows them and a line stays a line for every reader.
    package static func line(_ object: some Encodable) throws -> String {
        let encoder = JSONEncoder()
        encoder.keyEncodingStrategy = .convertToSnakeCase
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        encoder.nonConformingFloatEncodingStrategy = .convertToString(
            positiveInfinity: "inf", negativeInfinity: "-inf", nan: "nan")
        return String(decoding: try encoder.encode(object), as: UTF8.self)
            .escapingSteeringCharacters + "\n"
    }
}

extension String {
    /// JSON text with what would steer a terminal, which occurs in its strings only, as `\uXXXX`.
    fileprivate var escapingSteeringCharacters: String {
        guard unicodeScalars.contains(where: \.steersTerminal) else { return self }
        return unicodeScalars.map { scalar in
            guard scalar.steersTerminal else { return String(scalar) }
            return String(scalar).utf16.map { unit in
                let digits = String(unit, radix: 16)
                return "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
            }.joined()
        }.joined()
    }
}

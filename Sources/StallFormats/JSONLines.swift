// JSON Lines. Foundation encodes; this escapes control characters that Foundation does not.

internal import Foundation
internal import StallModel

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

    /// The objects of a text that `line` wrote, one per line; lines that hold none are left out.
    package static func objects<Object: Decodable>(in text: String) -> [Object] {
        let decoder = JSONDecoder()
        decoder.keyDecodingStrategy = .convertFromSnakeCase
        return text.split(separator: "\n").compactMap { line in
            try? decoder.decode(Object.self, from: Data(line.utf8))
        }
    }

    /// A text as `line` writes it, in its quotes.
    package static func text(_ text: String) throws -> String { String(try line(text).dropLast()) }
}

extension String {
    /// Escapes characters that control a terminal as `\uXXXX`; in JSON they occur only inside strings.
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

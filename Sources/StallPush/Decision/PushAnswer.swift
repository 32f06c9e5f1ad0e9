// The body of an answer.

internal import Foundation
internal import StallHTTP
internal import StallModel

extension HTTPAnswer {
    /// The object in the body; nil where it holds none.
    func object<Object: Decodable>(_: Object.Type) -> Object? {
        try? JSONDecoder().decode(Object.self, from: Data(body))
    }

    /// The first words of the body, for a message.
    var words: String {
        struct Reason: Decodable { var error: String }
        let text = object(Reason.self)?.error ?? String(decoding: body.prefix(200), as: UTF8.self)
        let line = text.prefix { !$0.isNewline }.prefix(200)
        return line.isEmpty ? "" : ": \(line)"
    }
}

// Look-ups in JSON that any program may have written: a value of another type than expected is missing.

/// A value of a JSON document.
struct JSONNode {
    let document: JSONDocument
    let index: Int

    init(_ document: JSONDocument, _ index: Int) {
        self.document = document
        self.index = index
    }

    /// The value of a key; nil also for null, and in what is no object.
    subscript(key: String) -> JSONNode? {
        guard isObject, let value = document.value(of: key, in: index), !document.isNull(value)
        else { return nil }
        return JSONNode(document, value)
    }

    var isObject: Bool { document.kind(index) == .object }
    var isArray: Bool { document.kind(index) == .array }
    var isTrue: Bool { document.kind(index) == .true }
    var isFalse: Bool { document.kind(index) == .false }

    /// Of an array.
    var elements: [JSONNode] {
        guard isArray else { return [] }
        var (elements, place) = ([JSONNode](), index + 1)
        while place < document.next(index) {
            elements.append(JSONNode(document, place))
            place = document.next(place)
        }
        return elements
    }

    /// Of an object, in its order.
    var members: [(key: String, value: JSONNode)] {
        guard isObject else { return [] }
        return document.keys(of: index).map { (document.text($0), JSONNode(document, $0 + 1)) }
    }

    /// Of a string.
    var text: String? {
        switch document.kind(index) {
        case .string, .escapedString: document.text(index)
        default: nil
        }
    }

    /// Of a string, or the digits of a number.
    var word: String? {
        document.kind(index) == .number ? digits : text
    }

    /// Of a number, or of a string of digits; nil out of range.
    func integer<Number: FixedWidthInteger>(_ type: Number.Type) -> Number? {
        guard let word else { return nil }
        if word.hasPrefix("0x") { return Number(word.dropFirst(2), radix: 16) }
        return Number(word) ?? Double(word).flatMap { Number(exactly: $0) }
    }

    var double: Double? {
        guard let word, let number = Double(word), number.isFinite else { return nil }
        return number
    }

    private var digits: String { String(decoding: document.bytes(index), as: UTF8.self) }
}

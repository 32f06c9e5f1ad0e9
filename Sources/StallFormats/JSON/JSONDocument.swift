// A line of JSON as a list of its values, each with its range in the text. Nothing of the text becomes a value of Swift
// before it is asked for: most of a report's frames were in the report before.

/// The values of one JSON text, by RFC 8259.
///
/// A value is an index in the list. Behind an object come its keys, each followed by its value; behind an array its
/// elements.
final class JSONDocument {
    enum Kind: UInt8 {
        case object, array, string
        /// With backslashes, so that its text is not its bytes.
        case escapedString
        case number, `true`, `false`, null
    }

    struct Value {
        var kind: Kind
        /// Its bytes; of a string, those between the quotation marks.
        var start, end: Int32
        /// The index behind the value and all that is in it.
        var next: Int32

        var range: Range<Int> { Int(start)..<Int(end) }
    }

    let bytes: [UInt8]
    private let values: [Value]

    /// - Parameters:
    ///   - bytes: Valid UTF-8, of at most 2 GB.
    ///   - depthLimit: How deep values may be within values.
    /// - Throws: `DecodingError` with an empty path for text that is not JSON.
    init(_ bytes: [UInt8], depthLimit: Int = 512) throws {
        self.bytes = bytes
        values = try JSONScanner.values(of: bytes, depthLimit: depthLimit)
    }

    func kind(_ index: Int) -> Kind { values[index].kind }
    func next(_ index: Int) -> Int { Int(values[index].next) }
    func bytes(_ index: Int) -> ArraySlice<UInt8> { bytes[values[index].range] }

    /// The value of an object's key; of several equal ones, the first.
    func value(of key: String, in object: Int) -> Int? {
        var key = key
        let end = next(object)
        return key.withUTF8 { wanted -> Int? in
            var place = object + 1
            while place < end {
                let value = values[place]
                if value.kind == .escapedString
                    ? text(place).utf8.elementsEqual(wanted)
                    : value.range.count == wanted.count && bytes[value.range].elementsEqual(wanted)
                {
                    return place + 1
                }
                place = next(place + 1)
            }
            return nil
        }
    }

    /// The indices of an object's keys.
    func keys(of object: Int) -> [Int] {
        var (keys, place) = ([Int](), object + 1)
        while place < next(object) {
            keys.append(place)
            place = next(place + 1)
        }
        return keys
    }

    /// A string's text. An escape for half of a character, which the scanner refuses, cannot be here.
    func text(_ index: Int) -> String {
        let bytes = bytes(index)
        guard kind(index) == .escapedString else { return String(decoding: bytes, as: UTF8.self) }
        return String(decoding: JSONEscapes.unescaped(bytes), as: UTF8.self)
    }

    /// The keys and numbers on the way to a value. Only errors need them.
    func path(to target: Int) -> [any CodingKey] {
        var (path, index) = ([any CodingKey](), 0)
        while let step = step(from: index, to: target) {
            path.append(step.key)
            index = step.value
        }
        return path
    }

    /// The value of this object or array that the target is, or is in.
    private func step(from container: Int, to target: Int) -> (key: JSONKey, value: Int)? {
        let isObject = kind(container) == .object
        var (place, number) = (container + 1, 0)
        while place < next(container) {
            let value = isObject ? place + 1 : place
            if value <= target, target < next(value) {
                return (isObject ? JSONKey(text(place)) : JSONKey(number), value)
            }
            place = next(value)
            number += 1
        }
        return nil
    }
}

/// A key of an object, or the number of an element.
struct JSONKey: CodingKey {
    let stringValue: String
    let intValue: Int?

    init(_ text: String) { (stringValue, intValue) = (text, nil) }
    init(_ number: Int) { (stringValue, intValue) = ("\(number)", number) }
    init?(stringValue: String) { self.init(stringValue) }
    init?(intValue: Int) { self.init(intValue) }
}

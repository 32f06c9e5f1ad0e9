// The evidence of a cause in two parts: the part that many reports share, and the numbers that each has for itself.
// Putting the parts together gives the same bytes again, whatever the texts are. Part of the file format.
//
//     cpu  2 ms of 502 ms    context switches  3 own, 35 forced       text
//     cpu  %d ms of %d ms    context switches  %d own, %d forced      format, shared
//          2       502                         3      35              numbers
//
// The formats are those of printf: `%d`, `%x` behind `0x`, and `%%` for a per cent sign. `%s` alone is a text that each
// report has for itself: the label of a request with its trace id is hardly ever the same twice.

package import StallModel
import StallStore

/// A cause's detail in three parts.
package struct SplitEvidence: Equatable {
    /// The facts' names and formats, packed as names and values are in a detail.
    package var formats: [UInt8] = []
    /// The numbers of all formats, in their order.
    package var numbers: [UInt8] = []
    /// Shares and holder, then the texts of formats `%s`; nil where there is nothing but the cause to say.
    package var remainder: [UInt8]?

    /// The length up to which a fact is shared: longer evidence is not likely to be the same twice.
    package static let factLimit = 64
    package static let byteLimit = 8192

    /// The format of a text that is the report's own.
    static let ownText = "%s"
    /// The names of facts whose values are.
    private static let ownNames = [EvidenceName.request, .span, .openRequest, .openSpan].map {
        Array($0.rawValue.utf8)
    }

    /// Nil when there is no evidence, or more than may be shared, or the bytes are no detail.
    package init?(detail bytes: UnsafeRawBufferPointer, of cause: CauseClass) {
        var rest = bytes[...]
        guard rest.skipHead(), !rest.isEmpty else { return nil }
        var remainder = Array(bytes[..<rest.startIndex])
        var hasTexts = false
        var count = 0
        while !rest.isEmpty {
            guard let number = rest.popLEB128() else { return nil }
            formats.append(leb128: number)
            var isOwn = false
            if number == 0 {
                guard let name = rest.popBytes() else { return nil }
                formats.append(bytes: name)
                isOwn = Self.ownNames.contains { $0.elementsEqual(name) }
            }
            guard let value = rest.popBytes() else { return nil }
            if isOwn {
                formats.append(text: Self.ownText)
                remainder.append(bytes: value)
                hasTexts = true
            } else {
                appendFormat(of: value)
            }
            count += 1
            guard count <= Self.factLimit, formats.count <= Self.byteLimit else { return nil }
        }
        self.remainder = !hasTexts && remainder == cause.wholeShare ? nil : remainder
    }

    private mutating func appendFormat(of value: Slice<UnsafeRawBufferPointer>) {
        var format: [UInt8] = []
        format.reserveCapacity(value.count + 2)
        var index = value.startIndex
        var isInWord = false
        while index < value.endIndex {
            let byte = value[index]
            if byte.isDigit, !isInWord {
                let end = value[index...].endOfWord
                appendNumber(value[index..<end], to: &format)
                index = end
                isInWord = true
                continue
            }
            if byte == UInt8(ascii: "%") { format.append(byte) }
            format.append(byte)
            isInWord = byte.isOfWord
            index += 1
        }
        formats.append(leb128: UInt64(format.count))
        formats += format
    }

    /// A word that begins with a digit: a number where printf would write it like this.
    private mutating func appendNumber(
        _ word: Slice<UnsafeRawBufferPointer>, to format: inout [UInt8]
    ) {
        let zero = UInt8(ascii: "0")
        if word.count > 2, word.count <= 17, word[word.startIndex] == zero,
            word[word.startIndex + 1] == UInt8(ascii: "x"), word[word.startIndex + 2] != zero,
            let number = word.dropFirst(2).hexadecimal
        {
            format += "0x%x".utf8
            numbers.append(leb128: number)
        } else if word.count <= 18, word.count == 1 || word[word.startIndex] != zero,
            let number = word.decimal
        {
            format += "%d".utf8
            numbers.append(leb128: number)
        } else {
            format += word
        }
    }
}

extension Array where Element == UInt8 {
    /// The detail that was split; nil when the parts do not fit.
    ///
    /// - Parameter remainder: Empty where there is none.
    package init?(
        of cause: CauseClass, formats: [UInt8], numbers: UnsafeRawBufferPointer,
        remainder: UnsafeRawBufferPointer
    ) {
        var texts = remainder[...]
        if remainder.isEmpty {
            self = cause.wholeShare
        } else {
            guard texts.skipHead() else { return nil }
            self = Array(remainder[..<texts.startIndex])
        }
        reserveCapacity(remainder.count + formats.count + 2 * numbers.count)
        var rest = numbers[...]
        let isWhole = formats.withUnsafeBytes { bytes -> Bool in
            var formats = bytes[...]
            while !formats.isEmpty {
                guard let number = formats.popLEB128() else { return false }
                append(leb128: number)
                if number == 0 {
                    guard let name = formats.popBytes() else { return false }
                    append(bytes: name)
                }
                guard let format = formats.popBytes() else { return false }
                if format.elementsEqual(SplitEvidence.ownText.utf8) {
                    guard let text = texts.popBytes() else { return false }
                    append(bytes: text)
                    continue
                }
                guard let value = format.filled(from: &rest) else { return false }
                append(leb128: UInt64(value.count))
                self += value
            }
            return rest.isEmpty && texts.isEmpty
        }
        guard isWhole else { return nil }
    }

    fileprivate mutating func append(bytes: Slice<UnsafeRawBufferPointer>) {
        append(leb128: UInt64(bytes.count))
        self += bytes
    }
}

extension Slice<UnsafeRawBufferPointer> {
    /// Goes behind the shares and the holder of a detail; false when the bytes are none.
    fileprivate mutating func skipHead() -> Bool {
        guard let count = popLEB128(), count <= 255 else { return false }
        for _ in 0..<2 * count { guard popLEB128() != nil else { return false } }
        guard let kind = popLEB128() else { return false }
        if kind == 0 { return true }
        guard popLEB128() != nil, let isNamed = popLEB128() else { return false }
        return isNamed == 0 || popBytes() != nil
    }

    /// The text that a format stands for; nil for one that is none, or without numbers enough.
    fileprivate func filled(from numbers: inout Slice<UnsafeRawBufferPointer>) -> [UInt8]? {
        var text: [UInt8] = []
        text.reserveCapacity(count + 8)
        var rest = self
        while let byte = rest.popFirst() {
            guard byte == UInt8(ascii: "%") else {
                text.append(byte)
                continue
            }
            switch rest.popFirst() {
            case UInt8(ascii: "%"): text.append(byte)
            case UInt8(ascii: "d"):
                guard let number = numbers.popLEB128() else { return nil }
                text += String(number).utf8
            case UInt8(ascii: "x"):
                guard let number = numbers.popLEB128() else { return nil }
                text += String(number, radix: 16).utf8
            default: return nil
            }
        }
        return text
    }

    /// The end of the letters, digits and underscores at the front.
    fileprivate var endOfWord: Int { firstIndex { !$0.isOfWord } ?? endIndex }

    /// Nil where a byte is no digit. Not more than 18 of them.
    fileprivate var decimal: UInt64? {
        var number: UInt64 = 0
        for byte in self {
            guard byte.isDigit else { return nil }
            number = number * 10 + UInt64(byte - UInt8(ascii: "0"))
        }
        return number
    }

    /// Nil where a byte is none of 0 to 9 and a to f. Not more than 15 of them.
    fileprivate var hexadecimal: UInt64? {
        var number: UInt64 = 0
        for byte in self {
            switch byte {
            case UInt8(ascii: "0")...UInt8(ascii: "9"):
                number = number << 4 | UInt64(byte - UInt8(ascii: "0"))
            case UInt8(ascii: "a")...UInt8(ascii: "f"):
                number = number << 4 | UInt64(byte - UInt8(ascii: "a") + 10)
            default: return nil
            }
        }
        return number
    }
}

extension UInt8 {
    fileprivate var isDigit: Bool { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(self) }

    /// A letter, a digit, an underscore, or a part of a character beyond ASCII.
    fileprivate var isOfWord: Bool {
        switch self {
        case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "a")...UInt8(ascii: "z"),
            UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "_"), 0x80...0xff:
            true
        default: false
        }
    }
}

// Finds the module of a Swift symbol from its mangling. In a statically linked program the standard library, Foundation
// and the agent are in the app's image, so the image does not identify the module.

/// The module that declares a mangled Swift function, or the extension that contains it.
///
/// Parses only the outer context of the mangling: modules, nominal types, extensions.
/// **Source:** the Swift repository, docs/ABI/Mangling.rst.
func mangledModule(_ symbol: String) -> String? {
    var text = NameText(symbol)
    if text.first == UInt8(ascii: "_") { text = text.dropFirst() }
    guard text.strip("$s") || text.strip("$S") || text.strip("$e") else { return nil }
    var reader = ManglingReader(text)
    return reader.module()?.string
}

private struct ManglingReader {
    var rest: NameText
    /// The parts of identifiers that were spelled out so far. Few names refer to their words.
    private var spelled: [NameText] = []

    init(_ rest: NameText) { self.rest = rest }

    mutating func module() -> NameText? {
        guard var module = outermost() else { return nil }
        // Nominal types and extensions nest; the function itself follows.
        while let name = identifier() {
            skipPrivateDiscriminator()
            if rest.first == UInt8(ascii: "E") {
                rest = rest.dropFirst()
                module = name
            } else if let kind = rest.first, "VCOPa".utf8.contains(kind) {
                rest = rest.dropFirst()
            } else if isConstrainedExtension {
                module = name
                return module
            } else {
                return module
            }
        }
        return module
    }

    /// `4Demo`, or a standard substitution: `s` is the standard library, `Sa` an array, `So` imported C.
    private mutating func outermost() -> NameText? {
        guard let first = rest.first else { return nil }
        if first.isDigit { return identifier() }
        if first == UInt8(ascii: "s") {
            rest = rest.dropFirst()
            return NameText("Swift")
        }
        // A conformance of Optional, written as `Self?`.
        if rest.starts(with: "xSg") { return NameText("Swift") }
        guard first == UInt8(ascii: "S"), rest.count > 1 else { return nil }
        let second = rest[rest.startIndex + 1]
        let isConcurrency = second == UInt8(ascii: "c")
        rest = rest.dropFirst(isConcurrency ? 3 : 2)
        switch second {
        case UInt8(ascii: "o"), UInt8(ascii: "C"): return NameText("__C")
        default: return NameText("Swift")
        }
    }

    /// A length and that many bytes. After a zero, letters refer to words of earlier identifiers: a to z, the last of
    /// them in upper case.
    private mutating func identifier() -> NameText? {
        guard let first = rest.first, first.isDigit else { return nil }
        guard first == UInt8(ascii: "0") else { return spelling() }
        rest = rest.dropFirst()
        // Punycode: no name in the tables here uses it.
        if rest.first == UInt8(ascii: "0") { return nil }
        var name: [UInt8] = []
        var words = spelled.flatMap(\.words)
        var reusesWords = true
        repeat {
            while reusesWords, let letter = rest.first, letter.isLetter {
                rest = rest.dropFirst()
                reusesWords = !letter.isUppercase
                let number = Int(letter | 0x20) - Int(UInt8(ascii: "a"))
                guard words.indices.contains(number) else { return nil }
                name += words[number]
            }
            if rest.first == UInt8(ascii: "0") {
                rest = rest.dropFirst()
                break
            }
            guard let text = spelling() else { return nil }
            words += text.words
            name += text
        } while reusesWords
        return name[...]
    }

    private mutating func spelling() -> NameText? {
        guard let length = length(), length > 0, length <= rest.count else { return nil }
        let text = rest.prefix(length)
        rest = rest.dropFirst(length)
        spelled.append(text)
        return text
    }

    private mutating func length() -> Int? {
        let digits = rest.prefix { $0.isDigit }
        guard (1...5).contains(digits.count) else { return nil }
        let length = digits.reduce(0) { $0 * 10 + Int($1 - UInt8(ascii: "0")) }
        rest = rest.dropFirst(digits.count)
        return length
    }

    /// `33_0123...LL` after the name of a private declaration.
    private mutating func skipPrivateDiscriminator() {
        // Few names have one, and a copy of the reader costs more than this look ahead.
        guard rest.contains("LL") else { return }
        var reader = self
        guard let discriminator = reader.identifier(), discriminator.starts(with: "_"),
            reader.rest.starts(with: "LL")
        else { return }
        rest = reader.rest.dropFirst(2)
    }

    /// A generic signature between the module's name and `E`: `SiRszlE`. It ends in `l`; a function's type comes
    /// before `F`, `v` or `i`, whichever is first.
    private var isConstrainedExtension: Bool {
        guard rest.contains("lE") else { return false }
        var reader = self
        while let byte = reader.rest.first {
            if byte.isDigit {
                guard reader.identifier() != nil else { return false }
            } else if reader.rest.starts(with: "lE") {
                return true
            } else if byte == UInt8(ascii: "S") {
                reader.rest = reader.rest.dropFirst(2)
            } else if byte == UInt8(ascii: "F") || byte == UInt8(ascii: "v") {
                return false
            } else {
                reader.rest = reader.rest.dropFirst()
            }
        }
        return false
    }
}

extension NameText {
    /// `EventRunLoop` has three words, `my_name` two; a single letter is not a word.
    fileprivate var words: [NameText] {
        var words: [NameText] = []
        var start: Int?
        for index in startIndex...endIndex {
            let byte = index < endIndex ? self[index] : 0
            if let begin = start {
                let endsWord =
                    byte == 0 || byte == UInt8(ascii: "_")
                    || (byte.isUppercase && !self[index - 1].isUppercase)
                if endsWord {
                    if index - begin >= 2 { words.append(self[begin..<index]) }
                    start = nil
                }
            }
            if start == nil, byte != 0, byte != UInt8(ascii: "_"), !byte.isDigit { start = index }
        }
        return words
    }
}

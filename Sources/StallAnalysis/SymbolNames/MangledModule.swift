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
    return reader.module()
}

private struct ManglingReader {
    var rest: NameText
    private var words: [NameText] = []

    init(_ rest: NameText) { self.rest = rest }

    mutating func module() -> String? {
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
    private mutating func outermost() -> String? {
        guard let first = rest.first else { return nil }
        if first.isDigit { return identifier() }
        if first == UInt8(ascii: "s") {
            rest = rest.dropFirst()
            return "Swift"
        }
        // A conformance of Optional, written as `Self?`.
        if rest.starts(with: "xSg") { return "Swift" }
        guard first == UInt8(ascii: "S"), rest.count > 1 else { return nil }
        let second = rest[rest.startIndex + 1]
        let isConcurrency = second == UInt8(ascii: "c")
        rest = rest.dropFirst(isConcurrency ? 3 : 2)
        switch second {
        case UInt8(ascii: "o"), UInt8(ascii: "C"): return "__C"
        default: return "Swift"
        }
    }

    /// A length and that many bytes. After a zero, letters refer to words of earlier identifiers: a to z, the last of
    /// them in upper case.
    private mutating func identifier() -> String? {
        guard let first = rest.first, first.isDigit else { return nil }
        var reusesWords = false
        if first == UInt8(ascii: "0") {
            rest = rest.dropFirst()
            // Punycode: no name in the tables here uses it.
            if rest.first == UInt8(ascii: "0") { return nil }
            reusesWords = true
        }
        var name: [UInt8] = []
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
            guard let length = length(), length > 0, length <= rest.count else { return nil }
            let text = rest.prefix(length)
            collectWords(of: text)
            name += text
            rest = rest.dropFirst(length)
        } while reusesWords
        return String(decoding: name, as: UTF8.self)
    }

    /// `EventRunLoop` has three words, `my_name` two; a single letter is not a word.
    private mutating func collectWords(of text: NameText) {
        var start: Int?
        for index in text.startIndex...text.endIndex {
            let byte = index < text.endIndex ? text[index] : 0
            if let begin = start {
                let endsWord =
                    byte == 0 || byte == UInt8(ascii: "_")
                    || (byte.isUppercase && !text[index - 1].isUppercase)
                if endsWord {
                    if index - begin >= 2, words.count < 26 { words.append(text[begin..<index]) }
                    start = nil
                }
            }
            if start == nil, byte != 0, byte != UInt8(ascii: "_"), !byte.isDigit { start = index }
        }
    }

    private mutating func length() -> Int? {
        let digits = rest.prefix { $0.isDigit }
        guard digits.count <= 5, let length = Int(NameText(digits).string) else { return nil }
        rest = rest.dropFirst(digits.count)
        return length
    }

    /// `33_0123...LL` after the name of a private declaration.
    private mutating func skipPrivateDiscriminator() {
        var reader = self
        guard let discriminator = reader.identifier(), discriminator.hasPrefix("_"),
            reader.rest.starts(with: "LL")
        else { return }
        rest = reader.rest.dropFirst(2)
    }

    /// A generic signature between the module's name and `E`: `SiRszlE`. It ends in `l`; a function's type comes
    /// before `F`, `v` or `i`, whichever is first.
    private var isConstrainedExtension: Bool {
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

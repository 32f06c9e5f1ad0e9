// A line of a printed call tree: its indentation, a number of samples, and a call.

internal import StallModel

/// A line before its call is read.
struct CallGraphLine {
    /// Where the number is: a call is below the last line before it that has its number further left.
    var column: Int
    var count: Int64
    /// The call.
    var text: Substring

    /// - Parameter prefix: The characters of the indentation, in ASCII.
    init?(_ line: Substring, prefix: StaticString) {
        let bytes = line.utf8
        let indentation = prefix.withUTF8Buffer { allowed in bytes.prefix { allowed.contains($0) } }
        let number = bytes.dropFirst(indentation.count)
        let digits = number.prefix { 0x30...0x39 ~= $0 }
        let rest = number.dropFirst(digits.count)
        guard rest.first == 0x20, let count = Int64(Substring(digits)) else { return nil }
        column = indentation.count
        self.count = count
        text = Substring(rest.drop { $0 == 0x20 })
        if text.isEmpty { return nil }
    }
}

extension SampledFrame {
    /// `main  (in App) + 60  [0x100003f40]  main.m:12`, as `sample` prints it.
    init(sample text: Substring) {
        guard let marker = text.ranges(of: "  (in ").last else {
            function = Self.name(text)
            return
        }
        function = Self.name(text[..<marker.lowerBound])
        var rest = text[marker.upperBound...]
        let end = Self.endOfImage(rest)
        image = Self.name(rest[..<end])
        rest = rest[end...].dropFirst()
        if let bracket = rest.firstRange(of: "[0x") {
            address = UInt64(rest[bracket.upperBound...].prefix(while: \.isHexDigit), radix: 16)
            if let close = rest[bracket.upperBound...].firstIndex(of: "]") {
                takePlace(rest[close...].dropFirst())
            }
        }
        // `load address 0x100000000 + 0x3f40`
        if let offset = rest.firstRange(of: " + 0x") {
            imageOffset = UInt64(rest[offset.upperBound...].prefix(while: \.isHexDigit), radix: 16)
        }
    }

    /// The bracket behind the name of a binary, which may have brackets.
    private static func endOfImage(_ text: Substring) -> Substring.Index {
        var search = text.startIndex
        while let bracket = text[search...].firstIndex(of: ")") {
            let rest = text[text.index(after: bracket)...]
            if rest.isEmpty || rest.hasPrefix(" + ") || rest.hasPrefix("  ") { return bracket }
            search = rest.startIndex
        }
        return text.endIndex
    }

    /// `Reader.swift:12`, with or without brackets.
    private mutating func takePlace(_ text: Substring) {
        let text = text.trimmed.drop { $0 == "[" }
        let place = text.hasSuffix("]") ? text.dropLast() : text
        guard let colon = place.lastIndex(of: ":"),
            let line = Int(place[place.index(after: colon)...]),
            line > 0, colon > place.startIndex
        else { return }
        (file, self.line) = (String(place[..<colon]), line)
    }

    fileprivate static func name(_ text: Substring) -> String? {
        let name = text.trimmed
        return name.isEmpty || name == "???" ? nil : name
    }
}

extension SampledFrame {
    /// `Library.load() + 12 (Library.swift:9,5 in Reader + 4660) [0x100001234] 1-49 (running)`, as spindump prints it.
    init(spindump text: Substring) {
        guard let group = Self.binary(text) else {
            function = Self.name(text)
            isTruncation = function?.contains("truncated backtrace>") == true
            return
        }
        var name = text[..<group.lowerBound]
        if let plus = name.ranges(of: " + ").last,
            name[plus.upperBound...].trimmed.allSatisfy(\.isNumber)
        {
            name = name[..<plus.lowerBound]
        }
        function = Self.name(name)
        isTruncation = function?.contains("truncated backtrace>") == true
        takeBinary(text[group].dropFirst().dropLast())
        let rest = text[group.upperBound...]
        if let bracket = rest.firstRange(of: "[0x") {
            address = UInt64(rest[bracket.upperBound...].prefix(while: \.isHexDigit), radix: 16)
        }
    }

    /// The words in brackets behind a call, before its address if there is one. Names of functions have brackets, too,
    /// and the state of the thread is in some.
    private static func binary(_ text: Substring) -> Range<Substring.Index>? {
        let before = text.ranges(of: " [0x").last.map { text[..<$0.lowerBound] }
        var search = before ?? text
        while let close = search.lastIndex(of: ")") {
            guard let open = opening(of: close, in: search) else { return nil }
            let words = search[search.index(after: open)..<close]
            if before != nil || !isState(words) {
                // A function's own brackets stand behind no space.
                guard open > search.startIndex, search[search.index(before: open)] == " " else {
                    return nil
                }
                return open..<search.index(after: close)
            }
            search = search[..<open]
        }
        return nil
    }

    private static func opening(of close: Substring.Index, in text: Substring) -> Substring.Index? {
        var (place, depth) = (close, 0)
        while true {
            if text[place] == ")" { depth += 1 }
            if text[place] == "(" { depth -= 1 }
            if depth == 0 { return place }
            guard place > text.startIndex else { return nil }
            place = text.index(before: place)
        }
    }

    private static func isState(_ words: Substring) -> Bool {
        ["running", "runnable", "blocked", "suspended", "idle"].contains { words.hasPrefix($0) }
    }

    /// `Library.swift:9,5 in Reader + 4660`.
    private mutating func takeBinary(_ text: Substring) {
        var text = text
        if let marker = text.firstRange(of: " in ") {
            takeSource(text[..<marker.lowerBound])
            text = text[marker.upperBound...]
        }
        if let plus = text.ranges(of: " + ").last, let offset = UInt64(text[plus.upperBound...]) {
            imageOffset = offset
            text = text[..<plus.lowerBound]
        }
        image = Self.name(text)
    }

    private mutating func takeSource(_ text: Substring) {
        guard !text.hasPrefix("<") else { return }
        let parts = text.split(separator: ":", maxSplits: 1)
        guard let file = parts.first else { return }
        self.file = String(file)
        if parts.count > 1, let line = Int(parts[1].prefix { $0 != "," }), line > 0 {
            self.line = line
        }
    }
}

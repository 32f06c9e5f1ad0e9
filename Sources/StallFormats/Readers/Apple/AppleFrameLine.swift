// The frames and the binaries of Apple's reports as text.

internal import StallModel

/// `3   Photos    0x0000000100a1b2c4 main + 64 (main.swift:12)`: a number, a binary, an address and what is known of it.
struct AppleFrameLine {
    var image: String
    var address: UInt64
    /// Behind the address.
    var tail: String

    init?(_ line: String) {
        let text = line.drop(while: \.isWhitespace)
        let digits = text.prefix { $0.isASCII && $0.isNumber }
        guard !digits.isEmpty else { return nil }
        let rest = text.dropFirst(digits.count)
        guard rest.first?.isWhitespace == true else { return nil }
        // A binary's name may have spaces: the first word that is an address ends it.
        var search = rest.startIndex
        while let start = rest[search...].firstRange(of: "0x")?.lowerBound {
            let number = rest[start...].dropFirst(2).prefix(while: \.isHexDigit)
            let end = number.endIndex
            if number.utf8.count >= 8, rest[rest.index(before: start)].isWhitespace,
                end == rest.endIndex || rest[end].isWhitespace,
                let address = UInt64(number, radix: 16)
            {
                image = rest[..<start].trimmed
                self.address = address
                tail = rest[end...].trimmed
                return
            }
            search = end
        }
        return nil
    }

    /// - Parameter index: Its position in the stack, from the innermost.
    func frame(_ index: Int, _ images: SortedImages) -> ForeignFrame {
        var frame = ForeignFrame(
            address: address, in: images, kind: index == 0 ? .interrupted : .returnAddress)
        let (base, name) = base
        if frame.image == nil, image != "???" {
            frame.image = image
            // `0x100000000 + 4660`: the address is the binary's, and the number is the offset in it.
            if let base, base > 0 { frame.offset = address &- base } else { frame.offset = nil }
        }
        if let name {
            (frame.function, frame.file, frame.line) = (name.function, name.file, name.line)
        } else if frame.offset == nil {
            frame.offset = address
        }
        return frame
    }

    /// The base address that the tail has in place of a function, and the function that is behind it or in its place.
    private var base: (base: UInt64?, name: FunctionText?) {
        guard tail.hasPrefix("0x") else { return (nil, FunctionText(tail[...])) }
        let number = tail.dropFirst(2).prefix(while: \.isHexDigit)
        let base = UInt64(number, radix: 16)
        // Apple's own tools write the function as a comment, KSCrash in parentheses.
        if let comment = tail.firstRange(of: "// ") {
            return (base, FunctionText(tail[comment.upperBound...]))
        }
        if tail.hasSuffix(")"), let bracket = tail.firstIndex(of: "(") {
            return (base, FunctionText(tail[tail.index(after: bracket)...].dropLast()))
        }
        return (base, nil)
    }
}

/// `-[Reader load] + 12 (Reader.m:17)`.
struct FunctionText {
    var function: String
    var file: String?
    var line: Int?

    /// Nil where there is no name.
    init?(_ text: Substring) {
        var text = Substring(text.trimmed)
        if text.hasSuffix(")"), let bracket = text.lastIndex(of: "("),
            let colon = text[bracket...].lastIndex(of: ":"),
            let line = Int(text[text.index(after: colon)...].dropLast()), line >= 0
        {
            file = String(text[text.index(after: bracket)..<colon])
            self.line = line > 0 ? line : nil
            text = Substring(text[..<bracket].trimmed)
        }
        if let plus = text.ranges(of: " + ").last,
            text[plus.upperBound...].allSatisfy({ $0.isHexDigit || $0 == "x" })
        {
            text = text[..<plus.lowerBound]
        }
        function = text.trimmed
        if function.isEmpty || function == "???" || function == "<redacted>" { return nil }
    }
}

enum AppleImageLine {
    /// `0x100000000 - 0x1000fffff +Photos arm64  <0123...> /var/.../Photos`, or with a version and a dashed UUID.
    static func image(_ line: String) -> Image? {
        let words = line.split(whereSeparator: \.isWhitespace)
        guard words.count >= 4, words[1] == "-", let start = address(words[0]) else { return nil }
        var uuid: BuildID?
        var path: String?
        if let open = line.firstRange(of: "<"),
            let close = line[open.upperBound...].firstIndex(of: ">")
        {
            let digits = line[open.upperBound..<close].filter { $0 != "-" }
            uuid = BuildID(hexadecimal: digits.lowercased())
            path = line[line.index(after: close)...].trimmed
        }
        let name = words[3] == "+" && words.count > 4 ? words[4] : words[3]
        let plain = name.hasPrefix("+") ? name.dropFirst() : name
        // `???` for an end: a library of a gigabyte would be the largest.
        let last = address(words[2]) ?? start &+ (1 << 30)
        guard last >= start else { return nil }
        return Image(
            path: path.flatMap { $0.isEmpty || $0 == "???" ? nil : $0 } ?? String(plain),
            buildID: uuid,
            loadAddress: start, endAddress: last &+ 1)
    }

    private static func address(_ text: Substring) -> UInt64? {
        guard text.hasPrefix("0x") else { return nil }
        return UInt64(text.dropFirst(2), radix: 16)
    }
}

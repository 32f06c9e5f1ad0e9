// C++ and Rust names as the Itanium demangler writes them.

/// Namespaces, classes and the function remain; template arguments, parameters and the return type go.
func cxxKey(_ name: NameText) -> SymbolKey {
    var name = name
    for mark: StaticString in [" [clone", " (.", "[abi:"] {
        while let start = name.firstOccurrence(of: mark) {
            let close = name[(start + 1)...].firstIndex(
                of: mark.utf8Start.pointee == 0x20 && mark.utf8CodeUnitCount == 3
                    ? UInt8(ascii: ")") : UInt8(ascii: "]"))
            name = NameText(
                Array(name[..<start] + name[(close.map { $0 + 1 } ?? name.endIndex)...]))
        }
    }
    let parts = cxxParts(name)
    let written = parts.filter { $0 != "closure" }
    let function = written.isEmpty ? name.string : written.joined(separator: "::")
    let isClosure = parts.contains("closure")
    return SymbolKey(
        text: isClosure ? "closure in " + function : function, display: function, role: .function)
}

/// The path's components, each lambda as `closure`.
private func cxxParts(_ name: NameText) -> [String] {
    var parts: [String] = []
    var part: [UInt8] = []
    var index = name.startIndex
    func ended() -> String? {
        // What is before the last blank is the return type, a qualifier, or nothing.
        let words = part.split(separator: UInt8(ascii: " "))
        guard let operatorWord = words.firstIndex(where: { NameText($0).starts(with: "operator") })
        else {
            return words.last.map { String(decoding: $0, as: UTF8.self) }
        }
        return words[operatorWord...].map { String(decoding: $0, as: UTF8.self) }.joined(
            separator: " ")
    }
    func endPart() {
        if let text = ended(), !text.isEmpty {
            let isHash =
                text.utf8.count == 17 && text.hasPrefix("h")
                && text.dropFirst().allSatisfy(\.isHexDigit)
            let isLambda =
                text.hasPrefix("$_") || text.hasPrefix("'lambda") || text == "{{closure}}"
            if isLambda { parts.append("closure") } else if !isHash { parts.append(text) }
        }
        part = []
    }
    while index < name.endIndex {
        let rest = name[index...]
        if rest.starts(with: "operator"), part.last.map({ !$0.isIdentifier }) ?? true,
            let symbol = rest.cxxOperator
        {
            part += Array(symbol)
            index = symbol.endIndex
        } else if rest.starts(with: "::") {
            endPart()
            index += 2
        } else if rest.starts(with: "{lambda") || rest.starts(with: "{{closure}}") {
            parts.append("closure")
            index = rest.endOfBracket ?? name.endIndex
        } else if rest.starts(with: "'lambda") {
            part += Array("'lambda".utf8)
            index =
                rest.dropFirst().firstIndex(of: UInt8(ascii: "'")).map { $0 + 1 } ?? name.endIndex
        } else if name[index] == UInt8(ascii: "<") || name[index] == UInt8(ascii: "(") {
            let end = rest.endOfCxxBracket ?? name.endIndex
            // Behind the parameters come `const`, `&`, `noexcept`: nothing that names.
            if name[index] == UInt8(ascii: "("), !rest.starts(with: "(anonymous namespace)") {
                index = name[end...].firstOccurrence(of: "::") ?? name.endIndex
            } else {
                index = end
            }
        } else {
            part.append(name[index])
            index += 1
        }
    }
    endPart()
    if parts.last == "operator()", parts.dropLast().last == "closure" { parts.removeLast() }
    return parts
}

extension NameText {
    /// Where the text occurs, brackets or not.
    fileprivate func firstOccurrence(of text: StaticString) -> Int? {
        let first = text.utf8Start.pointee
        return (startIndex..<endIndex).first { self[$0] == first && self[$0...].starts(with: text) }
    }

    /// `operator<<`, `operator()`, `operator new[]`, `operator bool`: up to what follows the name.
    fileprivate var cxxOperator: NameText? {
        var end = startIndex + 8
        guard end < endIndex, !self[end].isIdentifier else { return nil }
        if self[end...].starts(with: "()") { return self[..<(end + 2)] }
        if self[end] == UInt8(ascii: " ") {
            while end < endIndex, self[end] != UInt8(ascii: "("), self[end] != UInt8(ascii: "<") {
                end += 1
            }
            return self[..<end]
        }
        let symbols = Array("<>=!+-*/%^&|~,[]".utf8)
        while end < endIndex, symbols.contains(self[end]) { end += 1 }
        return self[..<end]
    }

    /// Like `endOfBracket`, for brackets that may follow anything.
    fileprivate var endOfCxxBracket: Int? {
        var depth = 0
        for index in startIndex..<endIndex {
            switch self[index] {
            case UInt8(ascii: "("), UInt8(ascii: "<"), UInt8(ascii: "{"): depth += 1
            case UInt8(ascii: ">") where index > startIndex && self[index - 1] == UInt8(ascii: "-"):
                break
            case UInt8(ascii: ")"), UInt8(ascii: ">"), UInt8(ascii: "}"): depth -= 1
            default: break
            }
            if depth == 0 { return index + 1 }
        }
        return nil
    }
}

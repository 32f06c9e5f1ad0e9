// C++ and Rust names as printed by the Itanium demangler.

/// Keeps namespaces, classes and the function; removes template arguments, parameters and the return type.
func cxxKey(_ name: NameText) -> SymbolKey {
    var reader = CXXNameReader(rest: name)
    let path = reader.path()
    let written = path.filter { $0 != .closure }.map(\.text)
    guard !written.isEmpty else { return SymbolKey(text: name.string, role: .function) }
    let function = written.joined(separator: "::")
    let isClosure = path.contains(.closure)
    return SymbolKey(
        text: isClosure ? "closure in " + function : function, display: function, role: .function)
}

private struct CXXNameReader {
    enum Component: Equatable {
        case name(String)
        case closure

        var text: String { if case .name(let text) = self { text } else { "closure" } }
    }

    var rest: NameText
    private var components: [Component] = []
    private var part: [UInt8] = []

    init(rest: NameText) { self.rest = rest }

    mutating func path() -> [Component] {
        while let byte = rest.first {
            if rest.starts(with: "operator"), part.last.map({ !$0.isIdentifier }) ?? true,
                let name = rest.cxxOperator
            {
                part += name
                rest = rest.dropFirst(name.count)
                // `operator< <char>`: this space does not end a return type.
                if rest.starts(with: " <") { rest = rest.dropFirst() }
            } else if rest.strip("::") {
                endPart()
            } else if rest.starts(with: " [clone ") || rest.starts(with: " (.") {
                break
            } else if byte == UInt8(ascii: " ") {
                // The part before was the return type, or a prefix like `virtual thunk to`.
                (components, part) = ([], [])
                rest = rest.dropFirst()
            } else if rest.starts(with: "{lambda") || rest.starts(with: "{{closure}}") {
                components.append(.closure)
                dropBracket()
            } else if rest.starts(with: "'lambda") {
                components.append(.closure)
                rest = rest.dropFirst().drop { $0 != UInt8(ascii: "'") }.dropFirst()
            } else if rest.starts(with: "(anonymous namespace)") || byte == UInt8(ascii: "<")
                || rest.starts(with: "[abi:")
            {
                dropBracket()
            } else if byte == UInt8(ascii: "(") {
                // After the parameters come `const`, `&`, `noexcept`, which are not part of the name.
                dropBracket()
                while !rest.isEmpty, !rest.starts(with: "::") { rest = rest.dropFirst() }
            } else {
                part.append(byte)
                rest = rest.dropFirst()
            }
        }
        endPart()
        // A lambda's own call operator.
        if components.count > 1, components[components.count - 2] == .closure,
            components.last == .name("operator()")
        {
            components.removeLast()
        }
        return components
    }

    private mutating func endPart() {
        defer { part = [] }
        let text = String(decoding: part, as: UTF8.self)
        // Rust symbols end in a hash.
        let isHash =
            part.count == 17 && text.hasPrefix("h") && text.dropFirst().allSatisfy(\.isHexDigit)
        guard !text.isEmpty, !isHash else { return }
        // clang's name for a lambda.
        components.append(text.hasPrefix("$_") ? .closure : .name(text))
    }

    private mutating func dropBracket() {
        var depth = 0
        var previous: UInt8 = 0
        while let byte = rest.first {
            rest = rest.dropFirst()
            switch byte {
            case UInt8(ascii: "("), UInt8(ascii: "<"), UInt8(ascii: "{"), UInt8(ascii: "["):
                depth += 1
            case UInt8(ascii: ">") where previous == UInt8(ascii: "-"): break
            case UInt8(ascii: ")"), UInt8(ascii: ">"), UInt8(ascii: "}"), UInt8(ascii: "]"):
                depth -= 1
            default: break
            }
            if depth == 0 { return }
            previous = byte
        }
    }
}

extension NameText {
    /// `operator<<`, `operator()`, `operator new[]`, `operator bool`: up to the end of the name.
    fileprivate var cxxOperator: NameText? {
        let name = dropFirst(8)
        guard let first = name.first, !first.isIdentifier else { return nil }
        if name.starts(with: "()") { return prefix(10) }
        if first == UInt8(ascii: " ") {
            let end = name.firstIndex { $0 == UInt8(ascii: "(") || $0 == UInt8(ascii: "<") }
            return self[..<(end ?? endIndex)]
        }
        // Longest first: `operator==<int>` is not `operator==<`.
        let symbols: [StaticString] = [
            "<=>", "<<=", ">>=", "->*", "[]", "<<", ">>", "<=", ">=", "==", "!=", "&&", "||", "++",
            "--",
            "+=", "-=", "*=", "/=", "%=", "^=", "&=", "|=", "->",
        ]
        return prefix(8 + (symbols.first { name.starts(with: $0) }?.utf8CodeUnitCount ?? 1))
    }
}

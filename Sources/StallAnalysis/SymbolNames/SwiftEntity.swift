// A Swift declaration's name without parts that depend on the build or on the demangler's options.

/// A named declaration: its path, and its argument labels if it is a function.
struct SwiftEntity {
    var path: [NameText]
    var arguments: String

    /// How many of the path's last components belong to the member itself: an accessor includes its property.
    var memberCount: Int {
        guard path.count > 1, arguments.isEmpty, let last = path.last else { return 1 }
        return ["getter", "setter", "accessor", "willset", "didset", "init accessor"].contains(
            last.string)
            ? 2 : 1
    }

    var text: String {
        path.map(\.string).joined(separator: ".") + arguments
    }
}

func swiftEntity(_ name: NameText, module: NameText?, isOutermost: Bool) -> SwiftEntity {
    var name = name
    peelPrefixes(&name)
    // Only full names have it, like the `: Type` of an accessor and the `-> Type` of a function.
    var isFull = dropExtension(&name)
    if let type = name.firstIndex(of: " : ") {
        name = name[..<type]
        isFull = true
    }
    let callStart = startOfArguments(in: name)
    var arguments = ""
    if let callStart, let end = name[callStart...].endOfBracket {
        let isCall =
            name[end...].starts(with: " -> ") || name[end...].starts(with: " async")
            || name[end...].starts(with: " throws") || name[end...].starts(with: " rethrows")
        isFull = isFull || isCall
        arguments = labels(name[(callStart + 1)..<(end - 1)])
        name = name[..<callStart]
    }
    var path = pathComponents(name)
    if isOutermost, dropsModule(path, module: module, isFull: isFull) { path.removeFirst() }
    guard let last = path.last else { return SwiftEntity(path: [name], arguments: arguments) }
    path[path.count - 1] = memberName(last, hasArguments: callStart != nil)
    if path.last?.string == "deinit" { arguments = "" }
    return SwiftEntity(path: path, arguments: arguments)
}

/// Removes `(extension in M):`, once for every type nested in an extension.
private func dropExtension(_ name: inout NameText) -> Bool {
    let length = name.count
    while name.starts(with: "(extension in "), let end = name.endOfBracket, end < name.endIndex {
        name = name[(end + 1)...]
    }
    return name.count < length
}

/// The first `(` outside of brackets that is not part of a private name or an operator.
private func startOfArguments(in name: NameText) -> Int? {
    var start: Int?
    while let open = name.firstIndex(of: "(", from: start) {
        // `(Foo in _0123ABCD)`, `(in _0123ABCD)`: a private declaration, followed by its members or its arguments.
        if let end = name[open...].endOfBracket, isPrivateName(name[(open + 1)..<(end - 1)]) {
            start = end
            continue
        }
        return open
    }
    return nil
}

private func isPrivateName(_ text: NameText) -> Bool {
    guard let mark = text.lastIndex(of: UInt8(ascii: "_")), mark >= text.startIndex + 3,
        text[(mark - 3)..<mark].elementsEqual("in ".utf8),
        mark == text.startIndex + 3 || text[mark - 4] == UInt8(ascii: " ")
    else { return false }
    let digits = text[(mark + 1)...]
    return digits.count >= 8
        && digits.allSatisfy { $0.isDigit || (UInt8(ascii: "A")...UInt8(ascii: "F")).contains($0) }
}

/// The argument labels of a call: `(a: Swift.Int, Swift.Int)` and `a:_:` are both `(a:_:)`.
private func labels(_ arguments: NameText) -> String {
    if arguments.isEmpty { return "()" }
    if arguments.last == UInt8(ascii: ":"),
        arguments.allSatisfy({ $0 != UInt8(ascii: " ") && $0 != UInt8(ascii: ",") })
    {
        return "(" + arguments.string + ")"
    }
    let labels = arguments.split(at: ", ").map { argument -> String in
        guard let colon = argument.firstIndex(of: ": "),
            argument[..<colon].allSatisfy({ $0.isIdentifier || $0 == UInt8(ascii: "`") })
        else { return "_:" }
        return argument[...colon].string
    }
    return "(" + labels.joined() + ")"
}

/// Splits `A.B<C>.f` at its dots and removes generic arguments, private discriminators and local numbers.
private func pathComponents(_ name: NameText) -> [NameText] {
    var parts: [NameText] = []
    var rest = name
    // An operator may contain dots: it is the last component and starts with no identifier character.
    while let dot = rest.firstIndex(of: ".") {
        let next = dot + 1 < rest.endIndex ? rest[dot + 1] : 0
        let before = rest[rest.startIndex..<dot]
        guard !before.isEmpty else { break }
        parts.append(plainComponent(before))
        rest = rest[(dot + 1)...]
        if !(next.isIdentifier || next == UInt8(ascii: "(") || next == UInt8(ascii: "`")) { break }
    }
    return (parts + [plainComponent(rest)]).filter { !$0.isEmpty }
}

private func plainComponent(_ part: NameText) -> NameText {
    var part = part
    if part.first == UInt8(ascii: "("), let end = part.endOfBracket,
        isPrivateName(part[(part.startIndex + 1)..<(end - 1)])
    {
        let inner = part[(part.startIndex + 1)..<(end - 1)]
        let named =
            inner.firstIndex(of: " in ").map { inner[..<$0] }
            ?? inner[inner.startIndex..<inner.startIndex]
        part = NameText(Array(named + part[end...]))
    }
    // `[Element]` and `[Key : Value]` are sugar for named types.
    if part.first == UInt8(ascii: "["), part.endOfBracket == part.endIndex {
        let isDictionary = part.dropFirst().dropLast().firstIndex(of: " : ") != nil
        return NameText(isDictionary ? "Dictionary" : "Array")
    }
    if part.last == UInt8(ascii: "?"), part.count > 1 { return NameText("Optional") }
    while let first = part.first, first.isIdentifier,
        let angle = part.firstIndex(of: UInt8(ascii: "<"))
    {
        let end = part[angle...].endOfAngles ?? part.endIndex
        part = NameText(Array(part[..<angle] + part[end...]))
    }
    // `== infix<A>`: an operator's own generic arguments.
    for fix: StaticString in [" infix<", " prefix<", " postfix<"] {
        if let start = part.firstIndex(of: fix) {
            part = part[..<(start + fix.utf8CodeUnitCount - 1)]
        }
    }
    // `inner #1`: local declarations are numbered in source order.
    if let number = part.firstIndex(of: " #") { part = part[..<number] }
    while part.last == UInt8(ascii: " ") { part = part.dropLast() }
    return part
}

extension NameText {
    /// The index after the `>` that closes the `<` at the start. Other brackets do not count: the demangler leaves some
    /// open in the arguments of specializations.
    var endOfAngles: Int? {
        var depth = 0
        for index in startIndex..<endIndex {
            if self[index] == UInt8(ascii: "<") { depth += 1 }
            if self[index] == UInt8(ascii: ">"), self[index - 1] != UInt8(ascii: "-") { depth -= 1 }
            if depth == 0 { return index + 1 }
        }
        return nil
    }
}

/// Simplified names have no module. In a full one it is the first component.
private func dropsModule(_ path: [NameText], module: NameText?, isFull: Bool) -> Bool {
    guard path.count > 1, let first = path.first else { return false }
    if isFull { return true }
    // A deinitializer shows no type, so its full name looks like a simplified one.
    guard path.count > 2, isDeinitializer(path) else { return false }
    return module.map { first.elementsEqual($0) } ?? !(first.first?.isUppercase ?? true)
}

private func isDeinitializer(_ path: [NameText]) -> Bool {
    path.last.map { $0.ends(with: "deinit") } ?? false
}

private func memberName(_ name: NameText, hasArguments: Bool) -> NameText {
    switch name.string {
    case "__allocating_init": NameText("init")
    case "__deallocating_deinit", "__isolated_deallocating_deinit": NameText("deinit")
    case "$main" where hasArguments: NameText("main")
    case "modify", "read", "_modify", "_read", "modify2", "read2", "yielding_modify",
        "yielding_read",
        "yielding_mutate", "yielding_borrow", "unsafeMutableAddressor", "unsafeAddressor",
        "nativeOwningMutableAddressor", "owningMutableAddressor", "borrow", "mutate":
        hasArguments ? name : NameText("accessor")
    default: name
    }
}

/// The last component of a path that may be private or generic.
func member(of name: NameText) -> NameText {
    pathComponents(name).last ?? name
}

func typePath(_ type: NameText, isFull: Bool) -> NameText {
    var type = type
    _ = dropExtension(&type)
    var path = pathComponents(type)
    if isFull, path.count > 1 { path.removeFirst() }
    return NameText(Array(path.joined(separator: [UInt8(ascii: ".")])))
}

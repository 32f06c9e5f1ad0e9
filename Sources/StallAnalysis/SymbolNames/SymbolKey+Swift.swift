// Swift names as printed by swift_demangle, full or simplified. The order of the steps matters.

/// - Parameter module: The module of the outermost context, if known from the symbol.
func swiftKey(_ name: NameText, module: String?) -> SymbolKey {
    var name = name
    if let suffix = name.firstIndex(of: " with unmangled suffix ") { name = name[..<suffix] }
    peelPrefixes(&name)
    if isThunk(name) { return .thunk }
    if isRuntimeHelper(name) { return .runtime }

    let module = module.map { NameText($0) }
    if name.strip("protocol witness for ") { return witnessKey(name, module: module) }
    if name.strip("one-time initialization function for ") {
        return SymbolKey(text: "init " + member(of: name).string, role: .function)
    }

    var parts: [String] = []
    let contexts = name.split(at: " in ")
    for (index, context) in contexts.enumerated() {
        // Only the outermost context is printed with its module.
        let isOutermost = index == contexts.count - 1
        let part = contextKey(context, module: module, isOutermost: isOutermost)
        // Nested closures count as one location in the source.
        if part == "closure", parts.last == "closure" { continue }
        parts.append(part)
    }
    let written = parts.drop { $0 == "closure" || $0 == "defer" }
    let text = parts.joined(separator: " in ")
    let function = written.joined(separator: " in ")
    // `closure in photos`: top-level code has no function, and the module's name alone would say little.
    let isFunction = function.utf8.contains { "(. ".utf8.contains($0) }
    return SymbolKey(text: text, display: isFunction ? function : text, role: .function)
}

// MARK: - Prefixes and suffixes

/// Removes prefixes added by the optimizer and the calling conventions.
func peelPrefixes(_ name: inout NameText) {
    // No prefix begins like a type.
    guard let first = name.first, !first.isUppercase else { return }
    let words: [StaticString] = [
        "partial apply forwarder for ", "partial apply for ", "merged ", "specialized ", "@objc ",
        "@nonobjc ", "dispatch thunk of ", "override ", "distributed thunk ",
        "distributed accessor for ",
        "back deployment thunk for ", "back deployment fallback for ", "curry thunk of ",
        "async function pointer to ", "static ", "class ", "prespecialized ",
        "inlined generic function of ",
    ]
    let specializations: [StaticString] = [
        "generic specialization <", "generic not re-abstracted specialization <",
        "generic partial specialization <", "generic not-reabstracted specialization <",
        "function signature specialization <", "generic pre-specialization <",
        "closure specialization <", "capture propagation specialization <",
    ]
    peeling: while true {
        if name.first == UInt8(ascii: "(") {
            // (2) await resume partial function for ...
            let rest = name.dropFirst().drop(while: \.isDigit)
            var tail = rest.dropFirst(2)
            if rest.starts(with: ") "),
                tail.strip("await resume partial function for ")
                    || tail.strip("suspend resume partial function for ")
            {
                name = tail
                continue peeling
            }
        }
        for word in words where name.strip(word) { continue peeling }
        for start in specializations where name.starts(with: start) {
            let open = name.startIndex + start.utf8CodeUnitCount - 1
            guard let end = name[open...].endOfAngles, name[end...].starts(with: " of ") else {
                return
            }
            name = name[(end + 4)...]
            continue peeling
        }
        if name.starts(with: "vtable thunk for "),
            let target = name.firstIndex(of: " dispatching to ")
        {
            name = name[(target + 16)...]
            continue peeling
        }
        return
    }
}

private func isThunk(_ name: NameText) -> Bool {
    name.starts(with: "reabstraction thunk") || name.starts(with: "thunk for ")
        || name.starts(with: "autodiff ") || name.starts(with: "@callee_")
}

private func isRuntimeHelper(_ name: NameText) -> Bool {
    // No other begins like a type.
    guard let first = name.first, !first.isUppercase else {
        return name.ends(with: "__ivar_destroyer")
    }
    let starts: [StaticString] = [
        "outlined ", "type metadata ", "metadata ", "generic type metadata", "full type metadata",
        "demangling cache variable", "lazy ", "lazily ", "associated type ",
        "associated conformance ",
        "default associated ", "base witness table", "protocol witness table", "witness table",
        "key path ", "instantiation function ", "value witness", "allocateBuffer", "assignWith",
        "deallocateBuffer", "destroy ", "destroyArray", "destroyBuffer", "destructive",
        "getEnumTag",
        "storeEnumTag", "injectEnumTag", "initializeBuffer", "initializeWith", "initializeArray",
        "projectBuffer", "extraInhabitant", "enum tag", "protocol conformance",
        "property descriptor",
        "nominal type descriptor", "reflection metadata", "method lookup function", "get_",
        "coroutine continuation prototype",
        "one-time initialization token", "protocol requirements", "async let", "resilient ",
        "runtime ", "opaque type descriptor", "canonical ", "noncanonical ", "default override of ",
        "copy helper",
        "destroy helper",
    ]
    if starts.contains(where: { name.starts(with: $0) }) { return true }
    return name.ends(with: "__ivar_destroyer")
}

/// `Worker.run(_:) in conformance Cache<A> : Worker in M` is the implementation `Cache.run(_:)`.
private func witnessKey(_ name: NameText, module: NameText?) -> SymbolKey {
    guard let conformance = name.firstIndex(of: " in conformance ") else {
        return SymbolKey(text: contextKey(name, module: module), role: .function)
    }
    // Full names only: `in conformance M.Cache<A> : M.Worker in M`.
    var type = name[(conformance + 16)...]
    // A leading `<A where A: P>` is the condition of the conformance.
    if type.first == UInt8(ascii: "<"), let end = type.endOfAngles {
        type = type[end...].dropFirst()
    }
    let protocolStart = type.firstIndex(of: " : ")
    if let protocolStart { type = type[..<protocolStart] }
    let requirement = swiftEntity(name[..<conformance], module: nil, isOutermost: true)
    let member = requirement.path.suffix(requirement.memberCount).joined(separator: [
        UInt8(ascii: ".")
    ])
    let text =
        typePath(type, isFull: protocolStart != nil).string + "." + NameText(Array(member)).string
        + requirement.arguments
    return SymbolKey(text: text, role: .function)
}

// MARK: - One context

/// The key of one step of a context chain: a closure, a local function, or a member of a type.
private func contextKey(_ context: NameText, module: NameText?, isOutermost: Bool = true) -> String
{
    var context = context
    peelPrefixes(&context)
    if context.starts(with: "closure #") || context.starts(with: "implicit closure #")
        || context.starts(with: "explicit closure #") || context.starts(with: "autoclosure #")
    {
        return "closure"
    }
    if context.starts(with: "$defer") { return "defer" }
    if context.strip("variable initialization expression of ")
        || context.strip("property wrapper backing initializer of ")
        || context.strip("property wrapper init from projected value of ")
    {
        return "varinit in " + contextKey(context, module: module, isOutermost: isOutermost)
    }
    if context.strip("default argument ") {
        guard let of = context.firstIndex(of: " of ") else { return context.string }
        return "defaultarg "
            + contextKey(context[(of + 4)...], module: module, isOutermost: isOutermost)
    }
    return swiftEntity(context, module: module, isOutermost: isOutermost).text
}

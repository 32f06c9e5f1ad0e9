// One function, one key: in debug and release builds, from full and simplified demangling, however the compiler
// specialized, merged or outlined it. Line numbers, addresses, types, generic arguments and the numbers of closures
// never enter a key. docs/grouping.md lists the rules with examples.

package import StallModel

/// A function's name without what changes from build to build.
package struct SymbolKey: Hashable, Sendable {
    package enum Role: Hashable, Sendable {
        /// Code that has a name in the source.
        case function
        /// Adapts one calling convention to another.
        case thunk
        /// Made by the compiler: copies and destroys values, finds metadata.
        case runtime
        /// The one body that is left of several functions with the same code, under the name of one of them.
        case merged
    }

    /// The whole key: `closure in Timeline.tick()`.
    package let text: String
    /// The function that the code is written in, closures and defer blocks included: `Timeline.tick()`.
    package let display: String
    package let role: Role

    /// - Parameters:
    ///   - name: A readable name, simplified or full; or a symbol that has no other.
    ///   - symbol: The symbol, when it is known: its module tells which part of a full name is the module.
    package init(name: String, symbol: String? = nil) {
        let text = NameText(name)
        if name.hasPrefix("Swift runtime failure: ") {
            // What the compiler calls the trap that it inlined.
            self = .runtime
            return
        }
        let isMerged = text.isMergedName || (symbol.map(NameText.init)?.isMergedSymbol ?? false)
        let key =
            switch Language(text, symbol: symbol) {
            case .swift: swiftKey(text, module: symbol.flatMap(mangledModule))
            case .cxx: cxxKey(text.withoutMergedMark)
            case .objectiveC: objectiveCKey(text.withoutMergedMark)
            case .c: cKey(text.withoutMergedMark)
            }
        self = isMerged && key.role == .function ? key.merged : key
    }

    /// The key of a frame; without a symbol, its place in the image.
    package init(frame: Frame) {
        if let name = frame.function ?? frame.rawName {
            self.init(name: name, symbol: frame.rawName)
        } else {
            self.init(text: frame.title, role: .function)
        }
    }

    init(text: String, display: String? = nil, role: Role) {
        self.text = text
        self.display = display ?? text
        self.role = role
    }

    /// The same, of a body that several functions share.
    var merged: SymbolKey { SymbolKey(text: text, display: display, role: .merged) }

    static let thunk = SymbolKey(text: "thunk", role: .thunk)
    static let runtime = SymbolKey(text: "<swift-runtime>", role: .runtime)
}

private enum Language {
    case swift, cxx, objectiveC, c

    init(_ name: NameText, symbol: String?) {
        let symbol = NameText(symbol ?? "")
        if symbol.isSwiftMangling {
            self = .swift
        } else if name.starts(with: "-[") || name.starts(with: "+[") || name.isBlockInvoke {
            self = .objectiveC
        } else if symbol.starts(with: "_Z") || name.contains("::") {
            self = .cxx
        } else if withoutLinkerSuffix(name.withoutMergedMark).allSatisfy(\.isIdentifier) {
            self = .c
        } else {
            self = .swift
        }
    }
}

extension NameText {
    /// `$s`, `$S`, `_$s` and `_T0` begin Swift's manglings; `$e` those of embedded Swift.
    var isSwiftMangling: Bool {
        starts(with: "$s") || starts(with: "$S") || starts(with: "$e") || starts(with: "_$s")
            || starts(with: "_$S") || starts(with: "_T0")
    }

    /// `merged ` in front: the demangler's word, and the symbolizer's for functions that a linker folded into one.
    fileprivate var isMergedName: Bool { starts(with: "merged ") }

    fileprivate var withoutMergedMark: NameText {
        var name = self
        _ = name.strip("merged ")
        return name
    }

    /// `$s1m12lockedInsertySiAA1AC_SitFTm`, also with a linker's suffix: LLVM merged functions into this one.
    ///
    /// **Source:** the Swift repository, docs/ABI/Mangling.rst, "merged function".
    fileprivate var isMergedSymbol: Bool {
        guard isSwiftMangling else { return false }
        let name = self.prefix { $0 != UInt8(ascii: ".") }
        return name.ends(with: "Tm")
    }

    fileprivate var isBlockInvoke: Bool {
        starts(with: "__") && string.contains("_block_invoke")
    }
}

// MARK: - C and Objective-C

/// What linkers and optimizers add behind a symbol: `.cold.1`, `.llvm.123`, `@@GLIBC_2.2.5`.
func withoutLinkerSuffix(_ name: NameText) -> NameText {
    var name = name
    if let version = name.dropFirst().firstIndex(of: UInt8(ascii: "@")) {
        name = name[name.startIndex..<version]
    }
    let words: [StaticString] = [
        "cold", "llvm", "constprop", "part", "isra", "lto_priv", "resume", "lambda", "localalias",
    ]
    while let dot = name.dropFirst().lastIndex(of: UInt8(ascii: ".")) {
        let word = name[(dot + 1)...]
        let isNumber = !word.isEmpty && word.allSatisfy(\.isDigit)
        let isKnown = words.contains { word.count == $0.utf8CodeUnitCount && word.starts(with: $0) }
        guard isNumber || isKnown else { break }
        name = name[name.startIndex..<dot]
    }
    return name
}

private func cKey(_ name: NameText) -> SymbolKey {
    let name = withoutLinkerSuffix(name)
    let helpers: [StaticString] = [
        "_swift_", "__swift_", "block_copy_helper", "block_destroy_helper", "objectdestroy",
        "keypath_get", "keypath_set", "keypath_equals", "keypath_hash", "keypath_destroy",
        "keypath_copy", "get_witness_table", "get_type_metadata", "get_underlying_type",
        "OUTLINED_FUNCTION_",
    ]
    let isRuntime = helpers.contains { name.starts(with: $0) }
    return SymbolKey(text: name.string, role: isRuntime ? .runtime : .function)
}

/// A method keeps class and selector and loses its category; a block is named after the function it is written in.
private func objectiveCKey(_ name: NameText) -> SymbolKey {
    var name = withoutLinkerSuffix(name)
    guard name.isBlockInvoke else {
        return SymbolKey(text: withoutCategory(name).string, role: .function)
    }
    name = name.dropFirst(2)
    name = name.drop(while: \.isDigit)
    if let end = name.string.range(of: "_block_invoke") {
        name = NameText(String(name.string[..<end.lowerBound]))
    }
    let function = withoutCategory(name).string
    return SymbolKey(text: "block in " + function, display: function, role: .function)
}

private func withoutCategory(_ method: NameText) -> NameText {
    guard let open = method.firstIndex(of: UInt8(ascii: "(")),
        let close = method.firstIndex(of: UInt8(ascii: ")")), open < close
    else { return method }
    return NameText(method[..<open] + method[(close + 1)...])
}

extension String {
    fileprivate func range(of text: String) -> Range<Index>? { ranges(of: text).first }
}

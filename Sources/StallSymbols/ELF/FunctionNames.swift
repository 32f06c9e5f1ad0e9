// Distinguishes aliases of one function from functions with the same code, of which a linker (`--icf`) or a compiler
// (GCC's `-fipa-icf`) kept one, by the names of their address alone.
//
// An alias between two strong names of the app's own (`__attribute__((alias))`) looks like two such functions, and
// counts as them: a title then lacks a name, where it would have a wrong one.

/// A name of an address that functions share.
struct FunctionName {
    var text: String
    var isWeak = false
    /// It is resolved when the program starts; only libraries' own functions are.
    var isIndirect = false
}

extension FunctionName {
    var isMangled: Bool { text.hasPrefix("$s") || text.hasPrefix("_Z") }

    /// A tool's second name for a function: a version (`pay@@V2`), or GCC's for calls within a library.
    var isSecondary: Bool {
        !text.hasPrefix("$s") && text.contains("@") || text.contains(".localalias")
    }

    /// Only the implementation may have such names: `__poll`, `_Exit`. `_load` is a name like others.
    fileprivate var isReserved: Bool {
        text.hasPrefix("__") || text.hasPrefix("_") && text.dropFirst().first?.isUppercase == true
    }

    /// Without the marks of aliases: `_load` is `load`, `pread64` is `pread`, and `preadv64v2` is `preadv2`.
    fileprivate var plain: String {
        String(text.drop { $0 == "_" }).replacing("64v", with: "").replacing("64", with: "")
    }
}

extension [FunctionName] {
    /// Whether functions with different sources have these names.
    ///
    /// - Parameter areAll: The names are of a full symbol table. A library exports one function under several names by
    ///   design (`strtoul`, `strtoull`).
    func areFolded(areAll: Bool) -> Bool {
        let names = filter { !$0.isSecondary }
        guard names.count > 1, !names.contains(where: \.isIndirect) else { return false }
        let mangled = names.filter(\.isMangled)
        // Swift and C++ aliases have equal readable names.
        if Set(mangled.map { readableName($0.text) }).count > 1 { return true }
        guard areAll else { return false }

        let ordinary = names.filter { !$0.isMangled && !$0.isReserved }
        // With `__frexp` beside `frexp` it is a library's function, whose other names are aliases.
        let isLibrarys = names.contains { name in
            !name.isMangled && name.isReserved
                && ordinary.contains { name.text.hasSuffix($0.text) }
        }
        guard !isLibrarys else { return false }
        // A weak name beside a strong one is its alias.
        let areWeak = names.allSatisfy(\.isWeak)
        let own = Set(ordinary.filter { areWeak || !$0.isWeak }.map(\.plain))
        return own.count + (mangled.isEmpty ? 0 : 1) > 1
    }
}

// Readable names, by the demanglers of the Swift and C++ runtimes, which the loader bound at the process's start.

internal import CLinux
internal import Glibc

/// The short readable name of a symbol: `closure #1 in Timeline.tick()`. C symbols are returned unchanged.
package func readableName(_ symbol: String) -> String {
    guard let name = demangle(symbol, with: stall_demangle) else { return symbol }
    // The context of a closure in top-level code is a module, which short names omit.
    guard name.hasSuffix(" in "), let module = fullName(symbol)?.split(separator: " ").last else {
        return name
    }
    return name + module
}

/// The name with modules, types and effects; nil if it is not a Swift symbol.
package func fullName(_ symbol: String) -> String? {
    demangle(symbol, with: stall_demangle_in_full)
}

/// Longer symbols are not demangled: some manglings encode exponentially long types.
private let longestSymbol = 4096

private func demangle(
    _ symbol: String, with demangler: (UnsafePointer<CChar>, Int) -> UnsafeMutablePointer<CChar>?
) -> String? {
    guard symbol.utf8.count <= longestSymbol, let name = demangler(symbol, symbol.utf8.count) else {
        return nil
    }
    defer { free(name) }
    // Manglings encode the spaces of raw identifiers as no-break spaces.
    return String(cString: name).replacing("\u{a0}", with: " ")
}

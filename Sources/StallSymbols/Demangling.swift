// Readable names. The demanglers are those of the Swift and C++ runtimes; the loader bound them when the process
// started.

internal import CLinux
internal import Glibc

/// The short readable name of a symbol: `closure #1 in Timeline.tick()`. A C symbol is its own name.
package func readableName(_ symbol: String) -> String {
    guard let name = demangle(symbol, with: stall_demangle) else { return symbol }
    // A closure of top-level code is written in a module, which short names leave out.
    guard name.hasSuffix(" in "), let module = fullName(symbol)?.split(separator: " ").last else {
        return name
    }
    return name + module
}

/// The name with modules, types and effects; nil when the symbol is not a Swift one.
package func fullName(_ symbol: String) -> String? {
    demangle(symbol, with: stall_demangle_in_full)
}

/// Longer symbols are left as they are: some manglings name exponentially long types.
private let longestSymbol = 4096

private func demangle(
    _ symbol: String, with demangler: (UnsafePointer<CChar>, Int) -> UnsafeMutablePointer<CChar>?
) -> String? {
    guard symbol.utf8.count <= longestSymbol, let name = demangler(symbol, symbol.utf8.count) else {
        return nil
    }
    defer { free(name) }
    // Manglings cannot hold the blanks of raw identifiers, and have no-break spaces instead.
    return String(cString: name).replacing("\u{a0}", with: " ")
}

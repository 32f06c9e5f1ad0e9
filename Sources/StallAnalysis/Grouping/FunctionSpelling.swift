// The spellings of names that rules match.

enum FunctionSpelling {
    /// The bare name of a C function without leading underscores and the markers of libc's internal variants:
    /// `__GI___poll`, `__poll` and `poll` are one.
    static func plainName(_ name: String) -> String {
        // Most names have neither.
        guard
            name.utf8.first == UInt8(ascii: "_") || name.utf8.last == UInt8(ascii: "l")
                || name.utf8.last == UInt8(ascii: "4")
        else { return name }
        var name = name[...]
        for prefix in ["__GI_", "__libc_", "__new_", "__old_"] where name.hasPrefix(prefix) {
            name = name.dropFirst(prefix.count)
        }
        name = name.drop { $0 == "_" }
        for suffix in ["_nocancel", "_time64", "_internal"] where name.hasSuffix(suffix) {
            name = name.dropLast(suffix.count)
        }
        return String(name)
    }

    /// `main`; SwiftPM names it `photos_main` in the executable `photos`.
    static func isEntryPoint(_ name: String, image: String) -> Bool {
        guard name.hasSuffix("main") else { return false }
        let module = image.utf8.map { $0.isIdentifier ? $0 : UInt8(ascii: "_") }
        return name == "main" || name == String(decoding: module, as: UTF8.self) + "_main"
    }
}

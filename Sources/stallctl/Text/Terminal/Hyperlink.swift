// Hyperlinks on terminals. Never in a pipe or a file, and only where the terminal is known to show them: others print the
// sequence as text.

internal import Glibc

enum Hyperlink {
    /// The text as a link.
    ///
    /// **Source:** "Hyperlinks in terminal emulators", the specification of OSC 8 (Egmont Koblinger).
    static func text(_ text: String, target: String) -> String {
        "\u{1b}]8;;\(target)\u{1b}\\\(text)\u{1b}]8;;\u{1b}\\"
    }

    /// The address of a file of this machine; nil for a relative path. Every byte that is not plain is escaped, so that no
    /// name can end the sequence.
    static func file(_ path: String) -> String? {
        guard path.hasPrefix("/") else { return nil }
        var name = [CChar](repeating: 0, count: 256)
        let isNamed = gethostname(&name, name.count - 1) == 0
        let host = isNamed ? name.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)) : []
        return "file://" + escaped(host) + escaped(path.utf8)
    }

    private static func escaped(_ bytes: some Sequence<UInt8>) -> String {
        bytes.map { byte in
            let isPlain =
                (0x30...0x39).contains(byte) || (0x41...0x5a).contains(byte)
                || (0x61...0x7a).contains(byte) || "/-._~+".utf8.contains(byte)
            if isPlain { return String(Unicode.Scalar(byte)) }
            return "%" + String(byte, radix: 16, uppercase: true).padded(with: "0", to: 2)
        }.joined()
    }

    /// Whether the terminal shows links, by the environment. `FORCE_HYPERLINK` decides if it is set, 0 for no.
    static func isShown(in environment: [String: String]) -> Bool {
        if let forced = environment["FORCE_HYPERLINK"], !forced.isEmpty { return forced != "0" }
        let term = environment["TERM"] ?? ""
        guard !term.isEmpty, term != "dumb", term != "linux", environment["CI"] == nil else {
            return false
        }
        let known = ["WT_SESSION", "KONSOLE_VERSION", "KITTY_WINDOW_ID", "DOMTERM"]
        if known.contains(where: { !(environment[$0] ?? "").isEmpty }) { return true }
        if let version = environment["VTE_VERSION"].flatMap(Int.init), version >= 5000 {
            return true
        }
        let programs = ["iTerm.app", "WezTerm", "vscode", "ghostty", "Hyper", "Tabby", "rio"]
        if programs.contains(environment["TERM_PROGRAM"] ?? "") { return true }
        let terms = ["alacritty", "foot", "xterm-kitty", "xterm-ghostty", "wezterm", "contour"]
        return terms.contains { term.hasPrefix($0) }
    }
}

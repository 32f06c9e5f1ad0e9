// Where a user's settings and stores are.
//
// **Source:** XDG Base Directory Specification: relative paths in its variables are ignored.

internal import Glibc

enum UserDirectories {
    /// `XDG_STATE_HOME`, or `.local/state` in the home directory.
    static func state(_ environment: [String: String]) -> String {
        directory(environment["XDG_STATE_HOME"], else: "/.local/state", environment)
    }

    /// `XDG_CONFIG_HOME`, or `.config` in the home directory.
    static func configuration(_ environment: [String: String]) -> String {
        directory(environment["XDG_CONFIG_HOME"], else: "/.config", environment)
    }

    /// `HOME`, or the home directory from the user database. Never the root of the disk.
    static func home(_ environment: [String: String]) -> String {
        if let home = environment["HOME"], home.hasPrefix("/") { return home }
        return getpwuid(getuid()).map { String(cString: $0.pointee.pw_dir) } ?? "/nonexistent"
    }

    private static func directory(
        _ named: String?, else standard: String, _ environment: [String: String]
    ) -> String {
        if let named, named.hasPrefix("/") { return named }
        return home(environment) + standard
    }
}

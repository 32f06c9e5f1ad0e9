// The normal form of an operating system's name: reports of one system in two formats make one group. `iPhone OS 17.4.1
// (21E236)` and `{"name": "iOS", "version": "17.4.1"}` are both `iOS 17.4.1`.

internal import StallModel

/// An operating system, with its version where that is known and never with its build.
enum OSName {
    /// - Parameters:
    ///   - text: As a report states it: `Mac OS X 10.15.7 (19H15)`.
    ///   - device: The model that it runs on: iPads have had a system of their own name since 13, and only some formats
    ///     say it.
    static func normal(_ text: String?, device: String? = nil) -> String? {
        guard let text else { return nil }
        var words = text.split(whereSeparator: \.isWhitespace).map(String.init)
        // Builds and names of releases: `(21E236)`, `(Build 21E236)`, `(bookworm)`.
        if let build = words.firstIndex(where: { $0.hasPrefix("(") }) {
            // `Linux (Debian GNU/Linux 12 (bookworm))`, without a version of its own: the distribution.
            if build == 1, words[0] == "Linux", let open = text.firstIndex(of: "(") {
                let distribution = text[text.index(after: open)...].trimmed
                return normal(
                    String(distribution.dropLast(distribution.hasSuffix(")") ? 1 : 0))) ?? "Linux"
            }
            words.removeSubrange(build...)
        }
        let version = words.firstIndex(where: \.isVersion)
        let name = words[..<(version ?? words.endIndex)].filter { $0 != "Version" }
            .joined(separator: " ")
        return normal(name: name, version: version.map { words[$0] }, device: device)
    }

    /// Of a name and a version that a report has apart.
    static func normal(name: String?, version: String?, device: String? = nil) -> String? {
        guard let name, name.contains(where: \.isLetter), !name.lowercased().hasPrefix("unknown")
        else { return nil }
        let first = version?.split(whereSeparator: \.isWhitespace).first.map(String.init) ?? ""
        let number = first.isVersion ? first.drop { $0 == "v" } : ""
        let major = number.prefix { $0.isNumber }
        let known = Self.name(name, Int(major), device)
        let parts = number.split(separator: ".", omittingEmptySubsequences: false)
        // The version in os-release is that of the release: those of Ubuntu have two numbers.
        let isShort = known == "Linux" || known == "Ubuntu"
        let shown = isShort ? parts.prefix(2).joined(separator: ".") : String(number)
        return shown.isEmpty ? known : "\(known) \(shown)"
    }

    private static func name(_ name: String, _ major: Int?, _ device: String?) -> String {
        switch name {
        case "iPhone OS", "iPhoneOS", "iOS":
            device?.hasPrefix("iPad") == true && major ?? 0 >= 13 ? "iPadOS" : "iOS"
        // Its name of today is older than version 11, and formats differ in when they began to say it.
        case "Mac OS X", "Mac OS", "OS X", "MacOS", "MacOSX", "macosx", "macOS":
            major.map { $0 < 11 } == true ? "Mac OS X" : "macOS"
        case "Apple tvOS", "AppleTVOS": "tvOS"
        case "Watch OS", "Apple watchOS", "WatchOS": "watchOS"
        default: name
        }
    }
}

extension ForeignReport {
    /// Notes the machine that a report states: `???` and an empty text say that its writer does not know.
    mutating func takeMachine(os: String?, device: String?) {
        if let device = device.map({ $0[...].trimmed }), device.contains(where: { $0.isLetter }),
            device.lowercased() != "unknown"
        {
            self.device = device
        }
        self.os = OSName.normal(os, device: self.device) ?? self.os
    }
}

extension HashedNumbers {
    /// A run of a process is of one system and device. Without them the numbers are those that they always were.
    mutating func combine(os: String?, device: String?) {
        guard os != nil || device != nil else { return }
        hash.combine(os)
        hash.combine(device)
    }
}

extension String {
    /// Begins with a number, or is one as Alpine writes it: `v3.18`.
    fileprivate var isVersion: Bool { drop { $0 == "v" }.first?.isNumber ?? false }
}

// The system that this process runs on and the machine's model, from what the system says of itself. A container has the
// system of its image and the machine below it.

internal import Glibc
internal import StallModel

/// An operating system with its version, and a machine's model.
package struct MachineModel: Hashable, Sendable {
    /// `Debian GNU/Linux 12`.
    package var os: String?
    /// `ThinkPad X1`, as the firmware or the device tree names it; nil where neither can be read.
    package var device: String?

    /// Of this process: what two to five small files begin with.
    package static func current() -> MachineModel {
        current { ProcessLife.contents(of: $0) }
    }

    static func current(_ contents: (String) -> String?) -> MachineModel {
        let release = contents("/etc/os-release") ?? contents("/usr/lib/os-release")
        let model =
            contents("/sys/class/dmi/id/product_name").flatMap(name)
            ?? contents("/proc/device-tree/model").flatMap(name)
        return MachineModel(os: release.flatMap(system) ?? kernel(), device: model)
    }

    /// NAME and VERSION_ID of os-release(5). A release that rolls has no version.
    static func system(release: String) -> String? {
        var values: [Substring: String] = [:]
        for line in release.split(whereSeparator: \.isNewline) {
            let line = line.drop { $0 == " " || $0 == "\t" }
            guard let equals = line.firstIndex(of: "="), line.first != "#" else { continue }
            values[line[..<equals]] = unquoted(line[line.index(after: equals)...])
        }
        guard let system = values["NAME"].flatMap(name) else { return nil }
        return name([system, values["VERSION_ID"] ?? ""].joined(separator: " "))
    }

    /// As a shell would read it: quotes around the value, and a backslash before a character that it means something to.
    private static func unquoted(_ text: Substring) -> String {
        var value = ""
        var quote: Character?
        var isEscaped = false
        for character in text {
            if isEscaped {
                value.append(character)
                isEscaped = false
            } else if character == "\\", quote != "'" {
                isEscaped = true
            } else if character == quote {
                quote = nil
            } else if quote == nil, character == "\"" || character == "'" {
                quote = character
            } else {
                value.append(character)
            }
        }
        return value
    }

    /// `Linux 6.1`.
    private static func kernel() -> String? {
        var names = utsname()
        guard uname(&names) == 0 else { return nil }
        let (system, release) = (text(names.sysname), text(names.release))
        let version = release.split(separator: ".").prefix(2).joined(separator: ".")
        return name("\(system) \(version)")
    }

    private static func text<Bytes>(_ bytes: Bytes) -> String {
        withUnsafeBytes(of: bytes) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
    }

    /// One line without spaces at its ends and within a store's limit; nil without a character.
    private static func name(_ text: String) -> String? {
        let words = text.split { $0.isWhitespace || $0.unicodeScalars.contains { $0.value < 0x20 } }
        let name = words.joined(separator: " ").clipped(toBytes: ValueLimits.nameBytes)
        return name.isEmpty ? nil : name
    }
}

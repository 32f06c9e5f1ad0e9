// The user's settings file: defaults for --store, --app and --color, and where traces are shown. JSON, like the settings of an app; see
// docs/settings.md.

internal import Foundation
internal import Glibc

/// The defaults of the command line.
struct UserSettings: Equatable, Sendable {
    var store: String?
    var apps: [String] = []
    var color: ColorChoice?
    /// Address of a trace, with {trace} and {span} for the ids.
    var trace: String?

    /// No settings.
    init() {}

    static func path(_ environment: [String: String]) -> String {
        UserDirectories.configuration(environment) + "/stallwatch/stallctl.json"
    }

    /// The user's settings; read once. ``Stallctl/main()`` ends the program if the file is not valid.
    static let loaded = Result { () throws(UserSettingsError) in
        try UserSettings(environment: ProcessInfo.processInfo.environment)
    }

    static var current: UserSettings { (try? loaded.get()) ?? UserSettings() }

    /// Reads the file; there may be none.
    init(environment: [String: String]) throws(UserSettingsError) {
        self.init()
        let path = Self.path(environment)
        guard let bytes = FileManager.default.contents(atPath: path) else {
            // ENOTDIR is what a home directory such as /dev/null gives.
            if access(path, R_OK) == 0 || errno == ENOENT || errno == ENOTDIR { return }
            // A container's HOME may be root's while its user is another one: a directory that cannot be entered has no settings
            // of this user.
            var status = stat()
            if errno == EACCES, stat(path, &status) != 0 { return }
            throw UserSettingsError(
                path: path, line: nil, clause: "cannot be read: \(String(cString: strerror(errno)))"
            )
        }
        self = try UserSettings(
            Array(bytes), file: path, home: UserDirectories.home(environment))
    }

    /// - Parameters:
    ///   - file: The name in error messages.
    ///   - home: The directory that `~/` stands for at the beginning of the store's path.
    init(_ bytes: [UInt8], file: String, home: String) throws(UserSettingsError) {
        guard let text = String(validating: bytes, as: UTF8.self) else {
            throw UserSettingsError(path: file, line: nil, clause: "is not UTF-8 text")
        }
        var reader = SettingsReader(text, file: file)
        for (key, line, values) in try reader.members() {
            func one(_ expected: String) throws(UserSettingsError) -> String {
                guard values.count == 1, !values[0].isEmpty else {
                    throw UserSettingsError(
                        path: file, line: line, clause: "expected \(expected) for \"\(key)\"")
                }
                return values[0]
            }
            switch key {
            case "store":
                let path = try one("an absolute path, or one that begins with ~/,")
                guard path.hasPrefix("/") || path.hasPrefix("~/") else {
                    throw UserSettingsError(
                        path: file, line: line,
                        clause:
                            "expected an absolute path, or one that begins with ~/, for \"store\"; found '\(path)'"
                    )
                }
                store = path.hasPrefix("~/") ? home + path.dropFirst() : path
            case "app":
                apps = values
            case "color":
                let word = try one("auto, always or never")
                guard let choice = ColorChoice(rawValue: word) else {
                    throw UserSettingsError(
                        path: file, line: line,
                        clause: "expected auto, always or never for \"color\"; found '\(word)'")
                }
                color = choice
            case "trace":
                let text = try one("an address with {trace}")
                guard text.hasPrefix("https://") || text.hasPrefix("http://"),
                    text.contains("{trace}"), text.utf8.allSatisfy({ 0x21...0x7e ~= $0 })
                else {
                    throw UserSettingsError(
                        path: file, line: line,
                        clause:
                            "expected an address such as https://HOST/trace/{trace} for \"trace\"; found '\(text)'"
                    )
                }
                trace = text
            default:
                throw UserSettingsError(
                    path: file, line: line,
                    clause:
                        "expected \"store\", \"app\", \"color\" or \"trace\"; found \"\(key)\"")
            }
        }
    }
}

/// Why the settings file is not valid.
struct UserSettingsError: Error, Equatable, CustomStringConvertible {
    var path: String
    /// From 1; nil for the whole file.
    var line: Int?
    var clause: String

    var description: String {
        "\(path):" + (line.map { "\($0):" } ?? "") + " \(clause)"
    }
}

/// Reads a JSON object whose values are strings or lists of strings, and knows the line of each.
private struct SettingsReader {
    private var rest: Substring.UnicodeScalarView
    private var line = 1
    private let file: String

    init(_ text: String, file: String) {
        rest = text[...].unicodeScalars
        self.file = file
    }

    mutating func members() throws(UserSettingsError) -> [(
        key: String, line: Int, values: [String]
    )] {
        var members: [(key: String, line: Int, values: [String])] = []
        try take("{", or: "{ at the beginning")
        if !isNext("}") {
            repeat {
                let key = try string("a key in quotes")
                let keyLine = line
                try take(":", or: ": after \"\(key)\"")
                guard !members.contains(where: { $0.key == key }) else {
                    throw error("expected \"\(key)\" once")
                }
                members.append((key, keyLine, try values(of: key)))
            } while isNext(",")
            try take("}", or: ", or } after a value")
        }
        skipSpace()
        guard rest.isEmpty else { throw error("expected nothing after the last }") }
        return members
    }

    private mutating func values(of key: String) throws(UserSettingsError) -> [String] {
        guard isNext("[") else {
            return [try string("a string" + (key == "app" ? " or a list of strings" : ""))]
        }
        var values: [String] = []
        guard !isNext("]") else { return values }
        repeat { values.append(try string("a string in the list")) } while isNext(",")
        try take("]", or: ", or ] in the list")
        return values
    }

    /// **Source:** RFC 8259, section 7.
    private mutating func string(_ expected: String) throws(UserSettingsError) -> String {
        try take("\"", or: expected)
        var token = "\""
        var isEscaped = false
        while let scalar = rest.first, scalar != "\n" {
            rest.removeFirst()
            token.unicodeScalars.append(scalar)
            if scalar == "\"", !isEscaped {
                // Foundation knows the escapes.
                let read = try? JSONDecoder().decode([String].self, from: Data("[\(token)]".utf8))
                guard let read, read.count == 1 else {
                    throw error("expected a valid string; found \(token)")
                }
                return read[0]
            }
            isEscaped = scalar == "\\" && !isEscaped
        }
        throw error("expected a closing \"")
    }

    private mutating func take(
        _ scalar: Unicode.Scalar, or expected: String
    ) throws(UserSettingsError) {
        guard !isNext(scalar) else { return }
        let word = String(
            String.UnicodeScalarView(rest.prefix { !" \n\r\t,]}".unicodeScalars.contains($0) }))
        let found =
            rest.isEmpty ? "the end of the file" : "'\(word.isEmpty ? String(rest.first!) : word)'"
        throw error("expected \(expected); found \(found)")
    }

    private mutating func isNext(_ scalar: Unicode.Scalar) -> Bool {
        skipSpace()
        guard rest.first == scalar else { return false }
        rest.removeFirst()
        return true
    }

    private mutating func skipSpace() {
        while let scalar = rest.first, " \n\r\t".unicodeScalars.contains(scalar) {
            if scalar == "\n" { line += 1 }
            rest.removeFirst()
        }
    }

    private func error(_ clause: String) -> UserSettingsError {
        UserSettingsError(path: file, line: line, clause: clause)
    }
}

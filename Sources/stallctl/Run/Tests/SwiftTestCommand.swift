// Recognizes `swift test`, and adds the options with which it writes an event stream.
//
// Source: SwiftPM's `swift test --help-hidden`; Swift Testing, Documentation/ABI/JSON.md, EntryPoint.swift. Version 0 of
// the stream is the one that every version of Swift Testing with a stream can write.

internal import Foundation
internal import Glibc

/// A command that runs the tests of a package.
struct SwiftTestCommand: Equatable {
    /// The words before the options of `swift test`: `swift test`, `swift-test`.
    private let prefix: [String]
    private let options: [String]

    /// The names of the options; Swift before 6.3 has the experimental ones only, and 6.3 knows both.
    enum StreamOptions: CaseIterable {
        case standard, experimental

        var path: String {
            switch self {
            case .standard: "--event-stream-output-path"
            case .experimental: "--experimental-event-stream-output"
            }
        }

        var version: String {
            switch self {
            case .standard: "--event-stream-version"
            case .experimental: "--experimental-event-stream-version"
            }
        }
    }

    /// Nil for any other command, and for one of `swift test` that runs no tests.
    init?(_ command: [String]) {
        guard let program = command.first?.split(separator: "/").last else { return nil }
        switch program {
        case "swift-test": prefix = [command[0]]
        case "swift" where command.dropFirst().first == "test":
            prefix = Array(command.prefix(2))
        default: return nil
        }
        options = Array(command.dropFirst(prefix.count))
        if options.contains(where: Self.runsNoTests.contains) { return nil }
        if let first = options.first, ["list", "last", "help"].contains(first) { return nil }
    }

    private static let runsNoTests: Set = [
        "-l", "--list-tests", "-h", "-help", "--help", "--help-hidden", "--version",
        "--show-codecov-path", "--show-code-coverage-path", "--show-coverage-path",
        "--generate-linuxmain",
    ]

    /// The stream's file that the command names already.
    var streamPath: String? {
        StreamOptions.allCases.lazy.compactMap { value(of: $0.path) }.first
    }

    private func value(of name: String) -> String? {
        for (index, word) in options.enumerated().reversed() {
            if word == name, index + 1 < options.count { return options[index + 1] }
            if word.hasPrefix(name + "=") { return String(word.dropFirst(name.count + 1)) }
        }
        return nil
    }

    /// The folder that the command changes to, from which the stream's path counts.
    var packagePath: String? { value(of: "--package-path") }

    /// The command with a stream to this file.
    func command(streamingTo path: String, _ names: StreamOptions = .standard) -> [String] {
        let isVersioned = options.contains { word in
            StreamOptions.allCases.contains { word.hasPrefix($0.version) }
        }
        return prefix + [names.path, path] + (isVersioned ? [] : [names.version, "0"]) + options
    }

    /// The options of this Swift; nil if it has none. Behind a script or a version manager's program its version is not
    /// known.
    static func streamOptions(of program: ProgramFile) -> StreamOptions? {
        guard let real = realpath(program.path, nil) else { return .experimental }
        defer { free(real) }
        let path = String(cString: real)
        let folder = String(path[..<(path.lastIndex(of: "/") ?? path.startIndex)])
        guard access(folder + "/swift-package", F_OK) == 0 else { return .experimental }
        #if arch(x86_64)
        let machine = "x86_64"
        #else
        let machine = "aarch64"
        #endif
        let interface =
            folder
            + "/../lib/swift/linux/Testing.swiftmodule/\(machine)-unknown-linux-gnu.swiftinterface"
        // The compiler that made it is named in the second line. An older Swift brings no Swift Testing.
        guard let file = FileHandle(forReadingAtPath: interface) else { return nil }
        defer { try? file.close() }
        let head = (try? file.read(upToCount: 512)) ?? Data()
        return streamOptions(ofInterface: String(decoding: head, as: UTF8.self))
    }

    static func streamOptions(ofInterface head: String) -> StreamOptions {
        guard let match = head.firstMatch(of: /Swift version (\d{1,4})\.(\d{1,4})/),
            let major = Int(match.1), let minor = Int(match.2)
        else { return .experimental }
        return (major, minor) >= (6, 3) ? .standard : .experimental
    }
}

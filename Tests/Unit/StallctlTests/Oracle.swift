import Foundation
import TestSupport
import Testing

/// Programs that check ours: they read what we wrote.
enum Oracle {
    static let hasPython = (try? python("print(1)", input: "")) == "1\n"

    /// What the script prints when it is given `input`.
    static func python(_ script: String, input: String) throws -> String {
        let arguments = ["python3", "-X", "utf8", "-c", script]
        let result = try run("/usr/bin/env", arguments, input: Data(input.utf8))
        guard result.status == 0 else { throw OracleFailure(message: result.errors) }
        return result.output
    }

    /// Runs a program of `scripts` on the stallctl that was built beside the tests.
    static func runScript(_ name: String, _ arguments: [String]) throws -> ProgramResult {
        let root = Repository.root
        return try run(
            root.appending(path: "scripts/\(name)").path, arguments,
            environment: [
                "STALLCTL": BuiltProgram.directory.appending(path: "stallctl").path,
                "PATH": ProcessInfo.processInfo.environment["PATH"] ?? "/usr/bin:/bin",
            ], directory: root)
    }

    /// Runs the stallctl that was built beside the tests, in UTC.
    static func stallctl(_ arguments: [String], in directory: URL) throws -> ProgramResult {
        try run(
            BuiltProgram.directory.appending(path: "stallctl").path, arguments,
            environment: ["TZ": "UTC", "HOME": directory.path], directory: directory)
    }

    /// JSON objects, one per line.
    static func objects(_ text: String) throws -> [[String: Any]] {
        try text.split(separator: "\n").map {
            try #require(try JSONSerialization.jsonObject(with: Data($0.utf8)) as? [String: Any])
        }
    }

    /// Runs a program to its end. Files, not pipes: nothing to drain while it runs.
    static func run(
        _ program: String, _ arguments: [String], input: Data = Data(),
        environment: [String: String]? = nil, directory: URL? = nil
    ) throws -> ProgramResult {
        try withTemporaryDirectory { folder in
            let files = ["in", "out", "err"].map { folder.appending(path: $0) }
            try input.write(to: files[0])
            for file in files.dropFirst() { try Data().write(to: file) }
            let process = Process()
            process.executableURL = URL(filePath: program)
            process.arguments = arguments
            if let environment { process.environment = environment }
            if let directory { process.currentDirectoryURL = directory }
            process.standardInput = try FileHandle(forReadingFrom: files[0])
            process.standardOutput = try FileHandle(forWritingTo: files[1])
            process.standardError = try FileHandle(forWritingTo: files[2])
            try process.start()
            process.waitUntilExit()
            let texts = try files.dropFirst().map {
                String(decoding: try Data(contentsOf: $0), as: UTF8.self)
            }
            return ProgramResult(
                status: process.terminationStatus, output: texts[0], errors: texts[1])
        }
    }
}

struct ProgramResult {
    var status: Int32
    var output: String
    var errors: String
}

struct OracleFailure: Error {
    var message: String
}

import Foundation

/// Programs that check ours: they read what we wrote.
enum Oracle {
    static let hasPython = (try? python("print(1)", input: "")) == "1\n"

    /// What the script prints when it is given `input`.
    static func python(_ script: String, input: String) throws -> String {
        let result = try run(
            "/usr/bin/env", ["python3", "-X", "utf8", "-c", script], input: Data(input.utf8))
        guard result.status == 0 else { throw OracleFailure(message: result.errors) }
        return result.output
    }

    /// Runs a program to its end.
    static func run(
        _ program: String, _ arguments: [String], input: Data = Data(),
        environment: [String: String]? = nil,
        directory: URL? = nil
    ) throws -> (status: Int32, output: String, errors: String) {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: program)
        process.arguments = arguments
        if let environment { process.environment = environment }
        if let directory { process.currentDirectoryURL = directory }
        // Files, not pipes: nothing to drain while it runs, and nothing to deadlock on.
        let folder = try TemporaryFolder()
        let files = ["in", "out", "err"].map { folder.url.appendingPathComponent($0) }
        try input.write(to: files[0])
        for file in files.dropFirst() { try Data().write(to: file) }
        process.standardInput = try FileHandle(forReadingFrom: files[0])
        process.standardOutput = try FileHandle(forWritingTo: files[1])
        process.standardError = try FileHandle(forWritingTo: files[2])
        try process.run()
        process.waitUntilExit()
        let texts = try files.dropFirst().map {
            String(decoding: try Data(contentsOf: $0), as: UTF8.self)
        }
        return (process.terminationStatus, texts[0], texts[1])
    }
}

struct OracleFailure: Error {
    var message: String
}

/// A folder that is removed with its owner.
final class TemporaryFolder {
    let url: URL

    init() throws {
        url = FileManager.default.temporaryDirectory.appendingPathComponent(
            "stallctl-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
    }

    deinit { try? FileManager.default.removeItem(at: url) }
}

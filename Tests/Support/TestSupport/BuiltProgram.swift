// Runs programs of this package in processes of their own.

package import Foundation

/// A program that `swift build` has put beside the tests, running.
package final class BuiltProgram {
    private let process = Process()
    private let output = Pipe()
    private let errors: URL
    private var unread = ""

    /// Starts the program.
    ///
    /// - Parameters:
    ///   - environment: Added to the test's own environment.
    ///   - input: What it reads; nil for the test's own.
    ///   - directory: Where it lies, if not beside the tests.
    package init(
        _ name: String, _ arguments: [String] = [], environment: [String: String] = [:],
        input: FileHandle? = nil, in directory: URL = BuiltProgram.directory
    ) throws {
        errors = FileManager.default.temporaryDirectory.appending(
            path: "stderr-\(UUID().uuidString)")
        _ = FileManager.default.createFile(atPath: errors.path, contents: nil)
        process.executableURL = directory.appending(path: name)
        process.arguments = arguments
        process.environment = ProcessInfo.processInfo.environment.merging(environment) { $1 }
        if let input { process.standardInput = input }
        process.standardOutput = output
        process.standardError = try FileHandle(forWritingTo: errors)
        try process.start()
    }

    deinit {
        if process.isRunning { kill(process.processIdentifier, SIGKILL) }
        try? FileManager.default.removeItem(at: errors)
    }

    package var pid: Int32 { process.processIdentifier }

    /// The next line that the program prints, without its newline; nil at the end of its output.
    package func nextLine() -> String? {
        while true {
            if let newline = unread.firstIndex(of: "\n") {
                defer { unread = String(unread[unread.index(after: newline)...]) }
                return String(unread[..<newline])
            }
            let data = output.fileHandleForReading.availableData
            if data.isEmpty {
                defer { unread = "" }
                return unread.isEmpty ? nil : unread
            }
            unread += String(decoding: data, as: UTF8.self)
        }
    }

    /// Reads the rest of the output and waits for the end.
    package func finish() -> (status: Int32, output: String, errors: String) {
        let rest =
            unread
            + String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
        process.waitUntilExit()
        let errors = (try? String(contentsOf: errors, encoding: .utf8)) ?? ""
        return (process.terminationStatus, rest, errors)
    }

    /// Kills it as an operator would: nothing in it runs any more.
    package func killNow() {
        kill(process.processIdentifier, SIGKILL)
        process.waitUntilExit()
    }

    /// Where the build puts its products: beside the running test bundle.
    package static var directory: URL {
        let link = "/proc/self/exe"
        let executable = (try? FileManager.default.destinationOfSymbolicLink(atPath: link)) ?? ""
        // The test runner of Swift Testing may be a helper of the toolchain that loads the bundle by its path.
        let bundle = CommandLine.arguments.first { $0.hasSuffix(".xctest") } ?? executable
        return URL(filePath: bundle).deletingLastPathComponent()
    }
}

/// A directory that is removed with its contents at the end of `body`.
package func withTemporaryDirectory<Result>(_ body: (URL) throws -> Result) throws -> Result {
    let directory = FileManager.default.temporaryDirectory.appending(
        path: "stallwatch-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: directory) }
    return try body(directory)
}

/// Retries until there is a result, or `limit` seconds have passed.
package func eventually<Result>(within limit: Double = 30, _ body: () throws -> Result?) rethrows
    -> Result?
{
    let deadline = Date(timeIntervalSinceNow: limit)
    while Date() < deadline {
        if let result = try body() { return result }
        usleep(20_000)
    }
    return nil
}

// The StoreFaults program as a child, killed where the test wants it to be.

import Foundation
import TestSupport
import Testing

package struct ChildProcess {
    private let process = Process()
    private let output = Pipe()

    /// Starts StoreFaults, which is built beside the tests.
    package init(_ arguments: String...) throws { try self.init(arguments) }

    package init(_ arguments: [String]) throws {
        let tests = URL(
            filePath: try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe"))
        process.executableURL = tests.deletingLastPathComponent().appending(path: "StoreFaults")
        process.arguments = arguments
        process.standardOutput = output
        try process.start()
    }

    /// Reads this many lines, which the child writes one at a time.
    package func read(lines count: Int) throws -> [String] {
        var text = Data()
        while text.count(where: { $0 == UInt8(ascii: "\n") }) < count {
            let more = output.fileHandleForReading.availableData
            if more.isEmpty { break }
            text += more
        }
        return String(decoding: text, as: UTF8.self).split(separator: "\n").map(String.init)
    }

    /// Reads until `count` lines have come, kills the child, and answers every line that it wrote
    /// in whole.
    package func killAfter(lines count: Int) throws -> [String] {
        var text = Data()
        while text.count(where: { $0 == UInt8(ascii: "\n") }) < count {
            let more = output.fileHandleForReading.availableData
            if more.isEmpty { break }
            text += more
        }
        kill(process.processIdentifier, SIGKILL)
        text += try output.fileHandleForReading.readToEnd() ?? Data()
        process.waitUntilExit()
        let lines = String(decoding: text, as: UTF8.self).split(
            separator: "\n", omittingEmptySubsequences: false)
        return lines.dropLast().map(String.init)
    }

    /// Waits for its end; its lines.
    package func finish() throws -> [String] {
        let text = try output.fileHandleForReading.readToEnd() ?? Data()
        process.waitUntilExit()
        #expect(process.terminationStatus == 0)
        return String(decoding: text, as: UTF8.self).split(separator: "\n").map(String.init)
    }
}

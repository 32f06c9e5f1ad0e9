// This program once more, as a process that writes or ingests, to be killed.

import Foundation
import Glibc

struct Child {
    private let process = Process()
    private let output = Pipe()

    init(_ arguments: String...) throws {
        process.executableURL = URL(filePath: "/proc/self/exe").resolvingSymlinksInPath()
        process.arguments = arguments
        process.standardOutput = output
        try process.run()
    }

    /// How a child ended that was not killed from here.
    struct End {
        /// What it printed.
        var lines: [String]
        /// The signal that ended it; nil if it ended itself.
        var signal: CInt?
        /// Its exit status if it ended itself.
        var status: CInt
    }

    /// Reads that many lines, waits that many microseconds, and kills. Answers every line that was
    /// whole.
    func kill(afterLines count: Int, and delay: UInt32) -> [String] {
        var text = read(lines: count)
        usleep(delay)
        Foundation.kill(process.processIdentifier, SIGKILL)
        text += (try? output.fileHandleForReading.readToEnd()) ?? Data()
        process.waitUntilExit()
        return wholeLines(text)
    }

    /// Waits until it has printed a line.
    func awaitLine() { _ = read(lines: 1) }

    /// Waits until it ends.
    func end() -> End {
        let text = (try? output.fileHandleForReading.readToEnd()) ?? Data()
        process.waitUntilExit()
        let (reason, status) = (process.terminationReason, process.terminationStatus)
        return End(
            lines: wholeLines(text), signal: reason == .uncaughtSignal ? status : nil,
            status: reason == .uncaughtSignal ? 0 : status)
    }

    private func read(lines count: Int) -> Data {
        var text = Data()
        while text.count(where: { $0 == UInt8(ascii: "\n") }) < count {
            let more = output.fileHandleForReading.availableData
            if more.isEmpty { break }
            text += more
        }
        return text
    }

    private func wholeLines(_ text: Data) -> [String] {
        String(decoding: text, as: UTF8.self)
            .split(separator: "\n", omittingEmptySubsequences: false).dropLast().map(String.init)
    }
}

/// The reports that writers acknowledged, by id, and whether they had ended.
struct Acknowledged {
    private(set) var reports: [String: Bool] = [:]

    /// Notes what a writer printed: `<id> open` or `<id> ended`.
    mutating func note(_ lines: [String]) {
        for line in lines {
            let words = line.split(separator: " ").map(String.init)
            guard words.count == 2, words[0].count == 32 else { continue }
            reports[words[0]] = reports[words[0]] == true || words[1] == "ended"
        }
    }
}

/// Runs `body` with a directory of its own, which is deleted at the end.
func withFaultDirectory<Answer>(_ body: (_ directory: String) throws -> Answer) throws -> Answer {
    let directory = NSTemporaryDirectory() + "store-faults-\(UUID().uuidString)"
    try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(atPath: directory) }
    return try body(directory)
}

import Foundation
import TestSupport
import Testing

/// Goal: `make faults` in short finds nothing, and finds what is broken on purpose.
/// Method: its program without random kills, and with fewer that are not random. With SABOTAGE=1 writers acknowledge
/// reports before they write them.
@Suite struct FaultToolCrashTests {
    @Test func `kills, locks, missing descriptors and failing disks lose nothing`() throws {
        let line = try lastLine(environment: [:])
        #expect(line.hasSuffix(" lost=0 duplicate=0 broken=0"), "\(line)")
    }

    @Test func `a report that was acknowledged too early is lost`() throws {
        let line = try lastLine(environment: ["SABOTAGE": "1"])
        #expect(line.hasPrefix("faults rounds=") && !line.contains(" lost=0 "), "\(line)")
    }

    private func lastLine(environment: [String: String]) throws -> String {
        let tests = URL(
            filePath: try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe"))
        let (process, output) = (Process(), Pipe())
        process.executableURL = tests.deletingLastPathComponent().appending(path: "StoreFaults")
        process.arguments = ["rounds", "0"]
        process.environment = ProcessInfo.processInfo.environment.merging(environment) { $1 }
        process.standardOutput = output
        try process.start()
        let text = try output.fileHandleForReading.readToEnd() ?? Data()
        process.waitUntilExit()
        return String(decoding: text, as: UTF8.self).split(separator: "\n").last.map(String.init)
            ?? ""
    }
}

import Foundation
import TestSupport
import Testing

/// Goal: the agent does not harm its host, and counts what it misses; a forked child can have its own agent.
/// Method: each kind of play once, as `make host-safety` runs them for ten minutes. With SABOTAGE=1 an old fault is
/// restored.
@Suite struct HostSafetyTests {
    private func lastLine(
        of name: String = "host-safety", _ arguments: [String], environment: [String: String] = [:]
    ) throws -> (line: String, output: String) {
        let program = try BuiltProgram(name, arguments, environment: environment)
        let (_, output, errors) = program.finish()
        return (output.split(separator: "\n").last.map(String.init) ?? "", output + errors)
    }

    @Test func `no play harms its host`() throws {
        let (line, output) = try lastLine(["run", "1"])
        #expect(
            line.contains(
                " crashed=0 hung=0 successors_killed=0 blind=0 stop_late=0 descriptors_touched=0 "
                    + "app_open_failed=0 exit_late=0 eintr="), "\(output)")
    }

    @Test func `an old fault is seen`() throws {
        let (line, output) = try lastLine(["run", "1", "exec"], environment: ["SABOTAGE": "1"])
        #expect(
            line.contains("successors_killed=") && !line.contains("successors_killed=0"),
            "\(output)")
    }

    @Test func `a call that is not reported is seen`() throws {
        for (sabotage, isBlind) in [("", false), ("1", true)] {
            let (line, output) = try lastLine(
                of: "host-safety-blocking", ["run", "1", "calls-under-locks"],
                environment: sabotage.isEmpty ? [:] : ["SABOTAGE": sabotage])
            #expect(line.contains(" blind=") && !line.contains(" blind=0") == isBlind, "\(output)")
        }
    }

    @Test(.enabled(if: access("/usr/bin/strace", X_OK) == 0))
    func `the system calls are the documented ones, all made by start`() throws {
        let process = Process()
        let output = Pipe()
        process.executableURL = Repository.root.appending(path: "scripts/system-calls")
        process.arguments = [BuiltProgram.directory.appending(path: "host-safety").path]
        process.standardOutput = output
        try process.start()
        let text = String(
            decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
        process.waitUntilExit()
        #expect(
            process.terminationStatus == 0 && text.contains(" unlisted=0 not_at_start=0"), "\(text)"
        )
    }
}

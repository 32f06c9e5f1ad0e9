import Foundation
import TestSupport
import Testing

/// Goal: nothing that a file holds ends, hangs or ruins what reads it.
/// Method: `make hostile` with a few inputs of each kind, among good stores, each of which some commands read. With
/// SABOTAGE=1 a roll-up is changed, and two of the reading commands are programs that die and that refuse.
@Suite struct HostileTests {
    private func lastLine(environment: [String: String] = [:]) throws -> (String, String) {
        let script = try BuiltProgram(
            "hostile", ["--short"],
            environment: environment.merging(["HOSTILE_BIN": BuiltProgram.directory.path]) { $1 },
            in: scripts)
        let (_, output, errors) = script.finish()
        return (output.split(separator: "\n").last.map(String.init) ?? "", output + errors)
    }

    @Test func `no input crashes, hangs or poisons anything`() throws {
        let (line, output) = try lastLine()
        let well = "crashed=0 hung=0 poisoned=0 good_lost=0 host_died=0"
        #expect(line.contains(well), "\(output)")
        let size = try #require(line.firstMatch(of: /inputs=(\d+).* max_mb=(\d+)/), "\(output)")
        #expect(Int(size.1)! > 150 && Int(size.2)! <= 200, "\(output)")
        let reads = try #require(line.firstMatch(of: /reads=(\d+) reads_mb=(\d+)/), "\(output)")
        #expect(Int(reads.1)! > 500 && Int(reads.2)! <= 350, "\(output)")
        #expect(line.hasSuffix(" refused=0"), "\(output)")
    }

    @Test func `a poisoned store is seen`() throws {
        let (line, output) = try lastLine(environment: ["SABOTAGE": "1"])
        #expect(line.contains(/poisoned=[1-9]/), "\(output)")
        // And a reading command that dies, and one that does not answer.
        #expect(line.contains(/crashed=1\b/) && line.hasSuffix(" refused=1"), "\(output)")
    }

    @Test func `inputs that cannot be written end it`() throws {
        let script = try BuiltProgram(
            "bash",
            ["-c", "ulimit -f 2000; exec '\(scripts.appending(path: "hostile").path)' --short"],
            environment: ["HOSTILE_BIN": BuiltProgram.directory.path],
            in: URL(filePath: "/bin"))
        let (status, _, errors) = script.finish()
        #expect(status == 1)
        #expect(errors.contains("hostile: the inputs could not be written"), "\(errors)")
    }
}

/// Goal: every number that stallctl says is true of the stores that it was given.
/// Method: `make truth-totals` with eight stores and fewer questions. With SABOTAGE=1 a stored row is changed.
@Suite struct TotalsTruthTests {
    private func lastLine(_ arguments: [String]) throws -> (String, String) {
        try withTemporaryDirectory { directory in
            let script = try BuiltProgram(
                "truth-totals", ["--stores", "8", "--quick", "--forks"] + arguments,
                environment: [
                    "STALLCTL": BuiltProgram.directory.appending(path: "stallctl").path,
                    "TRUTH_SCRATCH": directory.appending(path: "totals").path,
                ], in: scripts)
            let (_, output, errors) = script.finish()
            return (output.split(separator: "\n").last.map(String.init) ?? "", output + errors)
        }
    }

    @Test func `all numbers add up`() throws {
        let (line, output) = try lastLine([])
        let counts = try #require(
            line.firstMatch(of: /truth totals numbers=(\d+) differing=0 removed=(\d+) lost=0$/),
            "\(output)")
        #expect(Int(counts.1)! > 5000 && Int(counts.2)! > 10, "\(output)")
    }

    @Test func `a changed row is seen`() throws {
        let (line, output) = try lastLine(["--sabotage"])
        #expect(line.contains(/differing=[1-9].* lost=[1-9]/), "\(output)")
    }
}

private var scripts: URL { Repository.root.appending(path: "scripts") }

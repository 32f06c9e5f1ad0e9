import CCaptureTesting
import Foundation
import TestSupport
import Testing

/// Goal: `stallctl doctor` finds a machine good that is, and says what a sandbox takes away.
/// Method: the command in this process's surroundings, and below a filter of system calls.
@Suite(.serialized) struct DoctorCommandTests {
    struct Row: Decodable {
        var subject: String
        var verdict: String
        var text: String
        var detail: String?
    }

    static func rows(
        _ options: [String] = [], environment: [String: String] = [:]
    ) throws -> (status: CInt, rows: [Row]) {
        // `programs` needs the objects that `stallctl run` loads.
        let built = Result { try RunCommandTests.built.get() }
        _ = try built.get()
        let played = try BuiltProgram(
            "stallctl", ["doctor", "--json"] + options, environment: environment
        ).finish()
        let rows = try played.output.split(separator: "\n").map {
            try JSONDecoder().decode(Row.self, from: Data($0.utf8))
        }
        return (played.status, rows)
    }

    /// Durations and causes depend on the CPU that the stalls get, and so does all where the machine is busy with other tests.
    static func failures(_ rows: [Row]) -> [String] {
        rows.filter {
            $0.verdict != "works" && !["machine", "durations", "causes"].contains($0.subject)
                && $0.detail?.contains("overloaded") != true
        }.map(\.subject)
    }

    @Test func `everything works here`() throws {
        let (_, rows) = try Self.rows(["--", "/bin/ls"])
        #expect(Self.failures(rows) == [], "\(rows)")
        #expect(rows.count(where: { $0.subject != "machine" }) == 15)
    }

    /// The signal comes as soon as there is a directory.
    @Test(arguments: 1...8) func `a signal ends it, and leaves no directory`(_: Int) throws {
        try withTemporaryDirectory { directory in
            func entries() throws -> [String] {
                try FileManager.default.contentsOfDirectory(atPath: directory.path)
            }
            let doctor = try BuiltProgram(
                "stallctl", ["doctor"], environment: ["TMPDIR": directory.path])
            while try entries().isEmpty {}
            kill(doctor.pid, SIGTERM)
            #expect(doctor.finish().status == SIGTERM)
            #expect(try entries() == [])
        }
    }

    /// Tests/Fixtures/LayoutFixture moves what the agent knows of the C library's locks and of Dispatch's queues.
    @Test func `a part whose layout is not known is off, and the others go on`() throws {
        try withTemporaryDirectory { directory in
            let shim = directory.appending(path: "moved.so").path
            let source = Repository.root.appending(path: "Tests/Fixtures/LayoutFixture/moved.c")
                .path
            let compiled = try Oracle.run(
                "/usr/bin/env", ["clang", "-O1", "-fPIC", "-shared", source, "-o", shim],
                environment: ProcessInfo.processInfo.environment)
            try #require(compiled.status == 0, "\(compiled.errors)")
            let (status, rows) = try Self.rows(environment: ["LD_PRELOAD": shim])
            #expect(Set(Self.failures(rows)) == ["holders", "queues", "agent"], "\(rows)")
            #expect(rows.first { $0.subject == "holders" }?.detail == "no holder is named")
            let said = rows.filter { $0.subject == "agent" }.map(\.text)
            for name in ["mutex", "rwlock", "Dispatch queue"] {
                #expect(
                    said.contains { $0.contains("\(name) has a layout that is not known") },
                    "\(said)")
            }
            #expect(status == 1)
        }
    }

    /// 310: process_vm_readv; 297: rt_tgsigqueueinfo. x86-64's numbers.
    #if arch(x86_64)
    @Test func `without process_vm_readv all works, more slowly`() async {
        await #expect(processExitsWith: .success) {
            try #require(testing_forbid_system_call(310) == 0)
            let (status, rows) = try Self.rows()
            #expect(Self.failures(rows) == ["agent"], "\(rows)")
            let line = rows.first { $0.subject == "agent" }?.text
            #expect(line?.contains("process_vm_readv is refused") == true)
            #expect(status == 1)
        }
    }

    @Test func `without rt_tgsigqueueinfo running threads have no stack`() async {
        await #expect(processExitsWith: .success) {
            try #require(testing_forbid_system_call(297) == 0)
            let (status, rows) = try Self.rows()
            #expect(Self.failures(rows) == ["running", "agent"], "\(rows)")
            #expect(status == 1)
        }
    }
    #endif
}

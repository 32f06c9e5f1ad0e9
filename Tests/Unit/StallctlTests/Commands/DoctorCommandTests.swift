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
    }

    static func rows(_ options: [String] = []) throws -> (status: CInt, rows: [Row]) {
        // `programs` needs the objects that `stallctl run` loads.
        let built = Result { try RunCommandTests.built.get() }
        _ = try built.get()
        let played = try BuiltProgram("stallctl", ["doctor", "--json"] + options).finish()
        let rows = try played.output.split(separator: "\n").map {
            try JSONDecoder().decode(Row.self, from: Data($0.utf8))
        }
        return (played.status, rows)
    }

    /// Durations and causes depend on the CPU that the stalls get.
    static func failures(_ rows: [Row]) -> [String] {
        rows.filter {
            $0.verdict != "works" && !["machine", "durations", "causes"].contains($0.subject)
        }.map(\.subject)
    }

    @Test func `everything works here`() throws {
        let (_, rows) = try Self.rows(["--", "/bin/ls"])
        #expect(Self.failures(rows) == [], "\(rows)")
        #expect(rows.count(where: { $0.subject != "machine" }) == 14)
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

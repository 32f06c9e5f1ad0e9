import Glibc
import Testing

@testable import StallAgent
@testable import StallDoctor

/// Goal: what is missing on a machine is said, with what is lost and what mends it.
/// Method: made-up machines.
@Suite struct SurroundingsTests {
    static func lacks(
        unreadable: [String: CInt] = [:], unwritable: [String: CInt] = [:], yama: String? = "1",
        _ environment: [String: String] = [:]
    ) -> [Lack] {
        Surroundings(
            readError: { unreadable[$0] ?? 0 }, createError: { unwritable[$0] ?? 0 },
            line: { $0.hasSuffix("ptrace_scope") ? yama : nil }
        ).lacks(storeFolder: "/var/lib/app", environment)
    }

    @Test func `nothing is missing on a usual machine`() {
        #expect(Self.lacks() == [])
        #expect(Self.lacks(yama: nil) == [])
        #expect(Self.lacks(["STALLWATCH_DISABLED": "0"]) == [])
    }

    @Test func `each thing that is missing is named`() {
        let cases: [([Lack], String)] = [
            (
                Self.lacks(unreadable: ["/proc/thread-self/syscall": ENOENT]),
                "/proc/thread-self/syscall: No such file or directory"
            ),
            (Self.lacks(unwritable: ["/dev/shm": EROFS]), "/dev/shm: Read-only file system"),
            (Self.lacks(unwritable: ["/var/lib/app": EACCES]), "/var/lib/app: Permission denied"),
            (Self.lacks(yama: "2"), "/proc/sys/kernel/yama/ptrace_scope is 2"),
            (Self.lacks(["STALLWATCH_DISABLED": "1"]), "STALLWATCH_DISABLED is 1"),
        ]
        for (lacks, what) in cases { #expect(lacks.map(\.what) == [what]) }
    }

    @Test func `another kernel is advised only where the file is missing`() {
        func remedy(_ error: CInt) -> String? {
            Self.lacks(unreadable: ["/proc/thread-self/syscall": error])[0].remedy
        }
        #expect(remedy(ENOENT)?.contains("gVisor") == true)
        #expect(remedy(EACCES) == nil)
    }

    @Test func `the machine of this test is looked at as it is`() {
        // /proc/self/mem of the first page: EIO; a folder that is none: ENOENT.
        let here = Surroundings.current
        #expect(here.readError("/proc/self/stat") == 0)
        #expect(here.readError("/nonexistent") == ENOENT)
        #expect(here.createError("/nonexistent") == ENOENT)
        #expect(here.line("/proc/sys/kernel/ostype") == "Linux")
    }
}

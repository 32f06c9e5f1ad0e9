import Foundation
import Glibc
import TestSupport
import Testing

@testable import stallctl

/// Goal: `run` and `doctor` work where `/tmp` cannot be written.
/// Method: directories that are there and others that are not.
@Suite struct ScratchFolderTests {
    @Test func `the first directory that takes it is used`() throws {
        try withTemporaryDirectory { directory in
            let path = directory.path
            let first = try ScratchFolder.make(
                named: "x", orIn: ["/nonexistent"], temporary: ["/proc/none", path + "/"])
            #expect(first.hasPrefix(path + "/x-"))
            let last = try ScratchFolder.make(named: "x", orIn: [path], temporary: ["/nonexistent"])
            #expect(last.hasPrefix(path + "/x-") && last != first)
            var isDirectory: ObjCBool = false
            #expect(FileManager.default.fileExists(atPath: last, isDirectory: &isDirectory))
            #expect(isDirectory.boolValue)
        }
    }

    @Test func `without a temporary directory another one is used, and one that is given is kept`()
        async
    {
        await #expect(processExitsWith: .success) {
            unsetenv("TMPDIR")
            ScratchFolder.provideTemporaryDirectory(in: ["/tmp"])
            #expect(getenv("TMPDIR") == nil)
            ScratchFolder.provideTemporaryDirectory(in: ["/nonexistent", "/dev/shm"])
            #expect(getenv("TMPDIR").map { String(cString: $0) } == "/dev/shm")
            ScratchFolder.provideTemporaryDirectory(in: ["/var/tmp"])
            #expect(getenv("TMPDIR").map { String(cString: $0) } == "/dev/shm")
        }
    }

    @Test func `without one, each is named with its error`() {
        let failure = #expect(throws: ScratchFolder.Failure.self) {
            try ScratchFolder.make(named: "x", orIn: [], temporary: ["/nonexistent", "/dev/null"])
        }
        #expect(
            failure?.reason == "/nonexistent: No such file or directory; /dev/null: Not a directory"
        )
    }
}

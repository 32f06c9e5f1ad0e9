import CLinux
import Glibc
import Testing

/// Goal: only the kernel's text says that a thread waits: the file's number may be another file's by now.
/// Method: texts in files without names, read as `/proc/self/task/TID/syscall` is.
@Suite struct SystemCallTextTests {
    static let wait = Int(SYS_epoll_pwait)

    static func answer(_ text: String) -> Int32 {
        let file = tmpfile()!
        defer { fclose(file) }
        let bytes = Array(text.utf8)
        #expect(write(fileno(file), bytes, bytes.count) == bytes.count)
        return stall_task_file_shows_wait(fileno(file))
    }

    @Test(
        arguments: [
            ("\(wait) 0x5 0x7f00 0x20 0xffffffff 0x0 0x8 0x7ffc 0x7f01\n", 1), ("441 0x5 0x0", 1),
            ("0 0x3 0x7ffc 0x100 0x0 0x0 0x0 0x7ffc 0x7f01\n", 0), ("-1 0x7ffc 0x7f01\n", 0),
            ("running\n", 0),
        ] as [(String, Int32)])
    func `the kernel's text is understood`(text: String, answer: Int32) {
        #expect(Self.answer(text) == answer)
    }

    /// Some have the number of a wait after they overflow 64 or 32 bits.
    @Test(
        arguments: [
            "", "\n", "-", "- ", " \(wait) 0x5", "+\(wait) 0x5", "\(wait)", "\(wait)\n",
            "\(wait)x 0x5",
            "-\(wait) 0x5", "-2 0x0", "\(1 << 32 | wait) 0x5", "99999999999999999999999999999999",
            "\(UInt64.max) 0x5", "18446744073709551897 0x5", "\u{0}\(wait) 0x5", "0x119 0x5",
            "runnin",
            "running or not", "{\"threshold_ms\": 250}",
        ])
    func `any other text is no answer`(text: String) {
        #expect(Self.answer(text) == -1)
    }
}

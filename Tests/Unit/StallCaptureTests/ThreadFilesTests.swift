import CLinux
import Glibc
import Testing

/// Goal: a watched thread costs its app two descriptors, and no reading is of another thread.
/// Method: the test's own thread is read, as itself and as one that started at another time.
@Suite struct ThreadFilesTests {
    /// Reads each file once. Returns the errnos.
    private func readAll(_ files: UnsafeMutablePointer<stall_thread_files>) -> [Int32] {
        var text = [CChar](repeating: 0, count: 4096)
        return (0..<UInt8(STALL_THREAD_FILE_COUNT.rawValue)).map {
            stall_thread_files_read(files, stall_thread_file(rawValue: $0), &text, text.count)
        }
    }

    private func kept(_ files: UnsafeMutablePointer<stall_thread_files>) -> [Bool] {
        withUnsafeBytes(of: files.pointee.numbers) {
            $0.bindMemory(to: Int32.self).map { $0 >= 0 }
        }
    }

    @Test func `of a watched thread, syscall and schedstat are kept open and nothing else`() throws
    {
        let files = try #require(stall_thread_files_create(stall_gettid(), 0))
        defer { stall_thread_files_release(files) }
        #expect(readAll(files) == [0, 0, 0, 0, 0])
        #expect(readAll(files) == [0, 0, 0, 0, 0])
        #expect(kept(files) == [true, false, false, true, false])
    }

    @Test func `of a visited thread nothing is kept open`() {
        var files = stall_thread_files()
        stall_thread_files_visit(&files, stall_gettid())
        defer { stall_thread_files_close(&files) }
        // syscall is only available to a registered thread
        #expect(readAll(&files) == [ENOENT, 0, 0, 0, 0])
        #expect(kept(&files) == [false, false, false, false, false])
    }

    @Test func `a file that was opened for one reading is discarded if it is another thread's`() {
        var files = stall_thread_files()
        stall_thread_files_visit(&files, stall_gettid())
        defer { stall_thread_files_close(&files) }
        files.start_ticks = 1
        #expect(readAll(&files) == [ENOENT, ESRCH, ESRCH, ESRCH, ESRCH])
    }
}

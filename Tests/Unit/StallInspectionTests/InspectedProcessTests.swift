import Foundation
import StallCause
import StallModel
import TestSupport
import Testing

@testable import StallInspection

/// Goal: threads of another process are read where they are, and go on undisturbed.
/// Method: children that sleep, compute, and hold a file lock; texts of /proc, whole and broken.
@Suite(.serialized) struct InspectedProcessTests {
    /// Runs a command while `body` looks at its process.
    func withChild(_ command: [String], _ body: (Process) throws -> Void) throws {
        let child = Process()
        child.executableURL = URL(filePath: "/usr/bin/env")
        child.arguments = command
        child.standardOutput = FileHandle.nullDevice
        try child.run()
        defer {
            // The signals that a test process blocks are blocked in its children.
            kill(child.processIdentifier, SIGKILL)
            child.waitUntilExit()
        }
        try body(child)
    }

    @Test func `a sleeping thread has its call, its stack and its images`() throws {
        try withChild(["sleep", "100"]) { child in
            let id = child.processIdentifier
            // Before that it may execute its program between a look at its images and one at its stack.
            try #require(eventually { call(of: id) == "clock_nanosleep" ? true : nil } == true)
            let thread = try #require(InspectedProcess(id).thread(id))
            #expect(!thread.isRunning && thread.failure == nil)
            let stack = try #require(thread.stack)
            #expect(stack.addresses.count > 3 && !stack.isTruncated)
            let process = InspectedProcess(id)
            #expect(process.threadIDs == [id])
            let images = stack.addresses.compactMap {
                process.image(containing: $0.lookupAddress)?.name
            }
            #expect(images.count == stack.addresses.count)
            #expect(images.contains("sleep") && images.contains { $0.hasPrefix("libc.so") })
            #expect(process.tasks().isEmpty)
            #expect(child.isRunning)
        }
    }

    /// As a debugger's stop, and the one of a look at a thread that was about to sleep.
    @Test func `a sleep that was stopped is the call that it was`() throws {
        try withChild(["sleep", "100"]) { child in
            let id = child.processIdentifier
            try #require(eventually { call(of: id) == "clock_nanosleep" ? true : nil } == true)
            kill(id, SIGSTOP)
            #expect(
                eventually {
                    InspectedProcess(id).thread(id)?.state == UInt8(ascii: "T") ? true : nil
                } == true)
            kill(id, SIGCONT)
            #expect(eventually { call(of: id) == "clock_nanosleep" ? true : nil } == true)
        }
    }

    /// Of a process's main thread.
    private func call(of id: pid_t) -> String? {
        let thread = InspectedProcess(id).thread(id)
        guard thread?.name == "sleep" else { return nil }
        return thread?.systemCall.flatMap { SystemCall(number: $0)?.name }
    }

    @Test func `a running thread is stopped for the copy only`() throws {
        try withChild(["python3", "-c", "while True: pass"]) { child in
            let id = child.processIdentifier
            func ticks() -> Int {
                let text = ProcFile.text("/proc/\(id)/stat") ?? ""
                let fields = text[(text.lastIndex(of: ")") ?? text.startIndex)...].split(
                    separator: " ")
                return fields.count > 12 ? Int(fields[12]) ?? 0 : 0
            }
            let found = eventually { () -> InspectedThread? in
                guard ticks() > 5 else { return nil }
                let thread = InspectedProcess(id).thread(id)
                return thread?.isRunning == true && thread?.stack != nil ? thread : nil
            }
            let stack = try #require(found?.stack)
            #expect(stack.addresses.count > 3)
            let before = ticks()
            #expect(eventually { ticks() > before + 3 ? true : nil } == true)
            #expect(child.isRunning)
        }
    }

    @Test func `a process that is gone has nothing, and does no harm`() {
        let gone = InspectedProcess(0x3FFF_FFFF)
        #expect(gone.images.isEmpty && gone.threadIDs.isEmpty && gone.tasks().isEmpty)
        #expect(gone.thread(0x3FFF_FFFF) == nil && gone.descriptor(0) == nil)
        #expect(gone.syncQueueHolder(futex: 8 << 20, waiter: ThreadID(rawValue: 1)) == nil)
        #expect(gone.polled(at: 1, count: .max).isEmpty)
        #expect(gone.processorCount == 1)
    }

    @Test func `the holder of a file lock is found`() throws {
        let path = NSTemporaryDirectory() + "/stallwatch-lock-\(getpid())"
        FileManager.default.createFile(atPath: path, contents: nil)
        defer { unlink(path) }
        let file = open(path, O_RDWR)
        defer { close(file) }
        #expect(flock(file, LOCK_EX) == 0)
        try withChild([
            "python3", "-c", "import fcntl,sys; fcntl.flock(open(sys.argv[1]), fcntl.LOCK_EX)",
            path,
        ]) { child in
            let process = InspectedProcess(child.processIdentifier)
            #expect(eventually { process.fileLockHolder() } == getpid())
        }
    }

    @Test(arguments: [
        ("7f31fa25b000-7f31fa281000 r-xp 00026000 fe:00 1234      /lib/a b.so (deleted)", true),
        ("7f31fa25b000-7f31fa281000 rw-p 00000000 00:00 0 ", true),
        ("7f31fa281000-7f31fa25b000 rw-p 00000000 00:00 0", false), ("", false), ("x", false),
        ("1-2 rw 0 0:0 0", false), ("ffffffffffffffffff-1 rw-p 0 0:0 0", false),
    ])
    func `a line of a memory map is read or left out`(line: String, isRead: Bool) {
        let map = MemoryMap(line)
        #expect(map.regions.count == (isRead ? 1 : 0))
        if line.contains("a b.so") {
            #expect(map.regions[0].path == "/lib/a b.so (deleted)" && map.regions[0].isExecutable)
            #expect(map.regions[0].offset == 0x26000 && map.regions[0].inode == 1234)
        }
    }

    @Test func `a process's state is read whatever its name`() {
        let rest = " S 7 7 7 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 1 0 4711 1 2"
        for name in ["sh", "a) R 9 (b", "", ")"] {
            let fields = RunningProcess.fields(of: "17 (\(name))" + rest)
            #expect(fields?.parent == 7 && fields?.startTicks == 4711)
            #expect(fields?.state == UInt8(ascii: "S"))
        }
        for text in ["", "17", "17 (sh", "17 (sh) S 1"] {
            #expect(RunningProcess.fields(of: text) == nil)
        }
    }

    @Test func `descendants are found and ended, with those that were started meanwhile`() throws {
        try withChild(["sh", "-c", "sleep 100 & (sleep 100; true) & while :; do sleep 0.01; done"])
        {
            child in
            let id = child.processIdentifier
            #expect(eventually { ProcessTree.descendants(of: id).count >= 3 ? true : nil } == true)
            ProcessTree.end(below: id)
            #expect(ProcessTree.descendants(of: id).allSatisfy { $0.state != UInt8(ascii: "T") })
        }
    }
}

// Stalls where the system refuses the agent something, or where the stalled thread is in no good state:
//
//     proc        /proc is empty from the start; says "skipped" where that cannot be arranged
//     memory      process_vm_readv is forbidden
//     ended       the thread ends in the middle of its work, after the threshold
//     files-N     the process has N descriptors left when the agent starts
//     rights      the process becomes another user's before the agent starts; "skipped" where it is not root's
//     late-rights the same after the thread has registered
//     call        nothing is refused: one system call of 2 GB that looks at no signal
//     overflow    the thread has run out of stack, and its SIGSEGV handler waits on an alternate one

import CCaptureTesting
import Foundation
import StallAgent

/// Runs one of them, and ends the process.
func stall(store: String, refused what: String) throws {
    if what == "proc", testing_hide_proc() != 0 { return say("skipped") }
    if what.hasSuffix("rights"), getuid() != 0 { return say("skipped") }
    if what == "rights" { giveUpRights(store) }
    if let left = what.wholeMatch(of: /files-(\d+)/) { openFiles(leaving: Int(left.1)!) }
    let monitor = try StallMonitor.start(.init(app: "fixture", version: "7.1", store: store))
    if what.hasPrefix("files-") {
        let work = monitor.watchCurrentThread(as: "main", threshold: .milliseconds(100))
        work.begin()
        usleep(200_000)
        work.end()
        return monitor.stop()
    }
    if what == "memory" { _ = testing_forbid_system_call(testing_process_vm_readv) }
    let thread = Thread {
        let work = monitor.watchCurrentThread(
            as: "worker", threshold: .milliseconds(what == "call" ? 50 : 200))
        work.begin()
        if what == "overflow" { overflowStack() }
        if what == "late-rights" {
            usleep(300_000)  // until the store is there, and can be given away
            giveUpRights(store)
        }
        if what == "call" {
            readWhole()
            return work.end()
        }
        usleep(what == "ended" ? 900_000 : 1_500_000)
        if what != "ended" { work.end() }
    }
    thread.stackSize = 256 << 10
    thread.start()
    usleep(2_500_000)
    // What overflowed never returns: the process ends in it, once a slow disk has taken the names, too.
    if what == "overflow" {
        let deadline = Date(timeIntervalSinceNow: 20)
        while Date() < deadline, !holds("handle_overflow", store + "-wal") { usleep(100_000) }
        exit(0)
    }
    monitor.stop()
}

private func holds(_ text: String, _ path: String) -> Bool {
    (try? Data(contentsOf: URL(filePath: path)))?.range(of: Data(text.utf8)) != nil
}

private func openFiles(leaving count: Int) {
    var limit = rlimit(rlim_cur: 64, rlim_max: 64)
    setrlimit(__rlimit_resource_t(7), &limit)  // RLIMIT_NOFILE
    while dup(1) >= 0 {}
    for descriptor in 0..<count { close(63 - CInt(descriptor)) }
}

private func overflowStack() {
    let reached = UnsafeMutablePointer<CInt>.allocate(capacity: 1)
    reached.pointee = 0
    testing_overflow_stack(0, reached)
}

/// As a server does once it has its port. From now on it writes as the other user.
private func giveUpRights(_ store: String) {
    let directory = (store as NSString).deletingLastPathComponent
    for path in [directory, store, store + "-wal", store + "-shm", store + ".reserve"] {
        chown(path, 65534, 65534)
    }
    guard setgid(65534) == 0, setuid(65534) == 0 else { fatalError("setuid") }
}

@inline(never) private func readWhole() { precondition(testing_long_system_call() > 0) }

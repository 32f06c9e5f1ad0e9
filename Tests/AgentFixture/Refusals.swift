// Stalls where the system refuses the agent something, or where the stalled thread is in no good state:
//
//     proc        /proc is empty from the start; says "skipped" where that cannot be arranged
//     memory      process_vm_readv is forbidden
//     ended       the thread ends in the middle of its work, after the threshold
//     files-N     the process has N descriptors left when the agent starts
//     overflow    the thread has run out of stack, and its SIGSEGV handler waits on an alternate one

import CCaptureTesting
import Foundation
import StallAgent

/// Plays one of them, and ends the process.
func stall(store: String, refused what: String) throws {
    if what == "proc", testing_hide_proc() != 0 { return say("skipped") }
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
        let work = monitor.watchCurrentThread(as: "worker", threshold: .milliseconds(200))
        work.begin()
        if what == "overflow" { overflowStack() }
        usleep(what == "ended" ? 900_000 : 1_500_000)
        if what != "ended" { work.end() }
    }
    thread.stackSize = 256 << 10
    thread.start()
    usleep(2_500_000)
    // What overflowed never returns: the process ends in it.
    if what == "overflow" { exit(0) }
    monitor.stop()
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

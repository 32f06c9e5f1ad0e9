// The cause of a blocked thread's wait in a call on a file, a path or a descriptor. Pure, like the rest of the
// decision.
//
// A file system sleeps uninterruptibly (state D) for its disk, and so do most network file systems; FUSE and some
// others sleep interruptibly in functions of their own. A thread in state S anywhere else waits for another party: a
// terminal, the other end of a FIFO, the owner of a lease. `stat` types that can be opened, and lock types of
// /proc/locks, each have a rule here.

internal import StallModel

func disk(_ confidence: Double) -> SampleFinding {
    SampleFinding(cause: .disk, confidence: confidence, isRunning: false)
}

private func found(_ cause: CauseClass, _ confidence: Double) -> SampleFinding {
    SampleFinding(cause: cause, confidence: confidence, isRunning: false)
}

extension Wait {
    /// Not the sleep of a file system: interruptible, and in a kernel function that is known and not one of theirs.
    fileprivate var isForSomebody: Bool {
        state == UInt8(ascii: "S") && !waitChannel.isEmpty && !isInFileSystem
    }

    /// The sleep of a file system, as far as that is known.
    var isFileSystems: Bool { !isForSomebody && byKernelFunction(self) == nil }

    private var isInFileSystem: Bool {
        let parts = [
            "request_wait_answer", "fuse_", "rpc_", "nfs", "p9_", "cifs", "smb", "ceph", "autofs",
            "folio", "jbd2", "io_schedule", "ext4", "xfs", "btrfs", "blk",
        ]
        return parts.contains(where: waitChannel.contains)
    }

    /// The kernel copies from or to the caller's memory, and a page of it is missing: it sleeps for a file system, or for the
    /// process that handles the fault, in a call that is about something else.
    func isFaulting(in call: SystemCall) -> Bool {
        if waitChannel.contains("handle_userfault") { return true }
        guard isInFileSystem else { return false }
        switch call.kind {
        case .futex, .sleep, .signal, .child, .exchange: return true
        case .descriptor, .socket, .poll, .epoll:
            // These also read a file.
            if ["sendfile", "splice"].contains(call.name) { return false }
            let others: Set<DescriptorKind> = [.file, .memory, .device, .other]
            return !descriptors.isEmpty && descriptors.allSatisfy { !others.contains($0.kind) }
        case .file, .close, .fileLock, .memory, .yield, .ring: return false
        }
    }

    /// A call of epoll has a time limit.
    var hasPollLimit: Bool {
        guard arguments.count > 3, let call else { return false }
        // A pointer in the newest of the calls, milliseconds in the others.
        if call.name == "epoll_pwait2" { return arguments[3] != 0 }
        return Int32(truncatingIfNeeded: arguments[3]) >= 0
    }
}

/// Waits that the kernel's function identifies whatever the call is.
private func byKernelFunction(_ wait: Wait) -> SampleFinding? {
    let channel = wait.waitChannel
    if channel.contains("break_lease") || channel.contains("locks_lock_inode")
        || channel.contains("fcntl_setlk")
    {
        return SampleFinding(cause: .lock, lock: .file, confidence: 0.95, isRunning: false)
    }
    // Asynchronous I/O: nearly always of a disk, but the operations are not visible.
    if channel.contains("read_events") { return found(.disk, 0.6) }
    // The other end of a FIFO; a terminal; a program that permits or denies the access.
    let partners = ["wait_for_partner", "fifo_open", "pipe", "tty_", "fanotify"]
    return partners.contains(where: channel.contains) ? found(.ipc, 0.95) : nil
}

/// A call on a file or on a path. The descriptor, if the call has one, may be no file.
func byFile(_ wait: Wait, _ call: SystemCall) -> SampleFinding {
    if let known = byKernelFunction(wait) { return known }
    guard let kind = wait.descriptors.first?.kind else {
        return wait.isForSomebody ? found(.ipc, 0.6) : disk(0.95)
    }
    guard kind == .file else { return byDescriptors(wait, wait.descriptors, call) }
    // A device outside of /dev, else a file system whose functions are not known here.
    if wait.waitChannel == "wait_woken" { return found(.ipc, 0.6) }
    return disk(wait.isForSomebody ? 0.7 : 0.95)
}

/// The descriptor is gone: its kind is known only from where the kernel waits.
func byClose(_ wait: Wait) -> SampleFinding {
    if let known = byKernelFunction(wait) { return known }
    guard wait.isForSomebody else { return disk(wait.waitChannel.isEmpty ? 0.5 : 0.95) }
    // A socket that lingers until its peer has everything.
    let sockets = ["wait_woken", "tcp", "inet", "sk_"]
    let isSocket = sockets.contains(where: wait.waitChannel.contains)
    return isSocket ? found(.network, 0.8) : found(.ipc, 0.6)
}

/// Any operation of an io_uring: all waits for completions look alike, but those that wait for a descriptor are listed.
func byRing(_ wait: Wait) -> SampleFinding {
    // **Source:** linux/io_uring.h, `enum io_uring_op`.
    let sockets: [UInt64] = [9, 10, 13, 16, 26, 27]
    let mask = sockets.reduce(UInt64(0)) { $0 | 1 << $1 }
    if wait.ringOperations & mask != 0 { return found(.network, 0.6) }
    return wait.ringOperations != 0 ? found(.ipc, 0.6) : found(.unknown, 0.4)
}

func byChannel(_ wait: Wait) -> SampleFinding {
    if let known = byKernelFunction(wait) {
        return SampleFinding(
            cause: known.cause, lock: known.lock, confidence: 0.6, isRunning: false)
    }
    let channels: [(part: String, cause: CauseClass)] = [
        ("futex", .lock), ("nanosleep", .sleep),
        ("unix", .ipc), ("do_wait", .ipc), ("signalfd", .ipc),
        ("inet", .network), ("tcp", .network), ("udp", .network), ("skb", .network),
        ("folio", .disk), ("jbd2", .disk), ("io_schedule", .disk), ("ext4", .disk),
        ("request_wait_answer", .disk), ("rpc_", .disk), ("nfs", .disk),
        ("signal_stop", .stopped),
    ]
    let cause = channels.first { wait.waitChannel.contains($0.part) }?.cause
    return found(cause ?? .unknown, cause == nil ? 0.3 : 0.6)
}

func byDescriptors(
    _ wait: Wait, _ descriptors: [WaitedDescriptor], _ call: SystemCall
) -> SampleFinding {
    let kinds = Set(descriptors.map(\.kind))
    // Only one of several descriptors may be the reason for the wait.
    let certainty = kinds.count > 1 ? 0.7 : 1
    for (kind, cause, confidence) in causes where kinds.contains(kind) {
        return found(cause, confidence * certainty)
    }
    if kinds.contains(.device) {
        return wait.state == UInt8(ascii: "D") ? disk(0.5) : found(.ipc, 0.8 * certainty)
    }
    // Files are always ready: only a message queue, or a file that the kernel makes, can be waited for.
    if kinds.contains(.file), call.kind == .poll || call.kind == .epoll {
        return found(.ipc, 0.5 * certainty)
    }
    // A socket call whose descriptor has been closed since.
    return call.kind == .socket ? found(.network, 0.4) : found(.unknown, 0.4)
}

/// The first of a set that is in the table decides.
private let causes: [(DescriptorKind, CauseClass, Double)] = [
    (.networkSocket, .network, 0.97), (.networkDevice, .network, 0.8),
    (.localSocket, .ipc, 0.97), (.pipe, .ipc, 0.97), (.process, .ipc, 0.95),
    (.notification, .ipc, 0.9), (.event, .ipc, 0.8), (.terminal, .ipc, 0.9),
    (.timer, .sleep, 0.85),
    // In-memory files block only while memory is short.
    (.memory, .pageFault, 0.5),
]

// Waits in calls that look like file I/O, one for each type of file and of lock; threads that block signals; code made at
// run time. The functions that wait are in waits.c.

import CStallSites
import Foundation

private func terminal(
    _ name: String, in function: String, _ answer: @escaping (Int32, Int32) -> Void,
    _ stall: @escaping (Int32, Int32) -> Int32
) -> Site {
    Site(name, in: function, for: [.ipc]) { visit in
        var ends: [Int32] = [0, 0]
        guard site_terminal(&ends) else { return nil }
        let (master, slave) = (ends[0], ends[1])
        // Descriptors of its own: it may still read when the numbers belong to another site's files.
        let (own, other) = (dup(master), dup(slave))
        visit.later {
            answer(own, other)
            close(own)
            close(other)
        }
        visit.atEnd {
            close(master)
            close(slave)
        }
        return { sink &+= Int(stall(master, slave)) }
    }
}

private func sendByte(_ file: Int32) {
    var byte: UInt8 = 10
    write(file, &byte, 1)
}

private func drain(_ file: Int32, _ count: Int) {
    var bytes = [UInt8](repeating: 0, count: 1 << 16)
    var rest = count
    while rest > 0 {
        let count = read(file, &bytes, bytes.count)
        if count <= 0 { return }
        rest -= count
    }
}

private let terminalSites: [Site] = [
    terminal("read of a pty's master", in: "read_master", { sendByte($1) }) { master, _ in
        read_master(master)
    },
    terminal("read of a terminal", in: "read_terminal", { master, _ in sendByte(master) }) {
        read_terminal($1)
    },
    terminal("readv of a terminal", in: "readv_terminal", { master, _ in sendByte(master) }) {
        readv_terminal($1)
    },
    terminal(
        "write to a full terminal", in: "write_terminal", { master, _ in drain(master, 1 << 16) }
    ) { write_terminal($1) },
    terminal("poll of a terminal", in: "poll_master", { sendByte($1) }) { master, _ in
        poll_master(master)
    },
]

// MARK: - FIFOs, leases, locks

private func fifo(_ name: String, link: Bool = false) -> String {
    let path = scratch + "/" + name
    unlink(path)
    unlink(path + ".fifo")
    mkfifo(link ? path + ".fifo" : path, 0o600)
    if link { symlink(path + ".fifo", path) }
    return path
}

private func newFile(_ name: String) -> String {
    let path = scratch + "/" + name
    let file = open(path, O_RDWR | O_CREAT, 0o600)
    var bytes: [UInt8] = [1, 2, 3]
    write(file, &bytes, 3)
    close(file)
    return path
}

/// A lease is given back 160 ms after somebody else wants the file.
private func leased(
    _ name: String, in function: String, reading: Bool, _ stall: @escaping (String) -> Int32
) -> Site {
    Site(name, in: function, for: [.lock]) { visit in
        let setLease: Int32 = 1024
        signal(SIGIO, SIG_IGN)
        let path = newFile("leased")
        let holder = open(path, reading ? O_RDONLY : O_RDWR)
        visit.atEnd { close(holder) }
        guard fcntl(holder, setLease, Int32(reading ? F_RDLCK : F_WRLCK)) == 0 else { return nil }
        visit.later { _ = fcntl(holder, setLease, Int32(F_UNLCK)) }
        return { sink &+= Int(stall(path)) }
    }
}

private func locked(
    _ name: String, in function: String, folder: Bool = false,
    _ lock: @escaping (Int32) -> Bool, _ stall: @escaping (Int32) -> Int32
) -> Site {
    Site(name, in: function, for: [.lock]) { visit in
        let path = folder ? scratch : newFile("locked")
        let (held, wanted) = (
            open(path, folder ? O_RDONLY : O_RDWR), open(path, folder ? O_RDONLY : O_RDWR)
        )
        guard lock(held) else { return nil }
        visit.later { close(held) }
        visit.atEnd { close(wanted) }
        return { sink &+= Int(stall(wanted)) }
    }
}

private let fifoAndLockSites: [Site] = [
    Site("poll of a FIFO", in: "poll_fifo", for: [.ipc]) { visit in
        let file = open(fifo("fifo.poll"), O_RDWR)
        visit.later { sendByte(file) }
        visit.atEnd { close(file) }
        return { sink &+= Int(poll_fifo(file)) }
    },
    Site("read of a FIFO of others", in: "read_fifo_of_others", for: [.ipc]) { visit in
        let path = fifo("fifo.others")
        let both = open(path, O_RDWR)
        let file = open(path, O_RDONLY)
        visit.later { sendByte(both) }
        visit.atEnd {
            close(file)
            close(both)
        }
        return { sink &+= Int(read_fifo_of_others(file)) }
    },
    Site("open of a FIFO to write", in: "open_to_write", for: [.ipc]) { visit in
        let path = fifo("fifo.write")
        visit.later { close(open(path, O_RDONLY)) }
        return { close(open_to_write(path) - 1) }
    },
    Site("open of a link to a FIFO", in: "open_link", for: [.ipc]) { visit in
        let path = fifo("fifo.link", link: true)
        visit.later { close(open(path, O_WRONLY)) }
        return { close(open_link(path) - 1) }
    },
    Site("fopen of a FIFO", in: "open_stream", for: [.ipc]) { visit in
        let path = fifo("fifo.stream")
        visit.later { close(open(path, O_WRONLY)) }
        return { sink &+= Int(open_stream(path)) }
    },
    leased("open of a leased file", in: "open_leased", reading: false) { path in
        let file = open_leased(path)
        close(file - 1)
        return file
    },
    leased("open of a file leased to readers", in: "open_read_leased", reading: true) { path in
        let file = open_read_leased(path)
        close(file - 1)
        return file
    },
    leased("truncate of a leased file", in: "truncate_leased", reading: true) {
        truncate_leased($0)
    },
    locked("lock of a description", in: "lock_description", { site_lock_description($0) }) {
        lock_description($0)
    },
    locked(
        "lock of a description, to read", in: "lock_description_to_read",
        { site_lock_description($0) }
    ) { lock_description_to_read($0) },
    locked("flock of a directory", in: "lock_folder", folder: true, { flock($0, LOCK_EX) == 0 }) {
        lock_folder($0)
    },
    locked("shared flock", in: "lock_shared", { flock($0, LOCK_EX) == 0 }) { lock_shared($0) },
    Site("lockf of a file that a child holds", in: "lock_region", for: [.lock]) { visit in
        let path = newFile("region")
        guard let child = site_child_locking(path, 0, 0) else { return nil }
        let file = open(path, O_RDWR)
        visit.later { site_child_end(child) }
        visit.atEnd { close(file) }
        return { sink &+= Int(lock_region(file)) }
    },
    Site("open that a program must permit", in: "open_permitted", for: [.ipc]) { visit in
        let path = newFile("asked")
        let asking = site_fanotify(path, true)
        guard asking >= 0 else { return nil }
        visit.later { site_fanotify_answer(asking) }
        visit.atEnd { close(asking) }
        return { close(open_permitted(path) - 1) }
    },
]

// MARK: - Notifications, rings, sockets

private func notified(
    _ name: String, in function: String, with other: String? = nil,
    _ create: @escaping (String) -> Int32, _ change: @escaping (String) -> Void,
    _ stall: @escaping (Int32) -> Int32
) -> Site {
    var site = Site(name, in: function, for: [.ipc]) { visit in
        let folder = scratch + "/watched"
        mkdir(folder, 0o700)
        unlink(folder + "/new")
        let file = create(folder)
        guard file >= 0 else { return nil }
        visit.later { change(folder) }
        visit.atEnd { close(file) }
        return { sink &+= Int(stall(file)) }
    }
    if let other { site.functions.append(other) }
    return site
}

private func addFile(_ folder: String) { close(open(folder + "/new", O_CREAT | O_WRONLY, 0o600)) }

/// A signalfd is read by the thread that has the signal.
private func signalled(
    _ name: String, in function: String, _ stall: @escaping (Int32) -> Int32
) -> Site {
    notified(
        name, in: function, { _ in site_signalfd(SIGUSR2) },
        { _ in site_signal_thread(pid_t(getpid()), SIGUSR2) }
    ) { file in
        let answer = stall(file)
        var information = [UInt8](repeating: 0, count: 128)
        if function != "read_signals" { read(file, &information, 128) }
        return answer
    }
}

private func ring(
    _ name: String, in function: String, for cause: Cause, _ descriptor: @escaping (Visit) -> Int32,
    _ stall: @escaping (OpaquePointer, Int32) -> Int32
) -> Site {
    Site(name, in: function, "site_ring_wait", for: [cause]) { visit in
        guard let ring = site_ring_new() else { return nil }
        let file = descriptor(visit)
        visit.atEnd { site_ring_free(ring) }
        return { sink &+= Int(stall(ring, file)) }
    }
}

private func childEnd(
    _ name: String, in function: String, _ stall: @escaping (Int32) -> Int32
) -> Site {
    Site(name, in: function, for: [.ipc]) { visit in
        let child = site_spawn_sleep("0.2")
        let file = site_pidfd(child)
        guard file >= 0 else { return nil }
        visit.atEnd {
            close(file)
            waitpid(child, nil, 0)
        }
        return { sink &+= Int(stall(file)) }
    }
}

private func lingering(_ visit: Visit) -> Int32 {
    var ends: [Int32] = [0, 0]
    site_tcp_pair(&ends)
    let (near, far) = (ends[0], ends[1])
    site_linger(near)
    visit.later {
        drain(far, .max)
        close(far)
    }
    return near
}

private let notificationSites: [Site] = [
    notified("inotify", in: "read_notifications", { site_inotify($0) }, addFile) {
        read_notifications($0)
    },
    notified("poll of inotify", in: "poll_notifications", { site_inotify($0) }, addFile) {
        poll_notifications($0)
    },
    notified("epoll of inotify", in: "epoll_notifications", { site_inotify($0) }, addFile) { file in
        let set = site_epoll_of(file)
        defer { close(set) }
        return epoll_notifications(set)
    },
    notified(
        "fanotify", in: "read_marked_files", { site_fanotify($0, false) },
        { close(open($0, O_RDONLY)) }
    ) { read_marked_files($0) },
    signalled("read of a signalfd", in: "read_signals") { read_signals($0) },
    signalled("poll of a signalfd", in: "poll_signals") { poll_signals($0) },
    signalled("epoll of a signalfd", in: "epoll_signals") { file in
        let set = site_epoll_of(file)
        defer { close(set) }
        return epoll_signals(set)
    },
    Site("sigtimedwait", in: "await_signal", for: [.ipc]) { visit in
        close(site_signalfd(SIGUSR1))
        visit.later { site_signal_thread(pid_t(getpid()), SIGUSR1) }
        return { sink &+= Int(await_signal(SIGUSR1)) }
    },
    childEnd("poll of a pidfd", in: "poll_process") { poll_process($0) },
    childEnd("epoll of a pidfd", in: "epoll_process") { file in
        let set = site_epoll_of(file)
        defer { close(set) }
        return epoll_process(set)
    },
    childEnd("waitid of a pidfd", in: "await_process") { await_process($0) },
    Site("an empty epoll set", in: "epoll_nothing", "site_epoll_for", for: [.sleep]) { visit in
        let set = site_epoll_empty()
        visit.atEnd { close(set) }
        return { sink &+= Int(epoll_nothing(set)) }
    },
    Site("read of a timerfd", in: "read_timer", for: [.sleep]) { visit in
        let timer = site_timer_in(stallMicroseconds)
        visit.atEnd { close(timer) }
        return {
            site_timer_set(timer, stallMicroseconds)
            sink &+= Int(read_timer(timer))
        }
    },
    Site("poll of a timerfd", in: "poll_timer", for: [.sleep]) { visit in
        let timer = site_timer_in(stallMicroseconds)
        visit.atEnd { close(timer) }
        return {
            site_timer_set(timer, stallMicroseconds)
            sink &+= Int(poll_timer(timer))
        }
    },
    Site("the kernel's log", in: "read_log", for: [.ipc]) { visit in
        let log = open("/dev/kmsg", O_RDWR)
        guard log >= 0 else { return nil }
        lseek(log, 0, SEEK_END)
        visit.later {
            let text = Array("site-truth\n".utf8)
            write(log, text, text.count)
        }
        visit.atEnd { close(log) }
        return { sink &+= Int(read_log(log)) }
    },
    Site("POSIX message queue", in: "receive_queued", for: [.ipc]) { visit in
        let queue = site_queue("/site-truth")
        guard queue >= 0 else { return nil }
        visit.later { _ = send_queued(queue) }
        visit.atEnd { close(queue) }
        return { sink &+= Int(receive_queued(queue)) }
    },
    Site("full POSIX message queue", in: "send_queued", for: [.ipc]) { visit in
        let queue = site_queue("/site-truth")
        guard queue >= 0 else { return nil }
        _ = send_queued(queue)
        visit.later { _ = receive_queued(queue) }
        visit.atEnd { close(queue) }
        return { sink &+= Int(send_queued(queue)) }
    },
    Site("poll of a POSIX message queue", in: "poll_queue", for: [.ipc]) { visit in
        let queue = site_queue("/site-truth")
        guard queue >= 0 else { return nil }
        visit.later { _ = send_queued(queue) }
        visit.atEnd { close(queue) }
        return { sink &+= Int(poll_queue(queue)) }
    },
    Site("write to a full eventfd", in: "raise_event", for: [.ipc]) { visit in
        let file = site_eventfd()
        _ = raise_event(file)
        visit.later { _ = read_timer(file) }
        visit.atEnd { close(file) }
        return { sink &+= Int(raise_event(file)) }
    },
    ring(
        "read of a pipe through a ring", in: "ring_read", for: .ipc,
        { visit in
            let pipe = newPipe(visit)
            visit.later { sendByte(pipe.write) }
            return pipe.read
        }
    ) { ring_read($0, $1) },
    ring(
        "recv through a ring", in: "ring_receive", for: .network,
        { visit in
            let ends = pair(visit, tcp: true)
            visit.later { sendByte(ends.far) }
            return ends.near
        }
    ) { ring_receive($0, $1) },
    ring(
        "accept through a ring", in: "ring_accept", for: .network,
        { visit in
            var port: UInt16 = 0
            let listener = site_tcp_listener(&port, 4)
            visit.later { close(site_connect(port)) }
            visit.atEnd { close(listener) }
            return listener
        }
    ) { ring_accept($0, $1) },
    Site("close of a lingering socket", in: "close_lingering", for: [.network]) { visit in
        let near = lingering(visit)
        return { sink &+= Int(close_lingering(near)) }
    },
    Site(
        "dup over a lingering socket", in: "replace_lingering", "site_replace", for: [.network]
    ) { visit in
        let near = lingering(visit)
        let null = open("/dev/null", O_RDONLY)
        visit.atEnd {
            close(near)
            close(null)
        }
        return { sink &+= Int(replace_lingering(null, near)) }
    },
    Site("sendfile to a slow peer", in: "send_file", for: [.network]) { visit in
        let ends = pair(visit, tcp: true)
        // More than the buffers of both sockets hold; a stripped program may be less.
        let path = scratch + "/sent"
        let file = open(path, O_RDWR | O_CREAT, 0o600)
        ftruncate(file, 16 << 20)
        visit.later { drain(ends.far, 16 << 20) }
        visit.atEnd {
            close(file)
            unlink(path)
        }
        return { sink &+= Int(send_file(ends.near, file)) }
    },
    Site("splice of a file into a full pipe", in: "splice_file", for: [.ipc]) { visit in
        let pipe = newPipe(visit)
        let file = open("/proc/self/exe", O_RDONLY)
        let flags = fcntl(pipe.write, F_GETFL)
        _ = fcntl(pipe.write, F_SETFL, flags | O_NONBLOCK)
        let bytes = [UInt8](repeating: 1, count: 4096)
        while write(pipe.write, bytes, bytes.count) > 0 {}
        _ = fcntl(pipe.write, F_SETFL, flags)
        visit.later { drain(pipe.read, 1 << 16) }
        visit.atEnd { close(file) }
        return { sink &+= Int(splice_file(file, pipe.write)) }
    },
    Site("recvmsg from TCP", in: "receive_message", for: [.network]) { visit in
        let ends = pair(visit, tcp: true)
        visit.later { sendByte(ends.far) }
        return { sink &+= Int(receive_message(ends.near)) }
    },
    Site("recv with a time limit", in: "receive_in_time", for: [.network]) { visit in
        let ends = pair(visit, tcp: true)
        return { sink &+= Int(receive_in_time(ends.near)) }
    },
    Site(
        "connect to a full local socket", in: "connect_local", "site_unix_connect", for: [.ipc]
    ) { visit in
        let path = scratch + "/socket.full"
        let listener = site_unix_listener(path)
        site_fill_backlog(path)
        visit.later { close(accept(listener, nil, nil)) }
        visit.atEnd { close(listener) }
        return { close(connect_local(path) - 1) }
    },
]

// MARK: - Signals that are blocked, code made at run time

private let unusualSites: [Site] = [
    Site("work with all signals blocked", in: "compute_deaf", for: [.cpu]) { _ in
        { sink &+= Int(compute_deaf(Int64(workEnd))) }
    },
    Site(
        "getpwnam", in: "look_up_users", for: [.cpu, .ipc, .disk, .network, .lock]
    ) { _ in
        {
            let end = clockTime(CLOCK_MONOTONIC) + Int(stallMicroseconds) * 1000
            sink &+= Int(look_up_users(Int64(end)))
        }
    },
    Site("code made at run time", in: "run_generated", for: [.cpu]) { visit in
        let flag = UnsafeMutablePointer<Int32>.allocate(capacity: 1)
        flag.initialize(to: 0)
        visit.later { flag.pointee = 1 }
        return { sink &+= Int(run_generated(flag)) }
    },
]

let waitSites = terminalSites + fifoAndLockSites + notificationSites + unusualSites

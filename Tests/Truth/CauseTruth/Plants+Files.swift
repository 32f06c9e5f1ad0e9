// Stalls in open, read, write, close and poll that are no disk I/O: one for each type of file and of lock that can make
// a thread wait for somebody.

import CStallSites
import Foundation
import StallModel

extension Plant {
    static let files: [Plant] = [
        Plant(name: "read from a pty's master", cause: .ipc) {
            withTerminal { master, slave in
                later { sendByte(slave) }
                readByte(master)
            }
        },
        Plant(name: "read from a terminal", cause: .ipc) {
            withTerminal { master, slave in
                later { sendByte(master) }
                readByte(slave)
            }
        },
        Plant(name: "write to a full terminal", cause: .ipc) {
            withTerminal { master, slave in
                // The rest is read before the number is another plant's.
                let isRead = DispatchSemaphore(value: 0)
                later {
                    var bytes = [UInt8](repeating: 0, count: 4096)
                    var count = 0
                    while count < 1 << 16 { count += max(1, read(master, &bytes, bytes.count)) }
                    isRead.signal()
                }
                let bytes = [UInt8](repeating: 7, count: 1 << 16)
                _ = write(slave, bytes, bytes.count)
                isRead.wait()
            }
        },
        Plant(name: "poll of a terminal", cause: .ipc) {
            withTerminal { master, slave in
                later { sendByte(slave) }
                pollFor(master)
            }
        },
        Plant(name: "poll of a FIFO", cause: .ipc) {
            withPath("fifo") { path in
                mkfifo(path, 0o600)
                let file = open(path, O_RDWR)
                later { sendByte(file) }
                pollFor(file)
                close(file)
            }
        },
        Plant(name: "open of a link to a FIFO", cause: .ipc) {
            withPath("fifo-link") { path in
                mkfifo(path + ".fifo", 0o600)
                symlink(path + ".fifo", path)
                later { close(open(path, O_RDONLY)) }
                close(open(path, O_WRONLY))
                unlink(path + ".fifo")
            }
        },
        Plant(name: "read of the kernel's log", cause: .ipc) {
            let log = open("/dev/kmsg", O_RDWR)
            guard log >= 0 else { return nil }
            defer { close(log) }
            lseek(log, 0, SEEK_END)
            later {
                let text = Array("cause-truth\n".utf8)
                _ = write(log, text, text.count)
            }
            readByte(log, 1024)
            return Outcome()
        },
        Plant(name: "open of a leased file", cause: .lock) {
            signal(SIGIO, SIG_IGN)
            return withPath("leased") { path in
                let holder = open(path, O_RDWR | O_CREAT, 0o600)
                guard fcntl(holder, setLease, Int32(F_WRLCK)) == 0 else { return }
                later { _ = fcntl(holder, setLease, Int32(F_UNLCK)) }
                close(open(path, O_RDONLY))
                close(holder)
            }
        },
        Plant(name: "truncate of a leased file", cause: .lock) {
            signal(SIGIO, SIG_IGN)
            return withPath("leased") { path in
                close(open(path, O_RDWR | O_CREAT, 0o600))
                let holder = open(path, O_RDONLY)
                guard fcntl(holder, setLease, Int32(F_RDLCK)) == 0 else { return }
                later { _ = fcntl(holder, setLease, Int32(F_UNLCK)) }
                truncate(path, 10)
                close(holder)
            }
        },
        Plant(name: "lock of an open file description", cause: .lock) {
            withPath("ofd") { path in
                let (held, wanted) = (open(path, O_RDWR | O_CREAT, 0o600), open(path, O_RDWR))
                var lock = flock()
                lock.l_type = Int16(F_WRLCK)
                _ = fcntl(held, 37, &lock)
                later { close(held) }
                _ = fcntl(wanted, 38, &lock)
                close(wanted)
            }
        },
        Plant(name: "flock of a directory", cause: .lock) {
            withPath("folder") { path in
                mkdir(path, 0o700)
                let (held, wanted) = (open(path, O_RDONLY), open(path, O_RDONLY))
                flock(held, LOCK_EX)
                later { close(held) }
                flock(wanted, LOCK_EX)
                close(wanted)
                rmdir(path)
            }
        },
        Plant(name: "open that another program must permit", cause: .ipc) {
            withPath("asked") { path in
                close(open(path, O_RDWR | O_CREAT, 0o600))
                let asking = site_fanotify(path, true)
                guard asking >= 0 else { return }
                later { site_fanotify_answer(asking) }
                close(open(path, O_RDONLY))
                close(asking)
            }
        },
        Plant(name: "close of a lingering socket", cause: .network) {
            let (near, far) = tcpPair()
            site_linger(near)
            later { drain(far) }
            close(near)
            return Outcome()
        },
        Plant(name: "dup over a lingering socket", cause: .network) {
            let (near, far) = tcpPair()
            let null = open("/dev/null", O_RDONLY)
            site_linger(near)
            later { drain(far) }
            _ = site_replace(null, near)
            close(near)
            close(null)
            return Outcome()
        },
        ring("read of a pipe through a ring", 22, .ipc),
        ring("poll through a ring", 6, .ipc),
        Plant(name: "recv through a ring", cause: .network) {
            guard let ring = site_ring_new() else { return nil }
            let (near, far) = tcpPair()
            later { close(far) }
            _ = site_ring_wait(ring, 27, near)
            site_ring_free(ring)
            close(near)
            return Outcome()
        },
        notified("inotify", { site_inotify($0) }) { path in
            close(open(path + "/new", O_CREAT | O_WRONLY, 0o600))
            unlink(path + "/new")
        },
        notified("fanotify", { site_fanotify($0, false) }) { close(open($0, O_RDONLY)) },
        Plant(name: "read of a signalfd", cause: .ipc) {
            let (file, reader) = (site_signalfd(SIGUSR2), threadID())
            later { site_signal_thread(reader, SIGUSR2) }
            readByte(file, 128)
            close(file)
            return Outcome()
        },
        Plant(name: "poll of a pidfd", cause: .ipc) {
            let child = site_spawn_sleep("0.3")
            let file = site_pidfd(child)
            guard file >= 0 else { return nil }
            pollFor(file)
            close(file)
            waitpid(child, nil, 0)
            return Outcome()
        },
        Plant(name: "an empty epoll set", cause: .sleep) {
            let set = site_epoll_empty()
            _ = site_epoll_for(set, 300)
            close(set)
            return Outcome()
        },
    ]

    private static func notified(
        _ name: String, _ create: @escaping @Sendable (String) -> Int32,
        _ change: @escaping @Sendable (String) -> Void
    ) -> Plant {
        Plant(name: "read of \(name)", cause: .ipc) {
            withPath(name) { path in
                mkdir(path, 0o700)
                let file = create(path)
                guard file >= 0 else { return }
                later { change(path) }
                readByte(file, 4096)
                close(file)
                rmdir(path)
            }
        }
    }

    private static func ring(_ name: String, _ operation: Int32, _ cause: CauseClass) -> Plant {
        Plant(name: name, cause: cause) {
            var ends: [Int32] = [0, 0]
            guard let ring = site_ring_new() else { return nil }
            pipe(&ends)
            let writing = ends[1]
            later { sendByte(writing) }
            _ = site_ring_wait(ring, operation, ends[0])
            site_ring_free(ring)
            for end in ends { close(end) }
            return Outcome()
        }
    }
}

/// F_SETLEASE.
private let setLease: Int32 = 1024

private func withTerminal(_ body: (Int32, Int32) -> Void) -> Outcome? {
    var ends: [Int32] = [0, 0]
    guard site_terminal(&ends) else { return nil }
    defer { for end in ends { close(end) } }
    body(ends[0], ends[1])
    return Outcome()
}

/// Nil if the body could not wait, and returned at once.
private func withPath(_ name: String, _ body: (String) -> Void) -> Outcome? {
    let path = "\(scratch)/\(name)-\(threadID())"
    defer { unlink(path) }
    let began = ContinuousClock.now
    body(path)
    return ContinuousClock.now - began > .milliseconds(150) ? Outcome() : nil
}

private func sendByte(_ file: Int32) {
    var byte: UInt8 = 10
    _ = write(file, &byte, 1)
}

private func readByte(_ file: Int32, _ most: Int = 1) {
    var bytes = [UInt8](repeating: 0, count: most)
    _ = read(file, &bytes, most)
}

private func pollFor(_ file: Int32) {
    var entry = pollfd(fd: file, events: Int16(POLLIN), revents: 0)
    poll(&entry, 1, 5000)
}

private func drain(_ file: Int32) {
    var bytes = [UInt8](repeating: 0, count: 1 << 20)
    while read(file, &bytes, bytes.count) > 0 {}
    close(file)
}

// Stalls that wait for time, for peers, and for other processes.

import Foundation
import StallModel

extension Plant {
    static let waits: [Plant] = [
        Plant(name: "usleep", cause: .sleep) {
            usleep(stallMicroseconds)
            return Outcome()
        },
        Plant(name: "Thread.sleep", cause: .sleep) {
            Thread.sleep(forTimeInterval: stallSeconds)
            return Outcome()
        },
        Plant(name: "poll of nothing", cause: .sleep) {
            poll(nil, 0, 300)
            return Outcome()
        },
        Plant(name: "timed condition wait", cause: .sleep) {
            let condition = NSCondition()
            condition.lock()
            _ = condition.wait(until: Date(timeIntervalSinceNow: stallSeconds))
            condition.unlock()
            return Outcome()
        },
        Plant(name: "recv from TCP", cause: .network) {
            let (near, far) = tcpPair()
            later { close(far) }
            var byte: UInt8 = 0
            recv(near, &byte, 1, 0)
            close(near)
            return Outcome()
        },
        Plant(name: "read from TCP", cause: .network) {
            let (near, far) = tcpPair()
            later { close(far) }
            var byte: UInt8 = 0
            _ = read(near, &byte, 1)
            close(near)
            return Outcome()
        },
        Plant(name: "poll of TCP", cause: .network) {
            let (near, far) = tcpPair()
            var entry = pollfd(fd: near, events: Int16(POLLIN), revents: 0)
            poll(&entry, 1, 300)
            close(near)
            close(far)
            return Outcome()
        },
        Plant(name: "connect", cause: .network) { connectToFullBacklog() },
        Plant(name: "getaddrinfo", cause: .network) {
            var list: UnsafeMutablePointer<addrinfo>?
            let began = ContinuousClock.now
            let name = "stallwatch-\(UInt32.random(in: 0...(.max))).example"
            if getaddrinfo(name, "80", nil, &list) == 0 { freeaddrinfo(list) }
            // A resolver that answers at once does not stall.
            return ContinuousClock.now - began > .milliseconds(150) ? Outcome() : nil
        },
        Plant(name: "read from a pipe", cause: .ipc) {
            var ends: [Int32] = [0, 0]
            pipe(&ends)
            let writing = ends[1]
            later { close(writing) }
            var byte: UInt8 = 0
            _ = read(ends[0], &byte, 1)
            close(ends[0])
            return Outcome()
        },
        Plant(name: "write to a full pipe", cause: .ipc) {
            var ends: [Int32] = [0, 0]
            pipe(&ends)
            let reading = ends[0]
            later {
                var bytes = [UInt8](repeating: 0, count: 1 << 18)
                _ = read(reading, &bytes, bytes.count)
                _ = read(reading, &bytes, bytes.count)
            }
            let bytes = [UInt8](repeating: 0, count: 1 << 17)
            _ = write(ends[1], bytes, bytes.count)
            return Outcome()
        },
        Plant(name: "unix socket", cause: .ipc) {
            var ends: [Int32] = [0, 0]
            socketpair(AF_UNIX, CInt(SOCK_STREAM.rawValue), 0, &ends)
            let far = ends[1]
            later { close(far) }
            var byte: UInt8 = 0
            recv(ends[0], &byte, 1, 0)
            close(ends[0])
            return Outcome()
        },
        Plant(name: "waitpid", cause: .ipc) {
            var child = pid_t()
            var arguments: [UnsafeMutablePointer<CChar>?] = [strdup("sleep"), strdup("0.3"), nil]
            guard posix_spawnp(&child, "sleep", nil, nil, &arguments, environ) == 0 else {
                return nil
            }
            var status: CInt = 0
            waitpid(child, &status, 0)
            return Outcome()
        },
        Plant(name: "flock", cause: .lock) {
            // Two openings of a file exclude each other, also within a process.
            let path = "/tmp/cause-truth-\(getpid())-\(threadID()).lock"
            let (held, wanted) = (open(path, O_RDWR | O_CREAT, 0o600), open(path, O_RDWR))
            flock(held, LOCK_EX)
            later { close(held) }
            flock(wanted, LOCK_EX)
            close(wanted)
            unlink(path)
            return Outcome()
        },
    ]
}

func later(_ body: @escaping @Sendable () -> Void) {
    Thread.detachNewThread {
        usleep(stallMicroseconds)
        body()
    }
}

func withLoopback<Result>(
    port: UInt16, _ body: (UnsafePointer<sockaddr>, socklen_t) -> Result
) -> Result {
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_addr.s_addr = INADDR_LOOPBACK.bigEndian
    address.sin_port = port.bigEndian
    return withUnsafePointer(to: &address) {
        $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
            body($0, socklen_t(MemoryLayout<sockaddr_in>.size))
        }
    }
}

private func listener(backlog: Int32) -> (descriptor: Int32, port: UInt16) {
    let listening = socket(AF_INET, CInt(SOCK_STREAM.rawValue), 0)
    _ = withLoopback(port: 0) { bind(listening, $0, $1) }
    listen(listening, backlog)
    var address = sockaddr_in()
    var length = socklen_t(MemoryLayout<sockaddr_in>.size)
    withUnsafeMutablePointer(to: &address) {
        _ = $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
            getsockname(listening, $0, &length)
        }
    }
    return (listening, UInt16(bigEndian: address.sin_port))
}

func tcpPair() -> (Int32, Int32) {
    let (listening, port) = listener(backlog: 4)
    let near = socket(AF_INET, CInt(SOCK_STREAM.rawValue), 0)
    _ = withLoopback(port: port) { connect(near, $0, $1) }
    let far = accept(listening, nil, nil)
    close(listening)
    return (near, far)
}

private func connectToFullBacklog() -> Outcome? {
    let (listening, port) = listener(backlog: 0)
    var waiting: [Int32] = []
    for _ in 0..<4 {
        let client = socket(AF_INET, CInt(SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue), 0)
        _ = withLoopback(port: port) { connect(client, $0, $1) }
        waiting.append(client)
    }
    let client = socket(AF_INET, CInt(SOCK_STREAM.rawValue), 0)
    var limit = timeval(tv_sec: 0, tv_usec: 300_000)
    setsockopt(client, SOL_SOCKET, SO_SNDTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
    _ = withLoopback(port: port) { connect(client, $0, $1) }
    for descriptor in waiting + [client, listening] { close(descriptor) }
    return Outcome()
}

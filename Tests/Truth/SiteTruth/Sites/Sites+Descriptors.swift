// Pipes, sockets, the resolver, child processes.

import CStallSites
import Foundation

func newPipe(_ visit: Visit) -> (read: Int32, write: Int32) {
    var ends: [Int32] = [0, 0]
    pipe(&ends)
    let (reading, writing) = (ends[0], ends[1])
    visit.atEnd {
        close(reading)
        close(writing)
    }
    return (reading, writing)
}

private func sendByte(_ file: Int32) {
    var byte: UInt8 = 7
    write(file, &byte, 1)
}

@inline(never) func readPipe(_ file: Int32) {
    var byte: UInt8 = 0
    read(file, &byte, 1)
    sink &+= Int(byte)
}

@inline(never) func readPipeVectored(_ file: Int32) {
    var byte: UInt8 = 0
    withUnsafeMutableBytes(of: &byte) { bytes in
        var vector = iovec(iov_base: bytes.baseAddress, iov_len: 1)
        readv(file, &vector, 1)
    }
    sink &+= Int(byte)
}

@inline(never) func fillPipe(_ file: Int32) {
    let bytes = [UInt8](repeating: 1, count: 1 << 17)
    sink &+= write(file, bytes, bytes.count)
}

@inline(never) func pollPipe(_ file: Int32) {
    var entry = pollfd(fd: file, events: Int16(POLLIN), revents: 0)
    sink &+= Int(poll(&entry, 1, 5000))
}

@inline(never) func epollPipe(_ set: Int32) {
    sink &+= Int(site_epoll_wait(set))
}

@inline(never) func selectPipe(_ file: Int32) { sink &+= Int(site_select(file)) }

@inline(never) func readLineOfFile(_ file: UnsafeMutablePointer<FILE>) {
    var line = [CChar](repeating: 0, count: 64)
    fgets(&line, 64, file)
    sink &+= Int(line[0])
}

@inline(never) func readToEnd(_ handle: FileHandle) { sink &+= handle.readDataToEndOfFile().count }

@inline(never) func readAvailable(_ handle: FileHandle) { sink &+= handle.availableData.count }

@inline(never) func readEvent(_ file: Int32) {
    var count: UInt64 = 0
    read(file, &count, 8)
    sink &+= Int(count)
}

@inline(never) func readFIFO(_ file: Int32) {
    var byte: UInt8 = 0
    read(file, &byte, 1)
    sink ^= Int(byte)
}

@inline(never) func openFIFO(_ path: String) {
    let file = open(path, O_RDONLY)
    close(file)
    sink &+= 1
}

@inline(never) func splicePipe(_ from: Int32, _ to: Int32) { sink &+= Int(site_splice(from, to)) }

@inline(never) func receiveMessage(_ queue: Int32) { sink &+= Int(site_message_receive(queue)) }

@inline(never) func takeSystemSemaphore(_ set: Int32) { sink &+= Int(site_semaphore_take(set)) }

let pipeSites: [Site] = [
    Site("read of a pipe", in: "readPipe(_:)", for: [.ipc]) { visit in
        let pipe = newPipe(visit)
        visit.later { sendByte(pipe.write) }
        return { readPipe(pipe.read) }
    },
    Site("readv of a pipe", in: "readPipeVectored(_:)", for: [.ipc]) { visit in
        let pipe = newPipe(visit)
        visit.later { sendByte(pipe.write) }
        return { readPipeVectored(pipe.read) }
    },
    Site("write to a full pipe", in: "fillPipe(_:)", for: [.ipc]) { visit in
        let pipe = newPipe(visit)
        visit.later {
            var bytes = [UInt8](repeating: 0, count: 1 << 18)
            read(pipe.read, &bytes, bytes.count)
            read(pipe.read, &bytes, bytes.count)
        }
        return { fillPipe(pipe.write) }
    },
    Site("poll of a pipe", in: "pollPipe(_:)", for: [.ipc]) { visit in
        let pipe = newPipe(visit)
        visit.later { sendByte(pipe.write) }
        return { pollPipe(pipe.read) }
    },
    Site("epoll of a pipe", in: "site_epoll_wait", for: [.ipc]) { visit in
        let pipe = newPipe(visit)
        let set = site_epoll_of(pipe.read)
        visit.later { sendByte(pipe.write) }
        visit.atEnd { close(set) }
        return { epollPipe(set) }
    },
    Site("select of a pipe", in: "site_select", "select_one", for: [.ipc]) { visit in
        let pipe = newPipe(visit)
        visit.later { sendByte(pipe.write) }
        return { selectPipe(pipe.read) }
    },
    Site("fgets", in: "readLineOfFile(_:)", for: [.ipc]) { visit in
        let pipe = newPipe(visit)
        let file = fdopen(pipe.read, "r")!
        visit.later {
            var line: [UInt8] = [65, 10]
            write(pipe.write, &line, 2)
        }
        return { readLineOfFile(file) }
    },
    Site("readDataToEndOfFile of a pipe", in: "readToEnd(_:)", for: [.ipc]) { visit in
        let pipe = Pipe()
        visit.later { pipe.fileHandleForWriting.closeFile() }
        return { readToEnd(pipe.fileHandleForReading) }
    },
    Site("availableData", in: "readAvailable(_:)", for: [.ipc]) { visit in
        let pipe = Pipe()
        visit.later { pipe.fileHandleForWriting.write(Data([1, 2])) }
        return { readAvailable(pipe.fileHandleForReading) }
    },
    Site("eventfd", in: "readEvent(_:)", for: [.ipc]) { visit in
        let file = site_eventfd()
        visit.later { site_eventfd_give(file) }
        visit.atEnd { close(file) }
        return { readEvent(file) }
    },
    Site("read of a FIFO", in: "readFIFO(_:)", for: [.ipc]) { visit in
        let path = scratch + "/fifo.read"
        unlink(path)
        mkfifo(path, 0o600)
        let file = open(path, O_RDWR)
        visit.later { sendByte(file) }
        visit.atEnd { close(file) }
        return { readFIFO(file) }
    },
    Site("open of a FIFO", in: "openFIFO(_:)", for: [.ipc]) { visit in
        let path = scratch + "/fifo.open"
        unlink(path)
        mkfifo(path, 0o600)
        visit.later { close(open(path, O_WRONLY)) }
        return { openFIFO(path) }
    },
    Site("splice of a pipe", in: "site_splice", for: [.ipc]) { visit in
        let (from, to) = (newPipe(visit), newPipe(visit))
        visit.later { sendByte(from.write) }
        return { splicePipe(from.read, to.write) }
    },
    Site("message queue", in: "site_message_receive", for: [.ipc]) { visit in
        let queue = site_message_queue()
        guard queue >= 0 else { return nil }
        visit.later { site_message_send(queue) }
        visit.atEnd { site_message_remove(queue) }
        return { receiveMessage(queue) }
    },
    Site("semaphore of System V", in: "site_semaphore_take", for: [.ipc]) { visit in
        let set = site_semaphore_set()
        guard set >= 0 else { return nil }
        visit.later { site_semaphore_give(set) }
        visit.atEnd { site_semaphore_remove(set) }
        return { takeSystemSemaphore(set) }
    },
]

// MARK: - Sockets

func pair(_ visit: Visit, tcp: Bool) -> (near: Int32, far: Int32) {
    var ends: [Int32] = [0, 0]
    if tcp {
        site_tcp_pair(&ends)
    } else {
        socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &ends)
    }
    let (near, far) = (ends[0], ends[1])
    visit.atEnd {
        close(near)
        close(far)
    }
    return (near, far)
}

@inline(never) func receiveLocal(_ socket: Int32) {
    var byte: UInt8 = 0
    recv(socket, &byte, 1, 0)
    sink &+= Int(byte)
}

@inline(never) func sendLocal(_ socket: Int32) {
    let bytes = [UInt8](repeating: 1, count: 1 << 20)
    sink &+= send(socket, bytes, bytes.count, 0)
}

@inline(never) func acceptLocal(_ socket: Int32) {
    let peer = accept(socket, nil, nil)
    close(peer)
    sink &+= 1
}

@inline(never) func receiveTCP(_ socket: Int32) {
    var byte: UInt8 = 0
    recv(socket, &byte, 1, 0)
    sink ^= Int(byte)
}

@inline(never) func readTCP(_ socket: Int32) {
    var bytes = [UInt8](repeating: 0, count: 16)
    sink &+= read(socket, &bytes, 16)
}

@inline(never) func sendTCP(_ socket: Int32) {
    let bytes = [UInt8](repeating: 1, count: 16 << 20)
    var sent = 0
    while sent < bytes.count {
        let count = bytes.withUnsafeBytes {
            send(socket, $0.baseAddress! + sent, $0.count - sent, 0)
        }
        if count <= 0 { break }
        sent += count
    }
    sink &+= sent
}

@inline(never) func pollTCP(_ socket: Int32) {
    var entry = pollfd(fd: socket, events: Int16(POLLIN), revents: 0)
    sink ^= Int(poll(&entry, 1, 5000))
}

@inline(never) func epollTCP(_ set: Int32) {
    sink ^= Int(site_epoll_wait(set))
}

@inline(never) func acceptTCP(_ socket: Int32) {
    let peer = accept(socket, nil, nil)
    sink &+= Int(peer & 1)
    close(peer)
}

@inline(never) func receiveDatagram(_ socket: Int32) {
    var byte: UInt8 = 0
    recvfrom(socket, &byte, 1, 0, nil, nil)
    sink &+= Int(byte)
}

@inline(never) func connectToFull(_ port: UInt16) { sink &+= Int(site_connect(port)) }

@inline(never) func resolve(_ name: String) { sink &+= Int(site_getaddrinfo(name)) }

@inline(never) func resolveOldly(_ name: String) { sink &+= Int(site_gethostbyname(name)) }

private func socketSite(
    _ name: String, in function: String, tcp: Bool, _ stall: @escaping (Int32) -> Void
) -> Site {
    Site(name, in: function, for: [tcp ? .network : .ipc]) { visit in
        let pair = pair(visit, tcp: tcp)
        visit.later { sendByte(pair.far) }
        return { stall(pair.near) }
    }
}

let socketSites: [Site] = [
    socketSite("recv from a local socket", in: "receiveLocal(_:)", tcp: false) { receiveLocal($0) },
    Site("send to a full local socket", in: "sendLocal(_:)", for: [.ipc]) { visit in
        let pair = pair(visit, tcp: false)
        visit.later {
            var bytes = [UInt8](repeating: 0, count: 1 << 20)
            var count = 0
            while count < 1 << 20 { count += max(1, read(pair.far, &bytes, bytes.count)) }
        }
        return { sendLocal(pair.near) }
    },
    Site("accept on a local socket", in: "acceptLocal(_:)", for: [.ipc]) { visit in
        let path = scratch + "/socket"
        let listener = site_unix_listener(path)
        visit.later { close(site_unix_connect(path)) }
        visit.atEnd { close(listener) }
        return { acceptLocal(listener) }
    },
    socketSite("recv from TCP", in: "receiveTCP(_:)", tcp: true) { receiveTCP($0) },
    socketSite("read from TCP", in: "readTCP(_:)", tcp: true) { readTCP($0) },
    socketSite("poll of TCP", in: "pollTCP(_:)", tcp: true) { pollTCP($0) },
    Site("epoll of TCP", in: "site_epoll_wait", for: [.network]) { visit in
        let pair = pair(visit, tcp: true)
        let set = site_epoll_of(pair.near)
        visit.later { sendByte(pair.far) }
        visit.atEnd { close(set) }
        return { epollTCP(set) }
    },
    Site("send to a slow peer", in: "sendTCP(_:)", for: [.network]) { visit in
        let pair = pair(visit, tcp: true)
        visit.later {
            var bytes = [UInt8](repeating: 0, count: 1 << 20)
            var count = 0
            while count < 16 << 20 { count += max(1, read(pair.far, &bytes, bytes.count)) }
        }
        return { sendTCP(pair.near) }
    },
    Site("accept on TCP", in: "acceptTCP(_:)", for: [.network]) { visit in
        var port: UInt16 = 0
        let listener = site_tcp_listener(&port, 4)
        visit.later { close(site_connect(port)) }
        visit.atEnd { close(listener) }
        return { acceptTCP(listener) }
    },
    Site("recvfrom UDP", in: "receiveDatagram(_:)", for: [.network]) { visit in
        var port: UInt16 = 0
        let socket = site_udp_socket(&port)
        visit.later { site_udp_send(port) }
        visit.atEnd { close(socket) }
        return { receiveDatagram(socket) }
    },
    Site("connect to a full backlog", in: "site_connect", for: [.network]) { visit in
        var port: UInt16 = 0
        let listener = site_full_listener(&port)
        guard listener >= 0 else { return nil }
        visit.later { site_make_room(listener) }
        visit.atEnd { close(listener) }
        return { connectToFull(port) }
    },
    Site("getaddrinfo", in: "site_getaddrinfo", for: [.network]) { visit in
        site_silent_nameserver() ? { resolve("a.stallwatch.example") } : nil
    },
    Site("gethostbyname", in: "site_gethostbyname", for: [.network]) { visit in
        site_silent_nameserver() ? { resolveOldly("b.stallwatch.example") } : nil
    },
]

// MARK: - Child processes

private func sleeper() -> Process {
    let process = Process()
    process.executableURL = URL(fileURLWithPath: "/bin/sleep")
    process.arguments = ["0.2"]
    return process
}

@inline(never) func exportReport(_ process: Process) {
    process.waitUntilExit()
    sink &+= Int(process.terminationStatus) + 1
}

@inline(never) func runScript() { sink &+= Int(site_system("sleep 0.2")) + 1 }

@inline(never) func waitForChild(_ child: pid_t) {
    var status: Int32 = 0
    waitpid(child, &status, 0)
    sink &+= Int(status) + 1
}

@inline(never) func waitForID(_ child: pid_t) {
    var information = siginfo_t()
    waitid(P_PID, UInt32(child), &information, WEXITED)
    sink &+= 1
}

@inline(never) func readCommand() {
    let file = popen("sleep 0.2; echo 3", "r")!
    var line = [CChar](repeating: 0, count: 16)
    fgets(&line, 16, file)
    pclose(file)
    sink &+= Int(line[0])
}

@inline(never) func readOutput(_ process: Process, _ pipe: Pipe) {
    sink &+= pipe.fileHandleForReading.readDataToEndOfFile().count
    sink ^= process.isRunning ? 1 : 0
}

let processSites: [Site] = [
    Site("Process.waitUntilExit", in: "exportReport(_:)", for: [.ipc]) { _ in
        let process = sleeper()
        try! process.run()
        return { exportReport(process) }
    },
    Site("system", in: "site_system", for: [.ipc]) { _ in { runScript() } },
    Site("waitpid", in: "waitForChild(_:)", for: [.ipc]) { _ in
        let child = site_spawn_sleep("0.2")
        return child > 0 ? { waitForChild(child) } : nil
    },
    Site("waitid", in: "waitForID(_:)", for: [.ipc]) { _ in
        let child = site_spawn_sleep("0.2")
        return child > 0 ? { waitForID(child) } : nil
    },
    Site("popen", in: "readCommand()", for: [.ipc]) { _ in { readCommand() } },
    Site("output of a child", in: "readOutput(_:_:)", for: [.ipc]) { _ in
        let (process, pipe) = (sleeper(), Pipe())
        process.standardOutput = pipe
        try! process.run()
        return { readOutput(process, pipe) }
    },
]

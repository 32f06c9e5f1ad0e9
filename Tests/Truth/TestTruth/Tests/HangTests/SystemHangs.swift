// Tests that never end, in the system: other processes, pipes, sockets, files, computing.

import Dispatch
import Foundation
import Testing

private func child(_ words: String...) -> Process {
    let process = Process()
    process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
    process.arguments = words
    try! process.run()
    return process
}

private func pipeEnds() -> (reading: Int32, writing: Int32) {
    var ends: [Int32] = [0, 0]
    pipe(&ends)
    return (ends[0], ends[1])
}

@Test func waitUntilExit() {
    began()
    child("sleep", "100000").waitUntilExit()  // hangs: blocked
}

@Test func waitForChild() {
    began()
    var status: Int32 = 0
    let process = child("sleep", "100000")
    waitpid(process.processIdentifier, &status, 0)  // hangs: blocked
}

@Test func fullPipe() {
    began()
    let bytes = [UInt8](repeating: 0, count: 1 << 20)
    write(pipeEnds().writing, bytes, bytes.count)  // hangs: blocked
}

@Test func emptyPipe() {
    began()
    var byte: UInt8 = 0
    read(pipeEnds().reading, &byte, 1)  // hangs: blocked
}

/// The child waits for its standard input, which this process never closes.
@Test func outputOfAChild() {
    began()
    let (process, input, output) = (Process(), Pipe(), Pipe())
    process.executableURL = URL(fileURLWithPath: "/bin/cat")
    process.standardInput = input
    process.standardOutput = output
    try! process.run()
    _ = output.fileHandleForReading.readDataToEndOfFile()  // hangs: blocked
    input.fileHandleForWriting.closeFile()
}

@Test func silentPeer() {
    began()
    var (ends, byte): ([Int32], UInt8) = ([0, 0], 0)
    socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &ends)
    recv(ends[0], &byte, 1, 0)  // hangs: blocked
}

@Test func noClient() {
    began()
    let socket = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    listen(socket, 1)
    accept(socket, nil, nil)  // hangs: blocked
}

@Test func pollWithoutLimit() {
    began()
    var polled = pollfd(fd: pipeEnds().reading, events: Int16(POLLIN), revents: 0)
    poll(&polled, 1, -1)  // hangs: blocked
}

@Test func lockedFile() {
    began()
    let path = NSTemporaryDirectory() + "/truth-tests-\(getpid())"
    let file = open(path, O_RDWR | O_CREAT, 0o600)
    let holder = child("flock", path, "sleep", "100000")
    while flock(file, LOCK_EX | LOCK_NB) == 0 {
        flock(file, LOCK_UN)
        usleep(1000)
    }
    flock(file, LOCK_EX)  // hangs: blocked
    holder.terminate()
}

@Test func fifoWithoutWriter() {
    began()
    let path = NSTemporaryDirectory() + "/truth-tests-fifo-\(getpid())"
    mkfifo(path, 0o600)
    _ = open(path, O_RDONLY)  // hangs: blocked
}

/// A name server on a port of this machine that receives questions and answers none.
private func useSilentNameServer() {
    let silent = socket(AF_INET, Int32(SOCK_DGRAM.rawValue), 0)
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_addr.s_addr = inet_addr("127.0.0.1")
    var size = socklen_t(MemoryLayout<sockaddr_in>.size)
    withUnsafeMutablePointer(to: &address) {
        $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
            _ = bind(silent, $0, size)
            getsockname(silent, $0, &size)
        }
    }
    // The calling thread's `_res`, whose header is not in Swift's Glibc: seconds for an answer, attempts, options, the
    // number of name servers, their addresses.
    typealias Initialize = @convention(c) () -> Int32
    typealias State = @convention(c) () -> UnsafeMutableRawPointer
    _ = unsafeBitCast(dlsym(nil, "__res_init"), to: Initialize.self)()
    let state = unsafeBitCast(dlsym(nil, "__res_state"), to: State.self)()
    state.storeBytes(of: 30, as: Int32.self)
    state.storeBytes(of: 5, toByteOffset: 4, as: Int32.self)
    state.storeBytes(of: 1, toByteOffset: 16, as: Int32.self)
    state.storeBytes(of: address, toByteOffset: 20, as: sockaddr_in.self)
}

@Test func silentNameServer() {
    began()
    useSilentNameServer()
    var found: UnsafeMutablePointer<addrinfo>?
    getaddrinfo("stallwatch.example", "80", nil, &found)  // hangs: blocked
}

@Test func endlessLoop() {
    began()
    var sum: UInt64 = 0
    while sum < .max { sum &= 0xFFFF }  // hangs: blocked
}

@Test func endlessArithmetic() {
    began()
    var value: UInt64 = 1
    repeat { value = value &* 3 } while value != 0  // hangs: blocked
}

@Test func longSleep() {
    began()
    sleep(100_000)  // hangs: blocked
}

@Test func threadSleep() {
    began()
    Thread.sleep(forTimeInterval: 100_000)  // hangs: blocked
}

@Test func signalThatNeverComes() {
    began()
    pause()  // hangs: blocked
}

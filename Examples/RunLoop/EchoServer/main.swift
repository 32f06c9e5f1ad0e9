import Glibc
import StallRunLoop

let loop = EventRunLoop.main

/// A socket that listens on a free port of this machine.
func makeListener() -> (socket: CInt, port: UInt16) {
    let kind = CInt(SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue)
    let listener = socket(AF_INET, kind, 0)
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_addr.s_addr = INADDR_LOOPBACK.bigEndian
    var size = socklen_t(MemoryLayout<sockaddr_in>.size)
    let isListening = withUnsafeMutablePointer(to: &address) {
        $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
            bind(listener, $0, size) == 0 && listen(listener, 64) == 0
                && getsockname(listener, $0, &size) == 0
        }
    }
    precondition(isListening, "no port to listen on: errno \(errno)")
    return (listener, UInt16(bigEndian: address.sin_port))
}

/// Sends back what a client sends. While some of it waits to be sent, no more is read: a client that does not read is
/// given no more memory.
func serve(_ client: CInt) throws {
    var waiting: [UInt8] = []
    let connection = DescriptorSource(descriptor: client, onCancel: { close($0) }) {
        connection, _ in
        if waiting.isEmpty {
            var buffer = [UInt8](repeating: 0, count: 4_096)
            let count = recv(client, &buffer, buffer.count, CInt(MSG_DONTWAIT))
            if count < 0 && errno == EAGAIN { return }
            guard count > 0 else { return connection.invalidate() }
            waiting = Array(buffer[..<count])
        }
        let flags = CInt(MSG_DONTWAIT | MSG_NOSIGNAL)
        let sent = send(client, waiting, waiting.count, flags)
        if sent < 0 && errno != EAGAIN { return connection.invalidate() }
        waiting.removeFirst(max(0, sent))
        connection.events = waiting.isEmpty ? .readable : .writable
    }
    try loop.add(connection, toMode: .default)
}

let (listener, port) = makeListener()
let clients = DescriptorSource(descriptor: listener) { clients, _ in
    let client = accept(listener, nil, nil)
    if client >= 0 {
        do { try serve(client) } catch { print("a client is not served: \(error)") }
    } else if [EMFILE, ENFILE, ENOBUFS, ENOMEM].contains(errno) {
        // The client still waits, so the listener stays readable: without a pause the loop would never sleep.
        clients.events = []
        loop.perform(after: .milliseconds(100)) { clients.events = .readable }
    }
}
try loop.add(clients, toMode: .default)
print("listening on 127.0.0.1:\(port)")
fflush(nil)
loop.run()

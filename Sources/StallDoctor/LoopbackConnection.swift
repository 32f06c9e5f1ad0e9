// A TCP connection of the process with itself.

internal import Glibc

struct LoopbackConnection {
    let client: CInt
    let server: CInt

    struct Failure: Error, CustomStringConvertible {
        let description: String
        init(_ call: String) {
            description = "\(call) on 127.0.0.1: \(String(cString: strerror(errno)))"
        }
    }

    static func open() -> Result<LoopbackConnection, Failure> {
        let listener = socket(AF_INET, CInt(SOCK_STREAM.rawValue), 0)
        guard listener >= 0 else { return .failure(Failure("socket")) }
        defer { close(listener) }
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = in_addr_t(INADDR_LOOPBACK).bigEndian
        var size = socklen_t(MemoryLayout<sockaddr_in>.size)
        let isOpen = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                bind(listener, address, size) == 0 && listen(listener, 1) == 0
                    && getsockname(listener, address, &size) == 0
            }
        }
        guard isOpen else { return .failure(Failure("bind")) }
        let client = socket(AF_INET, CInt(SOCK_STREAM.rawValue), 0)
        let isConnected = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                connect(client, $0, size) == 0
            }
        }
        guard isConnected else { return .failure(Failure("connect")) }
        let server = accept(listener, nil, nil)
        guard server >= 0 else { return .failure(Failure("accept")) }
        return .success(LoopbackConnection(client: client, server: server))
    }
}

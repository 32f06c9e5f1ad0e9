import Foundation
import Glibc

/// A server on loopback that says what it is told to, for the real `curl`. Each connection has one answer, chosen by the body
/// of its request.
final class LocalServer: Sendable {
    let port: Int
    private let socket: CInt

    init(_ answer: @escaping @Sendable (String) -> String) throws {
        let socket = Glibc.socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let isBound = withUnsafeMutablePointer(to: &address) { address in
            address.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(socket, $0, length) == 0 && listen(socket, 64) == 0
                    && getsockname(socket, $0, &length) == 0
            }
        }
        guard isBound else { throw POSIXError(.EADDRINUSE) }
        (self.socket, port) = (socket, Int(UInt16(bigEndian: address.sin_port)))
        Thread.detachNewThread {
            while case let connection = accept(socket, nil, nil), connection >= 0 {
                Thread.detachNewThread { Self.serve(connection, answer) }
            }
        }
    }

    private static func serve(_ connection: CInt, _ answer: (String) -> String) {
        defer { close(connection) }
        guard let body = body(of: connection) else { return }
        var text = Array(answer(body).utf8)[...]
        while !text.isEmpty {
            let count = text.withUnsafeBytes {
                send(connection, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
            }
            // The other side has enough.
            guard count > 0 else { return }
            text = text.dropFirst(count)
        }
    }

    /// Ends it: its thread sees the socket close.
    func end() {
        shutdown(socket, Int32(SHUT_RDWR))
        close(socket)
    }

    /// What a request sends behind its heads; nil where it breaks off.
    private static func body(of connection: CInt) -> String? {
        var text: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 65536)
        while true {
            if let end = text.firstRange(of: Array("\r\n\r\n".utf8)) {
                let heads = String(decoding: text[..<end.lowerBound], as: UTF8.self)
                let field = heads.split(separator: "\r\n").first {
                    $0.hasPrefix("Content-Length: ")
                }
                let length = field.flatMap { Int($0.dropFirst(16)) } ?? 0
                if text.count - end.upperBound >= length {
                    return String(decoding: text[end.upperBound...], as: UTF8.self)
                }
            }
            let count = recv(connection, &buffer, buffer.count, 0)
            guard count > 0 else { return nil }
            text += buffer[..<count]
        }
    }

    /// An answer that is whole.
    static func whole(_ body: String) -> String {
        "HTTP/1.1 200 OK\r\nX-ClickHouse-Query-Id: 1\r\nContent-Length: \(body.utf8.count)\r\n\r\n\(body)"
    }
}

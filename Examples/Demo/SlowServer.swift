// A server of the demo's own that thinks before it answers.

import Foundation

/// Listens on a loopback port and answers every connection after a delay.
final class SlowServer: Sendable {
    let port: UInt16

    init(delay: TimeInterval) {
        let listener = socket(AF_INET, CInt(SOCK_STREAM.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = INADDR_LOOPBACK.bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let isListening = withUnsafeMutableBytes(of: &address) { bytes in
            let address = bytes.assumingMemoryBound(to: sockaddr.self).baseAddress!
            return bind(listener, address, length) == 0 && listen(listener, 8) == 0
                && getsockname(listener, address, &length) == 0
        }
        precondition(isListening, "no loopback port to listen on")
        port = UInt16(bigEndian: address.sin_port)
        Thread.detachNewThread {
            while true {
                let connection = accept(listener, nil, nil)
                guard connection >= 0 else { return }
                Thread.sleep(forTimeInterval: delay)
                _ = write(connection, "hello", 5)
                close(connection)
            }
        }
    }
}

// A collector for tests: HTTP/1.1 on the loopback, one connection at a time, a central store behind it. It misbehaves
// when it is told to.

#if Fleet
import Foundation
import Glibc
import StallAnalysis
import StallFormats
import StallIngest
import StallModel
import StallQuery
import StallStore
import Synchronization

@testable import stallctl

/// Serves until it goes.
final class LoopbackCollector: Sendable {
    /// What becomes of a request in place of an answer.
    enum Mishap: Sendable {
        /// Stores the batch and closes the connection without a word.
        case dropAfterStoring
        /// Closes the connection before anything.
        case drop
        /// Says nothing for as long as the other side waits.
        case silence
        /// Answers a space ten times a second for a minute, or until the other side has enough.
        case trickle
        /// Answers this instead of doing anything.
        case answer(String)
        /// Stores the batch, then answers this.
        case answerAfterStoring(String)
        /// Sends only the first bytes of the answer.
        case cut
    }

    struct Request: Sendable {
        var line: String
        var fields: [String: String]
        var body: [UInt8]
    }

    private struct State {
        var mishaps: [Mishap] = []
        var requests: [Request] = []
    }

    let port: UInt16
    private let socket: CInt
    private let central: String
    private let state = Mutex(State())
    private let isOver = Atomic(false)

    var url: String { "http://127.0.0.1:\(port)" }
    var requests: [Request] { state.withLock { $0.requests } }

    init(central: String) throws {
        self.central = central
        let socket = Glibc.socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let bound = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(socket, $0, length) == 0 && listen(socket, 16) == 0
                    && getsockname(socket, $0, &length) == 0
            }
        }
        guard bound else { throw OutputError.notCompressed("no loopback") }
        self.socket = socket
        port = UInt16(bigEndian: address.sin_port)
        Thread.detachNewThread { [self] in serve() }
    }

    func stop() {
        isOver.store(true, ordering: .relaxed)
        shutdown(socket, Int32(SHUT_RDWR))
    }

    /// What goes wrong with the next requests, in order.
    func expect(_ mishaps: [Mishap]) { state.withLock { $0.mishaps += mishaps } }

    /// Nothing goes wrong with the next ones.
    func expectNothing() { state.withLock { $0.mishaps = [] } }

    private func serve() {
        while !isOver.load(ordering: .relaxed) {
            let connection = accept(socket, nil, nil)
            guard connection >= 0 else { break }
            if let request = read(connection) { answer(request, on: connection) }
            close(connection)
        }
        close(socket)
    }

    private func read(_ connection: CInt) -> Request? {
        var bytes: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 1 << 16)
        var head: Int?
        var wanted = 0
        var request = Request(line: "", fields: [:], body: [])
        while head == nil || bytes.count < head! + wanted {
            let count = recv(connection, &buffer, buffer.count, 0)
            guard count > 0 else { return nil }
            bytes += buffer[..<count]
            guard head == nil else { continue }
            for end in bytes.indices.dropLast(3)
            where bytes[end..<end + 4].elementsEqual([13, 10, 13, 10]) {
                head = end + 4
                let lines = String(decoding: bytes[..<end], as: UTF8.self)
                    .components(separatedBy: "\r\n")
                request.line = lines[0]
                for line in lines.dropFirst() {
                    let parts = line.split(separator: ":", maxSplits: 1)
                    request.fields[parts[0].lowercased()] = parts[1].trimmingCharacters(
                        in: .whitespaces)
                }
                wanted = Int(request.fields["content-length"] ?? "0") ?? 0
                break
            }
        }
        request.body = Array(bytes[head!..<head! + wanted])
        return request
    }

    private func answer(_ request: Request, on connection: CInt) {
        let mishap = state.withLock { state -> Mishap? in
            state.requests.append(request)
            return state.mishaps.isEmpty ? nil : state.mishaps.removeFirst()
        }
        switch mishap {
        case .drop: return
        case .silence:
            var byte: UInt8 = 0
            _ = recv(connection, &byte, 1, 0)
        case .trickle:
            send("HTTP/1.1 200 Whatever\r\nContent-Length: 5000\r\n\r\n", on: connection)
            var input = pollfd(fd: connection, events: Int16(POLLIN), revents: 0)
            for _ in 0..<600 where poll(&input, 1, 100) == 0 { send(" ", on: connection) }
        case .dropAfterStoring: _ = take(request)
        case .answer(let text): send(text, on: connection)
        case .answerAfterStoring(let text):
            _ = take(request)
            send(text, on: connection)
        case .cut: send(String(take(request).prefix(60)), on: connection)
        case nil: send(take(request), on: connection)
        }
    }

    private func send(_ text: String, on connection: CInt) {
        var bytes = Array(text.utf8)[...]
        while !bytes.isEmpty {
            let count = bytes.withUnsafeBytes {
                Glibc.send(connection, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
            }
            guard count > 0 else { return }
            bytes = bytes.dropFirst(count)
        }
    }

    static func response(_ status: Int, _ body: String, _ fields: String = "") -> String {
        "HTTP/1.1 \(status) Whatever\r\nContent-Length: \(body.utf8.count)\r\n\(fields)"
            + "Connection: close\r\n\r\n\(body)"
    }

    private func take(_ request: Request) -> String {
        do {
            let path = request.line.split(separator: " ")[1].split(separator: "/")
            guard path.count >= 3, let bytes = [UInt8](hexadecimal: path[2]),
                let store = UniqueID(bytes: bytes)
            else { return Self.response(404, "{\"error\":\"no such path\"}") }
            let ingest = try Ingest(into: central, grouper: DefaultGrouper())
            defer { try? ingest.close() }
            if request.line.hasPrefix("GET") {
                let position = try ingest.position(of: store)
                let last = position.last.map { ",\"last\":{\"seq\":\($0.seq),\"id\":\"\($0.id)\"}" }
                return Self.response(200, "{\"through\":\(position.through)\(last ?? "")}")
            }
            let digest = "sha-256=:\(SHA256.base64(SHA256.digest(request.body))):"
            guard request.fields["content-digest"] == digest,
                let from = Int64(request.fields["stallwatch-from"] ?? ""),
                let through = Int64(request.fields["stallwatch-through"] ?? ""),
                request.fields["stallwatch-schema"] == "1",
                request.fields["content-encoding"] == "gzip"
            else { return Self.response(400, "{\"error\":\"fields\"}") }
            let result = try ingest.take(
                PushedBatch(
                    store: store, from: from, through: through,
                    rows: ReportLines(bytes: try gunzip(request.body))))
            switch result {
            case .taken(let taken):
                return Self.response(
                    200,
                    "{\"through\":\(taken.through),\"added\":\(taken.added),\"changed\":\(taken.changed)}"
                )
            case .gap(let through): return Self.response(409, "{\"through\":\(through)}")
            case .refused(let refused):
                let lines = refused.lines.map { "{\"line\":\($0.line),\"error\":\"\($0.reason)\"}" }
                return Self.response(422, "{\"lines\":[\(lines.joined(separator: ","))]}")
            }
        } catch {
            return Self.response(503, "{\"error\":\"\(error)\"}")
        }
    }

    private func gunzip(_ bytes: [UInt8]) throws -> [UInt8] {
        let result = try Oracle.run("/bin/gzip", ["-dc"], input: Data(bytes))
        return Array(result.output.utf8)
    }
}
#endif

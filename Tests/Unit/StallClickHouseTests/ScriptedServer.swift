import StallClickHouse
import StallHTTP
import Synchronization

/// Plays a server: answers requests in order, and keeps them.
final class ScriptedServer: HTTPSender, Sendable {
    private let script: Mutex<[HTTPReply]>
    private let kept = Mutex<[HTTPRequest]>([])
    private let waited = Mutex<[Double]>([])

    init(_ script: [HTTPReply]) { self.script = Mutex(script) }

    var requests: [HTTPRequest] { kept.withLock { $0 } }
    /// The seconds between attempts.
    var pauses: [Double] { waited.withLock { $0 } }

    func send(_ request: HTTPRequest, isCancelled: () -> Bool) -> HTTPReply {
        kept.withLock { $0.append(request) }
        return script.withLock {
            $0.isEmpty ? .failed(reason: "the script ends") : $0.removeFirst()
        }
    }

    func server(
        _ address: String = "clickhouse://reader@hub:8123/stalls?cluster=two"
    ) throws -> ClickHouseServer {
        ClickHouseServer(try ClickHouseAddress(address), password: "s3cret", sender: self) {
            seconds in
            self.waited.withLock { $0.append(seconds) }
        }
    }

    /// What tells its answers from those of other programs.
    static let clickHouse = ["x-clickhouse-server-display-name": "played"]

    static func answer(_ text: String, status: Int = 200) -> HTTPReply {
        .answer(HTTPAnswer(status: status, fields: clickHouse, body: Array(text.utf8)))
    }

    /// As ClickHouse 18.16 says what is wrong.
    static func error(_ code: Int, _ text: String) -> HTTPReply {
        answer(
            "Code: \(code), e.displayText() = DB::Exception: \(text), e.what() = DB::Exception\n",
            status: 500)
    }
}

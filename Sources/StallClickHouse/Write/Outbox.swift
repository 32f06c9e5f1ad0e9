// Inserts on their way to the shards. Small ones wait until some can be sent together, and while those are under way the next
// are made: the servers and this program work at the same time.
//
//     ShardedRows, table by table -> waiting -> under way -> in

internal import Dispatch
internal import Synchronization

/// Collects inserts and sends them. Rows that depend on others being stored are added behind ``flush()``.
///
/// **Thread safety:** one thread at a time; it sends on another one.
final class Outbox {
    let cluster: ClickHouseCluster
    private var waiting: [ClickHouseWrite] = []
    private var waitingBytes = 0
    private var underWay: Sending?
    private(set) var byteCount = 0

    /// Requests of this many bytes take the servers a good part of a second. More gains nothing, and is memory here and
    /// there.
    private static let bytesTogether = 24 << 20

    /// How many bytes of rows for one shard make an insert that need not wait for others.
    var bytesPerInsert: Int { Self.bytesTogether / cluster.shards.count }

    init(_ cluster: ClickHouseCluster) { self.cluster = cluster }

    deinit { _ = underWay?.wait() }

    /// Adds an insert; sends it with those that wait if they are enough.
    func add(_ rows: [UInt8], into table: ClickHouseQuery, of shard: ClickHouseServer)
        throws(ClickHouseError)
    {
        waiting.append(ClickHouseWrite(rows, into: table, of: shard))
        waitingBytes += rows.count
        byteCount += rows.count
        if waitingBytes >= Self.bytesTogether || waiting.count >= ClickHouseWrite.togetherLimit {
            try sendWaiting()
        }
    }

    /// Sends the rest, and waits until all that was added is in.
    func flush() throws(ClickHouseError) {
        try sendWaiting()
        try wait()
    }

    private func sendWaiting() throws(ClickHouseError) {
        try wait()
        guard !waiting.isEmpty else { return }
        underWay = Sending(waiting)
        (waiting, waitingBytes) = ([], 0)
    }

    private func wait() throws(ClickHouseError) {
        defer { underWay = nil }
        try underWay?.wait().get()
    }
}

/// Inserts that a thread sends and waits for.
private final class Sending: Sendable {
    // The thread is the only one that uses them.
    private struct Writes: @unchecked Sendable {
        var all: [ClickHouseWrite]
    }

    private let result = Mutex<Result<Void, ClickHouseError>>(.success(()))
    private let done = DispatchSemaphore(value: 0)

    init(_ writes: [ClickHouseWrite]) {
        let writes = Writes(all: writes)
        DispatchQueue.global().async { [self] in
            let result = Result { () throws(ClickHouseError) in try ClickHouseWrite.send(writes.all)
            }
            self.result.withLock { $0 = result }
            done.signal()
        }
    }

    /// Waits until they were sent. To be called once.
    func wait() -> Result<Void, ClickHouseError> {
        done.wait()
        return result.withLock { $0 }
    }
}

// The collector's counters, in Prometheus' text format.

internal import StallFormats
internal import Synchronization

/// Counters since the start.
final class CollectorCounts: Sendable {
    struct Values {
        /// Requests by status.
        var requests: [Int: Int64] = [:]
        /// Rows of any kind by their outcome.
        var added: Int64 = 0
        var changed: Int64 = 0
        var unknown: Int64 = 0
        var refused: Int64 = 0
        var batches: Int64 = 0
        var sentBytes: Int64 = 0
        var inflatedBytes: Int64 = 0
        var heldBytes: Int64 = 0
        /// Batches that wait for the writer, or are written.
        var waiting: Int64 = 0
        var writeSeconds = 0.0
        /// When rows of each machine and app were committed last, in seconds since 1970.
        var lastPushes: [PushSender: Double] = [:]
    }
    /// Of more senders, those that pushed last are known.
    private static let senderLimit = 10_000

    private let values = Mutex(Values())

    func count(_ change: (inout Values) -> Void) { values.withLock { change(&$0) } }

    /// Reserves this number of bytes of the memory for bodies, if there is room.
    func hold(_ bytes: Int, limit: Int) -> Bool {
        values.withLock {
            guard $0.heldBytes + Int64(bytes) <= limit else { return false }
            $0.heldBytes += Int64(bytes)
            return true
        }
    }

    func notePush(of senders: Set<PushSender>, at time: Double) {
        notePushes(Dictionary(uniqueKeysWithValues: senders.map { ($0, time) }))
    }

    func notePushes(_ times: [PushSender: Double]) {
        values.withLock { values in
            // By the collector's own clock, also where that was set back.
            values.lastPushes.merge(times) { _, new in new }
            guard values.lastPushes.count > Self.senderLimit else { return }
            let times = values.lastPushes.values.sorted()
            let first = times[times.count - Self.senderLimit * 9 / 10]
            values.lastPushes = values.lastPushes.filter { $0.value >= first }
        }
    }

    func text(
        tokenFailures: Int64, droppedAccesses: Int64, droppedNotices: Int64, isReady: Bool,
        namesHosts: Bool
    ) -> String {
        let values = values.withLock { $0 }
        var text = PrometheusText()
        text.family("stall_collector_requests_total", .counter, "Requests by status.")
        for (status, count) in values.requests.sorted(by: { $0.key < $1.key }) {
            text.sample("stall_collector_requests_total{status=\"\(status)\"}", count)
        }
        text.family("stall_collector_rows_total", .counter, "Lines by what became of them.")
        for (result, count) in [
            ("added", values.added), ("changed", values.changed), ("unknown", values.unknown),
            ("refused", values.refused),
        ] { text.sample("stall_collector_rows_total{result=\"\(result)\"}", count) }
        text.family("stall_collector_batches_total", .counter, "Batches that were committed.")
        text.sample("stall_collector_batches_total", values.batches)
        text.family("stall_collector_received_bytes_total", .counter, "Bodies as sent.")
        text.sample("stall_collector_received_bytes_total", values.sentBytes)
        text.family("stall_collector_inflated_bytes_total", .counter, "Bodies unpacked.")
        text.sample("stall_collector_inflated_bytes_total", values.inflatedBytes)
        text.family("stall_collector_held_bytes", .gauge, "Memory for bodies in use.")
        text.sample("stall_collector_held_bytes", values.heldBytes)
        text.family("stall_collector_waiting_batches", .gauge, "Batches not yet committed.")
        text.sample("stall_collector_waiting_batches", values.waiting)
        text.family("stall_collector_write_seconds_total", .counter, "Time until commit.")
        text.sample("stall_collector_write_seconds_total", values.writeSeconds)
        text.family(
            "stall_collector_token_file_errors_total", .counter,
            "Changes of the token file that could not be read.")
        text.sample("stall_collector_token_file_errors_total", tokenFailures)
        text.family(
            "stall_collector_access_log_dropped_total", .counter,
            "Requests that are not in the access log.")
        text.sample("stall_collector_access_log_dropped_total", droppedAccesses)
        text.family(
            "stall_collector_log_dropped_total", .counter,
            "Lines for the operator that could not be written.")
        text.sample("stall_collector_log_dropped_total", droppedNotices)
        text.family(
            "stall_collector_ready", .gauge, "Whether a batch would be committed: 1, or 0.")
        text.sample("stall_collector_ready", isReady ? 1 : 0)
        guard namesHosts else { return text.lines.joined(separator: "\n") + "\n" }
        text.family(
            "stall_collector_last_push_timestamp_seconds", .gauge,
            "When rows of an app on a machine were committed last.")
        let senders = values.lastPushes.sorted {
            ($0.key.host, $0.key.app) < ($1.key.host, $1.key.app)
        }
        for (sender, time) in senders {
            let name = PrometheusText.series(
                "stall_collector_last_push_timestamp_seconds",
                ["host": sender.host, "app": sender.app])
            text.sample(name, Int64(time))
        }
        return text.lines.joined(separator: "\n") + "\n"
    }
}

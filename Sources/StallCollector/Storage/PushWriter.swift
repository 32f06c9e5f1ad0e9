// The one thread that writes. Batches that arrive while it commits wait, and are handed over together.

internal import StallModel
internal import StallStore
internal import Synchronization

/// Writes batches on a thread of its own.
final class PushWriter<Storage: PushStorage>: Sendable {
    private struct Waiting: Sendable {
        var range: PushRange
        var rows: Storage.Rows
        var token: CollectorToken
        var done: CheckedContinuation<PushOutcome, Never>
    }

    struct Unavailable: Error {
        /// For the operator.
        var reason: String
    }

    /// Used on the thread only.
    private struct Owned: @unchecked Sendable { var storage: Storage }

    private let storage: Owned
    private let statements: StatementProgress
    private let batchCount = Atomic(0)
    let probeWrites: Bool
    private let thread = WorkThread("stall-writer")
    private let waiting = Mutex<[Waiting]>([])
    private let batchesPerCommit = 16

    init(_ storage: Storage) {
        (statements, probeWrites) = (storage.progress, storage.probeWrites)
        self.storage = Owned(storage: storage)
    }

    /// The batches that are not being written yet.
    var waitingCount: Int { waiting.withLock { $0.count } }

    /// Changes as long as the writer gets on with its work.
    var progress: Int { statements.count &+ batchCount.load(ordering: .relaxed) }

    /// Returns when the batch is committed or refused.
    func take(
        _ range: PushRange, _ rows: Storage.Rows, _ token: CollectorToken
    ) async -> PushOutcome {
        await withCheckedContinuation { done in
            let batch = Waiting(range: range, rows: rows, token: token, done: done)
            waiting.withLock { $0.append(batch) }
            if !thread.add({ [self] in writeWaiting() }) { refuseWaiting() }
        }
    }

    func position(of store: UniqueID) async -> Result<PushPosition, Unavailable> {
        let storage = storage
        let answer = await thread.answer { () -> Result<PushPosition, Unavailable> in
            do { return .success(try storage.storage.position(of: store)) } catch {
                return .failure(Unavailable(reason: "\(error)"))
            }
        }
        return answer ?? .failure(Unavailable(reason: "the collector stops"))
    }

    /// The obstacle that a batch would meet now; nil where it would be committed. Waits its turn.
    func probe() async -> String? {
        let storage = storage
        let answer = await thread.answer { () -> String? in
            do { try storage.storage.probe() } catch { return "\(error)" }
            return nil
        }
        return answer ?? "the collector stops"
    }

    /// Commits batches that wait, then closes the store.
    func stop() {
        let storage = storage
        thread.add { storage.storage.close() }
        thread.stop()
        refuseWaiting()
    }

    /// A job is added for each batch; most find that another took theirs along.
    private func writeWaiting() {
        let batches = waiting.withLock { waiting in
            let taken = Array(waiting.prefix(batchesPerCommit))
            waiting.removeFirst(taken.count)
            return taken
        }
        guard !batches.isEmpty else { return }
        let outcomes = storage.storage.take(batches.map { ($0.range, $0.rows, $0.token) })
        batchCount.wrappingAdd(1, ordering: .relaxed)
        for (batch, outcome) in zip(batches, outcomes) { batch.done.resume(returning: outcome) }
        // Each would wait for the lock in turn; those behind for minutes.
        guard outcomes.allSatisfy(\.isUnavailable) else { return }
        do { try storage.storage.probe() } catch { refuseWaiting("\(error)") }
    }

    private func refuseWaiting(_ reason: String = "the collector stops") {
        let rest = waiting.withLock { waiting in
            defer { waiting = [] }
            return waiting
        }
        for batch in rest { batch.done.resume(returning: .unavailable(reason)) }
    }
}

extension PushOutcome {
    fileprivate var isUnavailable: Bool { if case .unavailable = self { true } else { false } }
}

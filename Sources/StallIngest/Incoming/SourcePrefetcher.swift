// Reads stores while those before them are written. SQLite writes on one thread at a time; opening
// files, reading and checking their rows is half as much work again, and needs no lock.

internal import Dispatch
internal import StallArchive
internal import StallModel
internal import StallStore
internal import Synchronization

/// Opens stores, in order, and reads their news before it is their turn.
final class SourcePrefetcher {
    private var rest: ArraySlice<String>
    private var started: [Reading] = []
    private let known: IngestWatermarks
    private let stop: StopFlag
    private let queue = DispatchQueue(label: "stallwatch.ingest.read", attributes: .concurrent)

    /// How many stores are opened before they are needed: more only hold more memory and descriptors.
    private static let depth = 3

    /// - Parameters:
    ///   - paths: The stores that `next` answers, in their order.
    ///   - known: How far each source was imported.
    ///   - stop: Ends the reading when it is set.
    init(_ paths: [String], known: [UniqueID: SourceWatermark], stop: StopFlag) {
        rest = paths[...]
        self.stop = stop
        self.known = IngestWatermarks(known)
    }

    /// A store whose reader is done with it, or why there is none.
    struct Answer {
        var path: String
        /// From before it was opened.
        var state: SourceFileState?
        var store: Result<IncomingStore, StoreError>
    }

    /// Waits for the next store; nil behind the last.
    ///
    /// - Parameter poll: Called now and then: whether the job is to stop.
    func next(_ poll: () -> Bool) -> Answer? {
        while started.count <= Self.depth, let path = rest.popFirst() {
            let reading = Reading(path)
            started.append(reading)
            queue.async { [known, stop] in reading.run(known, stop) }
        }
        if started.isEmpty { return nil }
        let reading = started.removeFirst()
        while !reading.isDone(within: .milliseconds(100)) {
            if poll() { stop.set() }
        }
        return reading.answered
    }

    /// Notes that all of a store was imported: later reads may begin behind it.
    func noteTaken(_ store: IncomingStore) { known.note(store.sources) }
}

/// How far each source was imported, for the threads that read ahead. It may be out of date: then more is read than is
/// new.
private final class IngestWatermarks: Sendable {
    private let watermarks: Mutex<[UniqueID: SourceWatermark]>

    init(_ watermarks: [UniqueID: SourceWatermark]) { self.watermarks = Mutex(watermarks) }

    func watermark(of store: UniqueID) -> SourceWatermark {
        watermarks.withLock { $0[store] ?? SourceWatermark() }
    }

    func note(_ sources: [IncomingStore.Source]) {
        watermarks.withLock {
            for source in sources {
                $0[source.origin ?? source.store] = SourceWatermark(revision: source.revision)
            }
        }
    }
}

/// One store in transit from the thread that reads it to the one that imports it.
private final class Reading: Sendable {
    private let path: String
    private let done = DispatchSemaphore(value: 0)
    private let answer = Mutex<SourcePrefetcher.Answer?>(nil)

    init(_ path: String) { self.path = path }

    func run(_ known: IngestWatermarks, _ stop: StopFlag) {
        let state = SourceFileState(path)
        let store = Result { () throws(StoreError) in
            let store = try IncomingStore(path, stop: stop)
            try store.use { try store.prefetcher(known: known.watermark) }
            return store
        }
        answer.withLock { $0 = SourcePrefetcher.Answer(path: path, state: state, store: store) }
        done.signal()
    }

    func isDone(within time: DispatchTimeInterval) -> Bool {
        done.wait(timeout: .now() + time) == .success
    }

    var answered: SourcePrefetcher.Answer? { answer.withLock { $0.take() } }
}

// Limits the cost of reading one source. A store of some kilobytes can keep SQLite busy for years, and its maker may
// have meant that: its reading ends, the file is reported, and the next one is read.

internal import CSQLite
internal import Glibc
package import StallStore
internal import Synchronization

/// A flag that a job is to stop: the threads that read for it see it here.
package final class StopFlag: Sendable {
    private let flag = Atomic<Bool>(false)

    package init() {}

    package var isSet: Bool { flag.load(ordering: .relaxed) }
    package func set() { flag.store(true, ordering: .relaxed) }
}

/// The time that one source may take, of the threads that read and write for it.
///
/// **Thread safety:** one thread at a time, as of the source itself.
package final class SourceBudget: @unchecked Sendable {
    private let limit_ns: UInt64
    private let stop: StopFlag
    private var spent_ns: UInt64 = 0
    private var began_ns: UInt64?
    /// Whether the job is to stop, for a function that only the job's own thread may call.
    package var poll: (() -> Bool)?

    /// CPU time, which does not depend on the machine's load: some seconds, and more for a larger source.
    private static let least_ns: UInt64 = 6_000_000_000
    private static let perByte_ns: UInt64 = 2000

    /// - Parameter bytes: The source's bytes on the disk: holes of a file do not count.
    package init(bytes: Int64, stop: StopFlag) {
        limit_ns =
            Self.least_ns
            + UInt64(clamping: bytes).multipliedReportingOverflow(by: Self.perByte_ns).partialValue
        self.stop = stop
    }

    /// Whether reading is to end now.
    var isOver: Bool {
        if poll?() == true { stop.set() }
        if stop.isSet { return true }
        let now = began_ns.map { Self.now() &- $0 } ?? 0
        return spent_ns &+ now > limit_ns
    }

    /// Counts the time of `body`.
    package func spend<Answer, Failure: Error>(_ body: () throws(Failure) -> Answer) throws(Failure)
        -> Answer
    {
        guard began_ns == nil else { return try body() }
        let began = Self.now()
        began_ns = began
        defer {
            spent_ns &+= Self.now() &- began
            began_ns = nil
        }
        return try body()
    }

    /// Throws when reading is to end.
    package func check(_ path: String) throws(StoreError) {
        if isOver { throw error(path) }
    }

    /// Why reading ended.
    func error(_ path: String) -> StoreError {
        if stop.isSet { return .interrupted(path: path) }
        return .overBudget(
            path: path,
            detail: "reading it took more than \(limit_ns / 1_000_000_000) s of CPU time")
    }

    /// Has a connection end its statement when the time is over.
    func bound(_ database: OpaquePointer) {
        sqlite3_progress_handler(
            database, 20_000,
            { Unmanaged<SourceBudget>.fromOpaque($0!).takeUnretainedValue().isOver ? 1 : 0 },
            Unmanaged.passUnretained(self).toOpaque())
    }

    private static func now() -> UInt64 {
        var time = timespec()
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
        return UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
    }
}

// The store, as a collector needs it. The SQLite store is one; tests have one in memory.

package import StallModel
package import StallQuery
package import StallStore

/// The lines that a push has, and their store.
package struct PushRange: Sendable, Hashable {
    package var store: UniqueID
    /// The revisions of the store that the lines cover.
    package var from: Int64
    package var through: Int64

    package init(store: UniqueID, from: Int64, through: Int64) {
        (self.store, self.from, self.through) = (store, from, through)
    }
}

/// How far a store was taken.
package struct PushPosition: Sendable, Equatable {
    /// All of it, as it was at this revision; 0 for a store that is not known.
    package var through: Int64
    /// The newest report until then, by which a sender notices that its store is a copy that diverged.
    package var last: (seq: Int64, id: UniqueID)?

    package init(through: Int64, last: (seq: Int64, id: UniqueID)? = nil) {
        (self.through, self.last) = (through, last)
    }

    package static func == (left: PushPosition, right: PushPosition) -> Bool {
        left.through == right.through && left.last?.seq == right.last?.seq
            && left.last?.id == right.last?.id
    }
}

/// An app on a machine, which rows are of.
package struct PushSender: Sendable, Hashable {
    package var host: String
    package var app: String

    package init(host: String, app: String) { (self.host, self.app) = (host, app) }
}

/// The outcome of a batch. Nothing is stored of a rejected one.
package enum PushOutcome: Sendable, Equatable {
    /// All of it is committed.
    case taken(through: Int64, added: Int, changed: Int, unknown: Int)
    /// It begins behind the position of the store, so that rows would be missing.
    case gap(through: Int64)
    /// Lines are wrong: the first of them, and how many.
    case refused([LineFault], count: Int)
    /// The token is not for the app of the line, or not for an app that the store has rows of.
    case foreign(LineFault)
    /// Not now: the disk is full, or the store is locked. The reason is for the operator.
    case unavailable(String)
}

/// A store that takes batches. One thread uses it.
package protocol PushStorage: AnyObject, SendableMetatype {
    /// The lines of a batch, read.
    associatedtype Rows: Sendable

    /// The machines and apps that the lines are of.
    static func senders(of rows: Rows) -> Set<PushSender>

    /// Until when the store has watched time of each machine and app, in seconds since 1970: about when it was
    /// pushed, since an agent writes it every minute. Read once, at the start.
    func lastPushes() throws -> [PushSender: Double]

    /// Reads lines, on any thread: several batches are read while one is written.
    static func read(
        _ lines: [UInt8], of store: UniqueID, for token: CollectorToken
    ) -> Result<Rows, PushRefusal>

    func position(of store: UniqueID) throws -> PushPosition

    /// Takes batches, in order, and returns after they are committed: their outcomes, in the same order.
    func take(_ batches: [(range: PushRange, rows: Rows, token: CollectorToken)]) -> [PushOutcome]

    /// Throws the error that a batch would run into now: a full disk, a locked store, a cluster that does not answer.
    func probe() throws

    /// Whether ``probe()`` writes as well: its outcome is then as good as that of a batch.
    var probeWrites: Bool { get }

    /// Grows while something is written, and stands still while a lock, a disk or another machine is waited for.
    var progress: StatementProgress { get }

    func close()
}

/// Why lines cannot be taken, whatever the store holds.
package struct PushRefusal: Error, Equatable {
    package var outcome: PushOutcome

    package init(_ outcome: PushOutcome) { self.outcome = outcome }
}

// Whether statements get on: a large transaction and one that waits for a disk look alike from outside.

internal import CSQLite
internal import Synchronization

/// A number that grows while statements of a connection run, and stands still while one waits for a lock or the disk.
package final class StatementProgress: Sendable {
    private let value = Atomic(0)

    package init() {}

    /// On any thread.
    package var count: Int { value.load(ordering: .relaxed) }

    package func add() { value.wrappingAdd(1, ordering: .relaxed) }

    /// Counts each thousand steps of the connection's statements. The connection keeps this object.
    func follow(_ handle: OpaquePointer?) {
        sqlite3_progress_handler(
            handle, 1000,
            { own in
                if let own {
                    Unmanaged<StatementProgress>.fromOpaque(own).takeUnretainedValue().add()
                }
                return 0
            }, Unmanaged.passUnretained(self).toOpaque())
    }
}

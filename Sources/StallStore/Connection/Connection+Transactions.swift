// All or nothing. SQLite ends a transaction by itself when a disk is full or fails; earlier writes are gone then, and
// later ones must not be mistaken for the whole.

internal import CSQLite
internal import StallModel

extension Connection {
    /// Runs `body` in a transaction. It is committed when `body` returns and rolled back when it throws; then the first
    /// failure is thrown, not an error of the rollback.
    package func transaction<Answer>(
        _ kind: TransactionKind, _ body: () throws -> Answer
    ) throws(StoreError) -> Answer {
        try begin(kind)
        do {
            let answer = try body()
            try commit()
            return answer
        } catch {
            throw undone(after: error)
        }
    }

    func begin(_ kind: TransactionKind) throws(StoreError) {
        try execute("begin \(kind.rawValue)")
    }

    /// Ends the transaction that `begin` began; `undone` where this throws.
    @inline(never)
    func commit() throws(StoreError) {
        try expectTransaction()
        try execute("commit")
    }

    /// Rolls back, and returns the error to throw.
    @inline(never)
    func undone(after error: any Error) -> StoreError {
        if isInTransaction { try? execute("rollback") }
        return StoreError(error, path: path)
    }

    /// Runs `body` in a savepoint of the open transaction: its writes stay when it returns, and are undone when it
    /// throws.
    package func savepoint<Answer>(_ body: () throws -> Answer) throws -> Answer {
        try execute("savepoint part")
        do {
            let answer = try body()
            try expectTransaction()
            try execute("release part")
            return answer
        } catch {
            if isInTransaction {
                // Undoing leaves the savepoint open.
                try? execute("rollback to part")
                try? execute("release part")
            }
            throw error
        }
    }

    /// Whether a transaction is open. SQLite may have ended the one that we began.
    private var isInTransaction: Bool { sqlite3_get_autocommit(handle) == 0 }

    private func expectTransaction() throws(StoreError) {
        guard !isInTransaction else { return }
        throw StoreError(code: SQLITE_ABORT, message: "Transaction was aborted", path: path)
    }
}

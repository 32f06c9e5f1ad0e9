// The errors of a file that is only read: it is named by the path that was given, and a statement that SQLite cannot
// run in it is damage, since no store of ours needs such a one.

internal import CSQLite
internal import StallModel
package import StallStore

extension StoreError {
    /// The same failure, of the link that was given instead of the file.
    func ofLink(_ link: String) -> StoreError {
        switch self {
        case .cannotOpen(_, let reason): .cannotOpen(path: link, reason: reason)
        case .badCompanion(_, let detail): .badCompanion(path: link, detail: detail)
        case .overBudget(_, let detail): .overBudget(path: link, detail: detail)
        case .foreign(_, let id): .foreign(path: link, applicationID: id)
        case .busy: .busy(path: link)
        case .interrupted: .interrupted(path: link)
        default: self
        }
    }

    /// The error of a source for a failure of SQLite: no store of ours needs a statement that SQLite cannot run.
    package func ofSource(_ budget: SourceBudget) -> StoreError {
        guard case .sqlite(let path, let code, let message) = self else { return self }
        return switch code & 0xff {
        case SQLITE_INTERRUPT: budget.error(path)
        case SQLITE_TOOBIG:
            .overBudget(path: path, detail: "it holds an invalid value: \(message)")
        case SQLITE_NOMEM:
            .overBudget(path: path, detail: "reading it takes more memory than there is")
        case SQLITE_ERROR, SQLITE_MISMATCH, SQLITE_AUTH, SQLITE_CONSTRAINT:
            .damaged(path: path, detail: message)
        default: self
        }
    }
}

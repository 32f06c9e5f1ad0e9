// The errors of opening and using a store, each as one clear line: the path, and what was expected there.

internal import CSQLite
package import StallModel

/// Why a store could not be used. Every case is an operating condition; bugs trap instead.
package enum StoreError: Error, Hashable, Sendable {
    /// There is nothing at the path.
    case missing(path: String)
    /// The path is a directory, a socket or a device.
    case notAFile(path: String)
    /// An agent does not write through a symbolic link: its maker may point it anywhere.
    case symbolicLink(path: String)
    /// The file holds nothing, not even an empty store.
    case empty(path: String)
    /// The file is not a SQLite database.
    case notADatabase(path: String, content: FileContent = .unknown)
    /// The file is a SQLite database of some other program.
    case foreign(path: String, applicationID: Int32)
    /// An agent's store where a central one was expected, or the other way round.
    case wrongRole(path: String, expected: StoreRole)
    /// The store was written by a newer stallwatch.
    case newer(path: String, version: Int, supported: Int)
    /// The store was written by an older stallwatch and may not be changed here.
    case older(path: String, version: Int, supported: Int)
    /// The file cannot be opened or created there.
    case cannotOpen(path: String, reason: String)
    /// The file or its directory cannot be written.
    case readOnly(path: String)
    /// The disk, or the quota, is full.
    case full(path: String)
    /// The file was deleted, moved or replaced while it was open.
    case moved(path: String)
    /// The process has closed the store's descriptors, which others of its files may have by now.
    case descriptorsClosed(path: String)
    /// Another process held the store for longer than we wait.
    case busy(path: String)
    /// The store contradicts itself: a truncated, overwritten or bit-flipped file.
    case damaged(path: String, detail: String)
    /// Something beside the store takes part in reading it, and is no regular file.
    case badCompanion(path: String, detail: String)
    /// Reading it would take more time or memory than any store of ours does.
    case overBudget(path: String, detail: String)
    /// The store is being created at this moment.
    case notReady(path: String)
    /// Reading it was ended because the job is to stop.
    case interrupted(path: String)
    /// Two different stores claim to be the same one, so that their reports cannot be distinguished.
    case sharedIdentity(path: String)
    /// No report's id begins like this.
    case unknownReport(prefix: String)
    /// Several reports' ids begin like this.
    case ambiguousReport(prefix: String, ids: [UniqueID])
    /// Any other failure of SQLite.
    case sqlite(path: String, code: Int32, message: String)
}

extension StoreError: CustomStringConvertible {
    package var description: String {
        switch self {
        case .missing(let path): "\(path): no such file; expected a stallwatch store"
        case .notAFile(let path): "\(path): not a regular file; expected a stallwatch store"
        case .symbolicLink(let path):
            "\(path): a symbolic link; expected the store itself"
        case .empty(let path): "\(path): an empty file; expected a stallwatch store"
        case .notADatabase(let path, let content):
            "\(path): \(content.clause); expected a stallwatch store"
        case .foreign(let path, let id):
            "\(path): a SQLite database of another program (application id \(id)); "
                + "expected a stallwatch store"
        case .wrongRole(let path, .agent): "\(path): a central store; expected an agent's store"
        case .wrongRole(let path, .central): "\(path): an agent's store; expected a central store"
        case .newer(let path, let version, let supported):
            "\(path): schema version \(version) is newer than \(supported), the newest that this "
                + "program knows; update stallwatch"
        case .older(let path, let version, let supported):
            "\(path): schema version \(version) is older than \(supported); "
                + "run stallctl migrate on it first"
        case .cannotOpen(let path, let reason): "\(path): cannot be opened: \(reason)"
        case .readOnly(let path):
            "\(path): cannot be written: the file or its directory is read-only"
        case .full(let path): "\(path): cannot be written: the disk is full"
        case .moved(let path): "\(path): was moved or deleted while it was open"
        case .descriptorsClosed(let path): "\(path): its descriptors were closed by the app"
        case .busy(let path): "\(path): locked by another process"
        case .damaged(let path, let detail): "\(path): damaged: \(detail)"
        case .badCompanion(let path, let detail): "\(path): \(detail)"
        case .overBudget(let path, let detail): "\(path): refused: \(detail)"
        case .notReady(let path): "\(path): not ready yet: it is being created"
        case .interrupted(let path): "\(path): reading was interrupted by a signal"
        case .sharedIdentity(let path):
            "\(path): has the identity of another store with different reports; "
                + "one of the two was copied and then written to"
        case .unknownReport(let prefix): "no report id begins with \(prefix)"
        case .ambiguousReport(let prefix, let ids):
            "\(ids.count) report ids begin with \(prefix); "
                + "give more digits: \(ids.prefix(5).map(\.description).joined(separator: ", "))"
        case .sqlite(let path, let code, let message): "\(path): SQLite error \(code): \(message)"
        }
    }
}

extension StoreError {
    /// The store it is about; nil when it is about the question.
    package var path: String? {
        switch self {
        case .missing(let path), .notAFile(let path), .symbolicLink(let path), .empty(let path),
            .notADatabase(let path, _), .foreign(let path, _), .wrongRole(let path, _),
            .newer(let path, _, _), .older(let path, _, _), .cannotOpen(let path, _),
            .readOnly(let path), .full(let path), .moved(let path), .busy(let path),
            .descriptorsClosed(let path),
            .damaged(let path, _), .sharedIdentity(let path), .sqlite(let path, _, _),
            .badCompanion(let path, _), .overBudget(let path, _), .notReady(let path),
            .interrupted(let path):
            path
        case .unknownReport, .ambiguousReport: nil
        }
    }

    /// SQLITE_READONLY_DBMOVED: the file was moved or deleted between its opening and the first write.
    private static var readOnlyBecauseMoved: CInt { SQLITE_READONLY | 4 << 8 }

    /// The error for a failure of SQLite on the store at `path`.
    package init(code: CInt, message: String, path: String) {
        self =
            switch code & 0xff {
            case SQLITE_READONLY where code == Self.readOnlyBecauseMoved: .moved(path: path)
            case SQLITE_BUSY, SQLITE_LOCKED: .busy(path: path)
            case SQLITE_READONLY: .readOnly(path: path)
            case SQLITE_FULL: .full(path: path)
            case SQLITE_NOTADB: .notADatabase(path: path, content: FileContent(path: path))
            case SQLITE_CORRUPT: .damaged(path: path, detail: message)
            case SQLITE_CANTOPEN: .cannotOpen(path: path, reason: message)
            default: .sqlite(path: path, code: code, message: message)
            }
    }

    /// The error for anything that ends work on a store.
    package init(_ error: any Error, path: String) {
        self =
            error as? StoreError ?? .sqlite(path: path, code: SQLITE_ERROR, message: "\(error)")
    }

    /// Runs `body`; whatever it throws is a `StoreError`.
    package static func catching<Value>(
        path: String, _ body: () throws -> Value
    ) throws(StoreError) -> Value {
        do { return try body() } catch { throw StoreError(error, path: path) }
    }
}

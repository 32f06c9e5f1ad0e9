// The errors of a cluster, each as one clear line.

/// Why a cluster could not be used. Every case is an operating condition; bugs trap instead.
package enum ClickHouseError: Error, Hashable, Sendable {
    /// The address is none.
    case badAddress(detail: String)
    /// The file of the password cannot be read.
    case noPassword(file: String, reason: String)
    /// No whole answer came, in none of several attempts.
    case unreachable(store: String, reason: String)
    /// All of a statement's time passed without its answer.
    case timedOut(store: String, seconds: Int, reason: String)
    /// No attempt will do: a certificate that is not trusted, or `curl` is missing.
    case refused(store: String, reason: String)
    /// The server could not do it. `text` is its own.
    case server(store: String, code: Int, text: String)
    /// The answer is not of the kind that was asked for.
    case badAnswer(store: String, detail: String)
    /// The database has not the tables that this program reads.
    case schema(store: String, version: Int, supported: Int)
    /// No shard answers.
    case allShardsDown(store: String)
    /// Its reports are grouped by rules of this hash, and those to write by others.
    case otherRules(store: String, hash: Int64)
    /// The command needs a file.
    case notSupported(store: String, what: String)
}

extension ClickHouseError: CustomStringConvertible {
    package var description: String {
        switch self {
        case .badAddress(let detail): "the address of the cluster is wrong: \(detail)"
        case .noPassword(let file, let reason): "\(file): the password cannot be read: \(reason)"
        case .unreachable(let store, let reason): "\(store): no answer: \(reason)"
        case .timedOut(let store, let seconds, let reason):
            "\(store): no answer within \(seconds) s (timeout=): \(reason)"
        case .refused(let store, let reason): "\(store): \(reason)"
        case .server(let store, ClickHouseCode.readOnly, let text):
            "\(store): the user may only read: ClickHouse error \(ClickHouseCode.readOnly): \(text)"
        case .server(let store, let code, let text):
            "\(store): ClickHouse error \(code): \(text)"
        case .badAnswer(let store, let detail): "\(store): not an answer of a store: \(detail)"
        case .schema(let store, 0, _):
            "\(store): no stallwatch store; run stallctl migrate on it first"
        case .schema(let store, let version, let supported) where version < supported:
            "\(store): schema version \(version) is older than \(supported); "
                + "run stallctl migrate on it first"
        case .schema(let store, let version, let supported):
            "\(store): schema version \(version) is newer than \(supported), the newest that this "
                + "program knows; update stallwatch"
        case .allShardsDown(let store): "\(store): no shard of the cluster answers"
        case .otherRules(let store, _):
            "\(store): its reports are grouped by other rules; run stallctl regroup on it first"
        case .notSupported(let store, let what): "\(store): \(what)"
        }
    }

    /// The number of the server's own error; nil for other failures.
    package var code: Int? {
        guard case .server(_, let code, _) = self else { return nil }
        return code
    }
}

/// Numbers of the errors that are handled here.
///
/// **Source:** ClickHouse, dbms/src/Common/ErrorCodes.cpp.
enum ClickHouseCode {
    /// The column exists: 18.16's code, and a current server's.
    static let knownColumn: Set<Int> = [44, 15]
    static let unknownTable = 60
    static let unknownDatabase = 81
    static let readOnly = 164
    static let tooManyQueries = 202
    static let socketTimeout = 209
    static let networkError = 210
    static let allConnectionsFailed = 279

    /// Of errors that pass: the next attempt may succeed.
    static let passing: Set<Int> = [tooManyQueries, socketTimeout, networkError]
}

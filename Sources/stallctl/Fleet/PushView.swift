// The result of `push` as text and JSON.

#if Fleet
internal import StallAnalysis
internal import StallModel
internal import StallPush
import StallQuery
internal import StallStore

/// The outcome for one store file.
struct PushedStore {
    var path: String
    /// One for each source.
    var results: [PushResult] = []
    /// Why the file could not be read.
    var error: String?
}

enum PushView {
    /// Limit for the terminal; JSON has them all.
    private static let shownRefused = 20

    /// One line for each store that was not sent whole, and for refused rows.
    static func errorLines(of stores: [PushedStore], to url: String) -> [String] {
        stores.flatMap { store -> [String] in
            var lines = store.error.map { [$0.printable] } ?? []
            for result in store.results {
                let shown = result.refused.prefix(shownRefused)
                lines += shown.map {
                    "\(store.path): refused by \(url): \($0.reason)".printable
                }
                if result.refusedCount > shown.count, !shown.isEmpty {
                    let rest = result.refusedCount - shown.count
                    if rest > 0, shown.count == shownRefused {
                        lines.append("\(store.path): \(rest) more rows refused".printable)
                    }
                }
                if let failure = result.failure {
                    lines.append("\(store.path): not sent: \(url) \(failure)".printable)
                }
            }
            return lines
        }
    }

    static func sentence(of stores: [PushedStore], to url: String) -> String {
        let results = stores.flatMap(\.results)
        func sum(_ value: (PushResult) -> Int) -> Int { results.reduce(0) { $0 + value($1) } }
        let sent = stores.count { $0.error == nil && $0.results.allSatisfy { $0.failure == nil } }
        var text =
            "\(url.printable): sent \(counted(sum(\.lineCount), "row")) of \(counted(sent, "store"))"
            + " (\(sum(\.added)) new, \(sum(\.changed)) updated)"
        if sum(\.refusedCount) > 0 { text += "; \(counted(sum(\.refusedCount), "row")) refused" }
        if sent < stores.count {
            text += "; \(counted(stores.count - sent, "store")) not sent whole"
        }
        return results.contains(where: \.isCancelled) ? text + "; stopped by a signal" : text
    }

    /// The summary as JSON.
    struct Row: Encodable {
        struct Store: Encodable {
            var path: String
            /// The store's identity; null where it could not be read.
            @Nullable var store: String?
            var sent: Int
            var added: Int
            var changed: Int
            var refused: Int
            /// Why rows were refused.
            var refusals: [String]
            /// How far the collector has the store.
            @Nullable var through: Int64?
            @Nullable var error: String?
        }
        let schema = "stallctl.push/1"
        var url: String
        var sent: Int
        var added: Int
        var changed: Int
        var refused: Int
        var failed: Int
        var cancelled: Bool
        var stores: [Store]

        init(_ stores: [PushedStore], to url: String) {
            self.url = url
            let results = stores.flatMap(\.results)
            sent = results.reduce(0) { $0 + $1.lineCount }
            added = results.reduce(0) { $0 + $1.added }
            changed = results.reduce(0) { $0 + $1.changed }
            refused = results.reduce(0) { $0 + $1.refusedCount }
            failed = stores.count { $0.error != nil || $0.results.contains { $0.failure != nil } }
            cancelled = results.contains(where: \.isCancelled)
            self.stores = stores.flatMap { file -> [Store] in
                let rows = file.results.map { result in
                    Store(
                        path: file.path, store: result.store.description, sent: result.lineCount,
                        added: result.added, changed: result.changed,
                        refused: result.refusedCount, refusals: result.refused.map(\.reason),
                        through: result.through, error: result.failure)
                }
                guard let error = file.error else { return rows }
                return rows + [
                    Store(
                        path: file.path, store: nil, sent: 0, added: 0, changed: 0, refused: 0,
                        refusals: [], through: nil, error: error)
                ]
            }
        }
    }
}
#endif

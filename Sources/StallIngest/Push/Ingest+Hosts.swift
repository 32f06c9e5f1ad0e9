// The machines that a central store has watched time of.

internal import StallArchive
package import StallQuery
package import StallStore

extension Ingest {
    /// The machines that the central store has watched time of.
    package func watchedHosts() throws(StoreError) -> [WatchedHost] {
        try StoreError.catching(path: file.path) {
            try file.connection.watchedHosts(at: clock())
        }
    }
}

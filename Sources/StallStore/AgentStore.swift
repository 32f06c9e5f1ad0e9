// Writes an agent's reports. Called on the agent's own writer thread, never on a watched one.

package import StallModel

/// The store that an agent writes. Several processes may write one at the same time.
package final class AgentStore {
    /// Opens the store; creates or migrates it where needed.
    package init(path: String, run: ProcessRun) throws(StoreError) {
        fatalError("\(path): follows in the next commit")
    }

    /// Keeps a report: adds it, or brings the one with its id up to date. One short transaction.
    ///
    /// - Parameter images: Where the loader has put the images that the report's locations name; others may be
    ///   among them.
    package func record(_ report: StallReport, images: [Image]) throws(StoreError) {
        fatalError("follows in the next commit")
    }

    /// Brings the duration of an open report up to date.
    package func updateDuration(
        of id: UniqueID, to duration: Duration, cpuTime: Duration
    ) throws(StoreError) {
        fatalError("follows in the next commit")
    }

    /// Those of the locations that have no names yet, each once.
    package func unsymbolized(_ locations: [CodeLocation]) throws(StoreError) -> [CodeLocation] {
        fatalError("follows in the next commit")
    }

    /// Attaches names to locations that recorded reports use.
    package func symbolize(_ frames: [CodeLocation: [Frame]]) throws(StoreError) {
        fatalError("follows in the next commit")
    }

    /// Adds to the count of stalls that were seen and not kept.
    package func countLosses(_ count: Int, reason: LossReason) throws(StoreError) {
        fatalError("follows in the next commit")
    }

    /// Turns open reports of processes that are gone into hangs.
    package func closeAbandoned() throws(StoreError) {
        fatalError("follows in the next commit")
    }

    /// Closes the store; when no other process uses it, one portable file remains.
    package func close() throws(StoreError) {
        fatalError("follows in the next commit")
    }
}

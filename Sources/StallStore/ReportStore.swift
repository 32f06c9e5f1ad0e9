// Reads a store: an agent's or a central one alike, also while its owner writes to it.

package import StallModel

/// A store as one asks it questions. Nothing here writes.
package final class ReportStore {
    package let path: String
    package let role: StoreRole

    /// Opens a store of either role for reading.
    package static func open(path: String) throws(StoreError) -> ReportStore {
        fatalError("\(path): follows in the next commit")
    }

    private init(path: String, role: StoreRole) {
        self.path = path
        self.role = role
    }

    /// The reports that the filter selects, without frames.
    package func summaries(_ filter: ReportFilter) throws(StoreError) -> ReportSelection {
        fatalError("follows in the next commit")
    }

    /// The frames of stacks, innermost first; an unknown number is absent from the answer.
    package func frames(
        ofStacks stacks: some Collection<Int64>
    ) throws(StoreError) -> [Int64: [Frame]] {
        fatalError("follows in the next commit")
    }

    /// The reports that the filter selects, newest first, with samples and frames.
    package func reports(
        _ filter: ReportFilter, limit: Int? = nil
    ) throws(StoreError) -> [StallReport] {
        fatalError("follows in the next commit")
    }

    /// The one report whose id begins with these hexadecimal digits; dashes do not count.
    package func report(idPrefix: String) throws(StoreError) -> StallReport {
        fatalError("follows in the next commit")
    }

    /// The images that a run's reports speak of, where its loader had put them.
    package func images(ofRun run: UniqueID) throws(StoreError) -> [Image] {
        fatalError("follows in the next commit")
    }

    package func status() throws(StoreError) -> StoreStatus {
        fatalError("follows in the next commit")
    }
}

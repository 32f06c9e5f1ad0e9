import StallArchive
import StallModel
import StallQuery
import StallStore
import Testing
import StoreTestSupport
import TestSupport

/// Goal: two monitors of a process may have one store, and one that ends takes nothing from the other.
@Suite struct TwoConnectionsTests {
    let directory = try! TemporaryDirectory()

    @Test func `a connection goes on when an older one of the same process closes`() throws {
        var (first, second) = (ReportGenerator(seed: 1), ReportGenerator(seed: 2))
        let path = directory("store.sqlite")
        let older = try AgentStore(path: path, run: first.run)
        let newer = try AgentStore(path: path, run: second.run)
        try older.record(first.report(), images: first.images)
        try older.close()
        try newer.record(second.report(), images: second.images)
        try newer.close()
        #expect(try ReportStore.open(path: path).reports(ReportFilter()).count == 2)
    }
}

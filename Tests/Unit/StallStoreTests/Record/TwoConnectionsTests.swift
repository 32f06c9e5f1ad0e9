import Foundation
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

    /// SQLite hands the database descriptor of a connection that closes to the next one, while an older one has locks.
    @Test(arguments: ["", "-shm"])
    func `a descriptor that was another connection's is not written to once the app has closed it`(
        file: String
    ) async throws {
        let generators = (1...3).map { ReportGenerator(seed: UInt64($0)) }
        let path = directory("store.sqlite")
        let oldest = try AgentStore(path: path, run: generators[0].run)
        let before = numbers(of: path + file)
        let second = try AgentStore(path: path, run: generators[1].run)
        let shared = Set(numbers(of: path + file)).subtracting(file == "" ? before : [])
        try second.close()
        var generator = generators[2]
        let third = try AgentStore(path: path, run: generator.run)
        let none = open("/dev/null", O_RDWR | O_CLOEXEC)
        defer { close(none) }
        #expect(shared.count == 1)
        for number in shared { dup2(none, number) }
        #expect(throws: StoreError.descriptorsClosed(path: path)) {
            try third.record(generator.report(), images: generator.images)
        }
        if file == "-shm" {
            #expect(throws: StoreError.descriptorsClosed(path: path)) {
                let fourth = try AgentStore(path: path, run: generators[1].run)
                try fourth.close()
            }
        }
        withExtendedLifetime(oldest) {}
    }
}

private func numbers(of path: String) -> [CInt] {
    (0..<1_024).filter {
        (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/fd/\($0)")) == path
    }
}

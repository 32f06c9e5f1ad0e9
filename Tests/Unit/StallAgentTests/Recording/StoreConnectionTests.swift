import CSQLite
import Foundation
import Logging
import StallModel
import StallArchive
import StallQuery
import StallStore
import StallSymbols
import Synchronization
import TestSupport
import Testing

@testable import StallAgent

/// Goal: a store that fails for a while loses nothing that still can be written, and is complained of once.
/// Method: a file stands where the store's directory should be; taking it away is the recovery.
@Suite struct StoreConnectionTests {
    @Test func `an end that could not be written is written when the store is back`() throws {
        try withTemporaryDirectory { directory in
            let obstacle = directory.appending(path: "state")
            try Data().write(to: obstacle)
            let store = obstacle.appending(path: "stalls.sqlite").path
            let lines = Lines()
            let run = ProcessRun.current(app: "photos", version: "1", buildID: nil)
            var connection = StoreConnection(
                path: store, limits: StoreLimits(), run: run, logger: lines.logger)
            let images = ImageTable(images: [])
            var report = StallReport(
                id: run.id, run: run, loop: "main", mode: "default", phase: .timer,
                start: run.started,
                duration: .milliseconds(300), threshold: .milliseconds(250), state: .open)
            connection.record(report, images: images)
            report.duration = .seconds(2)
            report.state = .ended
            connection.record(report, images: images)
            connection.countLosses(7, reason: .dropped)
            #expect(lines.count == 1)

            try FileManager.default.removeItem(at: obstacle)
            connection.close()
            let reader = try ReportStore.open(path: store)
            #expect(try reader.status().losses == [.dropped: 7])
            let kept = try reader.reports(ReportFilter(), limit: nil)
            #expect(kept.map(\.state) == [.ended] && kept[0].duration == .seconds(2))
        }
    }

    @Test func `callbacks are called when the report is in the store, and not before`() throws {
        try withTemporaryDirectory { directory in
            let obstacle = directory.appending(path: "state")
            try Data().write(to: obstacle)
            let run = ProcessRun.current(app: "photos", version: "1", buildID: nil)
            var connection = StoreConnection(
                path: obstacle.appending(path: "stalls.sqlite").path, run: run,
                logger: Lines().logger)
            let report = StallReport(
                id: run.id, run: run, loop: "main", mode: "default", phase: .timer,
                start: run.started, duration: .milliseconds(300), threshold: .milliseconds(250),
                state: .ended)
            connection.record(report, images: ImageTable(images: []))
            connection.notifyOnceDurable(report)
            #expect(connection.takeDurable().isEmpty)
            try FileManager.default.removeItem(at: obstacle)
            connection.flushForEnd()
            #expect(connection.takeDurable().map(\.id) == [report.id])
            #expect(connection.takeDurable().isEmpty)
            connection.close()
        }
    }

    /// A daemon closes what it did not open. The number of the store's log then belongs to a file of the app's.
    @Test func `a file that has a number of the store's is neither written nor closed`() async {
        // SQLite remembers a file for its process, closed or not.
        await #expect(processExitsWith: .success) {
            try withTemporaryDirectory { directory in
                let run = ProcessRun.current(app: "photos", version: "1", buildID: nil)
                let lines = Lines()
                let store = directory.appending(path: "stalls.sqlite").path
                var connection = StoreConnection(path: store, run: run, logger: lines.logger)
                connection.open()
                connection.countLosses(1, reason: .dropped)
                let numbers = try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd")
                    .compactMap { CInt($0) }
                    .filter {
                        let file = try? FileManager.default.destinationOfSymbolicLink(
                            atPath: "/proc/self/fd/\($0)")
                        return file?.hasPrefix(store) == true
                    }
                #expect(numbers.count >= 3, "the store, its log and the log's index")
                let own = directory.appending(path: "orders").path
                let file = open(own, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
                for number in numbers { dup2(file, number) }
                close(file)
                defer { for number in numbers { close(number) } }

                connection.countLosses(2, reason: .dropped)
                connection.countLosses(4, reason: .dropped)
                connection.close()
                for number in numbers {
                    #expect(lseek(number, 0, SEEK_END) == 0, "open, and empty")
                }
                let reopened = directory.appending(path: "stalls-reopened1.sqlite").path
                #expect(try ReportStore.open(path: reopened).status().losses == [.dropped: 6])
                #expect(lines.count == 1, "what was written before is in the first store's log")
            }
        }
    }

    @Test func `a store that was deleted is created again, and has later reports`() throws {
        try withTemporaryDirectory { directory in
            let store = directory.appending(path: "stalls.sqlite")
            let run = ProcessRun.current(app: "photos", version: "1", buildID: nil)
            let lines = Lines()
            var connection = StoreConnection(path: store.path, run: run, logger: lines.logger)
            func report(_ index: UInt8) -> StallReport {
                StallReport(
                    id: UniqueID(bytes: Array(repeating: index, count: 16))!, run: run,
                    loop: "main", mode: "default", phase: .timer, start: run.started,
                    duration: .seconds(1), threshold: .milliseconds(250), state: .ended)
            }
            let images = ImageTable(images: [])
            connection.record(report(1), images: images)
            for name in try FileManager.default.contentsOfDirectory(atPath: directory.path) {
                try FileManager.default.removeItem(at: directory.appending(path: name))
            }
            connection.record(report(2), images: images)
            connection.record(report(3), images: images)
            connection.close()
            let kept = try ReportStore.open(path: store.path).reports(ReportFilter())
            #expect(Set(kept.map(\.id)) == [report(2).id, report(3).id])
            #expect(lines.count == 2)
        }
    }

    /// Method: a column has another name, so that every report is refused, as on a full disk.
    @Test func `a store that opens and cannot be written has not recovered`() throws {
        try withTemporaryDirectory { directory in
            let path = directory.appending(path: "stalls.sqlite").path
            let run = ProcessRun.current(app: "photos", version: "1", buildID: nil)
            try AgentStore(path: path, run: run).close()
            var database: OpaquePointer?
            defer { sqlite3_close(database) }
            #expect(sqlite3_open(path, &database) == SQLITE_OK)
            let renaming = "alter table report rename column detection_delay_ns to delay_ns"
            #expect(sqlite3_exec(database, renaming, nil, nil, nil) == SQLITE_OK)

            let lines = Lines()
            var connection = StoreConnection(path: path, run: run, logger: lines.logger)
            let report = StallReport(
                id: run.id, run: run, loop: "main", mode: "default", phase: .timer,
                start: run.started, duration: .seconds(1), threshold: .milliseconds(250),
                state: .ended)
            connection.record(report, images: ImageTable(images: []))
            // Tries once more.
            connection.close()
            #expect(lines.all.filter { $0.contains("stalls are counted") }.count == 1)
            #expect(!lines.all.contains { $0.contains("can be written again") })
        }
    }

    @Test func `what never can be written is counted at the end`() throws {
        let lines = Lines()
        let run = ProcessRun.current(app: "photos", version: "1", buildID: nil)
        var connection = StoreConnection(
            path: "/proc/none/a.sqlite", limits: StoreLimits(), run: run, logger: lines.logger)
        for index in 0..<40 {
            let id = UniqueID(bytes: (0..<16).map { UInt8($0 + index) })!
            let report = StallReport(
                id: id, run: run, loop: "main", mode: "default", phase: .timer, start: run.started,
                duration: .seconds(1), threshold: .milliseconds(250), state: .ended)
            connection.record(report, images: ImageTable(images: []))
        }
        connection.close()
        #expect(lines.last.hasSuffix("could not be written: 40"))
        #expect(lines.count == 2)
    }

    /// What went to a logger.
    final class Lines: Sendable {
        private let lines = Mutex<[String]>([])
        var all: [String] { lines.withLock { $0 } }
        var count: Int { all.count }
        var last: String { all.last ?? "" }
        var logger: Logger { Logger(label: "test") { _ in Handler(lines: self) } }

        private struct Handler: LogHandler {
            let lines: Lines
            var metadata: Logger.Metadata = [:]
            var logLevel = Logger.Level.debug
            subscript(metadataKey key: String) -> Logger.Metadata.Value? {
                get { metadata[key] }
                set { metadata[key] = newValue }
            }
            func log(event: LogEvent) {
                lines.lines.withLock { $0.append("\(event.message)") }
            }
        }
    }
}

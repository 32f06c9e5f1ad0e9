import Foundation
import Glibc
import StallModel
import TestSupport
import Testing

@testable import stallctl

/// Goal: a file that has no reports is looked into again only when it has changed.
@Suite struct RecognizedFilesTests {
    private static let report = "app;main;decode 3\napp;main;wait 1\n"
    private static let later = UnixTime(
        microseconds: Int64(Date.now.timeIntervalSince1970 * 1e6) + 60_000_000)

    private static func write(_ text: String, _ path: String) throws {
        try text.write(toFile: path, atomically: false, encoding: .utf8)
    }

    /// How often a file was opened meanwhile, as inotify saw it.
    private static func reads(of path: String, _ work: () throws -> Void) throws -> Int {
        let watch = inotify_init1(O_NONBLOCK)
        defer { close(watch) }
        let mark = inotify_add_watch(watch, path, UInt32(IN_OPEN))
        try #require(mark >= 0)
        try work()
        var events = [UInt8](repeating: 0, count: 4096)
        return max(0, read(watch, &events, events.count))
    }

    @Test func `a file that changes has reports when they are there`() throws {
        try withTemporaryDirectory { directory in
            let (files, path) = (RecognizedFiles(), directory.appending(path: "notes.txt").path)
            try Self.write("nothing to see here\n", path)
            #expect(!files.hasReports(path, now: Self.later))
            #expect(!files.hasReports(path, now: Self.later))
            try Self.write(Self.report, path)
            #expect(files.hasReports(path, now: Self.later))
            try Self.write("nothing\n", path)
            #expect(!files.hasReports(path, now: Self.later))
        }
    }

    @Test func `a file that has none is not read again until it changes`() throws {
        try withTemporaryDirectory { directory in
            let (files, path) = (RecognizedFiles(), directory.appending(path: "notes.txt").path)
            try Self.write("nothing to see here\n", path)
            #expect(!files.hasReports(path, now: Self.later))
            let again = try Self.reads(of: path) { _ = files.hasReports(path, now: Self.later) }
            #expect(again == 0)
            // One that was written just now may change without a trace.
            let fresh = RecognizedFiles()
            #expect(!fresh.hasReports(path))
            let twice = try Self.reads(of: path) { _ = fresh.hasReports(path) }
            #expect(twice > 0)
        }
    }

    @Test func `a path without a file has none, and one that is made later has`() throws {
        try withTemporaryDirectory { directory in
            let (files, path) = (RecognizedFiles(), directory.appending(path: "notes.txt").path)
            #expect(!files.hasReports(path, now: Self.later))
            try Self.write(Self.report, path)
            #expect(files.hasReports(path, now: Self.later))
        }
    }
}

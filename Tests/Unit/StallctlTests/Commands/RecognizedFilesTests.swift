import Foundation
import Glibc
import StallModel
import TestSupport
import Testing

@testable import stallctl

/// Goal: a file that has no reports is looked into again only when it has changed.
@Suite struct RecognizedFilesTests {
    private let directory = try! TemporaryDirectory()
    private static let report = "app;main;decode 3\napp;main;wait 1\n"
    private static let later = UnixTime(microseconds: UnixTime.now().microseconds + 60_000_000)

    private func write(_ text: String) throws -> String {
        let path = directory("notes.txt")
        try text.write(toFile: path, atomically: false, encoding: .utf8)
        return path
    }

    /// How often a file was opened meanwhile, as inotify saw it.
    private func reads(of path: String, _ work: () throws -> Void) throws -> Int {
        let watch = inotify_init1(O_NONBLOCK)
        defer { close(watch) }
        try #require(inotify_add_watch(watch, path, UInt32(IN_OPEN)) >= 0)
        try work()
        var events = [UInt8](repeating: 0, count: 4096)
        return max(0, read(watch, &events, events.count))
    }

    @Test func `a file that changes has reports when they are there`() throws {
        let files = RecognizedFiles()
        let path = try write("nothing to see here\n")
        #expect(!files.hasReports(path, now: Self.later))
        #expect(!files.hasReports(path, now: Self.later))
        _ = try write(Self.report)
        #expect(files.hasReports(path, now: Self.later))
        _ = try write("nothing\n")
        #expect(!files.hasReports(path, now: Self.later))
    }

    @Test func `a file that has none is not read again until it changes`() throws {
        let files = RecognizedFiles()
        let path = try write("nothing to see here\n")
        #expect(!files.hasReports(path, now: Self.later))
        let count = try reads(of: path) { #expect(!files.hasReports(path, now: Self.later)) }
        #expect(count == 0)
        // One that was written just now may change without a trace.
        let fresh = RecognizedFiles()
        #expect(!fresh.hasReports(path))
        #expect(try reads(of: path) { #expect(!fresh.hasReports(path)) } > 0)
    }

    @Test func `a path without a file has none, and one that is made later has`() throws {
        let files = RecognizedFiles()
        #expect(!files.hasReports(directory("notes.txt"), now: Self.later))
        #expect(files.hasReports(try write(Self.report), now: Self.later))
    }
}

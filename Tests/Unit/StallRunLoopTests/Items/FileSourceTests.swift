import Foundation
import LoopConformance
import Testing

@testable import StallRunLoop

/// Goal: a loop is told what happened in a directory, and to a file.
@Suite struct FileSourceTests {
    @Test func `a directory tells of its files by name, and of its own end`() throws {
        try onFreshThreadThrowing {
            let loop = EventRunLoop.current
            let directory = FileManager.default.temporaryDirectory.appending(
                path: "watched-\(UUID().uuidString)")
            try FileManager.default.createDirectory(
                at: directory, withIntermediateDirectories: true)
            nonisolated(unsafe) var log: [(FileEvents, String?)] = []
            let source = try FileSource(path: directory.path) { log.append(($0, $1)) }
            try loop.add(source, toMode: .default)
            func told() -> [(FileEvents, String?)] {
                log = []
                for _ in 0..<3 { loop.run(for: .zero) }
                return log
            }
            let file = directory.appending(path: "one")
            let descriptor = open(file.path, O_CREAT | O_WRONLY, 0o600)
            #expect(told().map(\.0) == [.created])
            write(descriptor, "x", 1)
            #expect(told().isEmpty)
            close(descriptor)
            #expect(told().map(\.0) == [.written])
            #expect(log.map(\.1) == ["one"])
            rename(file.path, directory.appending(path: "two").path)
            #expect(told().map(\.0) == [.deleted, .created])
            #expect(log.map(\.1) == ["one", "two"])
            unlink(directory.appending(path: "two").path)
            #expect(told().map(\.1) == ["two"])
            rmdir(directory.path)
            #expect(told().map(\.0) == [.gone])
            #expect(!source.source.isValid && log[0].1 == nil)
            #expect(loop.run(for: .zero) == .finished)
        }
    }

    @Test func `a path that is not there is refused with the reason`() {
        #expect(throws: LoopError.system(call: "inotify_add_watch", errno: ENOENT)) {
            _ = try FileSource(path: "/not/there") { _, _ in }
        }
        // Not what C reads of it, which is there.
        #expect(throws: LoopError.system(call: "inotify_add_watch", errno: EINVAL)) {
            _ = try FileSource(path: "/tmp\0/not/there") { _, _ in }
        }
    }
}

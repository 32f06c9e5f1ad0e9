// The processes below one, from /proc.

internal import CInspection
package import Glibc

/// A process at one instant.
package struct RunningProcess: Equatable {
    package var id: pid_t
    package var parent: pid_t
    package var state: UInt8
    /// In clock ticks since boot: differs in another process that gets the same id.
    package var startTicks: UInt64

    /// Nil if it has ended.
    package init?(_ id: pid_t) {
        guard let text = ProcFile.text("/proc/\(id)/stat"), let stat = Self.fields(of: text) else {
            return nil
        }
        self.id = id
        (state, parent, startTicks) = stat
    }

    /// **Source:** proc(5), `/proc/pid/stat`: the name may contain spaces and parentheses.
    package static func fields(of text: String) -> (
        state: UInt8, parent: pid_t, startTicks: UInt64
    )? {
        guard let end = text.lastIndex(of: ")") else { return nil }
        let fields = text[text.index(after: end)...].split(separator: " ")
        guard fields.count > 19, let state = fields[0].utf8.first, let parent = pid_t(fields[1]),
            let ticks = UInt64(fields[19])
        else { return nil }
        return (state, parent, ticks)
    }

    package var arguments: [String] {
        guard let bytes = ProcFile.bytes("/proc/\(id)/cmdline") else { return [] }
        return bytes.split(separator: 0, omittingEmptySubsequences: false).dropLast()
            .map { String(decoding: $0, as: UTF8.self) }
    }

    /// A process that runs a package's tests: `PackageTests.xctest`, or SwiftPM's program that loads it.
    package var runsTests: Bool {
        guard let program = arguments.first?.split(separator: "/").last else { return false }
        return program.hasSuffix(".xctest") || program == "swiftpm-testing-helper"
    }

    /// Of one that runs tests: by Swift Testing, else by XCTest.
    package var usesSwiftTesting: Bool {
        let arguments = arguments
        guard let index = arguments.firstIndex(of: "--testing-library") else { return false }
        return arguments.dropFirst(index + 1).first == "swift-testing"
    }
}

package enum ProcessTree {
    /// Processes whose parents have ended become children of this one, which has to take their statuses.
    package static func adoptOrphans() { stall_adopt_orphans() }

    /// Lets a thread run on that `waitpid` has returned as stopped, though it is no child's: its capture had given up.
    package static func release(_ thread: pid_t) { stall_release_stopped(thread) }

    /// The processes below `root`, parents before their children, without those that have ended and wait for their
    /// parents.
    package static func descendants(of root: pid_t) -> [RunningProcess] {
        let children = Dictionary(
            grouping: all().filter { $0.state != UInt8(ascii: "Z") }, by: \.parent)
        var found: [RunningProcess] = []
        var next = [root]
        while let parent = next.popLast() {
            let below = children[parent, default: []].filter { $0.id != root }
            found += below
            next += below.map(\.id)
        }
        return found
    }

    static func children(of parent: pid_t) -> [RunningProcess] {
        all().filter { $0.parent == parent }
    }

    private static func all() -> [RunningProcess] {
        ProcFile.names(in: "/proc").compactMap { pid_t($0).flatMap { RunningProcess($0) } }
    }

    /// Ends all processes below this one. They are stopped first, so that none starts another one meanwhile.
    package static func end(below root: pid_t) {
        for _ in 0..<10 {
            let found = descendants(of: root)
            guard !found.isEmpty else { return }
            for process in found { kill(process.id, SIGSTOP) }
            for process in descendants(of: root) { kill(process.id, SIGKILL) }
            // An orphan becomes a child of this process when its parent has ended.
            usleep(20_000)
        }
    }
}

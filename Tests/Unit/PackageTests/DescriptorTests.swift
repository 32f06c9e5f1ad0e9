import Foundation
import Testing

/// Goal: nothing that the agent or a loop opens has the number of standard input, output or error, where the app has
/// closed them.
/// Method: each call that makes a descriptor is inside one that moves it above the three.
@Suite struct DescriptorTests {
    /// The modules that can be in an app.
    static let modules = [
        "CLinux", "CStackCapture", "CEpollDoor", "CWaitCalls", "CStallAgent", "CStallWaits",
        "StallAgent", "StallAgentC", "StallAgentNIO", "StallCapture", "StallCause",
        "StallDetection", "StallDoor",
        "StallMetrics", "StallModel", "StallRunLoop", "StallStore", "StallSymbols", "StallTracing",
    ]
    private static let calls = SourcePattern(
        #"(?:^|[^A-Za-z0-9_."`])(?:(?:open|openat|creat|eventfd|socket|socketpair|pipe2?|accept4?|dup"#
            + "|epoll_create1?|signalfd|timerfd_create|inotify_init1?|memfd_create|shm_open|mkos?temps?"
            + #"|opendir|fopen|popen|tmpfile|userfaultfd)\([^)]"#
            + "|SYS_(?:openat|pidfd_open|eventfd2?|memfd_create|dup|socket|pipe2?),)")
    private static let guards = [
        "stall_above_standard(", "stall_descriptor_own(", "stall_descriptor_own_for(",
        // In a signal handler.
        "above_standard(call(",
    ]

    private static let exceptions = [
        // Two at a time: moved in the lines behind.
        ("CLinux/System/stall_memory.c", "SYS_pipe2"),
        ("StallRunLoop/Messages/LoopMessagePort.swift", "socketpair("),
        // Held for a moment, so that Dispatch's is above them.
        ("CLinux/System/stall_poll.c", "number = "),
        ("CLinux/System/stall_poll.c", "spare = eventfd("),
    ]

    @Test(arguments: modules)
    func `every descriptor is moved above the standard ones`(module: String) throws {
        for (path, lines) in try SourceTree.files(of: module, ending: [".swift", ".c", ".h"]) {
            for (before, line) in zip([""] + lines, lines) where Self.makesDescriptor(line) {
                let isGuarded = Self.guards.contains { line.contains($0) || before.contains($0) }
                let isElsewhere = Self.exceptions.contains { $0 == path && line.contains($1) }
                #expect(isGuarded || isElsewhere, "\(path): \(line)")
            }
        }
    }

    @Test(
        arguments: [
            ("    const int file = open(path, O_RDONLY);", true),
            ("    DIR *tasks = opendir(path);", true),
            ("        epoll = stall_descriptor_own(eventfd(0, 0))", true),
            ("    return (int)syscall(SYS_pidfd_open, pid, 0);", true),
            ("    store.open()", false), ("        open()", false),
            ("    // as open(path) does", false), ("    original.open(path, flags)", false),
        ] as [(String, Bool)])
    func `a call that makes a descriptor is recognized`(line: String, makes: Bool) {
        #expect(Self.makesDescriptor(line) == makes)
    }

    private static func makesDescriptor(_ line: String) -> Bool {
        let code = line.range(of: "//").map { line[..<$0.lowerBound] } ?? line[...]
        return calls.isIn(String(code))
    }
}

import Foundation
import StallModel
import StallArchive
import StallQuery
import TestSupport
import Testing

/// Goal: any library's loop that waits through libc is watched, its waits are no stalls, other waits are; and a program
/// that did not import StallDoor has none of libc's functions interposed.
/// Method: programs with loops in C that wait by each call; the symbols of the built programs.
@Suite(.serialized) struct WatchedWaitsTests {
    static let calls = [
        "epoll_wait", "epoll_pwait", "epoll_pwait2", "poll", "ppoll", "__poll_chk", "__ppoll_chk",
        "select", "pselect",
    ]

    @Test func `a stall between two waits is one report, whatever the loop waits by`() throws {
        let stalling = ["epoll", "epoll-mask", "poll", "ppoll", "select"]
        for (scenario, (output, reports)) in try play(stalling) {
            #expect(output == "waits 4 of 4\ndone\n", "\(scenario)")
            try #require(reports.count == 1, "\(scenario): \(reports)")
            #expect(reports[0].loop == "loop" && reports[0].mode == "waits")
            #expect(reports[0].duration > .milliseconds(490), "\(scenario)")
            let functions = reports[0].samples.flatMap(\.frames).compactMap(\.function)
            #expect(functions.contains("plannedStall()"), "\(scenario)")
        }
    }

    @Test func `another wait on the loop's thread is work`() throws {
        let played = try play(["other-wait", "other-set", "request"])
        for (scenario, waits, function) in [
            ("other-wait", "waits 2 of 3", "door_loop_wait"),
            ("other-set", "waits 2 of 2", "door_loop_wait_elsewhere"),
            ("request", "waits 2 of 2", "door_loop_wait"),
        ] {
            let (output, reports) = try #require(played[scenario])
            #expect(output == "\(waits)\ndone\n", "\(scenario)")
            try #require(reports.count == 1, "\(scenario)")
            let functions = reports[0].samples.flatMap(\.frames).compactMap(\.function)
            #expect(functions.contains(function), "\(scenario)")
        }
    }

    @Test func `spinning, signals, a new set, the end of a watch and a fork are no stalls`() throws
    {
        let played = try play([
            "spin", "signal", "signal-alternate", "replaced", "kept", "stopped", "fork",
        ])
        for (scenario, said) in [
            ("signal-alternate", "waits 4 of 4"), ("replaced", "waits 4 of 4"),
            ("kept", "waits 4 of 6"),
            ("spin", "waits 1000 of 1000"), ("signal", "waits 4 of 4"), ("stopped", "waits 1 of 2"),
            ("fork", "child 0\nwaits 2 of 2"),
        ] {
            #expect(played[scenario]?.output == "\(said)\ndone\n", "\(scenario)")
            #expect(
                played[scenario]?.reports.contains { $0.verdict == .stalled } == false,
                "\(scenario)")
        }
    }

    @Test func `a loop that is watched twice is watched once, until both watches have ended`()
        throws
    {
        let played = try play(["twice", "twice-in-time", "two-monitors"])
        for (scenario, name, waits) in [
            ("twice", "again", "waits 3 of 6"), ("twice-in-time", "loop", "waits 5 of 6"),
            ("two-monitors", "loop", "waits 5 of 5"),
        ] {
            let (output, reports) = try #require(played[scenario])
            #expect(output == "\(waits)\ndone\n", "\(scenario)")
            let count = scenario == "two-monitors" ? 2 : 1
            try #require(reports.count == count, "\(scenario): \(reports)")
            for report in reports {
                #expect(report.loop == name && report.verdict == .stalled, "\(scenario)")
                let functions = report.samples.flatMap(\.frames).compactMap(\.function)
                #expect(functions.contains("plannedStall()"), "\(scenario)")
            }
        }
    }

    @Test(arguments: ["", "-static", "-fsanitize=address", "-fsanitize=thread"])
    func `waits are observed and cancelled however the program is built`(option: String) throws {
        try withTemporaryDirectory { directory in
            try compileCheck(option, in: directory)
            let (status, output, errors) = try BuiltProgram("check", in: directory).finish()
            let waits = ["epoll_wait", "epoll_pwait", "poll", "ppoll", "select"].map {
                "\($0) 3 1\n"
            }
            let selected = "selected 0 0 22\n"
            let cancelled = option == "-fsanitize=thread" ? "" : "cancelled 1, then 0\n"
            let twice = "twice 1 3, then 0\nagain 0 0\n"
            #expect(output == waits.joined() + selected + twice + cancelled + "0000 read\n")
            #expect(status == 0, "\(errors)")
        }
    }

    /// Builds the door with a program in C. The runtime of ThreadSanitizer needs Dispatch, which swiftc finds.
    func compileCheck(_ option: String, in directory: URL) throws {
        let root = Repository.root
        let fixture = "Tests/Fixtures/DoorFixture"
        let sources = [
            "\(fixture)/Check/door_check.c", "\(fixture)/C/door_loop.c",
            "Sources/CEpollDoor/door.c", "Sources/CWaitCalls/calls.c",
            "Sources/CLinux/Targets/stall_beacon.c", "Sources/CLinux/Targets/stall_current.c",
            "Sources/CLinux/System/stall_wait_calls.c",
            "Sources/CLinux/System/stall_process_record.c",
            "Sources/CLinux/System/stall_crash_note.c",
            "Sources/CLinux/System/crash_suspension.c", "Sources/CLinux/System/stall_thread.c",
            "Sources/CLinux/System/stall_fork.c", "Sources/CLinux/Proc/stall_task.c",
            "Sources/CLinux/Proc/stall_numbers.c", "Sources/CLinux/Proc/stall_descriptors.c",
            "Sources/CLinux/Proc/stall_thread_files.c", "Sources/CLinux/Images/stall_pin.c",
            "Sources/CLinux/System/stall_page_copy.c", "Sources/CLinux/System/stall_memory.c",
        ].map { root.appending(path: $0).path }
        let headers = [
            "Sources/CLinux/include", "Sources/CEpollDoor/include", "\(fixture)/C/include",
        ]
        .map { "-I" + root.appending(path: $0).path }
        let options = option.isEmpty ? [] : [option]
        try run(["clang", "-O1", "-g"] + options + headers + ["-c"] + sources, in: directory)
        let objects = sources.map {
            URL(filePath: $0).deletingPathExtension().lastPathComponent + ".o"
        }
        let linker =
            option == "-fsanitize=thread"
            ? ["swiftc", "-sanitize=thread", "-ldispatch", "-lBlocksRuntime"] : ["clang"] + options
        try run(linker + objects + ["-o", "check"], in: directory)
    }

    func run(_ command: [String], in directory: URL) throws {
        let process = Process()
        process.executableURL = URL(filePath: "/usr/bin/env")
        process.arguments = command
        process.currentDirectoryURL = directory
        process.standardError = FileHandle.nullDevice
        try process.start()
        process.waitUntilExit()
        #expect(process.terminationStatus == 0, "\(command[0])")
    }

    @Test func `only a program that asks for it stands before libc`() throws {
        #expect(try defined(in: "DoorFixture") == Set(Self.calls))
        #expect(try defined(in: "TargetFixture") == [])
        #expect(try defined(in: "libStallAgentC.so") == [])
    }

    /// Which of the calls a program defines itself.
    func defined(in program: String) throws -> Set<String> {
        let nm = Process()
        nm.executableURL = URL(filePath: "/usr/bin/env")
        nm.arguments = ["nm", BuiltProgram.directory.appending(path: program).path]
        let pipe = Pipe()
        nm.standardOutput = pipe
        try nm.start()
        let text = String(decoding: pipe.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
        nm.waitUntilExit()
        #expect(nm.terminationStatus == 0)
        let names = text.split(separator: "\n").compactMap { line -> String? in
            let words = line.split(separator: " ")
            return words.count == 3 && ["T", "t", "W"].contains(words[1]) ? String(words[2]) : nil
        }
        return Set(names).intersection(Self.calls)
    }

    func play(_ scenarios: [String]) throws -> [String: (output: String, reports: [StallReport])] {
        try withTemporaryDirectory { directory in
            let running = try scenarios.map { scenario in
                let store = directory.appending(path: "\(scenario).sqlite")
                return (scenario, store, try BuiltProgram("DoorFixture", [scenario, store.path]))
            }
            var played: [String: (output: String, reports: [StallReport])] = [:]
            for (scenario, store, program) in running {
                let (status, output, errors) = program.finish()
                #expect(status == 0 && errors == "", "\(scenario): \(errors)")
                let reports = try ReportStore.open(path: store.path)
                    .reports(ReportFilter(), limit: nil)
                played[scenario] = (output, reports)
            }
            return played
        }
    }
}

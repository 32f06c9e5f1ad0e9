import Foundation
import StallArchive
import StallModel
import StallQuery
import TestSupport
import Testing

/// Goal: a loop of any library in a C or C++ program is watched by its waits; a program that is built otherwise than
/// libstallwaits needs is not harmed, and accused of nothing.
/// Method: the examples that scripts/c-loops builds and runs; a program in C that misuses the interface, built in
/// several ways.
@Suite(.serialized) struct LoopsInCTests {
    static let examples: [(name: String, loop: String, function: String)] = [
        (name: "watch-glib", loop: "glib", function: "load_thumbnails"),
        ("watch-libuv", "libuv", "render_invoice"), ("watch-qt", "qt", "layOutPages()"),
    ]

    /// Each lives healthily for three seconds and stalls for 600 ms after the first.
    @Test func `the loops of GLib, libuv and Qt are each reported once, in the right function`()
        throws
    {
        try withTemporaryDirectory { directory in
            let (status, output, errors) = try run(
                [path("scripts/c-loops"), directory.path], ["AGENT": Self.agent])
            #expect(status == 0, "\(output)\(errors)")
            let last = try #require(
                output.firstMatch(of: /\nc loops ran=(\d) skipped=(\d) failed=0\n$/), "\(output)")
            #expect(Int(last.1)! + Int(last.2)! == Self.examples.count)
            for example in Self.examples where !output.contains("\(example.name): skipped") {
                try judge(example, output, in: directory, "\(example.name).sqlite")
            }
            // Qt's own loop, where it does not use GLib's.
            guard !output.contains("watch-qt: skipped") else { return }
            let alone = try run(
                [directory.path + "/watch-qt", directory.path + "/alone.sqlite"],
                ["QT_NO_GLIB": "1", "QT_QPA_PLATFORM": "offscreen"])
            let said = alone.output.split(separator: "\n").map { "watch-qt: \($0)" }
            try judge(
                Self.examples[2], said.joined(separator: "\n"), in: directory, "alone.sqlite")
        }
    }

    func judge(
        _ example: (name: String, loop: String, function: String), _ output: String,
        in directory: URL, _ store: String
    ) throws {
        let said = try Regex<(Substring, Substring)>(
            "\(example.name): \\w+ took (\\d+) ms\n\(example.name): \\d+ \\w+, waits seen")
        let measured = try #require(output.firstMatch(of: said), "\(output)")
        let isOverloaded = WatchTargetTests().isOverloaded
        let reports = try ReportStore.open(path: directory.appending(path: store).path)
            .reports(ReportFilter(), limit: nil)
        try #require(reports.count == 1, "\(store): \(reports.count) reports")
        #expect(reports[0].loop == example.loop && reports[0].mode == "waits")
        #expect(reports[0].state == .ended)
        #expect(isOverloaded || reports[0].verdict == .stalled)
        let functions = reports[0].samples.flatMap(\.frames).compactMap(\.function)
        #expect(functions.contains(example.function), "\(store): \(functions)")
        let error = reports[0].duration - .milliseconds(Int(measured.1)!)
        #expect(
            isOverloaded || error > .milliseconds(-60) && error < .milliseconds(60),
            "\(store): \(reports[0].duration)")
    }

    @Test(arguments: ["", "-fsanitize=address", "-fsanitize=undefined", "-DLOADED"])
    func `misuse does no harm, and is no stall, however the program is built`(option: String) throws
    {
        try withTemporaryDirectory { directory in
            let built = BuiltProgram.directory.path
            let library = directory.appending(path: "libstallwaits.so.0").path
            let (made, _, trouble) = try run([
                path("scripts/build-waits"), Self.agent, directory.path,
            ])
            try #require(made == 0, "\(trouble)")
            let isLoaded = option == "-DLOADED"
            let waits = isLoaded ? [] : ["-L", directory.path, "-lstallwaits"]
            let (compiled, _, faults) = try run(
                ["clang", "-O2", "-g", "-Wall", "-Wextra", "-Werror"]
                    + (option.isEmpty ? [] : [option])
                    + [
                        "-I", path("Sources/CStallAgent/include"),
                        path("Tests/Fixtures/CMisuse/waits.c"),
                    ]
                    + waits + ["-L", built, "-lStallAgentC", "-Wl,-rpath,\(built)"]
                    + ["-Wl,-rpath,\(directory.path)", "-o", directory.path + "/waits"])
            try #require(compiled == 0, "\(faults)")
            let store = directory.appending(path: "stalls.sqlite").path
            // The agent never frees the words that wake its threads.
            let (status, output, errors) = try run(
                [directory.path + "/waits", library, store], ["ASAN_OPTIONS": "detect_leaks=0"])
            #expect(status == 0 && errors == "", "\(errors)")
            #expect(
                output == """
                    without an agent 0
                    of nothing 0
                    watched \(isLoaded ? "0 0" : "1 1")
                    waits \(isLoaded ? "0 0" : "3 3")
                    of a thread that has ended \(isLoaded ? 0 : 2)
                    done

                    """)
            let reports = try ReportStore.open(path: store).reports(ReportFilter(), limit: nil)
            #expect(reports.filter { $0.verdict == .stalled }.isEmpty)
        }
    }

    static let agent = BuiltProgram.directory.appending(path: "libStallAgentC.so").path

    func run(_ command: [String], _ variables: [String: String] = [:]) throws -> (
        status: Int32, output: String, errors: String
    ) {
        try BuiltProgram("env", command, environment: variables, in: URL(filePath: "/usr/bin"))
            .finish()
    }

    func path(_ name: String) -> String { Repository.root.appending(path: name).path }
}

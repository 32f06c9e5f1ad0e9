import Foundation
import StallModel
import TestSupport
import Testing

@testable import StallStore
@testable import stallctl

/// Goal: symbols missing in a stripped program are read from the files that belong to it, and from no others.
/// Method: a small C program with inlined calls, its locations written to a store as an agent of the stripped program
/// would, then the built command. One test strips a program with an agent in it and lets it stall.
@Suite struct SymbolicateTests {
    @Test(arguments: [
        "binary", "debug file", "directory", "build-id tree", "tree of gdb", "link", "zlib", "zstd",
    ])
    func `names, lines and inlined calls come from each kind of file`(kind: String) throws {
        try withTemporaryDirectory { directory in
            let program = try NestedProgram(in: directory)
            try program.writeStore(at: directory.appending(path: "stalls.sqlite"))
            let store = ["--store", directory.appending(path: "stalls.sqlite").path]
            #expect(try run(["symbolicate", "--json"] + store).number("with_lines") == 0)

            var arguments: [String] = []
            let digits = program.buildID.description
            let tree = "\(digits.prefix(2))/\(digits.dropFirst(2)).debug"
            switch kind {
            case "binary": arguments = [program.full]
            case "debug file": arguments = [program.debug]
            case "directory": arguments = [directory.path]
            case "zlib", "zstd":
                arguments = [program.debug]
                let option = "--compress-debug-sections=\(kind)"
                _ = try Oracle.run("/usr/bin/objcopy", [option, program.debug])
                let sections = try Oracle.run("/usr/bin/readelf", ["-tW", program.debug]).output
                #expect(sections.contains(kind.uppercased()))
            case "build-id tree", "tree of gdb":
                let place = (kind == "build-id tree" ? "symbols/" : "symbols/.build-id/") + tree
                try program.moveDebugFile(to: directory.appending(path: place))
                arguments = ["--debug-dir", directory.appending(path: "symbols").path]
            default:
                _ = try Oracle.run(
                    "/usr/bin/objcopy", ["--add-gnu-debuglink=\(program.debug)", program.stripped])
                try FileManager.default.removeItem(atPath: program.full)
            }
            let first = try run(["symbolicate", "--json"] + store + arguments)
            #expect(first.status == 0 && first.errors == "")
            let places = first.number("places")
            #expect(places > 50 && first.number("changed") == places)
            #expect(first.number("named") == places && first.number("with_lines") == places)

            let report = try run(["list", "--json"] + store).object
            let id = try #require(report["id"] as? String)
            let shown = try run(["show", id, "--json"] + store).object
            let samples = try #require(shown["samples"] as? [[String: Any]])
            let frames = try #require(samples.first?["stack"] as? [[String: Any]])
            let inlined = frames.filter { $0["inlined"] as? Bool == true }
            #expect(Set(inlined.compactMap { $0["function"] as? String }) == ["inner", "middle"])
            #expect(frames.filter { $0["inlined"] as? Bool == false }.count == places)
            let files = frames.compactMap { $0["file"] as? String }
            #expect(files.allSatisfy { $0.hasSuffix("/nested.c") } && files.count > places)

            // Again changes nothing, also without the files.
            #expect(try run(["symbolicate", "--json"] + store + arguments).number("changed") == 0)
            try? FileManager.default.removeItem(atPath: program.debug)
            let last = try run(["symbolicate", "--json"] + store)
            #expect(last.number("changed") == 0 && last.number("with_lines") == places)
        }
    }

    /// An agent that was killed while it looked for inlined calls leaves the function that they were inlined into.
    @Test func `names that an agent had no time for are completed before its store is read`() throws
    {
        try withTemporaryDirectory { directory in
            let program = try NestedProgram(in: directory)
            func store(_ name: String) -> String { directory.appending(path: name).path }
            func listed(_ name: String) throws -> Answer {
                try run(["list", "--json", "--store", store(name)])
            }
            try program.writeStore(at: URL(filePath: store("left")), cutShort: true)
            try program.writeStore(at: URL(filePath: store("late")), cutShort: true)
            try program.writeStore(at: URL(filePath: store("whole")), cutShort: true)
            _ = try run(["symbolicate", "--store", store("whole"), program.full])

            let left = try listed("left")
            #expect(left.status == 0 && left.errors == "")
            #expect(left.object["signature"] as? String != nil)
            let whole = try listed("whole")
            #expect(left.object["signature"] as? String == whole.object["signature"] as? String)
            let shown = try run(["show", "latest", "--store", store("left")])
            #expect(shown.output.contains("inner") && shown.output.contains("middle"))

            try FileManager.default.removeItem(atPath: program.full)
            let late = try listed("late")
            #expect(late.status == 0 && late.errors.contains("are not known yet"), "\(late.errors)")
        }
    }

    @Test func `a file of another build is refused, and both ids are named`() throws {
        try withTemporaryDirectory { directory in
            let program = try NestedProgram(in: directory)
            try program.writeStore(at: directory.appending(path: "stalls.sqlite"))
            let other = try NestedProgram(
                in: directory.appending(path: "other"), options: ["-DOTHER"])
            #expect(other.buildID != program.buildID)
            let store = ["--store", directory.appending(path: "stalls.sqlite").path]
            let text = directory.appending(path: "text").path
            try Data("no binary".utf8).write(to: URL(filePath: text))

            let result = try run(
                ["symbolicate", "--json"] + store
                    + [other.full, text, "/nonexistent/x", "--debug-dir", "/nonexistent"])
            #expect(result.status == 1)
            let lines = result.errors.split(separator: "\n").map(String.init)
            #expect(
                lines.map { $0.replacing("stallctl: ", with: "") } == [
                    "/nonexistent: no such directory",
                    "\(other.full): build ID \(other.buildID), but the reports' nested has "
                        + "\(program.buildID); not used",
                    "\(text): neither an ELF file nor a Mach-O file for arm64 or x86_64; "
                        + "expected a binary, a separate debug file or a dSYM",
                    "/nonexistent/x: no such file",
                ])
            #expect(result.number("changed") == 0 && result.number("named") == 0)
            #expect((result.object["refused"] as? [Any])?.count == 4)
        }
    }

    @Test func `a place in an image without a build ID is never named`() throws {
        try withTemporaryDirectory { directory in
            let program = try NestedProgram(in: directory, options: ["-Wl,--build-id=none"])
            try program.writeStore(at: directory.appending(path: "stalls.sqlite"))
            let result = try run([
                "symbolicate", "--json", "--store",
                directory.appending(path: "stalls.sqlite").path, program.full,
            ])
            #expect(result.status == 1)
            #expect(result.errors.contains("no build ID"))
            #expect(result.number("places") == 0 && result.number("without_build_id") > 50)
        }
    }

    /// The whole way: a stripped program stalls, its store is ingested, and only then are symbols found.
    @Test func `a stripped program's report has its names afterwards, in every store`() throws {
        try withTemporaryDirectory { directory in
            let full = BuiltProgram.directory.appending(path: "AgentFixture").path
            let stripped = directory.appending(path: "AgentFixture").path
            let debug = directory.appending(path: "AgentFixture.debug").path
            _ = try Oracle.run("/usr/bin/strip", ["-o", stripped, full])
            _ = try Oracle.run("/usr/bin/objcopy", ["--only-keep-debug", full, debug])
            let agent = directory.appending(path: "agent.sqlite").path
            let central = directory.appending(path: "central.sqlite").path
            let ran = try Oracle.run(stripped, ["stalls", agent, "1"])
            #expect(ran.status == 0)
            func functions(_ store: String) throws -> [String] {
                let id = try run(["list", "--json", "--store", store]).object["id"] as? String
                let report = try run(["show", "--json", "--store", store, try #require(id)]).object
                let samples = try #require(report["samples"] as? [[String: Any]])
                // On a busy machine the last one may be of the end.
                let stacks = samples.compactMap { $0["stack"] as? [[String: Any]] }
                return stacks.joined().compactMap { frame in
                    let file = (frame["file"] as? String)?.split(separator: "/").last ?? ""
                    return (frame["function"] as? String).map { "\($0) \(file)" }
                }
            }
            try FileManager.default.removeItem(atPath: stripped)
            _ = try run(["ingest", "--store", central, agent])
            let expected = "plannedStall() AgentFixture.swift"
            #expect(try !functions(agent).contains(expected))
            #expect(try !functions(central).contains(expected))

            let result = try run(["symbolicate", "--store", agent, debug])
            #expect(result.status == 0 && result.output.contains("AgentFixture.debug"))
            #expect(try functions(agent).contains(expected))
            _ = try run(["ingest", "--store", central, agent])
            #expect(try functions(central) == functions(agent))
        }
    }

    private func run(_ arguments: [String]) throws -> Answer {
        let result = try Oracle.run(
            BuiltProgram.directory.appending(path: "stallctl").path, arguments,
            environment: ["TZ": "UTC", "HOME": "/nonexistent"])
        let line = result.output.split(separator: "\n").first.map { Data($0.utf8) } ?? Data()
        let object = try? JSONSerialization.jsonObject(with: line) as? [String: Any]
        return Answer(
            status: result.status, output: result.output, errors: result.errors,
            object: object ?? [:])
    }

    private struct Answer {
        var status: Int32
        var output: String
        var errors: String
        /// The first line of the output, when it is an object.
        var object: [String: Any]

        func number(_ key: String) -> Int { object[key] as? Int ?? -1 }
    }
}

/// A C program of which a release has only the stripped copy.
private struct NestedProgram {
    /// With symbols; stripped; and the separated debug file.
    let full, stripped, debug: String
    let buildID: BuildID
    private let isIdentified: Bool
    /// Every eighth byte of `outer` and `main`, from the image's load address.
    private let offsets: [UInt64]

    init(in directory: URL, options: [String] = []) throws {
        let folder = directory.appending(path: "release")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        full = directory.appending(path: "nested").path
        stripped = folder.appending(path: "nested").path
        debug = folder.appending(path: "nested.debug").path
        let source = directory.appending(path: "nested.c")
        try Data(CProgram.inlinedCalls.utf8).write(to: source)
        let tools = [
            ["clang", "-g", "-O2", "-Wl,--build-id", "-o", full, source.path] + options,
            ["objcopy", "--only-keep-debug", full, debug],
            ["strip", "-o", stripped, full],
        ]
        for tool in tools {
            let result = try Oracle.run("/usr/bin/env", tool)
            try #require(result.status == 0, "\(result.errors)")
        }
        isIdentified = !options.contains("-Wl,--build-id=none")
        let notes = try Oracle.run("/usr/bin/readelf", ["-n", full]).output
        let digits = notes.split(separator: "Build ID: ").dropFirst().first?.prefix { $0 != "\n" }
        buildID = digits.flatMap { BuildID(hexadecimal: $0) } ?? BuildID(bytes: [])
        offsets = try Oracle.run("/usr/bin/nm", ["-S", "--defined-only", full]).output
            .split(separator: "\n").flatMap { line -> [UInt64] in
                let fields = line.split(separator: " ")
                guard fields.count == 4, ["outer", "main"].contains(fields[3]),
                    let start = UInt64(fields[0], radix: 16),
                    let size = UInt64(fields[1], radix: 16)
                else { return [] }
                return stride(from: start, to: start + size, by: 4).map { $0 }
            }
    }

    /// One report whose stack has all of the program's locations, without symbols.
    ///
    /// - Parameter isCutShort: The program has symbols, and its agent has found no inlined calls yet.
    func writeStore(at url: URL, cutShort isCutShort: Bool = false) throws {
        let identity = isIdentified ? buildID : nil
        let path = isCutShort ? full : stripped
        let image = Image(
            path: path, buildID: identity, loadAddress: 0x5500_0000_0000,
            endAddress: 0x5500_0001_0000)
        let places = offsets.map {
            CodeLocation(imagePath: path, buildID: identity, offset: $0, kind: .interrupted)
        }
        var report = SampleReports.report(1, samples: [])
        report.samples = [
            Sample(
                offset: .zero, weight: .seconds(1), thread: ThreadID(rawValue: 1), method: .signal,
                locations: places)
        ]
        let store = try AgentStore(path: url.path, run: report.run)
        try store.record(report, images: [image])
        let frames = places.map { place in
            var frame = Frame(place)
            if isCutShort { (frame.function, frame.rawName) = ("outer", "outer") }
            return (place, [frame])
        }
        try store.symbolize(Dictionary(frames) { first, _ in first }, areFinal: !isCutShort)
        try store.close()
    }

    func moveDebugFile(to url: URL) throws {
        try FileManager.default.createDirectory(
            at: url.deletingLastPathComponent(), withIntermediateDirectories: true)
        try FileManager.default.moveItem(atPath: debug, toPath: url.path)
        try FileManager.default.removeItem(atPath: full)
    }
}

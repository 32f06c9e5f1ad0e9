import Foundation
import TestSupport
import Testing

/// Goal: an app that forgot a trait is told which.
/// Method: the compiler, with the modules of this build, which has no trait on.
@Suite struct TraitTests {
    @Test(arguments: [
        ("StallAgentNIO", "NIO", "monitor.watch(Group(), as: \"http\")"),
        ("StallAgentNIO", "NIO", "monitor.watch(Group(), as: \"http\", threshold: .seconds(1))"),
        ("StallAgentNIO", "NIO", "monitor.watchNIOThreadPool(Group(), as: \"files\")"),
        ("StallMetrics", "Metrics", "monitor.reportsMetrics()"),
        ("StallTracing", "Tracing", "_ = StallTracer(Group())"),
    ])
    func `the error names the trait`(module: String, trait: String, use: String) throws {
        let errors = try errors(in: use, importing: module)
        #expect(errors.contains("the trait \(trait) is not on"), "\(errors)")
        #expect(errors.contains("traits: [\"\(trait)\"]"), "\(errors)")
    }

    /// Goal: what is missing is in nobody's way.
    @Test func `what needs no trait compiles`() throws {
        let use = "monitor.watch(EventRunLoop.main, as: \"main\")"
        #expect(try errors(in: use, importing: "StallAgentNIO") == "")
    }

    private func errors(in use: String, importing module: String) throws -> String {
        try withTemporaryDirectory { directory in
            let source = directory.appending(path: "main.swift")
            let text = """
                import StallAgent
                import StallRunLoop
                import \(module)
                struct Group {}
                func use(_ monitor: StallMonitor) { \(use) }
                """
            try text.write(to: source, atomically: true, encoding: .utf8)
            let process = Process()
            process.executableURL = URL(filePath: "/usr/bin/env")
            process.arguments =
                ["swiftc", "-typecheck", source.path]
                + ["-I", BuiltProgram.directory.appending(path: "Modules").path]
                + (try Self.moduleMaps())
            let pipe = Pipe()
            process.standardError = pipe
            try process.run()
            let output = pipe.fileHandleForReading.readDataToEndOfFile()
            process.waitUntilExit()
            return String(decoding: output, as: UTF8.self)
        }
    }

    /// For the C modules that the agent is built of.
    private static func moduleMaps() throws -> [String] {
        let sources = Repository.root.appending(path: "Sources")
        var options = ["-Xcc", "-fmodule-map-file=\(sources.path)/CSQLite/module.modulemap"]
        for name in try FileManager.default.contentsOfDirectory(atPath: sources.path) {
            let map = BuiltProgram.directory.appending(path: "\(name).build/module.modulemap")
            guard FileManager.default.fileExists(atPath: map.path) else { continue }
            options += ["-Xcc", "-fmodule-map-file=\(map.path)"]
            options += ["-Xcc", "-I\(sources.path)/\(name)/include"]
        }
        return options
    }
}

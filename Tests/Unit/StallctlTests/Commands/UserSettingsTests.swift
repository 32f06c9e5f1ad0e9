import Foundation
import Glibc
import StallModel
import TestSupport
import Testing

@testable import stallctl

/// Goal: a settings file gives defaults, options win, and a wrong file is one clear line.
/// Method: texts for the reader; the program with files in a configuration directory of its own.
@Suite struct UserSettingsTests {
    private func read(_ text: String) throws -> UserSettings {
        try UserSettings(Array(text.utf8), file: "f.json", home: "/home/me")
    }

    @Test func `all keys are optional`() throws {
        #expect(try read("{}") == UserSettings())
        var all = UserSettings()
        all.store = "/home/me/all.sqlite"
        all.apps = ["photos", "vid\"eos"]
        all.color = .never
        all.trace = "https://tempo/trace/{trace}?at={span}"
        #expect(
            try read(
                """
                {
                  "store": "~/all.sqlite",
                  "app": ["photos", "vid\\"eos"],
                  "color": "never",
                  "trace": "https://tempo/trace/{trace}?at={span}"
                }

                """) == all)
        #expect(try read(#"{"app":"photos"}"#).apps == ["photos"])
        #expect(try read(#"{"app":[]}"#).apps == [])
    }

    /// As in a container with the environment of its image and another user.
    @Test(.enabled(if: geteuid() == 0)) func `a home that the user may not enter has no settings`()
        throws
    {
        try withTemporaryDirectory { directory in
            let home = directory.appending(path: "root")
            let settings = home.appending(path: ".config/stallwatch/stallctl.json")
            try FileManager.default.createDirectory(
                at: settings.deletingLastPathComponent(), withIntermediateDirectories: true)
            try Data("no settings".utf8).write(to: settings)
            try #require(chmod(directory.path, 0o755) == 0)
            func run() throws -> ProgramResult {
                try Oracle.run(
                    "/usr/bin/setpriv",
                    ["--reuid", "12345", "--regid", "12345", "--clear-groups"]
                        + [
                            BuiltProgram.directory.appending(path: "stallctl").path, "completions",
                            "bash",
                        ],
                    environment: ["HOME": home.path])
            }
            try #require(chmod(home.path, 0o755) == 0)
            #expect(try run().status == 1)
            try #require(chmod(home.path, 0o700) == 0)
            #expect(try run().status == 0)
        }
    }

    @Test(arguments: [
        ("", "f.json:1: expected { at the beginning; found the end of the file"),
        ("store = x", "f.json:1: expected { at the beginning; found 'store'"),
        (
            "{\n  \"stroe\": \"/a\"\n}",
            "f.json:2: expected \"store\", \"app\", \"color\" or \"trace\"; found \"stroe\""
        ),
        (
            "{\n\n  \"color\": \"red\" }",
            "f.json:3: expected auto, always or never for \"color\"; found 'red'"
        ),
        (
            "{ \"trace\": \"https://tempo/{span}\" }",
            "f.json:1: expected an address such as https://HOST/trace/{trace} for \"trace\"; found 'https://tempo/{span}'"
        ),
        ("{ \"color\": true }", "f.json:1: expected a string; found 'true'"),
        ("{ \"app\": 5 }", "f.json:1: expected a string or a list of strings; found '5'"),
        (
            "{ \"store\": \"all.sqlite\" }",
            "f.json:1: expected an absolute path, or one that begins with ~/, for \"store\"; found 'all.sqlite'"
        ),
        ("{ \"app\": [\"a\" \"b\"] }", "f.json:1: expected , or ] in the list; found '\"b\"'"),
        ("{ \"app\": \"a\",\n\"app\": \"b\" }", "f.json:2: expected \"app\" once"),
        ("{ \"app\": \"a\n\" }", "f.json:1: expected a closing \""),
        ("{} x", "f.json:1: expected nothing after the last }"),
        ("{\"a\\q\": 1}", "f.json:1: expected a valid string; found \"a\\q\""),
    ])
    func `a wrong file is named with its line and what was expected`(text: String, message: String)
    {
        #expect(throws: UserSettingsError.self) { try read(text) }
        do { _ = try read(text) } catch { #expect("\(error)" == message) }
    }

    @Test func `options and the environment win over the file`() throws {
        try withTemporaryDirectory { directory in
            let folder = directory.appending(path: "config/stallwatch")
            try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
            for (name, app) in [("a", "photos"), ("b", "videos")] {
                try SampleReports.writeStore(
                    at: directory.appending(path: name + ".sqlite"),
                    [SampleReports.report(1, run: SampleReports.run(app: app))],
                    run: SampleReports.run(app: app))
            }
            let file = folder.appending(path: "stallctl.json")
            func apps(_ arguments: [String] = [], _ extra: [String: String] = [:]) throws
                -> [String]
            {
                let environment = [
                    "XDG_CONFIG_HOME": directory.appending(path: "config").path,
                    "HOME": directory.path, "TZ": "UTC",
                ]
                let said = try Oracle.run(
                    BuiltProgram.directory.appending(path: "stallctl").path,
                    ["list", "--json"] + arguments,
                    environment: environment.merging(extra) { $1 }, directory: directory)
                #expect(said.status == 0, "\(said)")
                return try CommandTests().objects(said.output).compactMap { $0["app"] as? String }
            }
            try Data("{ \"store\": \"~/a.sqlite\", \"app\": \"photos\" }".utf8).write(to: file)
            #expect(try apps() == ["photos"])
            #expect(try apps([], ["STALLCTL_STORE": "b.sqlite"]) == [])
            let empty = try Oracle.run(
                BuiltProgram.directory.appending(path: "stallctl").path,
                ["top", "--store", "b.sqlite"],
                environment: [
                    "XDG_CONFIG_HOME": directory.appending(path: "config").path,
                    "HOME": directory.path,
                ], directory: directory)
            #expect(
                empty.errors.contains("no report has app 'photos' of the settings file; it has"))
            #expect(try apps(["--store", "b.sqlite", "--app", "videos"]) == ["videos"])
            #expect(try apps(["--store", "b.sqlite", "--app", "*"]) == ["videos"])
            try Data("{ \"color\": \"always\" }".utf8).write(to: file)
            let environment = [
                "XDG_CONFIG_HOME": directory.appending(path: "config").path, "HOME": directory.path,
            ]
            func top(_ arguments: [String]) throws -> ProgramResult {
                try Oracle.run(
                    BuiltProgram.directory.appending(path: "stallctl").path,
                    ["top", "--store", "a.sqlite"] + arguments, environment: environment,
                    directory: directory)
            }
            #expect(try top([]).output.contains("\u{1b}[1m"))
            #expect(try !top(["--color", "auto"]).output.contains("\u{1b}"))
            try Data("{\n\"color\": \"blue\" }".utf8).write(to: file)
            let wrong = try top([])
            #expect(wrong.status == 1 && wrong.output == "")
            #expect(
                wrong.errors
                    == "stallctl: \(file.path):2: expected auto, always or never for \"color\"; found 'blue'\n"
            )
        }
    }

    @Test func `no home directory never means the root of the disk`() {
        #expect(UserDirectories.configuration(["HOME": "/home/me"]) == "/home/me/.config")
        #expect(UserDirectories.configuration(["XDG_CONFIG_HOME": "/c"]) == "/c")
        #expect(!UserDirectories.configuration([:]).hasPrefix("/.config"))
        #expect(!UserDirectories.state(["HOME": "", "XDG_STATE_HOME": "x"]).hasPrefix("/.local"))
        #expect(UserSettings.path(["XDG_CONFIG_HOME": "/c"]) == "/c/stallwatch/stallctl.json")
    }
}

import ArgumentParser
import Foundation
import StallIngest
import TestSupport
import Testing

@testable import stallctl

/// Goal: a build without the trait Fleet says what it lacks and how to get it, in one line and with an exit code of its own.
/// Method: the registry without an opener, in every build; the built program, where it is such a build. In `make gates`
/// scripts/check-plain builds one.
@Suite struct FleetPartsTests {
    private let help =
        "install the Debian package, or build it with 'swift build -c release --traits Fleet --product stallctl'"

    @Test func `an address without an opener is an error that says how to get one`() throws {
        #expect {
            try StoreOpener.remote("clickhouse://stall@hub/stalls", openers: [])
        } throws: { error in
            "\(error)"
                == "a store at clickhouse://stall@hub/stalls is not in this build of stallctl: "
                + help
        }
    }

    @Test(arguments: ["stalls.sqlite", "/clickhouse://hub", "clickhouse", ""])
    func `a path needs no opener`(path: String) throws {
        #expect(try StoreOpener.remote(path, openers: []) == nil)
    }

    @Test(arguments: [
        [], ["https://hub:4319", "--watch", "a.sqlite"], ["--otlp", "http://localhost/v1/logs"],
    ])
    func `a push is refused whatever its options`(words: [String]) throws {
        let command = try MissingPush.parse(words)
        #expect(throws: MissingFleet(what: "push")) { try command.run() }
        #expect("\(MissingFleet(what: "push"))" == "push is not in this build of stallctl: " + help)
    }

    #if Fleet
    @Test func `an address has an opener, and an incomplete one is an error of its own`() throws {
        let remote = try #require(try StoreOpener.remote("clickhouse://stall@hub/stalls"))
        #expect(remote.name == "clickhouse://stall@hub:8123/stalls")
        #expect {
            try StoreOpener.remote("clickhouse://")
        } throws: { "\($0)".hasPrefix("the address of the cluster is wrong") }
    }
    #else
    @Test(arguments: [
        ["push", "https://hub:4319"], ["top", "--store", "clickhouse://hub/stalls"],
        ["ingest", "--store", "clickhouse://hub/stalls", "a.sqlite"],
    ])
    func `the program says it in one line`(words: [String]) throws {
        let run = try Oracle.run(
            BuiltProgram.directory.appending(path: "stallctl").path, words, environment: [:])
        #expect(run.status == 64)
        #expect(run.output == "")
        #expect(run.errors.hasPrefix("stallctl: ") && run.errors.hasSuffix(help + "\n"))
        #expect(run.errors.split(separator: "\n").count == 1, "\(run.errors)")
    }
    #endif
}

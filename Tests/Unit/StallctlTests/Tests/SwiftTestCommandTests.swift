import Testing

@testable import stallctl

/// Goal: `run` follows each command that runs a package's tests and no other, and changes only what it has to.
/// Method: commands as people type them.
@Suite struct SwiftTestCommandTests {
    @Test(arguments: [
        ["swift", "test"], ["/opt/swift/usr/bin/swift", "test", "--parallel"], ["swift-test"],
        ["./swift-test", "--filter", "list"], ["swift", "test", "-c", "release"],
    ])
    func `a command that runs tests is recognized`(command: [String]) {
        #expect(SwiftTestCommand(command) != nil)
    }

    @Test(arguments: [
        [], ["swift"], ["swift", "build", "--build-tests"], ["swift", "package", "test"],
        ["swift", "test", "list"], ["swift", "test", "--list-tests"], ["swift", "test", "-l"],
        ["swift", "test", "--help"], ["swift", "test", "--show-codecov-path"],
        ["swiftly", "test"], ["ctest"], ["swift", "--version", "test"], [""], ["/"],
    ])
    func `no other command is`(command: [String]) { #expect(SwiftTestCommand(command) == nil) }

    @Test func `the options for the stream precede the user's`() throws {
        let test = try #require(SwiftTestCommand(["swift", "test", "--filter", "A"]))
        #expect(test.streamPath == nil)
        #expect(
            test.command(streamingTo: "/t/e") == [
                "swift", "test", "--event-stream-output-path", "/t/e", "--event-stream-version",
                "0", "--filter", "A",
            ])
        let versioned = try #require(
            SwiftTestCommand(["swift-test", "--event-stream-version", "6.3"]))
        #expect(
            versioned.command(streamingTo: "/t/e") == [
                "swift-test", "--event-stream-output-path", "/t/e", "--event-stream-version", "6.3",
            ])
    }

    @Test(arguments: [
        ("// swift-compiler-version: Swift version 6.3.1 (swift-6.3.1-RELEASE)", true),
        ("// swift-compiler-version: Swift version 6.10", true),
        ("// swift-compiler-version: Swift version 7.0", true),
        ("// swift-compiler-version: Swift version 6.2.3 (swift-6.2.3-RELEASE)", false),
        ("", false), ("Swift version 99999.1", false),
    ])
    func `the options have the names of the Swift that is installed`(
        head: String, isStandard: Bool
    ) throws {
        let names = SwiftTestCommand.streamOptions(ofInterface: head)
        #expect(names == (isStandard ? .standard : .experimental))
        let command = try #require(SwiftTestCommand(["swift", "test"]))
            .command(streamingTo: "f", names)
        let option =
            isStandard ? "--event-stream-output-path" : "--experimental-event-stream-output"
        #expect(command[2] == option)
        #expect(SwiftTestCommand(command)?.streamPath == "f")
    }

    @Test(
        arguments: [
            (["--event-stream-output-path", "a.json"], "a.json"),
            (["--event-stream-output-path=b.json", "-v"], "b.json"),
            (["--event-stream-output-path"], nil), (["--event-stream-version", "0"], nil),
        ] as [([String], String?)])
    func `a stream that the user named is found`(options: [String], path: String?) throws {
        #expect(try #require(SwiftTestCommand(["swift", "test"] + options)).streamPath == path)
    }
}

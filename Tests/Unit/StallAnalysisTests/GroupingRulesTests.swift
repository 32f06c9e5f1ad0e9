import StallModel
import StallQuery
import TestSupport
import Testing

@testable import StallAnalysis

/// Goal: a rules file has the documented meaning, precedes the built-in rules, and is rejected with a clear message if
/// it has a syntax error.
/// Method: stacks from text, as in SignatureTests, grouped with and without the rules.
@Suite struct GroupingRulesTests {
    let stack =
        "fsync <- Foundation/FileHandle.synchronize() <- save(_:) <- Store.perform(_:) <- closure #1 in tick() <- StallRunLoop/EventRunLoop.run() <- main"

    func grouped(_ rules: String, _ stacks: String...) throws -> Signature {
        try StallAnalysis.signature(
            of: stacks.map { (frames($0), .seconds(1)) },
            rules: GroupingRules(rules, file: "my.rules"))
    }

    // MARK: - What each action does

    @Test(arguments: [
        ("skip function save(_:)", ["Store.perform(_:)", "tick()"]),
        ("skip function Store.*", ["save(_:)", "tick()"]),
        ("system module photos", ["FileHandle.synchronize()", "save(_:)", "Store.perform(_:)"]),
        ("app module Foundation", ["FileHandle.synchronize()", "save(_:)", "Store.perform(_:)"]),
        ("keep function fsync", ["fsync", "save(_:)", "Store.perform(_:)"]),
        ("stop function Store.perform(_:)", ["save(_:)", "Store.perform(_:)"]),
        ("base loop function Store.perform(_:)", ["save(_:)"]),
        ("skip image photos function save*", ["Store.perform(_:)", "tick()"]),
        ("skip image /app/* function save*", ["Store.perform(_:)", "tick()"]),
        ("skip image /other/* function save*", ["save(_:)", "Store.perform(_:)", "tick()"]),
        ("skip function \"closure in *\"", ["save(_:)", "Store.perform(_:)"]),
        (
            "app function save(_:)\nskip function save(_:)",
            ["save(_:)", "Store.perform(_:)", "tick()"]
        ),
    ])
    func `an action changes what names the group`(rules: String, expected: [String]) throws {
        #expect(try grouped(rules, stack).keyFrames == expected)
    }

    /// An agent that has no rules file takes them one by one.
    @Test func `what may block has no part in grouping`() throws {
        let allowing = try GroupingRules(
            """
            skip  function a
            allow function "b *" c image d* /e/*
            allow image f
            """, file: "r")
        #expect(
            allowing.allowed == [
                "image d*\timage /e/*\tfunction b *\tfunction c", "image f",
            ])
        let skipping = try GroupingRules("skip function a", file: "r")
        #expect(allowing.hash == skipping.hash && skipping.allowed.isEmpty)
        #expect(try grouped("allow function *", stack).keyFrames == grouped("", stack).keyFrames)
    }

    @Test(arguments: [
        (
            "clock_nanosleep <- usleep <- decode(_:) <- Blocker.channelRead(context:data:) <- NIOCore/ChannelHandlerContext.invokeChannelRead(_:) <- NIOPosix/BaseSocketChannel.readable() <- NIOPosix/SelectableEventLoop.run() <- NIOPosix/static MultiThreadedEventLoopGroup.runTheLoop(thread:) <- start_thread",
            ["decode(_:)", "Blocker.channelRead(context:data:)"]
        ),
        (
            "fsync <- save(_:) <- closure #1 in routes() <- Hummingbird/CallbackResponder.respond(to:context:) <- HummingbirdCore/HTTPChannelHandler.handleHTTP(asyncChannel:logger:) <- stall_jobs_run <- start_thread",
            ["save(_:)", "routes()"]
        ),
        (
            "swift_retain <- SwiftProtobuf/BinaryDecoder.decode() <- Orders.list(request:context:) <- GRPCCore/RPCRouter.handle() <- stall_jobs_run <- start_thread",
            ["Orders.list(request:context:)"]
        ),
    ])
    func `a server's stall is named by the app's handler`(stack: String, expected: [String]) {
        #expect(signature(stack).keyFrames == expected)
    }

    @Test func `a wait of the user's is named in the title`() throws {
        let found = try grouped("wait network function save(_:)", stack)
        #expect(found.wait == .network)
        #expect(found.title == "network in Store.perform(_:) <- tick()")
    }

    @Test func `rules that do not fit leave signatures as they were`() throws {
        let found = try grouped("skip function nobody\nmerge path \"a() <- b()\" into x", stack)
        #expect(found == signature(stack))
    }

    @Test func `a merge makes one group of several, under its name`() throws {
        let rules = "merge path \"save(_:) <- *\" \"flush() <- tick()\" into \"saving <- tick()\""
        let first = try grouped(rules, stack)
        let second = try grouped(rules, "write <- flush() <- tick() <- main")
        let other = try grouped(rules, "write <- flush() <- tock() <- main")
        #expect(first.hash == second.hash && first.family == second.family)
        #expect(first.hash != other.hash)
        #expect(first.keyFrames == ["saving", "tick()"])
        #expect(first.title == "disk in saving <- tick()")
        #expect(first.rule == "my.rules:1")
    }

    @Test func `a merged group can be merged once more`() throws {
        let rules = "merge path saving other into all\nmerge path \"save(_:) <- *\" into saving\n"
        #expect(try grouped(rules, stack).keyFrames == ["all"])
        #expect(try grouped("merge path * into saving", stack).keyFrames == ["saving"])
    }

    @Test func `a split separates groups by its key`() throws {
        let other = stack.replacing(
            "Foundation/FileHandle.synchronize()", with: "Foundation/rename(_:)")
        let deeper = stack.replacing("closure #1 in tick()", with: "a() <- b() <- c()")
        let deepest = stack.replacing("closure #1 in tick()", with: "a() <- b() <- d()")
        let running = stack.replacing("fsync <- ", with: "")
        for (key, left, right) in [
            ("callee", stack, other), ("callers", deeper, deepest), ("wait", stack, running),
        ] {
            #expect(signature(left).hash == signature(right).hash)
            let rules = "split by \(key) function save*"
            let (first, second) = (try grouped(rules, left), try grouped(rules, right))
            #expect(first.hash != second.hash, "\(key)")
            #expect(first.family == second.family)
            #expect(try grouped(rules, left).hash == first.hash)
        }
        #expect(
            try grouped("split by callee function save*", stack).title
                == "disk in save(_:) -> FileHandle.synchronize() <- Store.perform(_:)")
    }

    @Test func `why names the user's rule by file and line`() throws {
        let rules = try GroupingRules("\n\nskip module photos\n", file: "my.rules")
        #expect(
            ClassifiedFrame(frames("save()")[0], rules: rules).rule == "my.rules:3: module photos")
        #expect(ClassifiedFrame(frames("usleep")[0], rules: rules).rule == "waits: sleep")
    }

    // MARK: - Reading

    @Test func `comments and spaces change nothing, words do`() throws {
        let plain = try GroupingRules("skip function a b", file: "x")
        let spaced = try GroupingRules(
            "rules 1\n# mine\n\n  skip   function a b  # why\n", file: "y")
        #expect(try GroupingRules("skip function a", file: "x").hash != plain.hash)
        #expect(try GroupingRules("skip function ab", file: "x").hash != plain.hash)
        #expect(GroupingRules.builtIn.hash != plain.hash)
        #expect(try GroupingRules("  skip   function a b  # why", file: "y").hash == plain.hash)
        #expect(spaced.file == "y")
    }

    @Test(arguments: [
        (
            "skip function a\nwiat lock function b",
            "r:2: expected an action: app, skip, keep, stop, wait, base, merge, split, allow, system, kernel, thunk, runtime, allocator or monitor, not 'wiat'"
        ),
        (
            "wait locks function a",
            "r:1: expected what is waited for: sleep, lock, disk, network, ipc, io or poll, not 'locks'"
        ),
        ("skip a", "r:1: expected a selector: image, module, function or kind, not 'a'"),
        (
            "skip",
            "r:1: expected a selector: image, module, function or kind, but the line ends there"
        ),
        (
            "skip function",
            "r:1: expected what the function must be, such as photos* or \"init *\", but the line ends there"
        ),
        ("skip function \"a", "r:1: expected a closing \", not '\"a'"),
        (
            "skip kind odd",
            "r:1: expected a kind: thunk, runtime, entry, nowhere, program, source, script or library, not 'odd'"
        ),
        ("merge path a", "r:1: expected 'into' and the name of the group, but the line ends there"),
        ("merge path a into b c", "r:1: expected the end of the line, not 'c'"),
        ("split function a", "r:1: expected 'by', not 'function'"),
        (
            "split by line function a",
            "r:1: expected what to split by: callee, callers or wait, not 'line'"
        ),
        ("rules 2", "r:1: expected format 1, not '2'"),
        ("stop path a", "r:1: expected a selector: image, module, function or kind, not 'path'"),
    ])
    func `what cannot be understood is named with its line`(text: String, message: String) {
        #expect(throws: RulesError.self) { try GroupingRules(text, file: "r") }
        do throws(RulesError) {
            _ = try GroupingRules(text, file: "r")
        } catch {
            #expect("\(error)" == message)
        }
    }

    @Test func `no text makes the reader trap`() {
        var random = SeededGenerator(seed: 11)
        let words = [
            "skip", "wait", "lock", "merge", "into", "\"", "\"a b\"", "#", "function", "path",
            "kind",
            "*", "\\", "\u{0}", "é", "\r\n", "\n", " ", "split", "by", "callee", "rules", "1",
        ]
        for _ in 0..<2000 {
            let text = (0..<Int.random(in: 0...12, using: &random))
                .map { _ in words.randomElement(using: &random)! }.joined(
                    separator: Bool.random(using: &random) ? " " : "")
            _ = try? GroupingRules(text, file: "r")
        }
    }

    // MARK: - Globs

    @Test(arguments: [
        ("poll", "poll", true), ("poll", "polls", false), ("po*", "poll", true), ("*", "", true),
        ("p?ll", "pöll", true), ("p?ll", "pll", false), ("*.f*(_:)", "A.B.find(_:)", true),
        ("a\\*b", "a*b", true), ("a\\*b", "axb", false), ("*a*b*", "xaxbx", true),
        ("a\\u{A}b", "a\nb", true), ("a\\u{a}b", "axb", false), ("\\u{22}", "\"", true),
        ("\\u{1F600}?", "😀x", true), ("\\u{}", "u{}", true), ("\\u{110000}", "u{110000}", true),
        ("*ab", "aab", true), ("", "", true), ("", "a", false), ("a*a", "a", false),
    ])
    func `a glob fits a whole name`(pattern: String, name: String, fits: Bool) {
        #expect(Glob(pattern).matches(name) == fits)
    }

    /// The definition, which is exponential.
    private func reference(_ pattern: Substring, _ name: Substring) -> Bool {
        switch pattern.first {
        case nil: name.isEmpty
        case "*":
            reference(pattern.dropFirst(), name)
                || !name.isEmpty && reference(pattern, name.dropFirst())
        case "?": !name.isEmpty && reference(pattern.dropFirst(), name.dropFirst())
        case let first: name.first == first && reference(pattern.dropFirst(), name.dropFirst())
        }
    }

    @Test func `globs fit as they are defined to`() {
        var random = SeededGenerator(seed: 3)
        var fitting = 0
        for _ in 0..<5000 {
            let pattern = String(
                (0..<Int.random(in: 0...6, using: &random)).map { _ in
                    "ab*?é".randomElement(using: &random)!
                })
            let name = String(
                (0..<Int.random(in: 0...7, using: &random)).map { _ in
                    "abé".randomElement(using: &random)!
                })
            let expected = reference(pattern[...], name[...])
            #expect(Glob(pattern).matches(name) == expected, "\(pattern) \(name)")
            fitting += expected ? 1 : 0
        }
        #expect(fitting > 500)
    }

    // MARK: - As the store uses it

    @Test func `the grouper says what signature says`() throws {
        let rules = try GroupingRules("skip function save(_:)", file: "r")
        let grouper = DefaultGrouper(rules: rules)
        for _ in 0..<2 {
            let seen = grouper.stack(frames(stack), executable: nil)
            let group = grouper.group(of: [(seen, .seconds(1))], cause: .disk)
            #expect(group == (try grouped("skip function save(_:)", stack)).group)
        }
        #expect(grouper.rulesHash == rules.hash)
        #expect(DefaultGrouper().rulesHash == GroupingRules.builtIn.hash)
    }
}

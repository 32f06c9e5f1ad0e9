import StallModel
import StallQuery
import Testing
import TestSupport

@testable import StallAnalysis

/// Goal: a stall is named after the app function that accounts for it, whichever function its samples happened to hit.
/// Method: stacks as the agent captures them, written leaf first; `a <- b` reads: b called a.
@Suite struct SignatureTests {
    // MARK: - What a frame is

    @Test(arguments: [
        (
            "$s12StallRunLoop09EventRunC0C3runyyF", "EventRunLoop.run()", "/app/photos",
            FrameClass.base
        ),
        (
            "$s10StallAgent0A7MonitorC12withActivityyyF", "StallMonitor.withActivity(_:_:)",
            "/app/photos", .monitor
        ),
        ("$s10Foundation4DataV5countSivg", "Data.count.getter", "/app/photos", .system),
        ("$sSa6appendyyxF", "Array.append(_:)", "/app/photos", .system),
        ("$sSa6photosE7relayoutyyF", "Array.relayout()", "/app/photos", .app),
        ("$s10Foundation4DataV6photosE5thumbyyF", "Data.thumb()", "/app/photos", .app),
        ("$sSa6photosSiRszlE3sumSiyF", "Array<A>.sum()", "/app/photos", .app),
        ("$s6photos8TimelineV4tickyyF", "Timeline.tick()", "/usr/lib/photos/libtimeline.so", .app),
        ("usleep", "usleep", "/lib/x86_64-linux-gnu/libc.so.6", .wait),
        ("__GI___poll", "__GI___poll", "/lib/x86_64-linux-gnu/libc.so.6", .wait),
        ("malloc", "malloc", "/lib/x86_64-linux-gnu/libc.so.6", .allocator),
        ("start_thread", "start_thread", "/lib/x86_64-linux-gnu/libc.so.6", .base),
        ("photos_main", "photos_main", "/app/photos", .base),
        ("swift_retain", "swift_retain", "/app/photos", .runtime),
        ("$s6photos8TimelineVWOc", "outlined copy of Timeline", "/app/photos", .runtime),
        ("_dispatch_client_callout", "_dispatch_client_callout", "/app/photos", .base),
        ("draw_layout", "draw_layout", "/app/photos", .app),
        ("_ZN6layout4drawEv", "layout::draw()", "/opt/photos/liblayout.so", .app),
        ("_ZNSt6vectorIiE9push_backEi", "std::vector<int>::push_back(int)", "/app/photos", .system),
        ("__vdso_clock_gettime", "__vdso_clock_gettime", "[vdso]", .kernel),
    ])
    func `a frame is classified by its owner`(
        symbol: String, name: String, image: String, expected: FrameClass
    ) {
        let frame = ClassifiedFrame(Frame(name, symbol: symbol, image: image))
        #expect(frame.frameClass == expected, "\(frame.rule)")
    }

    @Test func `the program is the app's wherever it is installed`() {
        var frame = Frame("tick", image: "/usr/lib/photos/photos-daemon")
        frame.buildID = BuildID(bytes: [1, 2])
        #expect(ClassifiedFrame(frame).frameClass == .system)
        #expect(ClassifiedFrame(frame, executable: frame.buildID).frameClass == .app)
    }

    // MARK: - Which functions name it

    @Test func `a blocking call is named after its caller in the app`() {
        let found = signature(
            "clock_nanosleep <- nanosleep <- Foundation/static Thread.sleep(forTimeInterval:) <- sleepInTimer() <- closure #1 in closure #2 in Timeline.start() <- StallRunLoop/EventRunLoop.fire(_:) <- StallRunLoop/EventRunLoop.run() <- static App.main() <- main"
        )
        #expect(found.keyFrames == ["sleepInTimer()", "Timeline.start()"])
        #expect(found.title == "sleep in sleepInTimer() <- Timeline.start()")
        #expect(!found.isWithoutAppFrame)
    }

    @Test func `work spread over closures and helpers is the function's that called them`() {
        let root =
            "drawComplexLayout(_:) <- closure #1 in Script.next() <- StallRunLoop/EventRunLoop.run() <- main"
        let found = signature(
            "Swift/specialized MutableCollection.sort(by:) <- closure #1 in \(root)",
            "arrange<A, B>(_:perRow:measure:) <- \(root)",
            "swift_retain <- closure #2 in closure #1 in \(root)",
            "malloc <- Swift/Array.append(_:) <- arrange<A, B>(_:perRow:measure:) <- \(root)",
            root)
        #expect(found.keyFrames == ["drawComplexLayout(_:)", "Script.next()"])
    }

    /// Two of three samples in one helper may be chance; twenty of thirty are not.
    @Test(arguments: [
        (2, 1, "outer()"), (20, 10, "outer()"), (24, 8, "helper()"), (1, 0, "helper()"),
    ])
    func `few samples must agree before a helper is blamed`(
        inHelper: Int, outside: Int, blamed: String
    ) {
        let stacks =
            Array(repeating: "helper() <- outer() <- main", count: inHelper)
            + Array(repeating: "outer() <- main", count: outside)
        #expect(signature(stacks).keyFrames.first == blamed)
    }

    @Test func `weight counts, not the number of samples`() {
        let short = Array(repeating: ("other() <- StallRunLoop/EventRunLoop.run()", 10), count: 5)
        let found = signature(
            weighted: short + [("slow() <- StallRunLoop/EventRunLoop.run()", 1900)])
        #expect(found.keyFrames == ["slow()"])
    }

    @Test func `one stall sampled twice has one signature`() {
        let stack = "poll <- wait(for:) <- load() <- StallRunLoop/EventRunLoop.run() <- main"
        #expect(signature(stack).hash == signature(stack, stack).hash)
    }

    @Test func `what called the loop did not choose the callout`() {
        let first = signature(
            "tick() <- StallRunLoop/EventRunLoop.run() <- closure #1 in Worker.start() <- start_thread"
        )
        let second = signature(
            "tick() <- StallRunLoop/EventRunLoop.run() <- static App.main() <- main")
        #expect(first.keyFrames == ["tick()"])
        #expect(first.hash == second.hash)
    }

    @Test(arguments: [
        "work() <- recurse(_:) <- recurse(_:) <- start()",
        "work() <- recurse(_:) <- recurse(_:) <- recurse(_:) <- recurse(_:) <- start()",
        "work() <- closure #3 in recurse(_:) <- recurse(_:) <- start()",
    ])
    func `the depth of a recursion does not matter`(stack: String) {
        #expect(signature(stack).hash == signature("work() <- recurse(_:) <- start()").hash)
    }

    @Test(arguments: [
        "b() <- a() <- b() <- a() <- start()", "b() <- a() <- b() <- a() <- b() <- a() <- start()",
    ])
    func `a cycle counts once`(stack: String) {
        #expect(signature(stack).keyFrames == ["b()", "a()", "start()"])
    }

    @Test func `functions that await come where they would have called`() {
        var stack = frames(
            "usleep <- load() <- completeTaskWithClosure <- start_thread <- show() <- refresh()")
        for index in stack.indices.suffix(2) { stack[index].kind = .asyncResume }
        let found = StallAnalysis.signature(of: [(stack, .seconds(1))])
        #expect(found.keyFrames == ["load()", "show()", "refresh()"])
    }

    @Test func `a cut stack gets its callers from a whole one of the same stall`() {
        let whole = "fsync <- save() <- tick() <- StallRunLoop/EventRunLoop.run()"
        let found = signature(whole, "fsync <- save()", "write <- save()", "malloc")
        #expect(found.hash == signature(whole).hash)
        #expect(!found.isCut)
    }

    @Test func `a stall of which all stacks were cut says so`() {
        let found = signature("fsync <- save()", "write <- save()")
        #expect(found.keyFrames == ["save()"])
        #expect(found.isCut)
        #expect(!signature("write <- save() <- start_thread").isCut)
        let thread =
            frames("write <- save()") + [Frame(nil, image: "/lib/x86_64-linux-gnu/libc.so.6")]
        #expect(!StallAnalysis.signature(of: [(thread, .seconds(1))]).isCut)
    }

    /// The optimizer merges the inner closure into the helper that calls it.
    @Test func `a closure in the middle counts neither in debug nor in release`() {
        let debug = signature(
            "draw() <- closure #1 in closure #2 in next() <- measure(_:) <- closure #2 in next()")
        let release = signature("draw() <- specialized measure(_:) <- closure #2 in next()")
        #expect(debug.keyFrames == ["draw()", "measure(_:)", "next()"])
        #expect(debug.hash == release.hash)
    }

    @Test func `work in a closure is its function's, whatever helper calls it`() {
        let found = signature(
            "Swift/Array.append(_:) <- closure #1 in draw() <- each(_:) <- draw() <- next()")
        #expect(found.keyFrames == ["draw()", "next()"])
    }

    // MARK: - What never matters

    @Test func `lines, addresses and the numbers of closures do not matter`() {
        var random = SeededGenerator(seed: 7)
        let reference = signature("load() <- closure #1 in Album.open(_:at:) <- tick()")
        for _ in 0..<50 {
            let number = Int.random(in: 1...99, using: &random)
            var frames = frames("load() <- closure #\(number) in Album.open(_:at:) <- tick()")
            for index in frames.indices {
                frames[index].offset = random.next()
                frames[index].line = Int.random(in: 1...9999, using: &random)
                frames[index].file = "/src/\(number).swift"
            }
            #expect(
                StallAnalysis.signature(of: [(frames, .milliseconds(1))]).hash == reference.hash)
        }
    }

    @Test(arguments: [
        "specialized Cache<A>.run<B>(_:) <- tick()", "Cache.run(_:) <- tick()",
        "Cache.run(_:) <- partial apply for thunk for @callee_guaranteed () -> () <- tick()",
        "swift_release <- outlined destroy of Model <- Cache.run(_:) <- tick()",
        "protocol witness for Worker.run(_:) in conformance Cache<A> <- tick()",
        "Cache.run(_:) <- StallAgent/StallMonitor.withActivity(_:_:) <- tick()",
        "Cache.run(_:) <- Swift/Sequence.forEach(_:) <- tick()",
    ])
    func `thunks, specializations and runtime helpers do not matter`(stack: String) {
        #expect(signature(stack).hash == signature("Cache.run(_:) <- tick()").hash)
    }

    @Test func `different functions never share a signature`() {
        let functions = ["a()", "b()", "a(_:)", "a(x:)", "T.a()", "U.a()"]
        #expect(Set(functions.map { signature("\($0) <- tick()").hash }).count == functions.count)
        #expect(Set(functions.map { signature("\($0) <- tick()").family }).count == functions.count)
        #expect(signature("a() <- tick()").family == signature("a() <- other()").family)
        #expect(signature("a() <- tick()").hash != signature("a() <- other()").hash)
    }

    // MARK: - Functions that were merged

    @Test func `merged functions are their callers', and never have a name`() {
        let merged = signature("usleep <- merged Cache.run(_:) <- draw() <- tick() <- main")
        #expect(merged.title == "sleep in one of several merged functions <- draw()")
        #expect(merged.keyFrames == ["draw()", "tick()"])
        #expect(merged.hash == signature("draw() <- tick()").hash)
        // With the function that jumped to the merged one, there is nothing to guess.
        let named = signature("usleep <- merged Cache.run(_:) <- Cache.load() <- draw() <- tick()")
        #expect(named.keyFrames.first == "Cache.load()")
        let alone = signature("usleep <- merged Cache.run(_:) <- StallRunLoop/EventRunLoop.run()")
        #expect(alone.title == "sleep in one of several merged functions like Cache.run(_:)")
    }

    @Test func `a merged function that main calls is main's, and the title says so`() {
        let merged = signature("usleep <- merged load <- main")
        #expect(merged.title == "sleep in one of several merged functions <- main (no app frame)")
        #expect(merged.keyFrames == ["main"])
        #expect(merged.hash == signature("usleep <- main").hash)
        #expect(signature("usleep <- main").title == "sleep in main (no app frame)")
    }

    @Test func `what is inlined into a merged function is merged`() {
        var stack = frames("usleep <- closure #1 in Cache.run(_:) <- Cache.run(_:) <- draw()")
        stack[1].isInlined = true
        stack[2].rawName = "$s6photos5CacheV3runyS2iFTm"
        let found = StallAnalysis.signature(of: [(stack, .milliseconds(1))])
        #expect(found.keyFrames == ["draw()"])
    }

    @Test func `code without a symbol of its own is its callers', as of any merged function`() {
        let called = signature(
            "usleep <- merged code without a symbol <- Cache.load() <- draw() <- main")
        #expect(called.title == "sleep in one of several merged functions <- Cache.load()")
        #expect(called.keyFrames == ["Cache.load()", "draw()"])
        let alone = signature(
            "usleep <- merged code without a symbol <- StallRunLoop/EventRunLoop.run()")
        #expect(alone.title == "sleep in one of several merged functions")
        // A caller in a library makes it a library's function for the app.
        let inLibrary = signature(
            "Swift/Array.sort() <- merged code without a symbol <- Swift/Sequence.sorted() <- draw()"
        )
        #expect(inLibrary.keyFrames == ["draw()"])
    }

    @Test func `a frame without a symbol that calls merged code is as unsure as that`() {
        func stack(_ text: String, at offset: UInt64) -> [Frame] {
            frames(text).map { frame in
                guard frame.function == "?()" else { return frame }
                var frame = frame
                (frame.function, frame.rawName, frame.offset) = (nil, nil, offset)
                (frame.file, frame.line) = ("Fifth.swift", 5)
                return frame
            }
        }
        func title(_ text: String, at offset: UInt64 = 0x40) -> Signature {
            StallAnalysis.signature(of: [(stack(text, at: offset), .milliseconds(1))])
        }
        let direct = "usleep <- merged Cache.run(_:) <- ?() <- ?() <- draw() <- tick() <- main"
        #expect(title(direct).title == "sleep in one of several merged functions <- draw()")
        #expect(title(direct).keyFrames == ["draw()", "tick()"])
        #expect(title(direct).hash == title(direct, at: 0x80).hash)
        // What destroys a closure's context has no symbol, and is called by the runtime.
        let destroyed = "usleep <- merged Cache.deinit <- swift_release <- ?() <- draw()"
        #expect(title(destroyed).keyFrames == ["draw()"])
        // Nobody is left who could tell: no address, which other stalls have as well.
        let alone = title(
            "usleep <- merged Cache.run(_:) <- ?() <- StallRunLoop/EventRunLoop.run()")
        #expect(alone.title == "sleep in one of several merged functions like Cache.run(_:)")
        #expect(alone.hash == title("usleep <- merged Cache.run(_:) <- ?()", at: 0x99).hash)
        // A frame that calls a function with a name of its own is a place, by its address.
        #expect(title("usleep <- ?() <- draw()").keyFrames.first?.contains("0x40") == true)
        #expect(
            stack(direct, at: 0x40).callMerged == [false, false, true, true, false, false, false])
    }

    // MARK: - Loops in callouts

    @Test func `a function that runs a loop in a callout accounts for its wait`() {
        let nested =
            "ppoll <- __CFRunLoopServiceFileDescriptors <- __CFRunLoopRun <- CFRunLoopRunSpecific"
            + " <- Foundation/RunLoop.run(mode:before:) <- Foundation/Process.waitUntilExit()"
        let loop = " <- StallRunLoop/EventRunLoop.run() <- App.main() <- main"
        let found = signature(nested + " <- exportReport() <- tick()" + loop)
        #expect(found.title == "poll in exportReport() <- tick()")
        // A callout of the nested loop is what counts, and no app code called the outermost.
        #expect(
            signature("usleep <- layout() <- __CFRunLoopRun <- exportReport() <- tick()" + loop)
                .keyFrames == ["layout()"])
        #expect(
            signature("fsync <- Foundation/FileHandle.synchronize()" + loop).isWithoutAppFrame)
    }

    // MARK: - Names that look like a library's

    @Test(arguments: [
        "dispatch_order", "swift_parse_mt103", "uuid_generate_batch", "CFGLoadSettings",
        "voucher_print", "objc_export", "icu_admit", "foundation_report",
    ])
    func `a C function of the app is the app's, whatever it is called`(name: String) {
        var stack = frames("usleep <- \(name) <- tick()")
        stack[1].imagePath = "/app/photos"
        #expect(
            StallAnalysis.signature(of: [(stack, .milliseconds(1))]).keyFrames == [name, "tick()"])
    }

    @Test(arguments: [
        "dispatch_async", "swift_retain", "uuid_generate", "CFRetain", "_dispatch_x",
        "_foundation_uuid_generate_random",
    ])
    func `a library that is linked statically is known by its names`(name: String) {
        var stack = frames("\(name) <- tick()")
        stack[0].imagePath = "/app/photos"
        #expect(StallAnalysis.signature(of: [(stack, .milliseconds(1))]).keyFrames == ["tick()"])
    }

    @Test func `a function of the app's own source may have a name of libc's`() {
        var stack = frames("usleep <- sync <- tick()")
        stack[1].imagePath = "/app/photos"
        stack[1].file = "/src/orders.c"
        #expect(
            StallAnalysis.signature(of: [(stack, .milliseconds(1))]).keyFrames == [
                "sync", "tick()",
            ])
        stack[1].file = nil
        stack[1].rawName = "_Z4sendRK7Message"
        stack[1].function = "send(Message const&)"
        #expect(
            StallAnalysis.signature(of: [(stack, .milliseconds(1))]).keyFrames == [
                "send", "tick()",
            ])
    }

    // MARK: - When there is little to go by

    @Test func `without an app frame the system's own functions say so`() {
        let found = signature(
            "fsync <- Foundation/FileHandle.synchronize() <- StallRunLoop/EventRunLoop.run() <- static App.main() <- main"
        )
        #expect(found.keyFrames == ["FileHandle.synchronize()"])
        #expect(found.title == "disk in FileHandle.synchronize() (no app frame)")
        #expect(found.isWithoutAppFrame)
    }

    /// With a library's debug information, its stack has its inlined functions as well.
    @Test func `what a library inlined names no group`() {
        var stack = frames(
            "__lll_lock_wait <- lll_lock <- pthread_mutex_lock <- withStatusRecordLock")
        for index in stack.indices { stack[index].imagePath = "/usr/lib/libswift_Concurrency.so" }
        let without = StallAnalysis.signature(
            of: [([stack[0]] + stack[2...], .milliseconds(1))])
        stack[1].isInlined = true
        let found = StallAnalysis.signature(of: [(stack, .milliseconds(1))])
        #expect(found.keyFrames == without.keyFrames && found.isWithoutAppFrame)
    }

    @Test func `code in main itself is main's`() {
        let found = signature("usleep <- main <- __libc_start_main <- _start")
        #expect(found.keyFrames == ["main"])
    }

    @Test func `places without names are qualified by their build`() {
        func stripped(_ buildID: UInt8, _ offset: UInt64, callSite: UInt64 = 0x3000) -> [Frame] {
            var frame = Frame(nil, image: "/app/photos")
            frame.offset = offset
            frame.buildID = BuildID(bytes: [buildID])
            var caller = frame
            caller.offset = callSite
            return [Frame("usleep", image: "/lib/libc.so.6"), frame, caller]
        }
        let found = StallAnalysis.signature(of: [(stripped(1, 0x1f40), .seconds(1))])
        #expect(found.keyFrames == ["photos+0x1f40"])
        #expect(found.title == "sleep in photos+0x1f40")
        #expect(
            found.hash == StallAnalysis.signature(of: [(stripped(1, 0x1f40), .seconds(2))]).hash)
        #expect(
            found.hash != StallAnalysis.signature(of: [(stripped(2, 0x1f40), .seconds(1))]).hash)
        #expect(
            found.hash != StallAnalysis.signature(of: [(stripped(1, 0x1f44), .seconds(1))]).hash)
    }

    /// gdb names the sources of libc, not its binary.
    @Test func `of names without a binary, libc's name no group`() {
        func stack(_ app: String) -> [Frame] {
            let names = [
                ("futex_wait", "../sysdeps/nptl/futex-internal.h"),
                ("__GI___lll_lock_wait", "./nptl/lowlevellock.c"),
                ("___pthread_mutex_lock", "./nptl/pthread_mutex_lock.c"), (app, "src/app.cpp"),
                ("main", "src/main.cpp"),
            ]
            return names.map { name, file in
                var frame = Frame(name, image: Frame.unknownImage)
                frame.file = file
                return frame
            }
        }
        let signatures = ["Photos::load", "Mail::send"].map {
            signature(of: [(stack($0), .milliseconds(100))])
        }
        #expect(signatures.map(\.keyFrames.first) == ["Photos::load", "Mail::send"])
    }

    @Test func `no stack at all is a group of its own`() {
        #expect(signature([]).title == "no stack was taken")
        let group = ReportGroup(
            signature: 1, family: 1, title: signature([]).title, frames: [], wait: nil,
            isWithoutAppFrame: true, isCut: false)
        #expect(group.title(under: .sleep) == "sleep, no stack was taken")
        #expect(group.title(under: nil) == "no stack was taken")
        #expect(signature([]).hash == StallAnalysis.signature(of: [([], .seconds(1))]).hash)
    }

    @Test func `the hash is part of the file format`() {
        #expect(signature("a() <- tick()").hash == 4_891_599_556_346_891_220)
    }
}

// MARK: - Stacks from text

func signature(_ stacks: String...) -> Signature { signature(stacks) }

func signature(_ stacks: [String]) -> Signature { signature(weighted: stacks.map { ($0, 100) }) }

func signature(weighted stacks: [(stack: String, milliseconds: Int)]) -> Signature {
    signature(of: stacks.map { (frames($0.stack), .milliseconds($0.milliseconds)) })
}

/// Names without a module are the app's; C names of lower case without parentheses are libc's, except `main`.
func frames(_ stack: String) -> [Frame] {
    stack.split(separator: " <- ").map { text in
        let parts = text.split(separator: "/", maxSplits: 1)
        let module = parts.count == 2 ? String(parts[0]) : "photos"
        let name = String(parts.last!)
        let isC = name.allSatisfy { $0.isLetter || $0.isNumber || $0 == "_" }
        return Frame(
            name, symbol: isC ? name : "$s\(module.utf8.count)\(module)4nameyyF",
            image: isC && name != "main" ? "/lib/x86_64-linux-gnu/libc.so.6" : "/app/photos")
    }
}

extension Frame {
    init(_ function: String?, symbol: String? = nil, image: String) {
        self.init(
            CodeLocation(imagePath: image, buildID: nil, offset: 0x1000, kind: .returnAddress))
        self.function = function
        rawName = symbol ?? function
    }
}

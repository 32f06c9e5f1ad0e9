import Foundation
import StallModel
import StallSymbols
import TestSupport
import Testing

/// Goal: a location in this very process gets the name of the function that is there.
/// Method: addresses whose functions the test knows itself, and `nm` as the oracle for a whole library.
@Suite struct SymbolizerTests {
    let images = ImageTable.current()

    private func frame(at address: UInt64, _ kind: CodeAddressKind = .interrupted) throws -> Frame {
        let stack = CapturedStack(
            addresses: [CodeAddress(address, kind)], isTruncated: false, method: .signalFree)
        let location = try #require(images.locate(stack).first)
        return try #require(Symbolizer().frames(for: [location], images: images)[location]?.first)
    }

    @Test func `a return address has the name of its function`() throws {
        let address = Thread.callStackReturnAddresses[1].uint64Value
        let frame = try frame(at: address, .returnAddress)
        #expect(
            frame.function == "SymbolizerTests.`a return address has the name of its function`()")
        #expect(frame.rawName?.hasPrefix("$s17StallSymbolsTests") == true)
        #expect(frame.imagePath == images.images[0].path)
        #expect(frame.buildID == images.images[0].buildID)
    }

    @Test func `names are found also when there is no time for lines`() throws {
        let stack = CapturedStack(
            addresses: [
                CodeAddress(Thread.callStackReturnAddresses[1].uint64Value, .returnAddress)
            ],
            isTruncated: false, method: .signalFree)
        let location = try #require(images.locate(stack).first)
        func frame(budget: Duration) throws -> Frame {
            var options = SymbolizerOptions()
            options.budget = budget
            let frames = Symbolizer(options: options).frames(for: [location], images: images)
            return try #require(frames[location]?.last)
        }
        let (late, early) = (try frame(budget: .zero), try frame(budget: .seconds(60)))
        #expect(late.function == early.function && late.function != nil)
        #expect(late.line == nil && early.line != nil)
    }

    /// The budget is CPU time, so a busy machine or a quota only delays what is found.
    @Test func `what there was no time for is said, and found later`() throws {
        let stack = CapturedStack(
            addresses: [
                CodeAddress(Thread.callStackReturnAddresses[1].uint64Value, .returnAddress)
            ],
            isTruncated: false, method: .signalFree)
        let location = try #require(images.locate(stack).first)
        let symbolizer = Symbolizer()
        func resolve(_ budget: Duration) -> (frames: [Frame]?, isUnfinished: Bool) {
            let (frames, unfinished) = symbolizer.resolve(
                [location], images: images, budget: budget)
            return (frames[location], unfinished == [location])
        }
        let (none, all) = (resolve(.zero), resolve(.seconds(60)))
        #expect(none.isUnfinished && none.frames?.last?.function != nil)
        #expect(!all.isUnfinished && all.frames?.last?.line != nil)
        var (budget, last) = (Duration.milliseconds(1), resolve(.zero))
        while last.isUnfinished, budget < .seconds(60) {
            last = resolve(budget)
            budget *= 2
        }
        #expect(last.frames == all.frames)
    }

    /// Debian's libc is stripped: it has only dynamic symbols.
    @Test(arguments: ["usleep", "poll", "nanosleep", "qsort", "getaddrinfo"])
    func `a function of libc has its plain name`(name: String) throws {
        // The program's own come first otherwise: StallDoor's poll, where it is linked.
        let libc = try #require(dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD))
        defer { dlclose(libc) }
        let address = try #require(dlsym(libc, name))
        let frame = try frame(at: UInt64(UInt(bitPattern: address)) + 1)
        #expect(frame.function == name)
        #expect(frame.imageName?.hasPrefix("libc.") == true)
    }

    @Test func `the kernel's own image has names`() throws {
        let vdso = try #require(images.images.first { $0.path == "[vdso]" })
        let locations = stride(from: 0, to: vdso.endAddress - vdso.loadAddress, by: 16).map {
            CodeLocation(CodeAddress(vdso.loadAddress + $0, .interrupted), in: vdso)
        }
        let names = Symbolizer().frames(for: locations, images: images).values.compactMap(
            \.first?.function)
        #expect(names.contains { $0.hasSuffix("clock_gettime") }, "\(Set(names))")
    }

    /// The middle of every function that nm lists, and of every gap between functions.
    @Test func `every function of a library is found, and nothing between them`() throws {
        let library = try #require(
            images.images.first {
                $0.name == "libdispatch.so" || $0.name == "libswift_Concurrency.so"
            })
        let functions = try Self.functions(of: library.path)
        try #require(functions.count > 500)
        var ranges: [String: [Range<UInt64>]] = [:]
        for function in functions { ranges[function.name, default: []].append(function.range) }

        let middles = functions.map { $0.range.lowerBound + UInt64($0.range.count) / 2 }
        let gaps = Self.gaps(between: functions.map(\.range))
        let frames = Symbolizer().frames(
            for: (middles + gaps).map {
                CodeLocation(CodeAddress(library.loadAddress + $0, .interrupted), in: library)
            },
            images: images)
        for (location, frames) in frames {
            let name = frames.first?.rawName
            if gaps.contains(location.offset) {
                #expect(name == nil, "\(location.offset)")
            } else {
                let holds =
                    name.flatMap { ranges[$0] }?.contains { $0.contains(location.offset) } ?? false
                #expect(holds, "\(name ?? "nothing") at \(location.offset)")
            }
        }
        #expect(frames.count == Set(middles + gaps).count)
    }

    private static func functions(of path: String) throws -> [(name: String, range: Range<UInt64>)]
    {
        try output(of: "/usr/bin/nm", "-S", "--defined-only", path).split(separator: "\n")
            .compactMap {
                let fields = $0.split(separator: " ")
                guard fields.count == 4, "tTwW".contains(fields[2]),
                    let start = UInt64(fields[0], radix: 16),
                    let size = UInt64(fields[1], radix: 16), size > 0
                else { return nil }
                return (String(fields[3]), start..<start + size)
            }
    }

    private static func gaps(between ranges: [Range<UInt64>]) -> [UInt64] {
        var gaps: [UInt64] = []
        var end: UInt64?
        for range in ranges.sorted(by: { $0.lowerBound < $1.lowerBound }) {
            if let end, range.lowerBound > end { gaps.append(end) }
            end = max(end ?? 0, range.upperBound)
        }
        return gaps
    }

    @Test func `another build's file gives no names`() throws {
        let address = try #require(dlsym(nil, "usleep"))
        var image = try #require(images.image(containing: UInt64(UInt(bitPattern: address))))
        let location = CodeLocation(
            CodeAddress(UInt64(UInt(bitPattern: address)), .interrupted), in: image)
        image.buildID = BuildID(bytes: [1, 2, 3, 4])
        let frames = Symbolizer().frames(for: [location], images: ImageTable(images: [image]))
        #expect(frames[location]?.count == 1)
        #expect(frames[location]?.first?.function == nil)
    }

    /// LLVM gives the body of functions that it merged no symbol. In a program whose linker or `strip` left the local
    /// functions out, any of them can be there.
    @Test(
        .enabled(if: Tools.areInstalled),
        arguments: [
            (["--strip-symbol=hidden"], ["merged code without a symbol"]),
            (["--strip-symbol=hidden", "--strip-debug"], ["merged code without a symbol"]),
            (["--discard-all"], [nil]), (["--strip-all"], [nil]), ([], ["hidden"]),
        ])
    func `code without a symbol is of several functions where all others have one`(
        options: [String], names: [String?]
    ) throws {
        try withTemporaryDirectory { directory in
            let (source, whole, program) = (
                directory.path + "/p.c", directory.path + "/whole", directory.path + "/p"
            )
            try """
            static __attribute__((noinline)) int hidden(int n) { volatile int m = n; return m * 3; }
            static __attribute__((noinline)) int other(int n) { volatile int m = n; return m + 4; }
            int main(int count, char **words) { return hidden(count) + other(count); }
            """
            .write(toFile: source, atomically: true, encoding: .utf8)
            _ = try output(
                of: Tools.path("clang"), "-O1", "-g", "-Wl,--build-id", "-o", whole, source)
            let listing = try output(of: "/usr/bin/nm", "-S", whole)
            let line = try #require(
                listing.split(separator: "\n").first { $0.hasSuffix(" hidden") })
            let start = try #require(UInt64(line.prefix { $0 != " " }, radix: 16))
            let copy = [Tools.path("llvm-objcopy")] + options + [whole, program]
            _ = try output(of: "/usr/bin/env", "--", "/bin/sh", "-c", copy.joined(separator: " "))
            let found = try frames(at: start + 1, in: program)
            #expect(found.map(\.function) == names)
            if names != ["hidden"] { #expect(found.last?.line == nil) }
            // Where there is no code, there is none of several functions.
            #expect(try frames(at: 0x40, in: program).map(\.function) == [nil])
        }
    }

    /// A linker with `--icf` keeps one of the functions with the same code, under the names of all.
    @Test(.enabled(if: Tools.areInstalled))
    func `a function that stands for others is one of several, and an alias is not`() throws {
        try withTemporaryDirectory { directory in
            let (source, program) = (directory.path + "/p.cpp", directory.path + "/p")
            func body(_ factor: Int) -> String { "{ volatile int m = n; return m * \(factor); }" }
            let weak = "__attribute__((weak))"
            try """
            extern "C" {
            int load(int n) \(body(3))
            int load_orders(int n) \(body(3))
            int _handle_get(int n) \(body(5))
            int _handle_post(int n) \(body(5))
            int _audit(int n) \(body(7))
            int read_users(int n) \(body(7))
            int write_users(int n) \(body(7))
            \(weak) int hook_before(int n) \(body(9))
            \(weak) int hook_after(int n) \(body(9))
            int save_orders(int n) \(body(11))
            __attribute__((visibility("hidden"))) int find_orders(int n) \(body(13))
            __attribute__((visibility("hidden"))) int find_customers(int n) \(body(13))
            int ring(int n) \(body(15))
            int __ring(int) __attribute__((alias("ring")));
            int telephone(int) __attribute__((weak, alias("ring")));
            int walk(int n) \(body(17))
            }
            int save_customers(int n) \(body(11))
            struct Tree { __attribute__((noinline)) int walk(int n); };
            int Tree::walk(int n) \(body(19))
            asm(".type walk.localalias,@function\\n.set walk.localalias, walk");
            asm(".type _ZN4Tree4walkEi.localalias,@function\\n.set _ZN4Tree4walkEi.localalias, _ZN4Tree4walkEi");
            int main(int count, char **words) {
                int (*volatile all[])(int) = {
                    load, load_orders, _handle_get, _handle_post, _audit, read_users, write_users,
                    hook_before, hook_after, save_orders, save_customers, find_orders,
                    find_customers, ring, telephone, walk };
                int sum = Tree().walk(count);
                for (auto one : all) sum += one(count);
                return sum;
            }
            """
            .write(toFile: source, atomically: true, encoding: .utf8)
            _ = try output(
                of: Tools.path("clang"), "-O1", "-ffunction-sections", "-fno-inline",
                "-fuse-ld=lld", "-Wl,--icf=all,--build-id", "-o", program, source)
            let listing = try output(of: "/usr/bin/nm", program)
            func title(_ name: String) throws -> String? {
                let line = try #require(
                    listing.split(separator: "\n").first { $0.hasSuffix(" " + name) })
                let start = try #require(UInt64(line.prefix { $0 != " " }, radix: 16))
                return try frames(at: start + 1, in: program).last?.function
            }
            for folded in [
                "load", "load_orders", "_handle_get", "_handle_post", "_audit", "read_users",
                "write_users", "hook_before", "hook_after", "save_orders", "find_orders",
            ] {
                #expect(try title(folded)?.hasPrefix("merged ") == true, "\(folded)")
            }
            #expect(try title("ring") == "ring")
            #expect(try title("walk") == "walk")
            #expect(try title("_ZN4Tree4walkEi") == "Tree::walk(int)")
        }
    }

    private func frames(at offset: UInt64, in program: String) throws -> [Frame] {
        let image = Image(
            path: program, buildID: try #require(SymbolFile.files(at: program).first?.buildID),
            loadAddress: 0x10000, endAddress: 0x90000)
        let location = CodeLocation(
            CodeAddress(image.loadAddress + offset, .interrupted), in: image)
        let found = Symbolizer().frames(for: [location], images: ImageTable(images: [image]))
        return found[location] ?? []
    }

    @Test func `a place in no image, or in one that is gone, is kept without a name`() throws {
        let gone = Image(
            path: "/nowhere/libgone.so", buildID: nil, loadAddress: 0x1000, endAddress: 0x9000)
        let locations = [
            CodeLocation(CodeAddress(0x1234, .interrupted), in: nil),
            CodeLocation(CodeAddress(0x2345, .returnAddress), in: gone),
        ]
        let frames = Symbolizer().frames(for: locations, images: ImageTable(images: [gone]))
        #expect(frames[locations[0]]?.map(\.title) == ["unknown+0x1234"])
        #expect(frames[locations[1]]?.map(\.title) == ["libgone.so+0x1345"])
    }
}

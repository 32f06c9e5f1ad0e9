import Foundation
import StallModel
import StallSymbols
import TestSupport
import Testing

/// Goal: every address of this process belongs to the binary that the loader put there.
/// Method: the loader's list against `/proc/self/maps` and `readelf`.
@Suite struct ImageTableTests {
    let table = ImageTable.current()

    @Test func `the program comes first, under its own path`() throws {
        let path = try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")
        #expect(table.images.first?.path == path)
    }

    @Test func `images do not overlap, and their edges are exact`() throws {
        let sorted = table.images.sorted { $0.loadAddress < $1.loadAddress }
        for (image, next) in zip(sorted, sorted.dropFirst()) {
            #expect(image.endAddress <= next.loadAddress, "\(image.path) and \(next.path)")
        }
        for image in table.images {
            #expect(table.image(containing: image.loadAddress) == image)
            #expect(table.image(containing: image.endAddress - 1) == image)
            #expect(table.image(containing: image.endAddress) != image)
            #expect(table.image(containing: image.loadAddress - 1) != image)
        }
        #expect(table.image(containing: 0) == nil)
        #expect(table.image(containing: .max) == nil)
    }

    @Test func `executable mappings of files lie in the images of these files`() throws {
        // Foundation reads 4,000 bytes of a file that says it has none.
        let maps = try output(of: "/bin/cat", "/proc/\(getpid())/maps")
        var checked = 0
        for line in maps.split(separator: "\n") {
            let fields = line.split(separator: " ", maxSplits: 5).map(String.init)
            guard fields.count == 6, fields[1].contains("x") else { continue }
            let path = fields[5].trimmingCharacters(in: .whitespaces)
            guard path.hasPrefix("/") || path == "[vdso]" else { continue }
            let address = try #require(UInt64(fields[0].split(separator: "-")[0], radix: 16))
            let image = try #require(table.image(containing: address), "\(line)")
            #expect(
                URL(filePath: image.path).resolvingSymlinksInPath().lastPathComponent
                    == URL(filePath: path).lastPathComponent)
            checked += 1
        }
        #expect(checked > 5)
    }

    /// A stall in a plug-in may be reported only after it was unloaded.
    @Test func `an image that was unloaded is still found, until another one is at its place`()
        throws
    {
        let library = try #require(dlopen("libBrokenLocale.so.1", RTLD_NOW))
        let function = UInt64(UInt(bitPattern: dlsym(library, "__ctype_get_mb_cur_max")))
        let loaded = try #require(ImageTable.current().image(containing: function))
        #expect(loaded.path.contains("libBrokenLocale") && loaded.buildID != nil)
        dlclose(library)
        try #require(dlopen("libBrokenLocale.so.1", RTLD_NOW | RTLD_NOLOAD) == nil)
        #expect(ImageTable.current().image(containing: function) == loaded)
        #expect(ImageTable.current().images.filter { $0 == loaded }.count == 1)
        let again = try #require(dlopen("libBrokenLocale.so.1", RTLD_NOW))
        let now = UInt64(UInt(bitPattern: dlsym(again, "__ctype_get_mb_cur_max")))
        let found = ImageTable.current().image(containing: now)
        #expect(found?.path == loaded.path && found?.buildID == loaded.buildID)
        let places = ImageTable.current().images.filter { $0.loadAddress == found?.loadAddress }
        #expect(places.count == 1)
        dlclose(again)
    }

    @Test func `build IDs are those that readelf reads`() throws {
        for image in table.images where image.path.hasPrefix("/") {
            let notes = try output(of: "/usr/bin/readelf", "-n", image.path)
            let expected = notes.split(separator: "\n").first { $0.contains("Build ID: ") }
                .map { $0.split(separator: " ").last.map(String.init) }
            #expect(image.buildID?.description == expected ?? nil, "\(image.path)")
        }
    }

    @Test func `a library that was cut short in place ends nothing`() async {
        await #expect(processExitsWith: .exitCode(7)) {
            // The loader itself would read the libraries' destructors at an exit.
            if try cutLibrariesShort() { _exit(7) }
        }
    }

    @Test func `a return address belongs to the image of its call`() {
        let table = ImageTable(images: [
            Image(path: "/a", buildID: nil, loadAddress: 0x1000, endAddress: 0x2000),
            Image(path: "/b", buildID: nil, loadAddress: 0x2000, endAddress: 0x3000),
        ])
        let stack = CapturedStack(
            addresses: [
                CodeAddress(0x2000, .interrupted), CodeAddress(0x2000, .returnAddress),
                CodeAddress(0x3000, .returnAddress), CodeAddress(0x3000, .interrupted),
            ], isTruncated: false, method: .signal)
        let locations = table.locate(stack)
        #expect(locations.map(\.imagePath) == ["/b", "/a", "/b", nil])
        #expect(locations.map(\.offset) == [0, 0x1000, 0x1000, 0x3000])
    }
}

/// Goal: a function that ended in a jump to the one that now runs is named, and no other function is made up.
/// Method: a return address behind a direct call, as the test finds it in its own stack, and different callees for it.
@Suite struct TailCallTests {
    let table = ImageTable.current()

    private func locate(callee: UInt64, returnAddress: UInt64) -> [CodeLocation] {
        table.locate(
            CapturedStack(
                addresses: [
                    CodeAddress(callee, .interrupted), CodeAddress(returnAddress, .returnAddress),
                ],
                isTruncated: false, method: .signalFree))
    }

    /// Where it returns to, and an address in itself.
    @inline(never) private func called() -> (returnAddress: UInt64, own: UInt64) {
        let stack = Thread.callStackReturnAddresses.map(\.uint64Value)
        return (stack[2], stack[1])
    }

    @Test func `a callee that was not the one called was jumped to`() throws {
        let (returnAddress, own) = called()
        #expect(locate(callee: own, returnAddress: returnAddress).count == 2)

        let elsewhere = UInt64(UInt(bitPattern: try #require(dlsym(nil, "usleep")))) + 8
        let locations = locate(callee: elsewhere, returnAddress: returnAddress)
        try #require(locations.count == 3)
        #expect(locations[1].isGuessed)
        let frames = Symbolizer().frames(for: locations, images: table)
        #expect(frames[locations[0]]?.last?.function == "usleep")
        #expect(frames[locations[1]]?.last?.function == "TailCallTests.called()")
    }

    /// Unoptimized code has no tail calls, and calls through linkage stubs say nothing. (libdispatch has some.)
    @Test func `nothing is inferred where every call has its frame`() {
        var addresses = [CodeAddress]()
        _ = [3, 1, 2].sorted { left, right in
            addresses = Thread.callStackReturnAddresses.map {
                CodeAddress($0.uint64Value, .returnAddress)
            }
            return left < right
        }
        let stack = CapturedStack(addresses: addresses, isTruncated: false, method: .signalFree)
        let inferred = table.locate(stack).filter(\.isGuessed)
        #expect(!inferred.contains { $0.imagePath == table.images[0].path })
    }

    @Test(arguments: [0, 1, 4, 5, 0x1000, UInt64.max - 1, .max])
    func `places that are no code are no calls`(address: UInt64) {
        #expect(locate(callee: address, returnAddress: address).count == 2)
        #expect(locate(callee: 0x1000, returnAddress: address).count == 2)
    }
}

/// What a tool prints; empty when it is not installed.
func output(of tool: String, _ arguments: String...) throws -> String {
    guard FileManager.default.isExecutableFile(atPath: tool) else { return "" }
    let process = Process()
    process.executableURL = URL(filePath: tool)
    process.arguments = arguments
    let pipe = Pipe()
    process.standardOutput = pipe
    process.standardError = FileHandle.nullDevice
    try process.start()
    let bytes = try pipe.fileHandleForReading.readToEnd() ?? Data()
    process.waitUntilExit()
    return String(decoding: bytes, as: UTF8.self)
}

/// Two copies of a library are loaded and cut short: of one the table has known before, and knows it still, of the other not.
private func cutLibrariesShort() throws -> Bool {
    let folder = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString)
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    let paths = ["known.so", "unknown.so"].map { folder.appending(path: $0).path }
    guard let original = ImageTable.current().images.first(where: { $0.path.contains("libm.so") })
    else { return false }
    let file = URL(filePath: original.path).resolvingSymlinksInPath().path
    for path in paths { try FileManager.default.copyItem(atPath: file, toPath: path) }

    guard dlopen(paths[0], RTLD_NOW) != nil else { return false }
    let before = ImageTable.current().images.first { $0.path == paths[0] }
    guard let before, before.buildID == original.buildID, dlopen(paths[1], RTLD_NOW) != nil,
        truncate(paths[0], 0) == 0, truncate(paths[1], 0) == 0
    else { return false }
    try FileManager.default.removeItem(at: folder)

    let table = ImageTable.current()
    let stack = CapturedStack(
        addresses: [
            CodeAddress(before.loadAddress + 4096, .interrupted),
            CodeAddress(before.loadAddress + 4096, .returnAddress),
        ], isTruncated: false, method: .signalFree)
    return table.images.contains(before) && !table.images.contains { $0.path == paths[1] }
        && table.locate(stack).map(\.imagePath) == [before.path, before.path]
}

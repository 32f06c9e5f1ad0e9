import Foundation
import TestSupport
import Testing

/// Goal: reports of Apple's systems get their functions, files and lines from dSYMs with the UUIDs of their images, and
/// from no others.
/// Method: the dSYMs of sample-data/dsym in bundles and archives, reports with their UUIDs, and the built command.
@Suite struct SymbolicateDSYMTests {
    @Test(arguments: [
        "--dsym bundle", "--dsym directory", "--dsym archive", "--dsym file", "bundle", "directory",
    ])
    func `a MetricKit hang is named from each place that a dSYM is in`(kind: String) throws {
        try withTemporaryDirectory { directory in
            try Data(Self.metricKit.utf8).write(to: directory.appending(path: "hang.json"))
            let taken = try stallctl(["ingest", "hang.json"], in: directory)
            #expect(taken.status == 0, "\(taken.errors)")
            #expect(try stallctl(["top", "--csv"], in: directory).output.contains("Shop+0x"))

            let place = kind.hasSuffix("archive") ? "Shop.xcarchive/dSYMs" : "build/deep"
            let bundle = try self.bundle("arm64", below: place, in: directory)
            let path =
                switch kind.split(separator: " ").last {
                case "bundle": bundle
                case "file": bundle + "/Contents/Resources/DWARF/Shop"
                case "archive": "Shop.xcarchive"
                default: "build"
                }
            let arguments = (kind.hasPrefix("--dsym") ? ["--dsym"] : []) + [path]
            let named = try stallctl(["symbolicate"] + arguments, in: directory)
            #expect(named.status == 0 && named.errors == "", "\(named.errors)")
            #expect(named.output.contains("3 have function names, 3 have line numbers"))

            #expect(try frames(in: directory) == Self.named)
            let top = try stallctl(["top", "--csv"], in: directory).output
            #expect(top.contains("twice") && !top.contains("Shop+0x"), "\(top)")
        }
    }

    @Test func `an .ips report is named from a fat file, and other images stay as they are`() throws
    {
        try withTemporaryDirectory { directory in
            try Data(Self.ips.utf8).write(to: directory.appending(path: "hang.ips"))
            #expect(try stallctl(["ingest", "hang.ips"], in: directory).status == 0)
            let fat = directory.appending(path: "Shop")
            try fatFile(["x86_64", "arm64"]).write(to: fat)
            let named = try stallctl(["symbolicate", "--dsym", "Shop"], in: directory)
            #expect(named.status == 0, "\(named.errors)")
            #expect(try frames(in: directory).prefix(5) == Self.named.prefix(5))
            #expect(try frames(in: directory).last == "start dyld ?:0")
        }
    }

    @Test func `a dSYM of another build, a damaged one and other files are refused by name`() throws
    {
        try withTemporaryDirectory { directory in
            try Data(Self.metricKit.utf8).write(to: directory.appending(path: "hang.json"))
            #expect(try stallctl(["ingest", "hang.json"], in: directory).status == 0)
            let other = try bundle("x86_64", below: "other", in: directory)
            let damaged = directory.appending(path: "damaged")
            try Self.bytes("arm64").prefix(9000).write(to: damaged)
            try Data("none".utf8).write(to: directory.appending(path: "text"))
            try FileManager.default.createDirectory(
                at: directory.appending(path: "empty"), withIntermediateDirectories: false)

            let refused = try stallctl(
                [
                    "symbolicate", "--dsym", other, "--dsym", "damaged", "--dsym", "text", "--dsym",
                    "empty", "--dsym", "absent",
                ], in: directory)
            #expect(refused.status == 1)
            let lines = refused.errors.split(separator: "\n").map(String.init)
            let expected: [String] = [
                """
                stallctl: \(other)/Contents/Resources/DWARF/Shop: UUID \
                4C4C4425-5555-3144-A1A0-D3E113BE0BE1, but the reports' Shop has \
                4C4C44E8-5555-3144-A100-EB7BEF14D628; not used
                """,
                "stallctl: damaged: not a valid Mach-O file: load command 6 at byte 560 has "
                    + "section __debug_addr of 112 bytes from byte 8898 on; the file has 9000",
                """
                stallctl: text: neither an ELF file nor a Mach-O file for arm64 or x86_64; \
                expected a binary, a separate debug file or a dSYM
                """,
                "stallctl: empty: no dSYM bundle in this directory",
                "stallctl: absent: no such file",
            ]
            #expect(lines == expected)
            #expect(refused.output.contains("symbol files for 0 of them"))

            // In a directory, bundles of other builds are no faults.
            #expect(
                try stallctl(["symbolicate", "--dsym", "other"], in: directory).status == 0)
        }
    }

    // MARK: - Files

    private static func bytes(_ architecture: String) throws -> Data {
        try Data(
            contentsOf: Repository.root.appending(path: "sample-data/dsym/Shop-\(architecture)"))
    }

    /// - Returns: The bundle's path, relative to the directory.
    private func bundle(
        _ architecture: String, below place: String, in directory: URL
    ) throws -> String {
        let bundle = "\(place)/Shop.app.dSYM"
        let folder = directory.appending(path: bundle + "/Contents/Resources/DWARF")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        try Self.bytes(architecture).write(to: folder.appending(path: "Shop"))
        return bundle
    }

    private func fatFile(_ architectures: [String]) throws -> Data {
        func big(_ number: Int) -> Data {
            Data((0..<4).reversed().map { UInt8(truncatingIfNeeded: number >> ($0 * 8)) })
        }
        var header = Data([0xca, 0xfe, 0xba, 0xbe]) + big(architectures.count)
        var content = Data()
        for slice in try architectures.map(Self.bytes) {
            header += Data(slice[4..<8].reversed()) + big(0) + big(4096 + content.count)
            header += big(slice.count) + big(12)
            content += slice
        }
        return header + Data(count: 4096 - header.count) + content
    }

    private func stallctl(
        _ arguments: [String], in directory: URL
    ) throws -> (status: Int32, output: String, errors: String) {
        let result = try Oracle.stallctl(
            [arguments[0], "--store", "all.sqlite"] + arguments.dropFirst(), in: directory)
        return (result.status, result.output, result.errors)
    }

    /// The frames of the first report, innermost first: function, image, file and line.
    private func frames(in directory: URL) throws -> [String] {
        func object(_ text: String) throws -> [String: Any] {
            let line = Data((text.split(separator: "\n").first ?? "").utf8)
            return try #require(try JSONSerialization.jsonObject(with: line) as? [String: Any])
        }
        let list = try object(stallctl(["list", "--json"], in: directory).output)
        let id = try #require(list["id"] as? String)
        let report = try object(stallctl(["show", "--json", id], in: directory).output)
        let samples = try #require(report["samples"] as? [[String: Any]])
        let stack = try #require(samples.first?["stack"] as? [[String: Any]])
        return stack.map { frame in
            let function = frame["function"] as? String ?? "?"
            let image = (frame["image"] as? String ?? "?").split(separator: "/").last ?? "?"
            let file = frame["file"] as? String ?? "?"
            return "\(function) \(image) \(file):\(frame["line"] as? Int ?? 0)"
        }
    }

    // MARK: - Reports

    /// The innermost call is inlined twice. That of `checkout` returns to the first instruction of the line after it.
    private static let named = [
        "int shop::twice<int>(int) Shop /src/shop.cpp:5",
        "shop::Cart::half(int) const Shop /src/shop.cpp:10",
        "shop::Cart::total(int) Shop /src/shop.cpp:23",
        "checkout(_:) Shop /src/shop.cpp:28",
        "main Shop /src/shop.cpp:31",
        "? dyld ?:0",
    ]

    private static let metricKit = """
        {"timeStampEnd": "2026-10-01 21:59:00 +0000", "hangDiagnostics": [{"version": "1.0.0",
        "diagnosticMetaData": {"appVersion": "8.0", "bundleIdentifier": "com.example.shop",
        "hangDuration": "3.2 sec"}, "callStackTree": {"callStackPerThread": true, "callStacks":
        [{"threadAttributed": true, "callStackRootFrames": [
        {"binaryName": "dyld", "binaryUUID": "DDDDDDDD-1111-3222-8333-444444444444",
        "offsetIntoBinaryTextSegment": 24432, "sampleCount": 8, "address": 7000024432, "subFrames": [
        {"binaryName": "Shop", "binaryUUID": "4C4C44E8-5555-3144-A100-EB7BEF14D628",
        "offsetIntoBinaryTextSegment": \(0x4fc), "sampleCount": 8, "address": 4300001276, "subFrames": [
        {"binaryName": "Shop", "binaryUUID": "4C4C44E8-5555-3144-A100-EB7BEF14D628",
        "offsetIntoBinaryTextSegment": \(0x4c4), "sampleCount": 8, "address": 4300001220, "subFrames": [
        {"binaryName": "Shop", "binaryUUID": "4C4C44E8-5555-3144-A100-EB7BEF14D628",
        "offsetIntoBinaryTextSegment": \(0x3c0), "sampleCount": 8, "address": 4300000960}]}]}]}]}]}}]}
        """

    /// A watchdog's end of the same stack.
    private static let ips = """
        {"app_name":"Shop","timestamp":"2026-10-02 08:14:33.00 +0200","app_version":"8.0","bug_type":"309","incident_id":"0C2A8E54-9F1B-4C63-8E4B-6A2E1C8D7F31"}
        {"procName": "Shop", "pid": 99, "captureTime": "2026-10-02 08:14:31.0 +0200",
        "termination": {"code": 2343432205, "namespace": "FRONTBOARD"},
        "usedImages": [
        {"uuid": "4c4c44e8-5555-3144-a100-eb7bef14d628", "path": "/private/var/Shop.app/Shop", "base": 4300000000, "size": 32768},
        {"uuid": "dddddddd-1111-3222-8333-444444444444", "path": "/usr/lib/dyld", "base": 7000000000, "size": 65536}],
        "faultingThread": 0, "threads": [{"id": 1, "triggered": true, "queue": "com.apple.main-thread", "frames": [
        {"imageIndex": 0, "imageOffset": \(0x3c0)}, {"imageIndex": 0, "imageOffset": \(0x4c4)},
        {"imageIndex": 0, "imageOffset": \(0x4fc)},
        {"imageIndex": 1, "imageOffset": 24432, "symbol": "start", "symbolLocation": 12}]}]}
        """
}

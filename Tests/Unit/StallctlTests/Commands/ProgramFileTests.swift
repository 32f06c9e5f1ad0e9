import Foundation
import TestSupport
import Testing

@testable import stallctl

/// Goal: `run` finds a program as a shell does, and says of each that cannot be watched why; no file makes it fail.
/// Method: files of every kind, and a real program's first bytes, cut and changed.
@Suite struct ProgramFileTests {
    static let program = Array(
        FileManager.default.contents(atPath: "/proc/self/exe")?.prefix(1 << 16) ?? Data())

    @Test func `a program of this machine with glibc can be watched`() {
        #expect(FileHead(Self.program).kind == .binary(nil))
    }

    @Test func `static, foreign and Go programs cannot be watched`() throws {
        var bytes = Self.program
        bytes[18] = 40  // arm
        #expect(FileHead(bytes).kind == .binary(.otherMachine))
        bytes = Self.program
        bytes[4] = 1  // 32 bits
        #expect(FileHead(bytes).kind == .binary(.otherMachine))
        bytes = Self.program
        let name = Data("/ld-linux".utf8)
        let place = try #require(Data(bytes).range(of: name))
        bytes.replaceSubrange(place.lowerBound..<place.lowerBound + 9, with: "/ld-musl-".utf8)
        guard case .binary(.otherLibrary(let loader)) = FileHead(bytes).kind else {
            return #expect(Bool(false), "\(FileHead(bytes).kind)")
        }
        #expect(loader.contains("ld-musl"))
        #expect(FileHead(header(type: 1)).kind == .binary(.isStatic))
        #expect(
            FileHead(header(type: 4, [4, 0, 0, 0, 8, 0, 0, 0, 4, 0, 0, 0, 0x47, 0x6F, 0, 0])).kind
                == .binary(.isGo))
    }

    @Test func `a program with a sanitizer is left alone`() throws {
        for name in ["libasan.so.8", "libtsan.so.2", "__tsan_init"] {
            #expect(FileHead(Self.program + name.utf8).kind == .binary(.isSanitized), "\(name)")
        }
    }

    /// An executable with one program header, whose content follows.
    private func header(type: UInt8, _ content: [UInt8] = []) -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: 120)
        bytes.replaceSubrange(0..<20, with: Self.program[0..<20])
        (bytes[32], bytes[54], bytes[56]) = (64, 56, 1)
        bytes[64] = type
        (bytes[72], bytes[96]) = (120, UInt8(content.count))
        return bytes + content
    }

    @Test func `a file that was cut or changed anywhere is only not known`() {
        for count in 0..<600 { _ = FileHead(Array(Self.program.prefix(count))).kind }
        for index in 0..<600 {
            for value: UInt8 in [0, 1, 0x7F, 0x80, 0xFF] {
                var bytes = Self.program
                bytes[index] = value
                _ = FileHead(bytes).kind
            }
        }
        #expect(FileHead(Array(Self.program.prefix(100))).kind == .binary(.isUnreadable))
    }

    @Test func `a script is its interpreter, and env's only launches the next`() throws {
        #expect(
            FileHead(Array("#! /bin/sh -e\nx".utf8)).kind
                == .script(interpreter: "/bin/sh", argument: "-e"))
        #expect(FileHead(Array("#!\n".utf8)).kind == .unknown)
        #expect(FileHead(Array("echo\n".utf8)).kind == .text)
        #expect(ProgramFile.programOfEnv("-S A=b python3 -u") == "python3")
        #expect(ProgramFile.programOfEnv("-i") == nil)
        try withTemporaryDirectory { directory in
            let script = directory.appending(path: "script")
            for (text, expected) in [
                (
                    "#!/usr/bin/env sh\n",
                    .init(launches: 1, isShell: true, binary: try ProgramFile.find("sh").path)
                ),
                ("#!/bin/sh\n", .init(isShell: true, binary: "/bin/sh")),
                ("true\n", .init(isShell: true, binary: "/bin/sh")),
                ("#!\(script.path)\n", .init(obstacle: .isUnreadable)),
                ("#!/nowhere\n", .init(obstacle: .isUnreadable)),
            ] as [(String, ProgramFile.Examination)] {
                try Data(text.utf8).write(to: script)
                #expect(ProgramFile(path: script.path).examine() == expected, "\(text)")
            }
        }
    }

    @Test func `a name is looked up as by a shell`() throws {
        try withTemporaryDirectory { directory in
            let folders = try ["a", "b"].map { name in
                let folder = directory.appending(path: name)
                try FileManager.default.createDirectory(
                    at: folder, withIntermediateDirectories: true)
                try Data("x".utf8).write(to: folder.appending(path: "tool"))
                return folder.path
            }
            let path = folders.joined(separator: ":")
            #expect(throws: ProgramFile.NotFound.notExecutable("tool", errno: EACCES)) {
                try ProgramFile.find("tool", searchPath: path)
            }
            chmod(folders[1] + "/tool", 0o755)
            #expect(try ProgramFile.find("tool", searchPath: path).path == folders[1] + "/tool")
            #expect(throws: ProgramFile.NotFound.notFound("other")) {
                try ProgramFile.find("other", searchPath: path)
            }
            #expect(throws: ProgramFile.NotFound.notExecutable(folders[0], errno: EISDIR)) {
                try ProgramFile.find(folders[0])
            }
            #expect(throws: ProgramFile.NotFound.notFound("/nowhere/tool")) {
                try ProgramFile.find("/nowhere/tool")
            }
        }
    }

    @Test func `the variables for the agent come last and are listed`() {
        var environment = RunEnvironment([
            "LD_PRELOAD": "/lib/other.so", "STATE_DIRECTORY": "/var/lib/a:/var/lib/b",
            "STALLWATCH_STORE": "",
        ])
        #expect(environment.storePath(option: nil) == "/var/lib/a/stalls.sqlite")
        #expect(environment.storePath(option: "/tmp/s") == "/tmp/s")
        environment.preload(["/lib/libstallwatch-preload.so"])
        environment.set("STALLWATCH_APP", "a b")
        environment.set("STALLWATCH_THREADS", "all")
        environment.finish()
        let words = environment.words.map {
            String(decoding: $0.dropLast().map(UInt8.init(bitPattern:)), as: UTF8.self)
        }
        #expect(
            words.suffix(4) == [
                "STALLWATCH_APP=a b", "STALLWATCH_THREADS=all",
                "STALLWATCH_RUN=STALLWATCH_APP STALLWATCH_THREADS",
                "LD_PRELOAD=/lib/libstallwatch-preload.so:/lib/other.so",
            ])
    }

    @Test func `an object whose path the dynamic linker would split is not used`() throws {
        try withTemporaryDirectory { directory in
            let folder = directory.appending(path: "a b")
            try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
            try Data().write(to: folder.appending(path: PreloadLibrary.loops.rawValue))
            for folders in [[folder.path], ["/nowhere"]] {
                #expect(throws: RunProblem.self) {
                    try PreloadLibrary.loops.choose(
                        from: folders, isReadable: FileManager.default.fileExists(atPath:))
                }
            }
        }
    }
}

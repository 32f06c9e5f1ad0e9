import CCaptureTesting
import Foundation
import StallCapture
import StallModel
import TestSupport
import Testing

/// Goal: a stack shows the functions and lines of Python that a thread executes, in their place among the native ones,
/// and what is in the interpreter's memory does no harm.
/// Method: an interpreter that was made up in memory, with a thread's own native function as the one that evaluates; for
/// lines, the tables and answers of the real one. RunCommandTests has a real program.
@Suite(.serialized) final class PythonFramesTests {
    /// All of them stall in the same function.
    private let victim = Victim(.semaphore)
    private var python: MadeUpPython { .shared }

    deinit { victim.release() }

    /// The stack of the victim while it executes these frames.
    private func capture(
        _ frames: [(code: UInt64, position: UInt64)?], endsInCircle: Bool = false,
        areBeforeGaps: Bool = false, thenRename renamed: UInt64? = nil, capacity: Int = 8192
    ) throws -> CapturedStack {
        let evaluation = victim.callers[0]
        // Once for the process.
        _ = python.use(evaluation: testing_function_start(evaluation)...(evaluation + 256))
        python.execute(
            frames, on: victim.thread.id, endsInCircle: endsInCircle, areBeforeGaps: areBeforeGaps)
        var sampler = try StackSampler(addressCapacity: capacity, signalUse: .never)
        victim.waitUntilBlocked()
        let copy = sampler.copyStack(of: victim.thread, timeout: .seconds(5))
        if let renamed { python.rename(renamed, to: "other") }
        return try copy.decoded()
    }

    @Test func `code that was freed and made again since has no name`() throws {
        let (gone, kept) = (
            python.code(function: "gone", file: "a.py"), python.code(function: "kept", file: "a.py")
        )
        let stack = try capture([(gone, 0), (kept, 0), nil], thenRename: gone)
        #expect(stack.addresses.compactMap(\.script).map(\.function) == ["kept"])
    }

    @Test func `a frame may be the last before memory that is not there`() throws {
        let code = python.code(function: "f", file: "a.py")
        let stack = try capture([(code, 0), (code, 0), nil], areBeforeGaps: true)
        #expect(stack.addresses.compactMap(\.script).count == 2)
    }

    @Test func `frames that there is no room for are left out`() throws {
        let code = python.code(function: "f", file: "a.py")
        let stack = try capture(Array(repeating: (code, 0), count: 500) + [nil], capacity: 256)
        #expect(stack.addresses.allSatisfy { $0.script == nil })
        #expect(stack.endsIn(victim.callers))
    }

    @Test func `of a deeper stack the innermost frames are kept`() throws {
        let (inner, outer) = (
            python.code(function: "inner", file: "a.py"),
            python.code(function: "outer", file: "a.py")
        )
        let stack = try capture(
            Array(repeating: (inner, 0), count: 500) + Array(repeating: (outer, 0), count: 500) + [
                nil
            ])
        let names = stack.addresses.compactMap(\.script).map(\.function)
        #expect(
            names == Array(repeating: "inner", count: 500) + Array(repeating: "outer", count: 12))
    }

    @Test func `frames are inserted before the native function that evaluates them`() throws {
        let inner = python.code(function: "Handler.load", file: "/srv/app.py", firstLine: 7)
        let outer = python.code(function: "main", file: "/srv/app.py", firstLine: 30)
        let stack = try capture([(inner, 0), (outer, 0), nil])
        let scripts = stack.addresses.compactMap(\.script)
        #expect(scripts.map(\.function) == ["Handler.load", "main"])
        #expect(scripts.map(\.file) == ["/srv/app.py", "/srv/app.py"])
        let place = try #require(stack.addresses.firstIndex { $0.script?.function == "main" })
        #expect(
            testing_function_start(stack.addresses[place + 1].lookupAddress)
                == testing_function_start(victim.callers[0]))
        #expect(stack.addresses[place - 2].script == nil)
        var native = stack
        native.addresses.removeAll { $0.script != nil }
        #expect(native.endsIn(victim.callers))
    }

    @Test(arguments: ["plain", "grün", "日本語", "🐍.<locals>.f"])
    func `names have any characters`(name: String) throws {
        let code = python.code(function: name, file: "/srv/" + name + ".py")
        let script = try #require(
            try capture([(code, 0), nil]).addresses.compactMap(\.script).first)
        #expect(script.function == name)
        #expect(script.file == "/srv/" + name + ".py")
    }

    @Test
    func `what is no code, is nowhere, or leads in a circle leaves the native stack as it is`()
        throws
    {
        let code = python.code(function: "f", file: "f.py")
        let hostile: [(frames: [(code: UInt64, position: UInt64)?], endsInCircle: Bool)] = [
            ([(python.notCode, 0), nil], false), ([(8, 0), nil], false),
            ([(.max & ~7, .max), nil], false), ([(code, 0)], true), ([nil, nil], false),
        ]
        for (frames, endsInCircle) in hostile {
            let stack = try capture(frames, endsInCircle: endsInCircle)
            #expect(stack.addresses.allSatisfy { $0.script == nil })
            #expect(stack.endsIn(victim.callers))
        }
    }

    @Test func `a table of lines that ends early gives no line`() throws {
        for lines in [
            [], [0x80 | 14 << 3], [0x80 | 13 << 3, 0x7f], [0x05, 0x05],
            Array(repeating: 0xff, count: 9),
        ] as [[UInt8]] {
            let code = python.code(function: "f", file: "f.py", firstLine: 5, lines: lines)
            let script = try #require(
                try capture([(code, 200), nil]).addresses.compactMap(\.script).first)
            #expect(script.line == nil)
        }
    }

    /// Prints, for functions of its library: the first line, the table in hexadecimal, and the line of each instruction.
    private static let printer = """
        import asyncio.base_events, argparse, types
        def codes(code):
            yield code
            for constant in code.co_consts:
                if isinstance(constant, types.CodeType): yield from codes(constant)
        for module in (asyncio.base_events, argparse):
            source = open(module.__file__).read()
            for code in codes(compile(source, module.__file__, "exec")):
                lines = [str(each[0] or 0) for each in code.co_positions()]
                print(code.co_firstlineno, code.co_linetable.hex(), ",".join(lines))
        """

    /// Its versions from 3.11 on have such tables.
    @Test func `every instruction has the line that Python says`() throws {
        let (process, pipe) = (Process(), Pipe())
        process.executableURL = URL(filePath: "/usr/bin/env")
        process.arguments = ["python3", "-c", Self.printer]
        process.standardOutput = pipe
        try process.run()
        let python3 = String(
            decoding: try pipe.fileHandleForReading.readToEnd() ?? Data(), as: UTF8.self)
        var compared = 0
        for row in python3.split(separator: "\n") {
            let fields = row.split(separator: " ")
            let lines = fields[2].split(separator: ",").map { Int($0)! }
            let table = try #require([UInt8](hexadecimal: fields[1]))
            let code = python.code(
                function: "f", file: "f.py", firstLine: Int32(fields[0])!, lines: table)
            // A stack of all instructions of the function.
            for begin in stride(from: 0, to: lines.count, by: 500) {
                let some = Array(begin..<min(begin + 500, lines.count))
                let stack = try capture(some.map { (code, UInt64($0)) } + [nil])
                let found = stack.addresses.compactMap(\.script).map { $0.line ?? 0 }
                #expect(found == some.map { lines[$0] })
                compared += some.count
            }
        }
        #expect(compared > 10_000)
    }
}

// An interpreter in memory: CPython's structures as 3.13 lays them out, with offsets that no real one has.

import Glibc
import StallCapture
import StallModel

/// One for the process, because there is one interpreter in a process. Its memory is never freed.
final class MadeUpPython: @unchecked Sendable {  // the tests that use it run one after another
    static let shared = MadeUpPython()

    /// By index, the numbers at the beginning of _PyRuntime.
    private let offsets: [Int: UInt64] = [
        2: 0,  // has a global lock
        5: 1000,  // interpreters.head
        8: 8, 9: 16,  // an interpreter: next, threads.head
        21: 8, 23: 40, 25: 24,  // a thread: next, current_frame, native_thread_id
        29: 16, 30: 8, 31: 24, 33: 33,  // a frame: previous, executable, instr_ptr, owner
        // Code: file, name, lines, first line, instructions.
        35: 8 * 2, 37: 8 * 3, 38: 8 * 4, 39: 8 * 5, 43: 8 * 6,
        45: 8, 47: 16,  // the type of an object, the name of a type
        65: 16, 66: 32,  // bytes
        68: 16, 69: 24, 70: 32,  // str: state, length, where ASCII begins
    ]
    private let runtime = words(200)
    private let interpreter = words(8)
    private let thread = words(8)
    private let version = words(1)
    private let codeType, textType, bytesType: UnsafeMutablePointer<UInt64>

    private init() {
        (codeType, textType, bytesType) = (Self.type("code"), Self.type("str"), Self.type("bytes"))
        UnsafeMutableRawPointer(runtime).copyMemory(from: "xdebugpy", byteCount: 8)
        for (index, offset) in offsets { runtime[index] = offset }
        runtime[1000 / 8] = address(interpreter)
        interpreter[16 / 8] = address(thread)
        version[0] = 0x030d_02f0
    }

    /// Becomes the process's interpreter.
    ///
    /// - Parameter evaluation: The native code that evaluates its functions.
    func use(evaluation: ClosedRange<UInt64>) -> Bool {
        PythonInterpreter.use(image: 0..<0) { symbol in
            switch symbol {
            case "_PyRuntime": (address(runtime), 1600)
            case "Py_Version": (address(version), 8)
            default: (evaluation.lowerBound, UInt64(evaluation.count))
            }
        }
    }

    /// Sets what a thread executes, innermost first; nil is a frame of the native function that evaluates.
    func execute(
        _ frames: [(code: UInt64, position: UInt64)?], on id: ThreadID, endsInCircle: Bool = false,
        areBeforeGaps: Bool = false
    ) {
        var previous: UInt64 = 0
        for (index, frame) in frames.enumerated().reversed() {
            let place = areBeforeGaps ? Self.wordsBeforeGap(5) : Self.words(32)
            place[16 / 8] = endsInCircle && index == frames.count - 1 ? address(place) : previous
            if let frame {
                place[1] = frame.code
                place[3] = frame.code &+ 8 * 6 &+ 2 &* frame.position
            } else {
                UnsafeMutableRawPointer(place).storeBytes(of: 3, toByteOffset: 33, as: UInt8.self)
            }
            previous = address(place)
        }
        thread[40 / 8] = previous
        thread[24 / 8] = UInt64(id.rawValue)
    }

    /// A code object, whose `text` says how wide its characters are.
    func code(
        function: String, file: String, firstLine: Int32 = 1, lines: [UInt8] = [0x80 | 15 << 3],
        type: UnsafeMutablePointer<UInt64>? = nil
    ) -> UInt64 {
        let code = Self.words(64)
        code[1] = address(type ?? codeType)
        code[2] = text(file)
        code[3] = text(function)
        code[4] = bytes(lines)
        UnsafeMutableRawPointer(code).storeBytes(of: firstLine, toByteOffset: 40, as: Int32.self)
        return address(code)
    }

    /// An object of another type.
    var notCode: UInt64 { code(function: "f", file: "f.py", type: bytesType) }

    private func text(_ string: String) -> UInt64 {
        let scalars = Array(string.unicodeScalars)
        let widest = scalars.map(\.value).max() ?? 0
        let (isASCII, width) = (widest < 128, widest < 256 ? 1 : widest < 65536 ? 2 : 4)
        let text = Self.words(8 + scalars.count)
        text[1] = address(textType)
        text[2] = UInt64(width) << 2 | 1 << 5 | (isASCII ? 1 : 0) << 6
        text[3] = UInt64(scalars.count)
        let begin = UnsafeMutableRawPointer(text) + (isASCII ? 32 : 48)
        for (index, scalar) in scalars.enumerated() {
            withUnsafeBytes(of: scalar.value.littleEndian) {
                (begin + index * width).copyMemory(from: $0.baseAddress!, byteCount: width)
            }
        }
        return address(text)
    }

    private func bytes(_ content: [UInt8]) -> UInt64 {
        let bytes = Self.words(8 + content.count / 8)
        bytes[1] = address(bytesType)
        bytes[2] = UInt64(content.count)
        (UnsafeMutableRawPointer(bytes) + 32).copyMemory(from: content, byteCount: content.count)
        return address(bytes)
    }

    private static func type(_ name: String) -> UnsafeMutablePointer<UInt64> {
        let (type, text) = (words(8), words(2))
        UnsafeMutableRawPointer(text).copyMemory(from: name, byteCount: name.utf8.count)
        type[2] = address(text)
        return type
    }

    /// Makes a code object another function's, as when its memory is used again.
    func rename(_ code: UInt64, to function: String) {
        UnsafeMutablePointer<UInt64>(bitPattern: UInt(code))![3] = text(function)
    }

    /// The last ones before memory that cannot be read.
    private static func wordsBeforeGap(_ count: Int) -> UnsafeMutablePointer<UInt64> {
        let page = 65536
        let memory = mmap(
            nil, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)!
        mprotect(memory + page, page, PROT_NONE)
        return (memory + page - 8 * count).assumingMemoryBound(to: UInt64.self)
    }

    private static func words(_ count: Int) -> UnsafeMutablePointer<UInt64> {
        let words = UnsafeMutablePointer<UInt64>.allocate(capacity: count)
        words.initialize(repeating: 0, count: count)
        return words
    }
}

private func address(_ pointer: UnsafeMutablePointer<UInt64>) -> UInt64 {
    UInt64(UInt(bitPattern: pointer))
}

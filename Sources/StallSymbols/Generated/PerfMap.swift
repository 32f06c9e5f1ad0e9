// The names of functions that a compiler of this process makes at run time, as it writes them for the kernel's perf: a line
// each, `START SIZE NAME` with hexadecimal numbers. Node writes them with --perf-basic-prof, CPython since 3.12 with
// -X perf.
//
// Source: Linux, tools/perf/Documentation/jit-interface.txt.

internal import CLinux
internal import Glibc
package import StallModel

/// The file of names of this process. Anyone may make one in a common directory, so only the user's own is read.
package struct PerfMap {
    private let path: String
    /// The results so far; nil for an address in no function.
    private var known: [UInt64: ScriptFrame?] = [:]
    /// How much of the file `known` takes into account.
    private var seen: UInt64 = 0
    private static let longestFile: UInt64 = 64 << 20
    private static let partSize: UInt64 = 1 << 16

    /// Since when a file can be of this process: an earlier one with its number may have left its own.
    private let began: Int

    /// Of this process, by default.
    package init(path: String = "/tmp/perf-\(getpid()).map") {
        self.path = path
        began = PerfMap.startOfProcess()
    }

    /// In seconds on the wall clock, a second early; 0 if unknown.
    private static func startOfProcess() -> Int {
        var (ticks, now) = (UInt64(0), timespec())
        let rate = sysconf(CInt(_SC_CLK_TCK))
        guard stall_thread_start_ticks(getpid(), &ticks) == 0, rate > 0,
            clock_gettime(CLOCK_BOOTTIME, &now) == 0
        else { return 0 }
        return time(nil) - now.tv_sec + Int(clamping: ticks / UInt64(rate)) - 1
    }

    /// The functions that contain these addresses. A later line takes the place of an earlier one, because memory is used
    /// again.
    ///
    /// **Cost:** reads the file, 64 MB at most, but for addresses that were asked for only what was added since.
    package mutating func functions(at addresses: some Sequence<UInt64>) -> [UInt64: ScriptFrame] {
        let asked = Set(addresses)
        guard !asked.isEmpty, let file = FileBytes(path: path), file.isOwn, file.changed >= began
        else { return [:] }
        if known.count > 10_000 || file.size < seen { (known, seen) = ([:], 0) }
        let isNew = asked.contains { known[$0] == nil }
        for address in asked where known[address] == nil { known[address] = .some(nil) }
        seen = search(file, from: isNew ? 0 : seen, to: min(file.size, Self.longestFile))
        return asked.reduce(into: [:]) { found, address in
            if let function = known[address] ?? nil { found[address] = function }
        }
    }

    /// - Returns: The end of the last line that is complete; the rest may still be written.
    private mutating func search(_ file: FileBytes, from start: UInt64, to end: UInt64) -> UInt64 {
        let addresses = known.keys.sorted()
        var (position, rest) = (start, [UInt8]())
        while position < end {
            let count = min(end - position, Self.partSize)
            guard let part = file.bytes(at: position, count: count) else { break }
            let text = rest + part
            var begin = 0
            while let newline = text[begin...].firstIndex(of: UInt8(ascii: "\n")) {
                add(text[begin..<newline], for: addresses)
                begin = newline + 1
            }
            // A line that does not end is no line.
            rest = text.count - begin > 1 << 14 ? [] : Array(text[begin...])
            position += count
        }
        return position - UInt64(rest.count)
    }

    private mutating func add(_ line: ArraySlice<UInt8>, for addresses: [UInt64]) {
        var rest = line
        guard let start = rest.takeHexadecimal(), let size = rest.takeHexadecimal(), !rest.isEmpty
        else { return }
        var index = addresses.sortedIndex(notBelow: start)
        guard index < addresses.count, addresses[index] - start < size else { return }
        let function = ScriptFrame(perfMapName: String(decoding: rest, as: UTF8.self))
        while index < addresses.count, addresses[index] - start < size {
            known[addresses[index]] = function
            index += 1
        }
    }
}

extension FileBytes {
    /// Whether it belongs to this process's user.
    fileprivate var isOwn: Bool { owner == geteuid() }
}

extension ArraySlice<UInt8> {
    /// A number and the space after it; nil if there is none, or if it does not fit.
    fileprivate mutating func takeHexadecimal() -> UInt64? {
        guard let end = firstIndex(of: UInt8(ascii: " ")), end > startIndex, end - startIndex <= 18
        else { return nil }
        var digits = self[..<end]
        if digits.starts(with: "0x".utf8) { digits = digits.dropFirst(2) }
        guard let number = UInt64(String(decoding: digits, as: UTF8.self), radix: 16) else {
            return nil
        }
        self = self[(end + 1)...]
        return number
    }
}

extension ScriptFrame {
    /// Takes the file and the line out of V8's and CPython's names; another name is the function's.
    ///
    ///     JS:*Server.answer /app/server.js:12:34      LazyCompile:~listen node:net:1900:40
    ///     py::answer:/app/server.py                   Builtin:ArrayMap
    init(perfMapName name: String) {
        if name.hasPrefix("py::") {
            let parts = name.dropFirst(4).split(separator: ":", maxSplits: 1)
            self.init(
                function: parts.first.map(String.init) ?? name,
                file: parts.count > 1 ? String(parts[1]) : nil)
            return
        }
        let kinds = ["JS:", "LazyCompile:", "Function:", "Script:", "Eval:"]
        guard let kind = kinds.first(where: name.hasPrefix) else {
            self.init(function: name)
            return
        }
        // How far it was compiled.
        let text = name.dropFirst(kind.count).drop { "*~^+-".contains($0) }
        guard let space = text.firstIndex(of: " ") else {
            self.init(function: text.isEmpty ? name : String(text))
            return
        }
        var parts = text[text.index(after: space)...].split(
            separator: ":", omittingEmptySubsequences: false)
        var numbers: [Int] = []
        while numbers.count < 2, parts.count > 1, let number = parts.last.flatMap({ Int($0) }) {
            numbers.insert(number, at: 0)
            parts.removeLast()
        }
        var file = parts.joined(separator: ":")
        if file.hasPrefix("file://") { file.removeFirst("file://".count) }
        let function = text[..<space]
        self.init(
            function: function.isEmpty ? "(anonymous)" : String(function),
            file: file.isEmpty ? nil : file, line: numbers.first)
    }
}

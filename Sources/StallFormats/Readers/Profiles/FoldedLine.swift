// A line of folded stacks, and the thread that its first element may name.

/// `root;caller;leaf 42`.
struct FoldedLine {
    var stack: ArraySlice<UInt8>
    /// The number behind the last space, times a thousand.
    var thousandths: Int64
    /// There are two counts: the line compares two profiles.
    var isDifference = false
    /// When swift-profile-recorder took the sample, in nanoseconds since 1970: it has no count.
    var time: Int64?

    /// Nil for a line that is none.
    init?(_ line: ArraySlice<UInt8>) {
        var line = line
        while line.last?.isBlank == true { line.removeLast() }
        guard let space = line.lastIndex(where: \.isBlank) else { return nil }
        stack = line[..<space].trimmed
        let word = line[(space + 1)...]
        guard !stack.isEmpty, let count = Self.thousandths(word) else { return nil }
        thousandths = count
        // A time of this century; the difference of two fits.
        if word.count == 19, let number = word.decimal(Int64.self), Self.times.contains(number),
            stack.last == UInt8(ascii: ">"), Self.hasAddresses(stack)
        {
            time = number
        } else if let space = stack.lastIndex(where: \.isBlank),
            Self.thousandths(stack[(space + 1)...]) != nil, stack[..<space].contains(0x3b)
        {
            isDifference = true
        }
    }

    private static let times: Range<Int64> = 1_000_000_000_000_000_000..<4_000_000_000_000_000_000

    /// A count of more than nine thousand million millions is taken as that.
    private static func thousandths(_ word: ArraySlice<UInt8>) -> Int64? {
        let point = word.firstIndex(of: UInt8(ascii: ".")) ?? word.endIndex
        let digits = word[..<point]
        guard !digits.isEmpty, digits.allSatisfy(\.isDigit) else { return nil }
        let whole = min(digits.decimal(Int64.self) ?? .max, Int64.max / 1000 - 1) * 1000
        let decimals = word[point...].dropFirst()
        guard point == word.endIndex || !decimals.isEmpty, decimals.allSatisfy(\.isDigit) else {
            return nil
        }
        var (part, unit) = (Int64(0), Int64(100))
        for digit in decimals.prefix(3) {
            part += Int64(digit - 0x30) * unit
            unit /= 10
        }
        // A small part of a unit is more than nothing.
        if whole == 0, part == 0, decimals.contains(where: { $0 != 0x30 }) { part = 1 }
        return whole + part
    }

    /// Whether each element ends with `<1f40>`.
    private static func hasAddresses(_ stack: ArraySlice<UInt8>) -> Bool {
        stack.split(separator: 0x3b).allSatisfy { address(of: $0) != nil }
    }

    private static func address(of element: ArraySlice<UInt8>) -> (start: Int, value: UInt64)? {
        guard element.last == UInt8(ascii: ">"),
            let start = element.suffix(18).lastIndex(of: UInt8(ascii: "<")),
            let value = element[(start + 1)...].dropLast().hexadecimal()
        else { return nil }
        return (start, value)
    }

    // MARK: Frames

    /// The frames, innermost first.
    ///
    /// - Parameter thread: The one that the first element names, which is no frame then.
    static func frames(
        of stack: ArraySlice<UInt8>, _ thread: FoldedThread?, _ elements: inout FoldedElements
    ) -> [ForeignFrame] {
        let hasAddresses = stack.last == UInt8(ascii: ">") && hasAddresses(stack)
        var frames: [ForeignFrame] = []
        var end = stack.endIndex
        while frames.count < 1024 {
            let start = stack[..<end].lastIndex(of: 0x3b)
            if start == nil, thread != nil { break }
            let element = stack[(start.map { $0 + 1 } ?? stack.startIndex)..<end].trimmed
            frames.append(elements.frame(of: element, hasAddresses))
            guard let start else { break }
            end = start
        }
        frames.completeInlined()
        return frames
    }

    fileprivate static func frame(
        _ element: ArraySlice<UInt8>, _ hasAddresses: Bool
    ) -> ForeignFrame {
        var frame = ForeignFrame()
        var name = element
        if hasAddresses, let address = address(of: name) {
            name = name[..<address.start]
            frame.offset = address.value
        }
        if name.ends(with: "_[i]") { frame.isInlined = true }
        if name.ends(with: "_[k]") { frame.image = "[kernel.kallsyms]" }
        if name.ends(with: "_[i]") || name.ends(with: "_[k]") || name.ends(with: "_[j]") {
            name = name.dropLast(4)
        }
        // `[libc.so.6]`: a location in it without a name.
        if name.first == UInt8(ascii: "["), name.last == UInt8(ascii: "]"), name.count > 2 {
            let inner = name.dropFirst().dropLast()
            if inner.elementsEqual("unknown".utf8) { return frame }
            if inner.range(of: ".so") != nil || inner.elementsEqual("vdso".utf8) {
                frame.image = inner.text
                return frame
            }
        }
        if let place = name.unknownPlace {
            frame.offset = place
            return frame
        }
        guard !name.isEmpty else { return frame }
        frame.function = name.withoutVersion.text
        frame.offset = nil
        return frame
    }
}

/// The distinct elements of stacks, of which each is parsed once.
struct FoldedElements {
    private var numbers = TextNumbers()
    private var frames: [[ForeignFrame?]] = []
    /// Bounds of the elements that are kept.
    private static let (countLimit, byteLimit) = (1 << 16, 1 << 24)

    fileprivate mutating func frame(
        of element: ArraySlice<UInt8>, _ hasAddress: Bool
    ) -> ForeignFrame {
        if numbers.count > Self.countLimit || numbers.byteCount > Self.byteLimit {
            self = FoldedElements()
        }
        let number = numbers.number(of: element)
        if number == frames.count { frames.append([nil, nil]) }
        if let found = frames[number][hasAddress ? 1 : 0] { return found }
        let frame = FoldedLine.frame(element, hasAddress)
        frames[number][hasAddress ? 1 : 0] = frame
        return frame
    }
}

/// The thread that the first element of a stack names.
struct FoldedThread: Hashable {
    var name: String?
    var pid: Int32?
    var tid: Int32?
    /// The command, where nothing says that it is of another thread than the first one.
    var app: String?

    var isMain: Bool { pid != nil && pid == tid }

    /// Nil if the element is not clearly a thread: it is a function then.
    init?(stack: ArraySlice<UInt8>) {
        guard let end = stack.firstIndex(of: 0x3b), end > stack.startIndex else { return nil }
        let first = stack[..<end].trimmed
        if takeNumbers(first) { return }
        // `comm;_start;main`: nothing calls the first function of a thread.
        let rest = stack[(end + 1)...]
        let second = rest[..<(rest.firstIndex(of: 0x3b) ?? rest.endIndex)].trimmed
        guard Self.isFirstFunction(second), !Self.isFirstFunction(first), first.first != 0x5b,
            !first.isEmpty
        else { return nil }
        name = first.text
        app = name
    }

    private mutating func takeNumbers(_ element: ArraySlice<UInt8>) -> Bool {
        // async-profiler: `[main tid=4711]`.
        if element.first == 0x5b, element.last == 0x5d, let mark = element.range(of: " tid="),
            let number = element[mark.upperBound...].dropLast().decimal(Int32.self)
        {
            name = element[..<mark.lowerBound].dropFirst().text
            tid = number
            return true
        }
        guard let dash = element.lastIndex(of: UInt8(ascii: "-")) else { return false }
        let (before, behind) = (element[..<dash], element[(dash + 1)...])
        if behind.first == UInt8(ascii: "T"), let number = behind.dropFirst().decimal(Int32.self) {
            tid = number
        } else if let slash = behind.firstIndex(of: UInt8(ascii: "/")),
            let number = behind[(slash + 1)...].decimal(Int32.self)
        {
            // The process is a question mark where perf did not report it.
            pid = behind[..<slash].decimal(Int32.self)
            guard pid != nil || behind[..<slash].elementsEqual("?".utf8) else { return false }
            tid = number
        } else {
            return false
        }
        if !before.isEmpty { name = before.text }
        return true
    }

    private static func isFirstFunction(_ element: ArraySlice<UInt8>) -> Bool {
        firstFunctions.contains { element.elementsEqual($0.utf8) }
    }

    private static let firstFunctions = [
        "_start", "__libc_start_main", "__libc_start_main_impl", "__libc_start_call_main",
        "start_thread", "clone", "clone3", "__clone", "__clone3", "thread_start", "_dl_start_user",
        "__GI___clone3",
    ]
}

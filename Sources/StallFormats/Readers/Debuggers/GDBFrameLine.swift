// A frame of gdb's backtraces.
//
//     #3  0x000055d0 in waiting (n=n@entry=10) at busy.c:12
//     #4  0x00007f98 in clone3 () from /lib/x86_64-linux-gnu/libc.so.6
//
// **Source:** gdb, stack.c, `print_frame`.

internal import StallModel

/// A frame, of a line and the lines that continue it.
struct GDBFrameLine {
    var number: Int32
    /// Nil where the line shows none; see `isInlinedInto`.
    var address: UInt64?
    var function: ArraySlice<UInt8>
    var library: String?
    var file: String?
    var line: Int?
    /// `<signal handler called>`, which has no address either.
    var isMark = false

    init?(_ line: ArraySlice<UInt8>) {
        guard line.first == UInt8(ascii: "#") else { return nil }
        var rest = line.dropFirst()
        let digits = rest.prefix(while: \.isDigit)
        guard let number = digits.decimal(Int32.self), digits.endIndex < rest.endIndex else {
            return nil
        }
        self.number = number
        rest = rest[digits.endIndex...]
        guard rest.first?.isBlank == true else { return nil }
        rest = rest.trimmed
        var behind = rest
        if let address = behind.takeWord().address() {
            self.address = address
            guard behind.begins(with: " in ") else { return nil }
            rest = behind.dropFirst(4)
        }
        if rest.begins(with: "<"), rest.last == UInt8(ascii: ">"), rest.range(of: " (") == nil {
            function = Array(rest)[...]
            isMark = true
            return
        }
        guard let arguments = Self.arguments(rest), arguments > rest.startIndex else { return nil }
        // A copy: the line may be long.
        function = Array(rest[..<arguments].trimmed)[...]
        takePlace(rest[arguments...])
    }

    /// Behind the arguments, any text of which may be in a string among them: so from the end.
    private mutating func takePlace(_ text: ArraySlice<UInt8>) {
        let at = text.lastRange(of: ") at ")
        let from = text.lastRange(of: ") from ")
        if let from, from.upperBound > at?.upperBound ?? 0, text.last != UInt8(ascii: ")") {
            library = text[from.upperBound...].trimmed.text
        } else if let at, let place = text[at.upperBound...].trimmed.place() {
            (file, line) = place
        }
    }

    /// Where the list of arguments begins: at the first parenthesis behind a space that is not in other brackets, and whose
    /// end is the line's, or before the location. A name without debug information has parentheses of its own:
    /// `void (anonymous namespace)::work<int>(int) ()`.
    private static func arguments(_ text: ArraySlice<UInt8>) -> Int? {
        var (depth, previous) = (0, UInt8(0))
        var candidate: Int?
        for place in text.indices {
            let byte = text[place]
            switch byte {
            case UInt8(ascii: "<"), UInt8(ascii: ">"):
                // `operator<<` and `->` are no brackets.
                let isName = text[..<place].suffix(10).range(of: "operator") != nil
                if isName || previous == UInt8(ascii: "-") { break }
                depth += byte == UInt8(ascii: "<") ? 1 : -1
            case UInt8(ascii: "("):
                if depth <= 0 { candidate = previous == 0x20 ? place : nil }
                depth += 1
            case UInt8(ascii: ")"):
                depth -= 1
                let rest = text[(place + 1)...]
                if depth <= 0, let candidate,
                    rest.isEmpty || rest.begins(with: " at ") || rest.begins(with: " from ")
                {
                    return candidate
                }
            default: break
            }
            previous = byte
        }
        return text.range(of: " (").map { $0.lowerBound + 1 }
    }

    /// About as much as it takes in memory.
    var byteCount: Int {
        256 + function.count + (library ?? "").utf8.count + (file ?? "").utf8.count
    }

    var frame: ForeignFrame {
        var frame = ForeignFrame()
        frame.image = library
        frame.file = file
        frame.line = line
        if function.elementsEqual("??".utf8) {
            frame.offset = address
        } else {
            frame.function = function.withoutVersion.text
        }
        return frame
    }
}

extension [GDBFrameLine] {
    /// gdb shows no address for a function into which the one before it was inlined: both are one location in the code.
    ///
    /// The innermost line and the one behind a signal lack theirs also at the beginning of a source line.
    var frames: [ForeignFrame] {
        var frames: [ForeignFrame] = []
        frames.reserveCapacity(count)
        for (place, line) in enumerated() {
            var frame = line.frame
            if place + 1 < count, !line.isMark {
                let next = self[place + 1]
                frame.isInlined = next.address == nil && !next.isMark
            }
            frames.append(frame)
        }
        frames.completeInlined()
        // Where a signal interrupted the code.
        for place in indices.dropFirst() where self[place - 1].isMark {
            frames[place].kind = .interrupted
        }
        return frames
    }
}

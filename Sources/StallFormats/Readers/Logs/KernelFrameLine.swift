// A line of a stack in Linux' log; KernelStack.swift has examples.

internal import StallModel

/// A line of a stack.
struct KernelFrameLine {
    /// None if the line is only a mark, or an address that the unwinder is unsure of.
    private(set) var frames: [ForeignFrame] = []
    private(set) var (isBeginning, isEnd) = (false, false)

    /// No line of a stack has more words.
    private static let wordLimit = 16

    init?(_ message: ArraySlice<UInt8>) {
        guard message.count <= 1024 else { return nil }
        var rest = message
        var (hasMark, isUnreliable, caller) = (false, false, ArraySlice<UInt8>())
        for _ in 0..<Self.wordLimit {
            let whole = rest.takeWord()
            if whole.isEmpty { break }
            let word = whole.withoutParentheses
            if Self.isMark(word) {
                hasMark = true
                isBeginning = isBeginning || word.elementsEqual("<TASK>".utf8)
                isEnd = isEnd || word.elementsEqual("</TASK>".utf8)
            } else if word.elementsEqual("?".utf8) || word.elementsEqual("unreliable".utf8) {
                isUnreliable = true
            } else if Self.isAddress(word) {
                continue
            } else if word.first == UInt8(ascii: "["), let last = frames.indices.last {
                takeModule(word, &rest, last)
            } else if word.first == UInt8(ascii: "["), !caller.isEmpty {
                // The module of the caller's callee, which the line before has.
                continue
            } else if word.elementsEqual("from".utf8), !caller.isEmpty, frames.isEmpty {
                frames.append(ForeignFrame(function: caller.text, image: "[kernel]"))
            } else if let name = Self.name(word), frames.count < 2 {
                frames.append(ForeignFrame(function: name.text, image: "[kernel]"))
            } else if frames.isEmpty, caller.isEmpty {
                caller = word
            } else if frames.isEmpty && !Self.isBare(caller) || whole.count == word.count {
                return nil
            }
        }
        // Code without a name: that of a program for BPF, or of a module that is gone.
        if frames.isEmpty, Self.isBare(caller), let address = caller.address() {
            frames.append(ForeignFrame(image: "[kernel]", offset: address))
            caller = []
        }
        guard rest.allSatisfy(\.isBlank), hasMark || !frames.isEmpty,
            !frames.isEmpty || caller.isEmpty
        else { return nil }
        if caller.isEmpty == false, frames.count < 2 { return nil }
        if isUnreliable { frames = [] }
    }

    /// `0xffff800008a1b2c4`.
    private static func isBare(_ word: ArraySlice<UInt8>) -> Bool {
        word.count >= 10 && word.address() != nil
    }

    /// `<TASK>`, `</IRQ>`, `<<EOE>>`.
    private static func isMark(_ word: ArraySlice<UInt8>) -> Bool {
        word.first == UInt8(ascii: "<") && word.last == UInt8(ascii: ">")
    }

    /// `[<ffffffff8168c889>]` or `[c00000000009eda8]`.
    private static func isAddress(_ word: ArraySlice<UInt8>) -> Bool {
        guard word.first == UInt8(ascii: "["), word.last == UInt8(ascii: "]") else { return false }
        let inner = word.dropFirst().dropLast()
        if inner.first == UInt8(ascii: "<"), inner.last == UInt8(ascii: ">") { return true }
        return inner.count == 16 && inner.hexadecimal() != nil
    }

    /// The function of `FUNCTION+0x1/0x2`.
    private static func name(_ word: ArraySlice<UInt8>) -> ArraySlice<UInt8>? {
        guard let plus = word.lastRange(of: "+0x"), plus.lowerBound > word.startIndex,
            let slash = word[plus.upperBound...].range(of: "/0x"),
            word[plus.upperBound..<slash.lowerBound].hexadecimal() != nil,
            word[slash.upperBound...].hexadecimal() != nil
        else { return nil }
        return word[..<plus.lowerBound]
    }

    /// `[zfs]`, or `[zfs BUILDID]`.
    private mutating func takeModule(
        _ first: ArraySlice<UInt8>, _ rest: inout ArraySlice<UInt8>, _ place: Int
    ) {
        if first.last == UInt8(ascii: "]") {
            frames[place].image = first.dropFirst().dropLast().text
            return
        }
        let id = rest.takeWord()
        guard id.last == UInt8(ascii: "]") else { return }
        frames[place].image = first.dropFirst().text
        frames[place].buildID = BuildID(hexadecimal: id.dropLast().text)
    }
}

extension ArraySlice<UInt8> {
    fileprivate var withoutParentheses: Self {
        var word = self
        if word.first == UInt8(ascii: "(") { word = word.dropFirst() }
        if word.last == UInt8(ascii: ")") { word = word.dropLast() }
        return word
    }
}

// Numbers in the small files of `/proc`. Nothing here allocates: the watchdog reads them while a thread of the app may hold
// the heap's lock.

/// The text of a small file of `/proc`, in somebody else's memory.
package struct ProcText {
    private let bytes: UnsafeRawBufferPointer

    package init(_ bytes: UnsafeRawBufferPointer) { self.bytes = bytes }

    /// The number with this index, of numbers between blanks; nil when there are fewer or it is none.
    package func number(_ index: Int) -> Int64? {
        var (at, word) = (0, 0)
        while true {
            while at < bytes.count, bytes[at] <= UInt8(ascii: " ") { at += 1 }
            guard at < bytes.count else { return nil }
            if word == index { return number(at: at) }
            while at < bytes.count, bytes[at] > UInt8(ascii: " ") { at += 1 }
            word += 1
        }
    }

    /// The state letter of `stat`: behind the name, which may hold anything.
    package var state: UInt8? {
        var at = bytes.count - 1
        while at >= 0, bytes[at] != UInt8(ascii: ")") { at -= 1 }
        return at >= 0 && at + 2 < bytes.count ? bytes[at + 2] : nil
    }

    /// The number behind a label that begins a line.
    package func number(after label: StaticString) -> Int64? {
        var start = 0
        while start < bytes.count {
            if begins(label, at: start) {
                var at = start + label.utf8CodeUnitCount
                while at < bytes.count, bytes[at] == UInt8(ascii: " ") || bytes[at] == 9 { at += 1 }
                return number(at: at)
            }
            while start < bytes.count, bytes[start] != UInt8(ascii: "\n") { start += 1 }
            start += 1
        }
        return nil
    }

    private func begins(_ label: StaticString, at start: Int) -> Bool {
        guard start + label.utf8CodeUnitCount <= bytes.count else { return false }
        var index = 0
        while index < label.utf8CodeUnitCount {
            if bytes[start + index] != label.utf8Start[index] { return false }
            index += 1
        }
        return true
    }

    private func number(at start: Int) -> Int64? {
        var (at, value) = (start, Int64(0))
        while at < bytes.count, bytes[at] >= UInt8(ascii: "0"), bytes[at] <= UInt8(ascii: "9") {
            value = value &* 10 &+ Int64(bytes[at] - UInt8(ascii: "0"))
            at += 1
        }
        return at > start ? value : nil
    }
}

extension StaticString {
    /// The text for a C function. A string literal passed as it is would be copied to the heap in a debug build.
    package var cString: UnsafePointer<CChar> {
        UnsafeRawPointer(utf8Start).assumingMemoryBound(to: CChar.self)
    }
}

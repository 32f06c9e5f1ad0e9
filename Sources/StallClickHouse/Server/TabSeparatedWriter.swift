// Rows as a server takes them: the same escapes that `TabSeparatedRows` reads.

package import StallModel

/// Collects rows for an insert.
package struct TabSeparatedWriter {
    package private(set) var bytes: [UInt8] = []
    package private(set) var rowCount = 0
    private var isFirst = true

    package init() {}

    package mutating func removeAll() {
        bytes.removeAll(keepingCapacity: true)
        rowCount = 0
    }

    package mutating func endRow() {
        bytes.append(UInt8(ascii: "\n"))
        rowCount += 1
        isFirst = true
    }

    package mutating func null() {
        beginColumn()
        bytes += [UInt8(ascii: "\\"), UInt8(ascii: "N")]
    }

    package mutating func add(_ number: Int64) {
        beginColumn()
        append(number)
    }

    package mutating func add(_ flag: Bool) { add(flag ? 1 : 0) }

    package mutating func add(_ text: String) {
        var text = text
        text.withUTF8 { add(content: $0) }
    }

    package mutating func add(_ id: UniqueID) { id.withBytes { add($0) } }

    package mutating func add(_ content: [UInt8]) { content.withUnsafeBytes { add($0) } }

    package mutating func add(_ content: UnsafeRawBufferPointer) {
        content.withMemoryRebound(to: UInt8.self) { add(content: $0) }
    }

    /// Columns that another writer wrote, as they are.
    package mutating func add(columns: [UInt8]) {
        beginColumn()
        bytes += columns
    }

    package mutating func add(list: some Sequence<Int64>) {
        beginColumn()
        bytes.append(UInt8(ascii: "["))
        var isFirst = true
        for number in list {
            if !isFirst { bytes.append(UInt8(ascii: ",")) }
            isFirst = false
            append(number)
        }
        bytes.append(UInt8(ascii: "]"))
    }

    private mutating func add(content: UnsafeBufferPointer<UInt8>) {
        beginColumn()
        guard content.contains(where: { Self.letter(of: $0) != nil }) else {
            bytes.append(contentsOf: content)
            return
        }
        for byte in content {
            if let letter = Self.letter(of: byte) {
                bytes.append(UInt8(ascii: "\\"))
                bytes.append(letter)
            } else {
                bytes.append(byte)
            }
        }
    }

    /// The letter behind the backslash for a byte that would have a meaning.
    private static func letter(of byte: UInt8) -> UInt8? {
        switch byte {
        case UInt8(ascii: "\\"): byte
        case 0: UInt8(ascii: "0")
        case 9: UInt8(ascii: "t")
        case 10: UInt8(ascii: "n")
        // Later servers take it before the end of a line for a file of another system.
        case 13: UInt8(ascii: "r")
        default: nil
        }
    }

    /// Digits without a string: a report has thirty numbers, and there are millions of reports.
    private mutating func append(_ number: Int64) {
        if number < 0 { bytes.append(UInt8(ascii: "-")) }
        var rest = number.magnitude
        let end = bytes.count
        repeat {
            bytes.append(UInt8(ascii: "0") + UInt8(truncatingIfNeeded: rest % 10))
            rest /= 10
        } while rest > 0
        bytes[end...].reverse()
    }

    private mutating func beginColumn() {
        if !isFirst { bytes.append(UInt8(ascii: "\t")) }
        isFirst = false
    }
}

// Text as bytes, for files of gigabytes: a frame's name is escaped once and then copied.

internal import StallModel

/// Bytes on their way to a sink, which gets them in large pieces.
struct ByteText {
    private(set) var bytes: [UInt8] = []
    private let sink: ByteSink
    private static let pieceSize = 1 << 16

    init(_ sink: @escaping ByteSink) { self.sink = sink }

    mutating func append(_ text: String) { bytes.append(contentsOf: text.utf8) }
    mutating func append(_ other: [UInt8]) { bytes.append(contentsOf: other) }
    mutating func append(_ number: Int64) { bytes.append(decimal: number) }

    /// Hands over what has gathered when that is much.
    mutating func settle() throws {
        if bytes.count >= Self.pieceSize { try flush() }
    }

    mutating func flush() throws {
        try sink(bytes)
        bytes.removeAll(keepingCapacity: true)
    }
}

extension [UInt8] {
    /// Appends nanoseconds in a larger unit, exactly: `1840.25`, without a fraction where there is none.
    ///
    /// - Parameter digits: 3 for microseconds, 6 for milliseconds, 9 for seconds.
    mutating func append(nanoseconds: Int64, digits: Int, isPadded: Bool = false) {
        var unit: UInt64 = 1
        for _ in 0..<digits { unit *= 10 }
        if nanoseconds < 0 { append(0x2d) }
        append(decimal: Int64(nanoseconds.magnitude / unit))
        var fraction = nanoseconds.magnitude % unit
        guard fraction > 0 || isPadded else { return }
        append(0x2e)
        while unit > 1, fraction > 0 || isPadded {
            unit /= 10
            append(UInt8(0x30 + fraction / unit))
            fraction %= unit
        }
    }
}

extension String {
    /// The text as a JSON string with its quotes. Control characters and those that change the direction of text are
    /// escaped, so that a viewer and a terminal get them as data.
    var jsonBytes: [UInt8] {
        var bytes: [UInt8] = [0x22]
        for scalar in unicodeScalars {
            switch scalar.value {
            case 0x22: bytes += [0x5c, 0x22]
            case 0x5c: bytes += [0x5c, 0x5c]
            case 0x20..<0x7f: bytes.append(UInt8(scalar.value))
            default:
                if scalar.isSteering {
                    for unit in String(scalar).utf16 {
                        let digits = String(unit, radix: 16)
                        bytes += "\\u".utf8
                        bytes += repeatElement(0x30, count: 4 - digits.utf8.count)
                        bytes += digits.utf8
                    }
                } else {
                    bytes += String(scalar).utf8
                }
            }
        }
        bytes.append(0x22)
        return bytes
    }

    /// The text on one line, without characters that control a terminal.
    var onOneLine: String {
        guard unicodeScalars.contains(where: \.isSteering) else { return self }
        return String(
            String.UnicodeScalarView(unicodeScalars.map { $0.isSteering ? " " : $0 }))
    }
}

extension Unicode.Scalar {
    fileprivate var isSteering: Bool {
        if value < 0x7f { return value < 0x20 }
        switch properties.generalCategory {
        case .control, .lineSeparator, .paragraphSeparator: return true
        case .format: return value != 0x200c && value != 0x200d
        default: return false
        }
    }
}

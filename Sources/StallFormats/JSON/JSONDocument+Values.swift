// Values of a JSON document as values of Swift, and the faults of those that are not valid.

internal import Foundation

extension JSONDocument {
    func isNull(_ index: Int) -> Bool { kind(index) == .null }

    func bool(_ index: Int) throws -> Bool {
        switch kind(index) {
        case .true: true
        case .false: false
        default: throw mismatch(Bool.self, index)
        }
    }

    func string(_ index: Int) throws -> String {
        switch kind(index) {
        case .string, .escapedString: text(index)
        default: throw mismatch(String.self, index)
        }
    }

    func double(_ index: Int) throws -> Double {
        guard kind(index) == .number else { throw mismatch(Double.self, index) }
        let bytes = bytes(index)
        if let number = Self.shortDouble(bytes) { return number }
        guard let number = Double(String(decoding: bytes, as: UTF8.self)), number.isFinite else {
            throw outOfRange(index)
        }
        return number
    }

    func integer<Number: FixedWidthInteger>(_ type: Number.Type, _ index: Int) throws -> Number {
        guard kind(index) == .number else { throw mismatch(type, index) }
        if let number = Number(plain: bytes(index)) { return number }
        // 1.0 and 1e3 are whole numbers, too.
        guard let number = Number(exactly: try double(index)) else { throw outOfRange(index) }
        return number
    }

    func decimal(_ index: Int) throws -> Decimal {
        guard kind(index) == .number else { throw mismatch(Decimal.self, index) }
        guard let number = Decimal(string: text(index)) else { throw outOfRange(index) }
        return number
    }

    /// A number whose digits and power of ten are exact as doubles: one division rounds it as the long way would.
    ///
    /// **Source:** Clinger, "How to read floating point numbers accurately", 1990.
    private static func shortDouble(_ bytes: ArraySlice<UInt8>) -> Double? {
        guard bytes.count <= 17 else { return nil }
        var (digits, decimals, isNegative, hasPoint) = (UInt64(0), 0, false, false)
        for byte in bytes {
            switch byte {
            case 0x30...0x39:
                digits = digits * 10 + UInt64(byte - 0x30)
                if hasPoint { decimals += 1 }
            case UInt8(ascii: "-"): isNegative = true
            case UInt8(ascii: "."): hasPoint = true
            default: return nil
            }
        }
        guard digits <= 1 << 53 else { return nil }
        let number = decimals == 0 ? Double(digits) : Double(digits) / powersOfTen[decimals]
        return isNegative ? -number : number
    }

    private static let powersOfTen: [Double] = [
        1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16,
    ]

    // Errors

    func mismatch(_ type: any Any.Type, _ index: Int) -> DecodingError {
        let context = context(index, "expected \(type)")
        return isNull(index) ? .valueNotFound(type, context) : .typeMismatch(type, context)
    }

    func outOfRange(_ index: Int) -> DecodingError {
        .dataCorrupted(context(index, "a number out of range"))
    }

    private func context(_ index: Int, _ text: String) -> DecodingError.Context {
        DecodingError.Context(codingPath: path(to: index), debugDescription: text)
    }
}

extension FixedWidthInteger {
    /// Digits behind a sign, if any; nil for other forms and for numbers out of range.
    fileprivate init?(plain bytes: ArraySlice<UInt8>) {
        let isNegative = bytes.first == UInt8(ascii: "-")
        var number: Self = 0
        for byte in isNegative ? bytes.dropFirst() : bytes {
            guard 0x30...0x39 ~= byte else { return nil }
            let digit = Self(byte - 0x30)
            let (tens, isTooLarge) = number.multipliedReportingOverflow(by: 10)
            let (sum, isTooLong) =
                isNegative
                ? tens.subtractingReportingOverflow(digit) : tens.addingReportingOverflow(digit)
            guard !isTooLarge, !isTooLong else { return nil }
            number = sum
        }
        self = number
    }
}

// The addresses at which functions begin, those without a symbol included.

/// The content of `LC_FUNCTION_STARTS`: distances from one function to the next, the first from `__TEXT`.
///
/// **Source:** Apple, <mach-o/loader.h>, `LC_FUNCTION_STARTS`; dyld, `forEachFunctionStart`.
struct FunctionStarts {
    private let bytes: [UInt8]
    private let text: UInt64

    /// Without functions if there are more than 64 MB of them.
    init(_ source: any ByteSource, at offset: UInt64, size: UInt64, text: UInt64) {
        bytes = size <= 64 << 20 ? source.bytes(at: offset, count: size) ?? [] : []
        self.text = text
    }

    /// For each address the last start at or before it.
    ///
    /// - Parameter addresses: In ascending order.
    func last(before addresses: [UInt64]) -> [UInt64: UInt64] {
        var found: [UInt64: UInt64] = [:]
        var (cursor, address) = (ByteCursor(bytes), text)
        var start: UInt64?
        var next = 0
        while next < addresses.count, !cursor.isAtEnd {
            let distance = cursor.uleb()
            // Zeros fill the table's last words.
            guard distance > 0, !cursor.isExhausted else { break }
            let (sum, overflow) = address.addingReportingOverflow(distance)
            guard !overflow else { break }
            address = sum
            while next < addresses.count, addresses[next] < address {
                if let start { found[addresses[next]] = start }
                next += 1
            }
            start = address
        }
        if let start { for address in addresses[next...] { found[address] = start } }
        return found
    }
}

// The first line of Seastar's report of a stall; SeastarStalls.swift has examples.

/// The first line of a report.
struct StallLine {
    let prefix: ArraySlice<UInt8>
    /// Nil if out of range.
    let milliseconds: Int32?
    private(set) var shard: Int32?
    private(set) var hasBacktrace = false
    /// Addresses; none where they are on lines of their own.
    private(set) var backtrace: [ArraySlice<UInt8>] = []

    init?(_ line: ArraySlice<UInt8>) {
        guard let found = line.range(of: "Reactor stalled for ") else { return nil }
        let digits = line[found.upperBound...].prefix(while: \.isDigit)
        var rest = line[digits.endIndex...]
        guard !digits.isEmpty, rest.begins(with: " ms"), let end = rest.dropFirst(3).first,
            end == UInt8(ascii: " ") || end == UInt8(ascii: ".")
        else { return nil }
        prefix = line[..<found.lowerBound]
        milliseconds = digits.decimal(Int32.self)
        rest = rest.dropFirst(3)
        if rest.begins(with: " on shard ") {
            shard = rest.dropFirst(10).prefix(while: \.isDigit).decimal(Int32.self)
        }
        guard let stack = rest.range(of: ". Backtrace:") else { return }
        hasBacktrace = true
        rest = rest[stack.upperBound...]
        while backtrace.count <= 1000 {
            let word = rest.takeWord()
            if word.isEmpty { break }
            backtrace.append(word)
        }
    }
}

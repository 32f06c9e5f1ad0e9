// Rows of a store that any program may have written, back into model values.

package import StallModel
package import StallStore

extension Statement {
    /// A length of time that ingest takes.
    package func limited_ns(at column: CInt? = nil) throws(StoreError) -> Int64 {
        try limited(at: column, 0...ValueLimits.duration_ns, "duration in nanoseconds")
    }

    /// A number within a range, or the row is refused.
    package func limited(
        at column: CInt? = nil, _ range: ClosedRange<Int64>, _ noun: String
    ) throws(StoreError) -> Int64 {
        let number = try integer(at: column)
        try expect(number, in: range, noun)
        return number
    }

    /// Refuses a row with a number that is not in a range.
    package func expect(
        _ number: Int64, in range: ClosedRange<Int64>, _ noun: String
    ) throws(StoreError) {
        guard range.contains(number) else {
            throw damage("\(number) is out of range for a \(noun)")
        }
    }

    /// A text of at most `limit` bytes, or the row is refused. Its length is read first.
    package func limitedText(
        at place: CInt? = nil, _ limit: Int, _ noun: String
    ) throws(StoreError) -> String {
        let column = place ?? next()
        let bytes = blob(at: column).count
        guard bytes <= limit else {
            throw damage("\(noun) of \(bytes) bytes; at most \(limit) are allowed")
        }
        return text(at: column)
    }

    package func limitedOptionalText(
        at place: CInt? = nil, _ limit: Int, _ noun: String
    ) throws(StoreError) -> String? {
        let column = place ?? next()
        return isNull(at: column) ? nil : try limitedText(at: column, limit, noun)
    }

    package func duration(at column: CInt? = nil) throws(StoreError) -> Duration {
        .nanoseconds(try duration_ns(at: column))
    }

    package func delayed(at column: CInt? = nil, in duration_ns: Int64) throws(StoreError)
        -> Duration
    {
        .nanoseconds(try delayed_ns(at: column, in: duration_ns))
    }

    /// A class of cause alone; nil where none is stored.
    func causeClass(at place: CInt? = nil) throws(StoreError) -> CauseClass? {
        let column = place ?? next()
        return isNull(at: column) ? nil : try value(at: column)
    }

    /// A cause in the columns `cause`, `cause_confidence` and `cause_detail`; nil where none is stored.
    package func cause(at column: CInt) throws(StoreError) -> StallCause? {
        guard let cause = try causeClass(at: column) else { return nil }
        let stored = StallCause(
            cause, confidence: double(at: column + 1), detail: blob(at: column + 2))
        guard let stored else { throw damage("a report's cause is invalid") }
        return stored
    }
}

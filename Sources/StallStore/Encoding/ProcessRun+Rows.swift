// Rows back into model values. A stored value is input: one out of range is damage, not a trap.

package import StallModel

extension ProcessRun {
    /// The columns that `init(_:)` reads, in its order.
    package static let columns = """
        process_run.uuid, process_run.app, process_run.version, process_run.build_id, process_run.host,
        process_run.pid, process_run.boot_id, process_run.start_ticks, process_run.started_us, process_run.os,
        process_run.device
        """
    package static let columnCount: CInt = 11
    /// Those of `columns` that a row's checksum covers.
    package static let checked: Range<CInt> = 0..<9
    /// Those that came with a later version: the checksum covers them where they hold something.
    package static let later: Range<CInt> = 9..<11

    package init(_ row: Statement) throws(StoreError) {
        self.init(
            id: try row.uniqueID(), app: row.text(), version: row.text(),
            buildID: row.optionalBytes().map(BuildID.init), host: row.text(),
            pid: Int32(truncatingIfNeeded: try row.integer()), bootID: row.text(),
            startTicks: UInt64(bitPattern: try row.integer()), started: try row.time(),
            os: row.optionalText(), device: row.optionalText())
    }
}

extension Statement {
    package func uniqueID(at column: CInt? = nil) throws(StoreError) -> UniqueID {
        guard let id = UniqueID(bytes: blob(at: column)) else {
            throw damage("an identifier is not 16 bytes long")
        }
        return id
    }

    package func optionalUniqueID() throws(StoreError) -> UniqueID? {
        let column = next()
        return isNull(at: column) ? nil : try uniqueID(at: column)
    }

    // Each enum that rows hold, by its raw value. One generic function for all is not specialized for callers in other
    // modules: there it took most of the time of reading a report's row.
    package func value(at column: CInt? = nil) throws(StoreError) -> LoopPhase {
        try rawValue(at: column)
    }
    package func value(at column: CInt? = nil) throws(StoreError) -> StallState {
        try rawValue(at: column)
    }
    package func value(at column: CInt? = nil) throws(StoreError) -> StallVerdict {
        try rawValue(at: column)
    }
    package func value(at column: CInt? = nil) throws(StoreError) -> CauseClass {
        try rawValue(at: column)
    }
    package func value(at column: CInt? = nil) throws(StoreError) -> LossReason {
        try rawValue(at: column)
    }
    package func value(at column: CInt? = nil) throws(StoreError) -> SuppressionReason {
        try rawValue(at: column)
    }
    package func value(at column: CInt? = nil) throws(StoreError) -> CodeAddressKind {
        try rawValue(at: column)
    }

    /// A value that is stored as the raw value of an enum.
    func rawValue<Value: RawRepresentable<UInt8>>(
        at column: CInt?
    ) throws(StoreError) -> Value {
        let number = try integer(at: column)
        guard let raw = UInt8(exactly: number), let value = Value(rawValue: raw) else {
            throw damage("\(number) is not a \(Value.self)")
        }
        return value
    }

    /// A length of time; stored in nanoseconds, and never negative.
    package func duration_ns(at column: CInt? = nil) throws(StoreError) -> Int64 {
        let number = try integer(at: column)
        guard number >= 0 else { throw damage("a duration of \(number) ns") }
        return number
    }

    /// The part of a duration that was not the thread's own: NULL where none is known.
    package func delayed_ns(at column: CInt? = nil, in duration_ns: Int64) throws(StoreError)
        -> Int64
    {
        guard let number = optionalInteger(at: column) else { return 0 }
        guard number >= 0, number <= duration_ns else {
            throw damage("a delay of \(number) ns in \(duration_ns) ns")
        }
        return number
    }

    /// A time in microseconds. Every time is read here, so that nothing computed from it leaves the range of a number.
    package func time_us(at column: CInt? = nil) throws(StoreError) -> Int64 {
        try readable(at: column, ValueLimits.readableTimes, "a time in microseconds")
    }

    package func time(at column: CInt? = nil) throws(StoreError) -> UnixTime {
        UnixTime(microseconds: try time_us(at: column))
    }

    /// A day since 1970.
    package func day(at column: CInt? = nil) throws(StoreError) -> Int64 {
        try readable(at: column, ValueLimits.readableDays, "a day since 1970")
    }

    /// A number of things.
    package func count(at column: CInt? = nil) throws(StoreError) -> Int64 {
        try readable(at: column, 0...Int64.max, "a count")
    }

    private func readable(
        at place: CInt?, _ range: ClosedRange<Int64>, _ noun: String
    ) throws(StoreError) -> Int64 {
        let column = place ?? next()
        let number = try integer(at: column)
        guard range.contains(number) else {
            throw damage("\(number) in \(name(of: column)) is not \(noun)")
        }
        return number
    }

    package func samples(at column: CInt? = nil) throws(StoreError) -> [StoredSample] {
        guard let samples = [StoredSample](encoded: blob(at: column)) else {
            throw damage("a report's samples are not a list of samples")
        }
        return samples
    }

    package func threads(at column: CInt? = nil) throws(StoreError) -> [StoredThread] {
        guard let threads = [StoredThread](encoded: blob(at: column)) else {
            throw damage("a report's threads are not a list of threads")
        }
        return threads
    }
}

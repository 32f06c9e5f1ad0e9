// Checksums of rows that no content hash covers: the row of a version, a loop or a report is as it was written, or it
// is refused. Part of the file format; they hold within one file only, since a row's numbers do.

internal import CSQLite
internal import StallModel

/// A 32-bit checksum of a row's values, in the order of its columns.
///
/// Eight bytes at a time: `ContentHash` goes byte by byte, which would be a tenth of the time of ingest.
package struct RowChecksum {
    private var state: UInt64 = 0x9e37_79b9_7f4a_7c15

    mutating func combine(_ word: UInt64) {
        state = (state ^ word) &* 0x9fb2_1c65_1e98_df25
        state ^= state >> 32
    }

    mutating func combine(null: Void) { combine(0x6e75_6c6c_6e75_6c6c as UInt64) }

    mutating func combine(integer: Int64) { combine(UInt64(bitPattern: integer)) }

    mutating func combine(bytes: UnsafeRawBufferPointer) {
        var offset = 0
        while offset + 8 <= bytes.count {
            combine(
                UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: offset, as: UInt64.self)))
            offset += 8
        }
        var tail: UInt64 = 0
        while offset < bytes.count {
            tail = tail << 8 | UInt64(bytes[offset])
            offset += 1
        }
        combine(tail)
        combine(UInt64(bytes.count))
    }

    /// As it is stored: four bytes.
    var value: Int64 { Int64(Int32(truncatingIfNeeded: (state &* 0xc4ce_b9fe_1a85_ec53) >> 32)) }

    /// All of it, to compare rows within one program.
    var digest: UInt64 { state }

    /// Of a row's values.
    static func of<each Value: SQLValue>(_ values: repeat each Value) -> Int64 {
        over(repeat each values).value
    }

    /// Of a row's values, to which more may come.
    static func over<each Value: SQLValue>(_ values: repeat each Value) -> RowChecksum {
        var checksum = RowChecksum()
        for value in repeat each values { value.combine(into: &checksum) }
        return checksum
    }

    static func of(_ run: ProcessRun) -> Int64 {
        var checksum = over(
            run.id, run.app, run.version, run.buildID?.bytes, run.host, Int64(run.pid), run.bootID,
            Int64(bitPattern: run.startTicks), run.started.microseconds)
        // They came later: a row without them has the checksum that it always had.
        for text in [run.os, run.device] { text?.combine(into: &checksum) }
        return checksum.value
    }
}

extension Statement {
    /// The checksum of these columns of the row.
    ///
    /// - Parameter later: Columns that came with a later version: they count where they hold something.
    package func checksum(of columns: Range<CInt>, later: Range<CInt> = 0..<0) -> Int64 {
        var checksum = RowChecksum()
        for column in columns { combine(column, into: &checksum) }
        for column in later where !isNull(at: column) { combine(column, into: &checksum) }
        return checksum.value
    }

    private func combine(_ column: CInt, into checksum: inout RowChecksum) {
        switch type(at: column) {
        case SQLITE_NULL, SQLITE_INTEGER:
            optionalInteger(at: column).combine(into: &checksum)
        case SQLITE_FLOAT: checksum.combine(double(at: column).bitPattern)
        default: checksum.combine(bytes: blob(at: column))
        }
    }

    /// Refuses a row that differs from the one that was written; rows of older programs have no checksum.
    package func expectChecksum(
        at column: CInt, of columns: Range<CInt>, later: Range<CInt> = 0..<0, _ noun: String
    ) throws(StoreError) {
        guard let stored = optionalInteger(at: column),
            stored != checksum(of: columns, later: later)
        else { return }
        throw damage("\(noun) was changed after it was written (checksum mismatch)")
    }
}

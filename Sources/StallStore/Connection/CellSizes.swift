// Looks for rows that are larger than any of ours before SQLite reads them. SQLITE_LIMIT_LENGTH is about values; to
// compare a row of an index, or of a table without row ids, SQLite takes the whole of it into memory: a row of 300 MB
// takes 300 MB.

internal import CSQLite

/// Looks through the pages of an open database, as the file and its log hold them.
package struct CellSizes {
    private let database: OpaquePointer
    private let path: String
    private let check: () throws(StoreError) -> Void

    /// No row of a file of this size can take more than we have.
    private static let smallFile: Int64 = 16 << 20
    /// The length of a value that `stall_sqlite_distrust` allows.
    private static let largestRow: UInt64 = 4 << 20
    private static let logHeader: Int64 = 32
    private static let frameHeader: Int64 = 24

    /// Refuses a database in which a page of an index, or of a table without row ids, names a row of more than 4 MB.
    ///
    /// Reads with SQLite's own descriptors: to open and close the file again would drop the locks that this process
    /// holds.
    ///
    /// - Parameter check: Called for each megabyte; what it throws ends the reading.
    ///
    /// **Cost:** nothing for a file of less than 16 MB; otherwise it is read once, in order.
    package static func expectSmall(
        _ database: OpaquePointer, path: String,
        check: @escaping () throws(StoreError) -> Void = {}
    ) throws(StoreError) {
        let sizes = CellSizes(database: database, path: path, check: check)
        try sizes.read(log: false, header: 0, perPage: 0, pageSizeAt: 16)
        try sizes.read(log: true, header: logHeader, perPage: frameHeader, pageSizeAt: 10)
    }

    private func read(
        log: Bool, header: Int64, perPage: Int64, pageSizeAt: Int64
    ) throws(StoreError) {
        let size = stall_sqlite_file_size(database, log ? 1 : 0)
        guard size > Self.smallFile else { return }
        func read(_ count: Int, _ offset: Int64) -> [UInt8]? {
            var bytes = [UInt8](repeating: 0, count: count)
            let isRead = stall_sqlite_file_read(
                database, log ? 1 : 0, &bytes, CInt(count), offset)
            return isRead != 0 ? bytes : nil
        }
        // In a database 1 stands for 65,536; in a log, whose number has four bytes, these two are 0 then.
        guard let number = read(2, pageSizeAt) else { return }
        let written = Int(number[0]) << 8 | Int(number[1])
        let pageSize = written < 2 ? 1 << 16 : written
        guard pageSize >= 512, pageSize & (pageSize - 1) == 0 else { return }
        let stride = Int64(pageSize) + perPage
        let pagesAtOnce = max(1, (1 << 20) / stride)
        var offset = header
        while offset + stride <= size {
            let count = Int(min(pagesAtOnce, (size - offset) / stride) * stride)
            guard let bytes = read(count, offset) else { return }
            try check()
            for start in Swift.stride(from: 0, to: count, by: Int(stride)) {
                let isFirst = perPage == 0 && offset == 0 && start == 0
                let page = bytes[start + Int(perPage)..<start + Int(stride)]
                // A page that is written at this moment may be half of one and half of another.
                guard Self.hasLargeRow(page, isFirst: isFirst),
                    let again = read(pageSize, offset + Int64(start) + perPage),
                    Self.hasLargeRow(again[...], isFirst: isFirst)
                else { continue }
                throw .overBudget(
                    path: path, detail: "it holds a row of more than \(Self.largestRow >> 20) MB")
            }
            offset += Int64(count)
        }
    }

    /// Whether a page is one of an index, or of a table without row ids, and names a row that is too large.
    private static func hasLargeRow(_ page: ArraySlice<UInt8>, isFirst: Bool) -> Bool {
        page.withUnsafeBufferPointer { page in
            let header = isFirst ? 100 : 0
            let isLeaf = page[header] == 10
            guard isLeaf || page[header] == 2 else { return false }
            let count = Int(page[header + 3]) << 8 | Int(page[header + 4])
            let first = header + (isLeaf ? 8 : 12)
            for index in 0..<count {
                let pointer = first + index * 2
                guard pointer + 1 < page.count else { return false }
                // Of an inner page the number of the page to the left comes first.
                var at = (Int(page[pointer]) << 8 | Int(page[pointer + 1])) + (isLeaf ? 0 : 4)
                var size: UInt64 = 0
                for _ in 0..<9 where at < page.count {
                    size = size << 7 | UInt64(page[at] & 0x7f)
                    if page[at] < 0x80 { break }
                    at += 1
                }
                if size > largestRow { return true }
            }
            return false
        }
    }
}

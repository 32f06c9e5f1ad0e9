import CLinux
import Glibc
import Testing

/// Goal: what is read ahead of a hanging disk is the unwind tables, all of them and nothing else.
/// Method: the tables of this program's own images, by their first byte and by where functions are.
@Suite struct UnwindTablesTests {
    private func tables() -> [stall_range] {
        var ranges = [stall_range](repeating: stall_range(), count: 1024)
        let count = stall_unwind_tables(&ranges, ranges.count)
        return Array(ranges.prefix(count))
    }

    @Test func `every image has its unwind tables listed`() {
        let tables = tables()
        // The program, libc, the Swift runtime and its libraries.
        #expect(tables.count >= 4)
        for table in tables {
            // .eh_frame_hdr begins with its version.
            #expect(UnsafePointer<UInt8>(bitPattern: UInt(table.start))?.pointee == 1)
        }
    }

    @Test func `no range goes beyond its image's mapping`() {
        for table in tables() {
            let page = table.start / 4096 * 4096
            // ENOMEM where something is not mapped.
            let length = Int(table.start + table.length - page)
            var residence = [UInt8](repeating: 0, count: length / 4096 + 2)
            let start = UnsafeMutableRawPointer(bitPattern: UInt(page))
            #expect(mincore(start, length, &residence) == 0)
        }
    }

    @Test func `more images than there is room for are counted, not stored`() {
        var one = [stall_range](repeating: stall_range(), count: 2)
        #expect(stall_unwind_tables(&one, 1) == tables().count)
        #expect(one[1].start == 0)
    }
}

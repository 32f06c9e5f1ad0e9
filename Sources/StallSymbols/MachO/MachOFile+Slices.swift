// The files in a fat file, one for each architecture.
//
// **Source:** Apple, <mach-o/fat.h>, <mach-o/loader.h>. All numbers of a fat header are big-endian.

extension MachOFile {
    /// The files for arm64 and x86_64 in these bytes; none if they are no Mach-O file, or for other processors.
    static func files(in source: any ByteSource) throws(MachOFault) -> [MachOFile] {
        guard let magic = Fields(source, at: 0, count: 4)?.uint32(0) else { return [] }
        switch magic {
        case 0xfeed_facf:
            guard let cpu = Fields(source, at: 4, count: 4)?.uint32(0), isSupported(cpu: cpu) else {
                return []
            }
            return [try MachOFile(source)]
        case UInt32(0xcafe_babe).byteSwapped: return try slices(source, entrySize: 20)
        case UInt32(0xcafe_babf).byteSwapped: return try slices(source, entrySize: 32)
        default: return []
        }
    }

    private static func slices(
        _ source: any ByteSource, entrySize: UInt64
    ) throws(MachOFault) -> [MachOFile] {
        guard let header = Fields(source, at: 0, count: 8) else {
            throw MachOFault("the fat header at byte 0", "ends early; expected 8 bytes")
        }
        let count = UInt64(header.uint32(4).byteSwapped)
        // Java's classes begin with the same bytes, and their version, 45 or more, is where the count is.
        guard count < 45 else { return [] }
        var files: [MachOFile] = []
        for index in 0..<count {
            let place = 8 + index * entrySize
            let name = "fat architecture \(index) at byte \(place)"
            guard let entry = Fields(source, at: place, count: entrySize) else {
                throw MachOFault(name, "is beyond the end; the file has \(source.size) bytes")
            }
            let isWide = entrySize == 32
            let offset = isWide ? entry.uint64(8).byteSwapped : UInt64(entry.uint32(8).byteSwapped)
            let size = isWide ? entry.uint64(16).byteSwapped : UInt64(entry.uint32(12).byteSwapped)
            guard let slice = BytesPart(of: source, at: offset, size: size) else {
                throw MachOFault(
                    name, "has \(size) bytes from byte \(offset) on; the file has \(source.size)")
            }
            // Old 32-bit architectures beside the current ones.
            guard isSupported(cpu: entry.uint32(0).byteSwapped) else { continue }
            do { files.append(try MachOFile(slice)) } catch {
                throw MachOFault("\(name): \(error.place)", error.problem)
            }
        }
        return files
    }

    /// arm64 (arm64e is a subtype) and x86_64.
    static func isSupported(cpu: UInt32) -> Bool { cpu == 0x0100_000c || cpu == 0x0100_0007 }
}

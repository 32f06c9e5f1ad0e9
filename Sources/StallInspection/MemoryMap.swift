// The mappings of a process. Source: proc(5), /proc/pid/maps.

struct MemoryMap {
    struct Region {
        var start: UInt64
        var end: UInt64
        var isReadable: Bool
        var isWritable: Bool
        var isExecutable: Bool
        var isShared: Bool
        var offset: UInt64
        var inode: UInt64
        /// Empty for anonymous memory; `[heap]` and the like are the kernel's.
        var path: String
    }

    let regions: [Region]

    init(_ text: String) {
        regions = text.split(separator: "\n").compactMap { Region($0) }
    }

    init(process: Int32) {
        self.init(ProcFile.text("/proc/\(process)/maps", limit: 1 << 25) ?? "")
    }

    /// Where objects on the heap can be.
    var heapLike: [Region] {
        regions.filter {
            $0.isReadable && $0.isWritable && !$0.isShared && $0.inode == 0
                && $0.end - $0.start <= 1 << 30
        }
    }
}

extension MemoryMap.Region {
    /// `7f31fa25b000-7f31fa281000 r-xp 00000000 fe:00 1234      /lib/libc.so.6`
    init?(_ line: Substring) {
        let words = line.split(separator: " ", maxSplits: 5)
        guard words.count >= 5 else { return nil }
        let ends = words[0].split(separator: "-")
        guard ends.count == 2, let start = UInt64(ends[0], radix: 16),
            let end = UInt64(ends[1], radix: 16), start < end,
            let offset = UInt64(words[2], radix: 16), let inode = UInt64(words[4])
        else { return nil }
        let rights = Array(words[1].utf8)
        guard rights.count == 4 else { return nil }
        (self.start, self.end, self.offset, self.inode) = (start, end, offset, inode)
        isReadable = rights[0] == UInt8(ascii: "r")
        isWritable = rights[1] == UInt8(ascii: "w")
        isExecutable = rights[2] == UInt8(ascii: "x")
        isShared = rights[3] == UInt8(ascii: "s")
        path = words.count > 5 ? String(words[5].drop { $0 == " " }) : ""
    }
}

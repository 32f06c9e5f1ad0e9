// Memory for the segments of a block queue, from the kernel and back to it. Not from malloc: after a flood of posts the
// freed segments would lie between other blocks of its heap, and stay with the process.

internal import Glibc

/// Pieces of one size, aligned to it. One thread at a time; the owner unmaps everything at its end.
struct SegmentMemory {
    static let pieceSize = 8_192
    /// How many free pieces stay for later use: a megabyte.
    static let mostSpares = 128
    /// Most loops never need a second region.
    private static let (piecesInFirst, piecesPerRegion) = (4, 64)

    /// Where a piece is, and whether it was in use before.
    struct Piece {
        let address: UInt
        let isNew: Bool
    }

    /// The memory of one call of mmap(2).
    private struct Region {
        let mapping: UnsafeMutableRawPointer
        let size: Int
        /// The address of its first piece.
        let first: UInt
        var inUse = 0
        /// The address behind the pieces that were ever in use.
        var next: UInt

        var isUsedUp: Bool { next == end }
        /// The address behind its pieces: it has one less than would fit, for it is aligned to pages only.
        var end: UInt { first + UInt(size - pieceSize) }
    }

    /// By address.
    private var regions: [Region] = []
    /// The first piece of the region that new pieces come from.
    private var newest: UInt = 0
    /// Free pieces that were in use before, the last one first.
    private var spares: [UInt] = []

    /// How many bytes it has of the kernel.
    var size: Int { regions.reduce(0) { $0 + $1.size } }

    mutating func take() -> Piece {
        if let address = spares.popLast() {
            regions[index(of: address)].inUse += 1
            return Piece(address: address, isNew: false)
        }
        if regions.isEmpty || regions[index(of: newest)].isUsedUp { map() }
        let index = index(of: newest)
        defer { regions[index].next += UInt(Self.pieceSize) }
        regions[index].inUse += 1
        return Piece(address: regions[index].next, isNew: true)
    }

    /// Takes a piece back. Pieces beyond the spares go to the kernel, region by region.
    mutating func giveBack(_ address: UInt) {
        spares.append(address)
        let index = index(of: address)
        regions[index].inUse -= 1
        let region = regions[index]
        guard spares.count > Self.mostSpares, region.inUse == 0, region.first != newest else {
            return
        }
        spares.removeAll { region.first <= $0 && $0 < region.end }
        regions.remove(at: index)
        munmap(region.mapping, region.size)
    }

    mutating func unmapAll() {
        for region in regions { munmap(region.mapping, region.size) }
        self = SegmentMemory()
    }

    private mutating func map() {
        let pieces = regions.isEmpty ? Self.piecesInFirst : Self.piecesPerRegion
        let size = (pieces + 1) * Self.pieceSize
        let mapping = mmap(
            nil, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
        guard let mapping, mapping != MAP_FAILED else {
            fatalError("no memory for the blocks of a run loop")
        }
        let piece = UInt(Self.pieceSize)
        newest = (UInt(bitPattern: mapping) + piece - 1) / piece * piece
        let index = regions.firstIndex { $0.first > newest } ?? regions.count
        let region = Region(mapping: mapping, size: size, first: newest, next: newest)
        regions.insert(region, at: index)
    }

    /// The region of a piece.
    private func index(of address: UInt) -> Int {
        var (low, high) = (0, regions.count)
        while high - low > 1 {
            let middle = (low + high) / 2
            if regions[middle].first <= address { low = middle } else { high = middle }
        }
        return low
    }
}

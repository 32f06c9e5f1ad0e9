// An image that is mapped into another process, read from its memory: program headers, build ID, dynamic symbols.
//
// Source: elf(5); System V ABI, "Dynamic Linking"; the hash table of DT_GNU_HASH as glibc's dl-lookup.c reads it.

internal import CStackCapture
internal import StallModel

struct RemoteImage {
    let image: Image
    /// 0: none.
    let frameHeader: UInt64
    private let memory: RemoteMemory
    private let bias: UInt64
    private let dynamic: (address: UInt64, size: UInt64)?

    /// - Parameter base: Where the file's first byte is mapped.
    init?(at base: UInt64, path: String, _ memory: RemoteMemory) {
        guard let header = memory.bytes(at: base, count: 64),
            header.starts(with: [127, 69, 76, 70]),
            header[4] == 2, header[5] == 1
        else { return nil }
        let offset = header.number(at: 32, size: 8)
        let (size, count) = (header.number(at: 54, size: 2), header.number(at: 56, size: 2))
        guard size == 56, (1...512).contains(count), offset < 1 << 20,
            let table = memory.bytes(at: base &+ offset, count: Int(count) * 56)
        else { return nil }
        var (lowest, highest) = (UInt64.max, UInt64(0))
        var (frames, notes): (UInt64?, [(UInt64, UInt64)]) = (nil, [])
        var dynamic: (UInt64, UInt64)?
        for index in 0..<Int(count) {
            let field = { (at: Int, size: Int) in table.number(at: index * 56 + at, size: size) }
            let (address, memorySize) = (field(16, 8), field(40, 8))
            guard address < 1 << 47, memorySize < 1 << 40 else { continue }
            switch field(0, 4) {
            case 1:
                lowest = min(lowest, address)
                highest = max(highest, address + memorySize)
            case 2: dynamic = (address, memorySize)
            case 4: notes.append((address, memorySize))
            case 0x6474_e550: frames = address
            default: break
            }
        }
        guard lowest < highest else { return nil }
        let bias = base &- (lowest & ~4095)
        self.memory = memory
        self.bias = bias
        self.dynamic = dynamic.map { ($0.0 &+ bias, $0.1) }
        frameHeader = frames.map { $0 &+ bias } ?? 0
        let buildID = notes.lazy.compactMap { address, size in
            memory.bytes(at: address &+ bias, count: Int(min(size, 1 << 12))).flatMap {
                BuildID(inNotes: $0)
            }
        }.first
        image = Image(
            path: path, buildID: buildID, loadAddress: lowest &+ bias, endAddress: highest &+ bias)
    }

    /// Those of a process, in ascending order.
    static func all(_ map: MemoryMap, _ memory: RemoteMemory) -> [RemoteImage] {
        var images: [RemoteImage] = []
        let executable = Set(map.regions.filter { $0.isExecutable && $0.inode != 0 }.map(\.inode))
        for region in map.regions where region.offset == 0 && executable.contains(region.inode) {
            if let last = images.last?.image, region.start < last.endAddress { continue }
            let deleted = " (deleted)"
            let path =
                region.path.hasSuffix(deleted)
                ? String(region.path.dropLast(deleted.count)) : region.path
            if let image = RemoteImage(at: region.start, path: path, memory) {
                images.append(image)
            }
        }
        return images
    }

    // MARK: Symbols

    /// The addresses of exported symbols.
    func addresses(of names: [String]) -> [String: UInt64] {
        guard let dynamic,
            let entries = memory.words(
                at: dynamic.address, count: Int(min(dynamic.size / 16, 256)) * 2)
        else { return [:] }
        var tags: [UInt64: UInt64] = [:]
        for index in stride(from: 0, to: entries.count, by: 2) where entries[index] != 0 {
            tags[entries[index]] = entries[index + 1]
        }
        // glibc replaces the offsets by addresses.
        guard let symbols = tags[6], let strings = tags[5], let hash = tags[0x6fff_fef5] else {
            return [:]
        }
        func absolute(_ value: UInt64) -> UInt64 { value < bias ? value &+ bias : value }
        let table = HashTable(memory, at: absolute(hash))
        return Dictionary(
            names.compactMap { name in
                table?.address(
                    of: name, symbols: absolute(symbols), strings: absolute(strings), bias
                ).map { (name, $0) }
            }, uniquingKeysWith: { first, _ in first })
    }

    private struct HashTable {
        let memory: RemoteMemory
        let buckets: UInt64
        let bucketCount: UInt64
        let firstSymbol: UInt64
        let chains: UInt64

        init?(_ memory: RemoteMemory, at address: UInt64) {
            let header = memory.halfWords(at: address, count: 4)
            guard header.count == 4, header[0] > 0, header[2] < 1 << 20 else { return nil }
            self.memory = memory
            bucketCount = UInt64(header[0])
            firstSymbol = UInt64(header[1])
            buckets = address &+ 16 &+ UInt64(header[2]) * 8
            chains = buckets &+ bucketCount * 4
        }

        func address(of name: String, symbols: UInt64, strings: UInt64, _ bias: UInt64) -> UInt64? {
            let hash = name.utf8.reduce(UInt32(5381)) { $0 &* 33 &+ UInt32($1) }
            let bucket = memory.halfWords(at: buckets &+ UInt64(hash) % bucketCount * 4, count: 1)
            guard var index = bucket.first.map(UInt64.init), index >= firstSymbol else {
                return nil
            }
            for _ in 0..<10_000 {
                guard
                    let entry = memory.halfWords(
                        at: chains &+ (index - firstSymbol) * 4, count: 1
                    ).first,
                    let symbol = memory.bytes(at: symbols &+ index * 24, count: 24)
                else { return nil }
                if entry | 1 == hash | 1,
                    memory.text(at: strings &+ symbol.number(at: 0, size: 4)) == name,
                    symbol.number(at: 6, size: 2) != 0
                {
                    return symbol.number(at: 8, size: 8) &+ bias
                }
                if entry & 1 == 1 { return nil }
                index += 1
            }
            return nil
        }
    }
}

extension [UInt8] {
    /// A little-endian number; the range is the caller's to check.
    fileprivate func number(at offset: Int, size: Int) -> UInt64 {
        self[offset..<offset + size].reversed().reduce(0) { $0 << 8 | UInt64($1) }
    }
}

// Mutated dSYMs against the reader of Mach-O files and, behind it, the one of DWARF, as `stallctl symbolicate` uses
// them: without a limit of time, so that an input that makes reading quadratic is seen.

import Glibc
import StallModel
import StallSymbols

/// A fat file, with 32-bit or 64-bit ranges, of thin ones.
private func fatFile(of slices: [[UInt8]], isWide: Bool) -> [UInt8] {
    func big(_ number: Int, _ size: Int) -> [UInt8] {
        (0..<size).reversed().map { UInt8(truncatingIfNeeded: number >> ($0 * 8)) }
    }
    let size = isWide ? 8 : 4
    var header: [UInt8] = [0xca, 0xfe, 0xba, isWide ? 0xbf : 0xbe] + big(slices.count, 4)
    var (content, start) = ([UInt8](), 256)
    for slice in slices {
        header += slice[4..<8].reversed() + [0, 0, 0, 0]
        header += big(start + content.count, size) + big(slice.count, size)
        header += big(0, isWide ? 8 : 4)
        content += slice
    }
    start -= header.count
    return header + [UInt8](repeating: 0, count: start) + content
}

/// Whether these are the bytes of a thin Mach-O file.
func isDSYM(_ bytes: [UInt8]) -> Bool { bytes.starts(with: [0xcf, 0xfa, 0xed, 0xfe]) }

func dsymTarget(_ thin: [[UInt8]]) -> Target {
    let file = MemoryFile()
    let seeds = thin + [fatFile(of: thin, isWide: false), fatFile(of: thin, isWide: true)]
    return Target(name: "macho") { random in
        let seed = seeds[random.below(seeds.count)]
        // The load commands, or what they lead to.
        let places = random.below(2) == 0 ? 0..<min(2048, seed.count) : 0..<seed.count
        file.write(mutated(seed, &random, within: places))
        let start = ContinuousClock.now
        guard let files = try? SymbolFile.files(at: file.path) else { return }
        for id in files.compactMap(\.buildID) {
            let image = Image(path: "App", buildID: id, loadAddress: 0, endAddress: .max)
            var options = SymbolizerOptions()
            options.files = [id: [file.path]]
            options.budget = .seconds(3600)
            options.debugInformationLimit = 1 << 30
            let locations = (0..<6).map { _ in
                CodeLocation(
                    imagePath: "App", buildID: id,
                    offset: random.below(4) == 0 ? random.next() : UInt64(random.below(1 << 11)),
                    kind: .returnAddress)
            }
            _ = Symbolizer(options: options).frames(
                for: locations, images: ImageTable(images: [image]))
        }
        if ContinuousClock.now - start > .seconds(20) {
            fatalError("a dSYM of \(seed.count) bytes took more than 20 s")
        }
    }
}

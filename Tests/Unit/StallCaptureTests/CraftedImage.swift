// A synthetic image: some code, its .eh_frame and its .eh_frame_hdr, at its own address, registered with the unwinder
// as if the loader had mapped it.

import CStackCapture
import Glibc

/// Code addresses and tables in one mapping: the code, 8 KiB if nothing else is said, then the header, then the entries.
final class CraftedImage {
    static let codeSize = 8192
    static let size = 4 * codeSize
    let codeSize: Int
    let memory: UnsafeMutableRawBufferPointer

    /// A function at `start..<end` (offsets in the code), described by call frame instructions.
    struct Function {
        var range: Range<Int>
        var instructions: [UInt8]
        var commonInstructions: [UInt8]
        var augmentation = "zR"
        var returnAddress: UInt8 = 16
    }

    init(_ functions: [Function], codeSize: Int = CraftedImage.codeSize) {
        self.codeSize = codeSize
        let size = codeSize + Self.size - Self.codeSize
        let address = mmap(nil, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)!
        memory = UnsafeMutableRawBufferPointer(start: address, count: size)
        let header = codeSize
        var at = header + 12 + 8 * functions.count
        var table: [(location: Int, entry: Int)] = []
        for function in functions.sorted(by: { $0.range.lowerBound < $1.range.lowerBound }) {
            let common = at
            var bytes: [UInt8] = [0, 0, 0, 0, 1] + Array(function.augmentation.utf8) + [0]
            bytes += [1, 0x78, function.returnAddress]  // alignments 1 and -8
            // Pointers are pc-relative, signed, 4 bytes.
            if function.augmentation.hasPrefix("z") { bytes += [1, 0x1b] }
            at += write(entry: bytes + function.commonInstructions, at: at)
            table.append((function.range.lowerBound - header, at - header))
            bytes = little(at + 4 - common)
            bytes += little(function.range.lowerBound - (at + 8)) + little(function.range.count)
            if function.augmentation.hasPrefix("z") { bytes += [0] }
            at += write(entry: bytes + function.instructions, at: at)
        }
        var bytes: [UInt8] = [1, 0x1b, 0x03, 0x3b] + little(0) + little(table.count)
        for row in table { bytes += little(row.location) + little(row.entry) }
        write(bytes, at: header)
        tableEnd = at
    }

    deinit { munmap(memory.baseAddress!, memory.count) }

    /// One past the last byte of the tables.
    private(set) var tableEnd = 0
    var base: UInt64 { UInt64(UInt(bitPattern: memory.baseAddress!)) }
    func address(_ offset: Int) -> UInt64 { base + UInt64(offset) }

    func write(_ bytes: [UInt8], at offset: Int) {
        UnsafeMutableRawBufferPointer(rebasing: memory[offset...]).copyBytes(from: bytes)
    }

    /// Writes a CIE or FDE with its length; returns its size.
    private func write(entry: [UInt8], at offset: Int) -> Int {
        let padded = entry + [UInt8](repeating: 0, count: (8 - (entry.count + 4) % 8) % 8)
        write(little(padded.count) + padded, at: offset)
        return padded.count + 4
    }

    private func little(_ value: Int) -> [UInt8] {
        (0..<4).map { UInt8(truncatingIfNeeded: value >> (8 * $0)) }
    }
}

/// A stack of words, and the walk over it.
struct CraftedStack {
    static let base: UInt64 = 0x7f00_0000_0000
    var words = [UInt64](repeating: 0, count: 64)

    func address(_ index: Int) -> UInt64 { Self.base + UInt64(8 * index) }

    /// Unwinds from `registers`; the image is made known to a fresh unwinder.
    func unwind(
        _ image: CraftedImage, capacity: Int = 32,
        registers: [Int: UInt64]
    ) -> (frames: [stall_frame], isTruncated: Bool) {
        let unwinder = stall_unwinder_create(stall_architecture_x86_64)!
        defer { stall_unwinder_destroy(unwinder) }
        _ = stall_unwinder_add_image(
            unwinder, image.base, image.address(image.memory.count), image.address(image.codeSize))
        return unwind(unwinder, capacity: capacity, registers: registers)
    }

    func unwind(
        _ unwinder: OpaquePointer, capacity: Int = 32, registers: [Int: UInt64]
    ) -> (frames: [stall_frame], isTruncated: Bool) {
        var file = stall_registers()
        for (number, value) in registers { stall_registers_set(&file, UInt32(number), value) }
        var isTruncated = false
        let frames = words.withUnsafeBytes { bytes in
            var copy = stall_stack_copy(
                bytes: bytes.baseAddress?.assumingMemoryBound(to: UInt8.self), base: Self.base,
                length: UInt64(bytes.count), is_live: false)
            return [stall_frame](unsafeUninitializedCapacity: capacity) { buffer, count in
                count = Int(
                    stall_unwind(
                        unwinder, &file, &copy, buffer.baseAddress!, UInt32(capacity), &isTruncated)
                )
            }
        }
        return (frames, isTruncated)
    }
}

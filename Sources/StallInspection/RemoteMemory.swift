// Memory of another process. It changes while it is read, and none of it is trusted.

internal import CInspection

package struct RemoteMemory: Sendable {
    let process: Int32

    package init(process: Int32) { self.process = process }

    /// Nil unless all of it is readable.
    func bytes(at address: UInt64, count: Int) -> [UInt8]? {
        guard (0...1 << 24).contains(count) else { return nil }
        let bytes = [UInt8](unsafeUninitializedCapacity: count) { buffer, size in
            size =
                count == 0
                ? 0 : stall_process_read_memory(process, address, buffer.baseAddress!, count)
        }
        return bytes.count == count ? bytes : nil
    }

    package func words(at address: UInt64, count: Int) -> [UInt64]? {
        guard (0...1 << 20).contains(count) else { return nil }
        let words = [UInt64](unsafeUninitializedCapacity: count) { buffer, size in
            size =
                count == 0
                ? 0
                : stall_process_read_memory(process, address, buffer.baseAddress!, count * 8) / 8
        }
        return words.count == count ? words : nil
    }

    package func word(at address: UInt64) -> UInt64? { words(at: address, count: 1)?[0] }

    /// The 32-bit words from an address on, as far as they are readable.
    package func halfWords(at address: UInt64, count: Int) -> [UInt32] {
        [UInt32](unsafeUninitializedCapacity: count) { buffer, size in
            size = stall_process_read_memory(process, address, buffer.baseAddress!, count * 4) / 4
        }
    }

    /// Zero-ended.
    func text(at address: UInt64, limit: Int = 256) -> String? {
        var bytes = [UInt8](repeating: 0, count: limit)
        let count = stall_process_read_memory(process, address, &bytes, limit)
        guard let end = bytes[..<count].firstIndex(of: 0) else { return nil }
        return String(decoding: bytes[..<end], as: UTF8.self)
    }
}

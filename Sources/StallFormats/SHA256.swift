// The hash by which a page's security policy allows its one script and its one style, with which a pushed batch proves
// that it is whole, and that is kept of a token.
//
// Source: FIPS 180-4, section 6.2.

package enum SHA256 {
    /// The hash in the form of a Content-Security-Policy, `sha256-...`.
    package static func policySource(_ text: String) -> String {
        "sha256-" + base64(digest(Array(text.utf8)))
    }

    package static func digest(_ message: [UInt8]) -> [UInt8] {
        var state: [UInt32] = [
            0x6a09_e667, 0xbb67_ae85, 0x3c6e_f372, 0xa54f_f53a, 0x510e_527f, 0x9b05_688c,
            0x1f83_d9ab, 0x5be0_cd19,
        ]
        // The whole blocks are hashed where they are; the rest is padded.
        let whole = message.count / 64 * 64
        var padded = Array(message[whole...]) + [0x80]
        while padded.count % 64 != 56 { padded.append(0) }
        padded += (0..<8).map {
            UInt8(truncatingIfNeeded: UInt64(message.count * 8) >> (56 - $0 * 8))
        }
        constants.withUnsafeBufferPointer { constants in
            withUnsafeTemporaryAllocation(of: UInt32.self, capacity: 64) { words in
                message.withUnsafeBytes {
                    for start in stride(from: 0, to: whole, by: 64) {
                        mix(
                            UnsafeRawBufferPointer(rebasing: $0[start..<start + 64]), words,
                            constants, into: &state)
                    }
                }
                padded.withUnsafeBytes {
                    for start in stride(from: 0, to: $0.count, by: 64) {
                        mix(
                            UnsafeRawBufferPointer(rebasing: $0[start..<start + 64]), words,
                            constants, into: &state)
                    }
                }
            }
        }
        return state.flatMap { word in
            (0..<4).map { UInt8(truncatingIfNeeded: word >> (24 - $0 * 8)) }
        }
    }

    private static func mix(
        _ block: UnsafeRawBufferPointer, _ words: UnsafeMutableBufferPointer<UInt32>,
        _ constants: UnsafeBufferPointer<UInt32>, into state: inout [UInt32]
    ) {
        for index in 0..<16 {
            words[index] = UInt32(
                bigEndian: block.loadUnaligned(fromByteOffset: index * 4, as: UInt32.self))
        }
        for index in 16..<64 {
            let (early, late) = (words[index - 15], words[index - 2])
            let small0 = early.rotated(7) ^ early.rotated(18) ^ early >> 3
            let small1 = late.rotated(17) ^ late.rotated(19) ^ late >> 10
            words[index] = words[index - 16] &+ small0 &+ words[index - 7] &+ small1
        }
        var (a, b, c, d) = (state[0], state[1], state[2], state[3])
        var (e, f, g, h) = (state[4], state[5], state[6], state[7])
        for index in 0..<64 {
            let large1 = e.rotated(6) ^ e.rotated(11) ^ e.rotated(25)
            let choice = e & f ^ ~e & g
            let first = h &+ large1 &+ choice &+ constants[index] &+ words[index]
            let large0 = a.rotated(2) ^ a.rotated(13) ^ a.rotated(22)
            let majority = a & b ^ a & c ^ b & c
            (h, g, f, e) = (g, f, e, d &+ first)
            (d, c, b, a) = (c, b, a, first &+ large0 &+ majority)
        }
        state[0] &+= a
        state[1] &+= b
        state[2] &+= c
        state[3] &+= d
        state[4] &+= e
        state[5] &+= f
        state[6] &+= g
        state[7] &+= h
    }

    /// The first 32 bits of the fractions of the cube roots of the first 64 primes.
    private static let constants: [UInt32] = {
        var primes: [UInt64] = []
        var candidate: UInt64 = 2
        while primes.count < 64 {
            if primes.allSatisfy({ candidate % $0 != 0 }) { primes.append(candidate) }
            candidate += 1
        }
        return primes.map { prime in
            // The largest number whose cube, in units of 2^-96, is at most the prime.
            var (low, high): (UInt64, UInt64) = (0, 8 << 32)
            while high - low > 1 {
                let middle = (low + high) / 2
                if isCube(middle, atMost: prime) { low = middle } else { high = middle }
            }
            return UInt32(truncatingIfNeeded: low)
        }
    }()

    private static func isCube(_ root: UInt64, atMost prime: UInt64) -> Bool {
        // root < 2^35: its square has 70 bits, so the division is done once.
        let square = root.multipliedFullWidth(by: root)
        let limit = (high: prime << 32, low: UInt64(0))  // prime * 2^96
        let low = square.low.multipliedFullWidth(by: root)
        let high = square.high.multipliedFullWidth(by: root)
        let (middle, carry) = high.low.addingReportingOverflow(low.high)
        guard high.high == 0, !carry else { return false }
        return (middle, low.low) <= (limit.high, limit.low)
    }

    package static func base64(_ bytes: [UInt8]) -> String {
        let digits = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")
        var text = ""
        for start in stride(from: 0, to: bytes.count, by: 3) {
            let part = Array(bytes[start..<min(start + 3, bytes.count)])
            let value = (0..<3).reduce(UInt32(0)) {
                $0 << 8 | ($1 < part.count ? UInt32(part[$1]) : 0)
            }
            for index in 0..<4 {
                text.append(
                    index <= part.count ? digits[Int(value >> (18 - index * 6) & 63)] : "=")
            }
        }
        return text
    }
}

extension UInt32 {
    fileprivate func rotated(_ count: UInt32) -> UInt32 { self >> count | self << (32 - count) }
}

internal import StallModel

/// Numbers that a hash gives: always the same for the same content.
struct HashedNumbers: RandomNumberGenerator {
    var hash = ContentHash()

    mutating func next() -> UInt64 {
        hash.combine(1)
        return UInt64(bitPattern: hash.value)
    }
}

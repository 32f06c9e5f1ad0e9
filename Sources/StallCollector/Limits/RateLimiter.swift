// A rate limit for each name, in bounded memory. Pure: it gets the time.

/// Token buckets by name.
struct RateLimiter {
    private struct Bucket {
        var level: Double
        var at: Double
    }

    let rate: Double
    let burst: Double
    /// The most names. With more, all limits start again: a client can invent addresses, but not fill the memory.
    var nameLimit = 10_000
    private var buckets: [String: Bucket] = [:]

    init(rate: Double, burst: Double) { (self.rate, self.burst) = (rate, burst) }

    /// Takes one for `name` if there is one.
    ///
    /// - Parameter now: Seconds of a clock that does not jump.
    /// - Returns: nil if there was, otherwise the seconds until there is one, at least 1.
    mutating func take(_ name: String, at now: Double) -> Int? {
        var bucket = level(name, at: now)
        let isFree = bucket.level >= 1
        if isFree { bucket.level -= 1 }
        if buckets[name] == nil, buckets.count >= nameLimit { buckets.removeAll() }
        buckets[name] = bucket
        return isFree ? nil : max(1, Int(((1 - bucket.level) / rate).rounded(.up)))
    }

    /// Whether there is one, without taking it.
    func isExhausted(_ name: String, at now: Double) -> Bool { level(name, at: now).level < 1 }

    private func level(_ name: String, at now: Double) -> Bucket {
        guard let known = buckets[name] else { return Bucket(level: burst, at: now) }
        return Bucket(level: min(burst, known.level + max(0, now - known.at) * rate), at: now)
    }
}

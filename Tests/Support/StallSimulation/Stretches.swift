// Stretches of a simulated machine's time: when a thread waited for a CPU, when none could run.

/// The last stretches of time of one kind. Instants are nanoseconds.
struct Stretches {
    private var all: [Range<UInt64>] = []
    /// Since when one lasts.
    private var present: UInt64?

    mutating func begin(at now: UInt64) { present = now }

    mutating func end(at now: UInt64) {
        guard let began = present else { return }
        present = nil
        if all.count > 4000 { all.removeFirst(2000) }
        all.append(began..<now)
    }

    /// How many there were in a range, in part at least.
    func count(in range: Range<UInt64>) -> Int {
        all.reversed().prefix { $0.upperBound > range.lowerBound }.count { $0.overlaps(range) }
    }

    /// How long those are that end in a range, in which the kernel counts them.
    func time(endingIn range: Range<UInt64>) -> UInt64 {
        all.reversed().prefix { $0.upperBound >= range.lowerBound }
            .filter { $0.upperBound <= range.upperBound }
            .reduce(0) { $0 + UInt64($1.count) }
    }

    /// How much of a range they take.
    func time(in range: Range<UInt64>) -> UInt64 {
        var sum: UInt64 = 0
        if let present, present < range.upperBound {
            sum = range.upperBound - max(present, range.lowerBound)
        }
        for stretch in all.reversed() {
            if stretch.upperBound <= range.lowerBound { break }
            sum += UInt64(stretch.clamped(to: range).count)
        }
        return sum
    }
}

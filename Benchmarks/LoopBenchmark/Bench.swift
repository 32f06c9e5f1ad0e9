// Measuring several contestants side by side: rounds alternate between them, so that a busy moment of the machine
// hits all, and the median of the rounds is compared.

// Benchmarks/Peers, a package of its own, has this file and that module's in one module.
#if canImport(BenchmarkSupport)
internal import BenchmarkSupport
#endif
import Foundation

/// One way to do the work that is compared. `measure` does it once and returns the cost of one operation.
struct Contestant {
    let name: String
    let measure: () -> Double
}

/// One way to do several things at once; `measure` returns the cost of each, in the order of the comparison's names.
struct GroupedContestant {
    let name: String
    let measure: () -> [Double]
}

/// Runs comparisons and collects their results.
struct Bench {
    /// Rounds a contestant.
    var rounds: Int
    /// Only comparisons whose name contains it.
    var filter: String?
    /// Only contestants whose name contains it: for a profile of one.
    var contestant: String?
    private(set) var results: [BenchmarkResult] = []

    init(rounds: Int, filter: String?, contestant: String? = nil) {
        self.rounds = rounds
        self.filter = filter
        self.contestant = contestant
    }

    /// Compares contestants at one size. The first one is what the others' ratios refer to.
    mutating func compare(
        _ name: String, size: Int = 1, unit: String = "ns", _ contestants: [Contestant]
    ) {
        if let filter, !"\(name) \(size)".contains(filter) { return }
        let contestants = contestants.filter { contestant.map($0.name.contains) ?? true }
        guard !contestants.isEmpty else { return }
        var values = [[Double]](repeating: [], count: contestants.count)
        for _ in 0..<rounds {
            for (index, contestant) in contestants.enumerated() {
                values[index].append(contestant.measure())
            }
        }
        let measurements = zip(contestants, values).map {
            BenchmarkResult(name: name, contestant: $0.name, size: size, values: $1, unit: unit)
        }
        results += measurements
        for measurement in measurements { print(line(measurement, floor: measurements[0])) }
    }

    /// Compares contestants in several things that one round measures.
    mutating func compare(
        _ names: [String], size: Int, unit: String = "ns", _ contestants: [GroupedContestant]
    ) {
        if let filter, !names.contains(where: { "\($0) \(size)".contains(filter) }) { return }
        let contestants = contestants.filter { contestant.map($0.name.contains) ?? true }
        var values = [[[Double]]](repeating: [], count: contestants.count)
        for _ in 0..<rounds {
            for (index, contestant) in contestants.enumerated() {
                values[index].append(contestant.measure())
            }
        }
        for (part, name) in names.enumerated() {
            let measurements = zip(contestants, values).map { contestant, rounds in
                BenchmarkResult(
                    name: name, contestant: contestant.name, size: size,
                    values: rounds.map { $0[part] }, unit: unit)
            }
            results += measurements
            for measurement in measurements { print(line(measurement, floor: measurements[0])) }
        }
    }

    private func line(_ measurement: BenchmarkResult, floor: BenchmarkResult) -> String {
        func ratio(_ value: Double, _ floor: Double) -> Double { floor > 0 ? value / floor : 0 }
        let cells = [
            measurement.name.padded(to: 42),
            String(measurement.size).leftPadded(to: 8),
            measurement.contestant.padded(to: 24),
            String(format: "%11.1f", measurement.median),
            measurement.unit.padded(to: 8),
            String(format: "%8.2f x", ratio(measurement.median, floor.median)),
            String(format: "%8.2f x of the minima", ratio(measurement.min, floor.min)),
            String(format: " (%.1f to %.1f)", measurement.min, measurement.max),
        ]
        return cells.joined(separator: " ")
    }
}

extension String {
    fileprivate func padded(to width: Int) -> String {
        self + String(repeating: " ", count: Swift.max(0, width - count))
    }

    fileprivate func leftPadded(to width: Int) -> String {
        String(repeating: " ", count: Swift.max(0, width - count)) + self
    }
}

/// Nanoseconds on the monotonic clock.
func now() -> UInt64 { DispatchTime.now().uptimeNanoseconds }

/// Runs `body` on its own thread and joins it; the thread's loop ends with it. The floors are measured in the same way:
/// in a single-threaded process the kernel looks up descriptors more cheaply, and no app is single-threaded.
func onThread<Result>(_ body: @escaping () -> Result) -> Result {
    var result: Result?
    var thread = pthread_t()
    let work = Unmanaged.passRetained(Work { result = body() })
    pthread_create(
        &thread, nil,
        {
            Unmanaged<Work>.fromOpaque($0!).takeRetainedValue().body()
            return nil
        }, work.toOpaque())
    pthread_join(thread, nil)
    return result!
}

private final class Work {
    let body: () -> Void
    init(_ body: @escaping () -> Void) { self.body = body }
}

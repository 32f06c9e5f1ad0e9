// Whether each kind of event gets its share when several are always ready: every subset of the main queue, a descriptor, a timer,
// a source and a block; in both deliveries; in one run, and in a run for each iteration. Nothing is timed.

internal import Foundation
internal import StallRunLoop

/// Prints the subsets in which a kind is starved, and the sum. On the main thread.
func checkFairness() -> Bool {
    var (plays, starved) = (0, 0)
    let loop = EventRunLoop.main
    for kinds in 1..<(1 << Kind.allCases.count) {
        for delivery in [EventRunLoop.DescriptorDelivery.strict, .batch] {
            loop.descriptorDelivery = delivery
            for isOneRun in [true, false] {
                let ready = AlwaysReady(Kind.allCases.filter { kinds >> $0.rawValue & 1 == 1 })
                let counts = ready.play(on: loop, isOneRun: isOneRun)
                plays += 1
                guard counts.values.contains(where: { $0 < AlwaysReady.iterations / 10 }) else {
                    continue
                }
                starved += 1
                print("\(delivery), \(isOneRun ? "one run" : "many runs"): \(counts)")
            }
        }
    }
    print("fairness plays=\(plays) starved=\(starved)")
    return starved == 0
}

private enum Kind: Int, CaseIterable { case queue, descriptor, timer, source, block }

private final class AlwaysReady: @unchecked Sendable {
    static let iterations = 100
    private var counts: [Kind: Int]
    private var isOver = false

    init(_ kinds: [Kind]) { counts = Dictionary(uniqueKeysWithValues: kinds.map { ($0, 0) }) }

    private func has(_ kind: Kind) -> Bool { counts[kind] != nil }
    private func count(_ kind: Kind) { counts[kind]! += 1 }

    /// How often each kind was served.
    func play(on loop: EventRunLoop, isOneRun: Bool) -> [Kind: Int] {
        var ends: [CInt] = [0, 0]
        pipe(&ends)
        write(ends[1], "x", 1)
        let descriptor = DescriptorSource(descriptor: ends[0]) { [self] _, _ in count(.descriptor) }
        if has(.descriptor) { _ = try? loop.add(descriptor, toMode: .default) }
        let timer = LoopTimer(after: .zero, every: .nanoseconds(1)) { [self] _ in count(.timer) }
        if has(.timer) { loop.add(timer, toMode: .default) }
        let source = LoopSource { [self] source in
            count(.source)
            source.signal()
        }
        if has(.source) {
            loop.add(source, toMode: .default)
            source.signal()
        }
        if has(.block) { post(on: loop) }
        if has(.queue) { enqueue() }
        nonisolated(unsafe) var iterations = 0
        let observer = LoopObserver(activities: .beforeTimers) { _, _ in
            iterations += 1
            if iterations == Self.iterations { loop.stop() }
        }
        loop.add(observer, toMode: .default)
        if isOneRun {
            loop.run(mode: .default, for: .seconds(20))
        } else {
            while iterations < Self.iterations { loop.run(for: .zero) }
        }
        isOver = true
        observer.invalidate()
        descriptor.invalidate()
        timer.invalidate()
        source.invalidate()
        // The last of the chains.
        for _ in 0..<4 { loop.run(for: .zero) }
        for end in ends { close(end) }
        return counts
    }

    private func post(on loop: EventRunLoop) {
        loop.post { [self] in
            count(.block)
            if !isOver { post(on: loop) }
        }
    }

    private func enqueue() {
        DispatchQueue.main.async { [self] in
            count(.queue)
            if !isOver { enqueue() }
        }
    }
}

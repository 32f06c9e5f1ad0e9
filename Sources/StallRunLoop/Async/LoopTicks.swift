// Timer ticks as a sequence, for async code.

public import StallModel

extension EventRunLoop {
    /// The ticks of a repeating timer of this loop: the instants at which it fired.
    ///
    ///     for await instant in loop.ticks(every: .seconds(1)) { refresh(at: instant) }
    ///
    /// The timer begins with the iteration and ends with it, or with the loop's thread. Like the timer, the sequence
    /// keeps its phase and makes up for nothing: who is late gets the last tick that came, once.
    public func ticks(
        every interval: Duration, tolerance: Duration = .zero, inMode mode: LoopMode = .common
    ) -> LoopTicks {
        LoopTicks(loop: self, interval: interval, tolerance: tolerance, mode: mode)
    }
}

/// The result of ``EventRunLoop/ticks(every:tolerance:inMode:)``. Each iteration has a timer of its own.
public struct LoopTicks: AsyncSequence, Sendable {
    /// An instant of `CLOCK_MONOTONIC`.
    public typealias Element = MonotonicInstant

    let loop: EventRunLoop
    let interval: Duration
    let tolerance: Duration
    let mode: LoopMode

    /// Starts the timer.
    public func makeAsyncIterator() -> AsyncStream<MonotonicInstant>.Iterator {
        let (stream, continuation) = AsyncStream.makeStream(
            of: MonotonicInstant.self, bufferingPolicy: .bufferingNewest(1))
        // Only the loop holds the timer, and only the timer this: when the loop's thread ends, the sequence does.
        let end = AtEnd { continuation.finish() }
        let timer = LoopTimer(after: interval, every: interval, tolerance: tolerance) { _ in
            withExtendedLifetime(end) { _ = continuation.yield(LoopClock().now) }
        }
        continuation.onTermination = { [weak timer] _ in timer?.invalidate() }
        if !loop.add(timer, toMode: mode) { continuation.finish() }
        return stream.makeAsyncIterator()
    }
}

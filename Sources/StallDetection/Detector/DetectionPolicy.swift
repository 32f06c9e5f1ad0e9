// The numbers of detection in one place. All times follow from the threshold.

internal import StallModel

/// When a busy loop is looked at, and when it is called stalled.
package struct DetectionPolicy: Hashable, Sendable {
    /// How long a loop may be busy without progress.
    package var threshold: Duration
    /// Suspicion, and the first sample, begin here: the culprit may return before the threshold.
    package var suspicion: Duration
    /// The spacing after the first sample; it doubles from sample to sample.
    var firstSpacing: Duration
    /// At most this many samples a stall; the last one stands for the rest.
    var sampleLimit = 32
    /// Samples are never further apart than this, up to the limit.
    var longestSpacing = Duration.seconds(1)
    /// How often the duration of an open stall is refreshed.
    var refreshInterval = Duration.seconds(1)

    /// One threshold, crossed once.
    package init(threshold: Duration) {
        self.threshold = threshold
        suspicion = threshold / 2
        firstSpacing = threshold / 8
    }

    /// `count` short timeouts in a row, the recipe of 5 x 50 ms: the same machine, sampled from the first timeout on.
    package init(timeout: Duration, count: Int) {
        threshold = timeout * count
        suspicion = count > 1 ? timeout : timeout / 2
        firstSpacing = suspicion
    }

    /// How often a suspected loop is looked at until the stall is certain. The process may be stopped unseen between
    /// two looks, so this bounds what a stop can add to a stall.
    var pollSpacing: Duration { threshold / 8 }
    /// The watchdog may come this late, for no reason that it knows of, before a pause of the machine is taken off a
    /// stall.
    ///
    /// Measured on a virtual machine of 2 cores: one of them stands still for up to 10 ms while the other runs the app,
    /// and with an eighth of 50 ms stalls of 51 and 52 ms were called `stopped`. A healthy callout of half the
    /// threshold stays one.
    var negligiblePause: Duration { threshold * 3 / 8 }
    /// A loop that made no progress for this long without being stalled is reported as starved or stopped.
    package var starvation: Duration { threshold * 4 }
    /// A loop that never came to rest for this long is saturated.
    package var saturation: Duration { max(.seconds(2), threshold * 8) }
}

/// The policies of one loop: a base, and exceptions for run-loop modes.
package struct ModePolicies: Hashable, Sendable {
    package let base: DetectionPolicy
    /// By the beacon's number of the mode.
    package let modes: [UInt32: DetectionPolicy]
    /// Nothing is looked at before this time has passed since watching began.
    package var grace: Duration

    package init(
        _ base: DetectionPolicy, modes: [UInt32: DetectionPolicy] = [:], grace: Duration = .zero
    ) {
        self.base = base
        self.modes = modes
        self.grace = grace
        longestThreshold = modes.values.map(\.threshold).reduce(base.threshold, max)
        suspicion = modes.values.map(\.suspicion).reduce(base.suspicion, min)
    }

    package subscript(mode: UInt32) -> DetectionPolicy { modes[mode] ?? base }
    /// The earliest that any mode can become suspect. Kept, because the watchdog asks while it may not allocate.
    let suspicion: Duration
    /// From here on a span is a stall in any mode.
    let longestThreshold: Duration
}

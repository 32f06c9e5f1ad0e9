// The parameters of detection. All times follow from the threshold.

internal import StallModel

/// When a busy loop is polled, and when it is called stalled.
package struct DetectionPolicy: Equatable, Sendable {
    /// How long a loop may be busy without progress.
    package var threshold: Duration
    /// Suspicion and the first sample begin here, because the blocking function may return before the threshold.
    package var suspicion: Duration
    /// The interval after the first sample; it doubles from sample to sample.
    var firstSpacing: Duration
    /// Maximum number of samples per stall; the last one stands for the rest of the time.
    var sampleLimit = 32
    /// Maximum interval between samples, up to the limit.
    var longestSpacing = Duration.seconds(1)
    /// How often the duration of an open stall is refreshed.
    var refreshInterval = Duration.seconds(1)

    /// One threshold, exceeded once.
    package init(threshold: Duration) {
        self.threshold = threshold
        suspicion = threshold / 2
        firstSpacing = threshold / 8
    }

    /// `count` short timeouts in a row, for example 5 x 50 ms. Sampling starts with the first timeout.
    package init(timeout: Duration, count: Int) {
        threshold = timeout * count
        suspicion = count > 1 ? timeout : timeout / 2
        firstSpacing = suspicion
    }

    /// Poll interval of a suspected loop until the stall is certain. The process may be stopped unnoticed between two
    /// polls, so this bounds how much a stop can add to a stall.
    var pollSpacing: Duration { threshold / 8 }
    /// The watchdog may be this late for no known reason before the delay counts as a pause of the machine, which is
    /// subtracted from a stall.
    ///
    /// Measured on a virtual machine of 2 cores: one core pauses for up to 10 ms while the other runs the app. With an
    /// eighth of 50 ms, stalls of 51 and 52 ms were called `stopped`. A callout of half the threshold plus such a pause
    /// stays below the threshold.
    var negligiblePause: Duration { threshold * 3 / 8 }
    /// A loop that made no progress for this long without being stalled is reported as starved or stopped.
    package var starvation: Duration { threshold * 4 }
    /// A loop that did not wait for this long is saturated.
    package var saturation: Duration { max(.seconds(2), threshold * 8) }
}

/// The policies of one loop: a base, and exceptions for run-loop modes.
package struct ModePolicies: Equatable, Sendable {
    package let base: DetectionPolicy
    /// By the beacon's number of the mode.
    package let modes: [UInt32: DetectionPolicy]
    /// No poll before this time has passed since watching began.
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
    /// The earliest time at which any mode can become suspect. Stored, because the watchdog needs it where it may not
    /// allocate.
    let suspicion: Duration
    /// A span of this length is a stall in every mode.
    let longestThreshold: Duration
}

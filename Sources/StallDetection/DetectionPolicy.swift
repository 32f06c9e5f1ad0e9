// The numbers of detection in one place. All times follow from the threshold.

internal import StallModel

/// When a busy loop is looked at, and when it is called stalled.
package struct DetectionPolicy: Hashable, Sendable {
    /// How long a loop may be busy without progress.
    package var threshold: Duration
    /// At most this many samples a stall; the last one stands for the rest.
    package var sampleLimit = 32
    /// Samples are never further apart than this, up to the limit.
    package var longestSpacing = Duration.seconds(1)
    /// How often the duration of an open stall is refreshed.
    package var refreshInterval = Duration.seconds(1)

    package init(threshold: Duration) { self.threshold = threshold }

    /// Suspicion, and the first sample, begin here: the culprit may return before the threshold.
    package var suspicion: Duration { threshold / 2 }
    /// The spacing after the first sample; it doubles from sample to sample.
    package var firstSpacing: Duration { threshold / 8 }
    /// A look this late says that the watchdog itself did not run: the time before it proves nothing.
    package var lateness: Duration { threshold / 8 + .milliseconds(2) }
    /// A loop that made no progress for this long without being stalled is reported as starved or stopped.
    package var starvation: Duration { threshold * 4 }
}

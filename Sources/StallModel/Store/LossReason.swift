/// Why an agent could not record a stall that it saw. The raw values are stored; never renumber them.
package enum LossReason: UInt8, Hashable, Sendable, CaseIterable {
    /// A rate limit suppressed it.
    case suppressed = 0
    /// The queue to the writer was full.
    case dropped = 1
    /// The store could not be written.
    case unwritable = 2
    /// It was written, and evicted later to stay within the quota.
    case evicted = 3
    /// The report may be stored, but the app's callback was skipped because its callbacks take too long.
    case callback = 4
    /// The watchdog was delayed for long: stalls may have been missed meanwhile.
    case blind = 5
}

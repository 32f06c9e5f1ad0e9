// The names of the facts that a cause rests on, and of what else is known of a stall, written once for those that find, store and show them. They are texts in
// data, and other programs may add their own: never change one.

/// The kind of fact that a ``CauseEvidence`` is.
package enum EvidenceName: String, CaseIterable {
    case systemCall = "system call"
    case waitChannel = "wait channel"
    case state
    case cpu
    case runDelay = "run delay"
    case pageFaults = "page faults"
    case contextSwitches = "context switches"
    case throttled
    case pressure
    case processCPU = "process cpu"
    case lock
    case notReadable = "not readable"
    /// The process that holds a lock of a file or a database.
    case heldBy = "held by"
    /// The labelled request, and the span, of the task that stalled.
    case request
    case span
    /// Others that were open meanwhile. They are not accused.
    case openRequest = "open request"
    case openSpan = "open span"
    /// The scope of blocking that the app declared as meant.
    case expected
    /// A test that hangs, the line of its function, and what its thread or its task waits for.
    case test
    case testLine = "test line"
    case waitsFor = "waits for"
    case awaits
    /// The call that may block, of a report with the verdict `blocking`.
    case blockingCall = "blocking call"
    /// Where the process ran.
    case pod
    case namespace
    case container
    case containerID = "container id"
}

extension StallCause {
    /// The fact of this name; nil where the cause does not rest on one.
    package func evidence(_ name: EvidenceName) -> String? {
        evidence.first { $0.name == name.rawValue }?.value
    }
}

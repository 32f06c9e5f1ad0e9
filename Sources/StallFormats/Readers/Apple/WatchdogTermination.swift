// The end of a process by the system's watchdog: its main thread did not answer in time.

internal import StallModel

extension ForeignReport {
    /// Makes the report of a process that the watchdog ended one of a hang.
    ///
    /// - Parameters:
    ///   - reasons: All that the report says about the end of the process.
    ///   - main: The main thread, an index in `threads`.
    /// - Returns: Whether the watchdog ended it. The report is as it was otherwise.
    ///
    /// **Source:** Apple, "Addressing watchdog terminations": the code 0x8badf00d.
    mutating func judge(termination reasons: String, main: Int?) -> Bool {
        guard reasons.lowercased().contains("8badf00d") else { return false }
        kind = .hang
        isAtLeast = true
        duration = AppleHeader.allowance(reasons)
        stalledThread = main
        return true
    }
}

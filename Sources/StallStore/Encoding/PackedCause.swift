// How a cause is written: its class and confidence as columns of their own, the rest as one blob. Part of the file
// format.

package import StallModel

/// Names of evidence that are written as their index in this list. Append only: no agent writes `frames` any more, and
/// its index stays reserved.
package let evidenceNames =
    [
        EvidenceName.systemCall, .waitChannel, .state, .cpu, .runDelay, .pageFaults,
        .contextSwitches,
        .throttled, .pressure, .processCPU,
    ].map(\.rawValue) + ["frames"] + [EvidenceName.lock, .notReadable].map(\.rawValue)

/// A cause as its columns hold it.
package struct StoredCause: Equatable {
    package var cause: CauseClass
    package var confidence: Double
    package var detail: [UInt8]

    package init(_ cause: StallCause) {
        (self.cause, confidence) = (cause.cause, cause.confidence)
        detail = cause.encodedDetail
    }

    /// - Parameter detail: The detail, already found to be one.
    package init(_ cause: CauseClass, confidence: Double, detail: [UInt8]) {
        (self.cause, self.confidence, self.detail) = (cause, confidence, detail)
    }

    /// The confidence in thousandths, where it is a whole number of them. It takes two bytes instead of eight.
    var permille: Int64? {
        guard (0...1).contains(confidence) else { return nil }
        let permille = (confidence * 1000).rounded()
        return permille / 1000 == confidence ? Int64(permille) : nil
    }
}

extension CauseClass {
    /// The shares and the holder of a detail that says no more than that all of the stall had this cause.
    package var wholeShare: [UInt8] {
        var bytes: [UInt8] = []
        for number in [1, UInt64(rawValue), 1000, 0] { bytes.append(leb128: number) }
        return bytes
    }
}

extension StallCause {
    /// Shares: how many, then the class and the thousandths of each. Holder: 0 for none, 1, or 2 in a deadlock; then
    /// its thread, 1 for a name or 0, and the name. Evidence, to the end: the name's number, or 0 and the name; then
    /// the value.
    fileprivate var encodedDetail: [UInt8] {
        var bytes: [UInt8] = []
        bytes.append(leb128: UInt64(shares.count))
        for share in shares {
            bytes.append(leb128: UInt64(share.cause.rawValue))
            bytes.append(leb128: share.thousandths)
        }
        bytes.append(leb128: holder.map { $0.isDeadlock ? 2 : 1 } ?? 0)
        if let holder {
            bytes.append(leb128: UInt64(Swift.max(0, holder.thread.rawValue)))
            bytes.append(leb128: holder.name == nil ? 0 : 1)
            if let name = holder.name { bytes.append(text: name) }
        }
        for fact in evidence {
            let number = evidenceNames.firstIndex(of: fact.name).map { $0 + 1 } ?? 0
            bytes.append(leb128: UInt64(number))
            if number == 0 { bytes.append(text: fact.name) }
            bytes.append(text: fact.value)
        }
        return bytes
    }
}

extension CauseShare {
    fileprivate var thousandths: UInt64 {
        fraction.isFinite ? UInt64((Swift.min(Swift.max(fraction, 0), 1) * 1000).rounded()) : 0
    }
}

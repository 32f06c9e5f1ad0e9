// How a cause is written: its class and confidence as columns of their own, the rest as one blob. Part of the file
// format.

package import StallModel

/// Names of evidence that are written as their place in this list. Append only: `frames` is written by no agent any more,
/// and its place stays taken.
private let evidenceNames =
    [
        EvidenceName.systemCall, .waitChannel, .state, .cpu, .runDelay, .pageFaults,
        .contextSwitches,
        .throttled, .pressure, .processCPU,
    ].map(\.rawValue) + ["frames"] + [EvidenceName.lock, .notReadable].map(\.rawValue)

/// A cause as its columns hold it.
package struct StoredCause: Hashable {
    package var cause: CauseClass
    var confidence: Double
    package var detail: [UInt8]

    package init(_ cause: StallCause) {
        (self.cause, confidence) = (cause.cause, cause.confidence)
        detail = cause.encodedDetail
    }

    /// - Parameter detail: What has been found to be such a detail.
    package init(_ cause: StallCause, detail: UnsafeRawBufferPointer) {
        (self.cause, confidence) = (cause.cause, cause.confidence)
        self.detail = Array(detail)
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

    /// Nil when the confidence is none or the bytes are no such detail.
    package init?(_ cause: CauseClass, confidence: Double, detail bytes: UnsafeRawBufferPointer) {
        guard (0...1).contains(confidence) else { return nil }
        self.init(cause, confidence: confidence)
        var rest = bytes[...]
        guard let count = rest.popLEB128(), count <= UInt64(CauseClass.allCases.count) else {
            return nil
        }
        for _ in 0..<count {
            guard let cause: CauseClass = rest.popValue(), let thousandths = rest.popLEB128(),
                thousandths <= 1000
            else { return nil }
            shares.append(CauseShare(cause, Double(thousandths) / 1000))
        }
        guard let kind = rest.popLEB128(), kind <= 2 else { return nil }
        if kind > 0 {
            guard let thread = rest.popLEB128().flatMap({ Int32(exactly: $0) }),
                let isNamed = rest.popLEB128(), isNamed <= 1
            else { return nil }
            var name: String?
            if isNamed == 1 {
                guard let text = rest.popText() else { return nil }
                name = text
            }
            holder = LockHolder(
                thread: ThreadID(rawValue: thread), name: name, isDeadlock: kind == 2)
        }
        while !rest.isEmpty {
            guard let number = rest.popLEB128(), number <= UInt64(evidenceNames.count),
                let name = number == 0 ? rest.popText() : evidenceNames[Int(number) - 1],
                let value = rest.popText()
            else { return nil }
            evidence.append(CauseEvidence(name, value))
        }
    }
}

/// One fact of shared evidence.
package struct EvidenceFact: Hashable {
    package var name: String
    package var format: String
    /// The place of its first number among those of all facts.
    package var firstNumber: Int64

    package init(name: String, format: String, firstNumber: Int64) {
        self.name = name
        self.format = format
        self.firstNumber = firstNumber
    }
}

extension [EvidenceFact] {
    /// The facts whose names and formats are packed; nil when the bytes are no such list.
    package init?(packed bytes: [UInt8]) {
        self = []
        var count: Int64 = 0
        let isWhole = bytes.withUnsafeBytes { bytes -> Bool in
            var rest = bytes[...]
            while !rest.isEmpty {
                guard let number = rest.popLEB128(), number <= UInt64(evidenceNames.count),
                    let name = number == 0 ? rest.popText() : evidenceNames[Int(number) - 1],
                    let format = rest.popText()
                else { return false }
                append(EvidenceFact(name: name, format: format, firstNumber: count))
                if format == SplitEvidence.ownText { continue }
                count += Int64(format.replacing("%%", with: "").count { $0 == "%" })
            }
            return true
        }
        if !isWhole { return nil }
    }

    /// The names and formats, packed.
    package var packed: [UInt8] {
        var bytes: [UInt8] = []
        for fact in self {
            let number = evidenceNames.firstIndex(of: fact.name).map { $0 + 1 } ?? 0
            bytes.append(leb128: UInt64(number))
            if number == 0 { bytes.append(text: fact.name) }
            bytes.append(text: fact.format)
        }
        return bytes
    }

    /// What the content hashes to.
    package var hash: Int64 {
        var hash = ContentHash()
        for fact in self {
            hash.combine(fact.name)
            hash.combine(fact.format)
        }
        return hash.value
    }
}

extension CauseShare {
    fileprivate var thousandths: UInt64 {
        fraction.isFinite ? UInt64((Swift.min(Swift.max(fraction, 0), 1) * 1000).rounded()) : 0
    }
}

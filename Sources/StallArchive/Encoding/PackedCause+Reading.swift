// A cause and its evidence out of their columns, and the parts of evidence that reports of a central store share.

package import StallModel
import StallStore

extension StallCause {
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
package struct EvidenceFact: Equatable {
    package var name: String
    package var format: String
    /// The index of its first number among those of all facts.
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

    /// The hash of the content.
    package var hash: Int64 {
        var hash = ContentHash()
        for fact in self {
            hash.combine(fact.name)
            hash.combine(fact.format)
        }
        return hash.value
    }
}

// The word of each case in JSON, CSV and report lines, defined once for writers and readers. Scripts depend on the
// words: never change one.

/// An enumeration whose cases have words in data.
package protocol DataWord: RawRepresentable, Hashable where RawValue == UInt8 {
    var word: String { get }
}

extension DataWord {
    /// Every value, in the order of their raw values.
    package static var all: [Self] { (0...UInt8.max).compactMap(Self.init(rawValue:)) }

    /// Every value by its word.
    package static var byWord: [String: Self] {
        Dictionary(uniqueKeysWithValues: all.map { ($0.word, $0) })
    }
}

extension CauseClass: DataWord {}

extension StallState: DataWord {
    package var word: String {
        switch self {
        case .open: "open"
        case .ended: "ended"
        case .hang: "hang"
        }
    }
}

extension StallVerdict: DataWord {
    package var word: String {
        switch self {
        case .stalled: "stalled"
        case .starved: "starved"
        case .stopped: "stopped"
        case .throttled: "throttled"
        case .debugger: "debugger"
        case .saturated: "saturated"
        case .sampled: "sampled"
        case .blocking: "blocking"
        case .expected: "expected"
        }
    }
}

extension LoopPhase: DataWord {
    package var word: String {
        switch self {
        case .unknown: "unknown"
        case .observer: "observer"
        case .block: "block"
        case .source: "source"
        case .timer: "timer"
        case .descriptor: "descriptor"
        case .mainQueue: "main_queue"
        case .marked: "marked"
        }
    }
}

extension CodeAddressKind: DataWord {
    package var word: String {
        switch self {
        case .interrupted: "interrupted"
        case .returnAddress: "return_address"
        case .asyncResume: "async_resume"
        }
    }
}

extension CaptureMethod: DataWord {
    package var word: String {
        switch self {
        case .signalFree: "signal_free"
        case .signal: "signal"
        case .lateSignal: "late_signal"
        }
    }
}

extension ThreadRole: DataWord {
    package var word: String {
        switch self {
        case .holder: "holder"
        case .member: "member"
        case .other: "other"
        }
    }
}

extension SuppressionReason: DataWord {
    package var word: String {
        switch self {
        case .place: "place"
        case .hour: "hour"
        case .debugger: "debugger"
        }
    }
}

extension LossReason: DataWord {
    package var word: String {
        switch self {
        case .suppressed: "suppressed"
        case .dropped: "dropped"
        case .unwritable: "unwritable"
        case .evicted: "evicted"
        case .callback: "callback"
        case .blind: "blind"
        }
    }
}

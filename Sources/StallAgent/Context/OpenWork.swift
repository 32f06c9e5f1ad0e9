// Requests and spans that were open when a stall began: copied by the watchdog, shown as facts of the report.

internal import CLinux
internal import StallModel

/// The watchdog's buffer for a copy. Allocated once for all loops.
final class OpenWorkBuffer: @unchecked Sendable {
    // Unchecked because only the watchdog's thread touches it after `init`.
    private static let capacity = Int(STALL_OPEN_WORK_SHOWN)
    private let items = UnsafeMutablePointer<stall_open_work>.allocate(capacity: capacity)

    init() { items.initialize(repeating: stall_open_work(), count: Self.capacity) }

    deinit { items.deallocate() }

    /// Copies what is open now; valid until the next call. Neither allocates nor waits.
    func copy(thread: ThreadID?, task: UInt64) -> UnsafeRawBufferPointer {
        let count = stall_open_work_copy(items, thread?.rawValue ?? 0, task)
        return UnsafeRawBufferPointer(
            UnsafeBufferPointer(start: items, count: Int(min(count, UInt32(Self.capacity)))))
    }
}

/// A labelled task or a span that was open.
struct OpenWork: Equatable, Sendable {
    var name: String
    /// Empty if unknown.
    var trace: String
    /// The span's id in its trace; empty if unknown.
    var span = ""
    /// Of a span: finds its present name. 0 of a task.
    var number: UInt64 = 0
    /// How long it had been open.
    var age: Duration
    var isSpan: Bool
    /// It belongs to the task that stalled.
    var isOwn: Bool

    init(name: String, trace: String = "", age: Duration, isSpan: Bool, isOwn: Bool) {
        self.name = name
        self.trace = trace
        self.age = age
        self.isSpan = isSpan
        self.isOwn = isOwn
    }

    init(_ item: stall_open_work, at now: MonotonicInstant, stalledTask: UInt64) {
        var item = item
        name = withUnsafeBytes(of: &item.name) { Self.text($0) }
        trace = withUnsafeBytes(of: &item.trace) { Self.text($0) }
        span = withUnsafeBytes(of: &item.span) { Self.text($0) }
        number = item.number
        age = max(.zero, now - MonotonicInstant(nanoseconds: item.began_ns))
        isSpan = item.is_span != 0
        isOwn = stalledTask != 0 && item.task == stalledTask
    }

    private static func text(_ bytes: UnsafeRawBufferPointer) -> String {
        String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
    }

    /// With the name that the span has by now: a server's knows its route only after the router.
    var renamed: OpenWork {
        guard number != 0 else { return self }
        var renamed = self
        withUnsafeTemporaryAllocation(of: CChar.self, capacity: 64) { text in
            guard stall_span_read_name(number, text.baseAddress!) else { return }
            renamed.name = Self.text(UnsafeRawBufferPointer(text))
        }
        return renamed
    }

    /// As a fact of the report. Only what the id of the stalled task names is not called open.
    var evidence: CauseEvidence {
        let name: EvidenceName =
            switch (isSpan, isOwn) {
            case (true, true): .span
            case (true, false): .openSpan
            case (false, true): .request
            case (false, false): .openRequest
            }
        let span = span.isEmpty ? "" : ", span \(span)"
        let trace = trace.isEmpty ? "" : ", trace \(trace)\(span)"
        return CauseEvidence(name.rawValue, "\(self.name)\(trace), for \(age.shortText)")
    }
}

extension Duration {
    /// `0.42 s`, `12 s`.
    var shortText: String {
        let hundredths = Int((self / .milliseconds(10)).rounded())
        guard hundredths < 1000 else { return "\(hundredths / 100) s" }
        let rest = hundredths % 100
        return "\(hundredths / 100).\(rest < 10 ? "0" : "")\(rest) s"
    }
}

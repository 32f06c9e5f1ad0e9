import StallDetection
import StallModel
import Testing

@testable import StallAgent

/// Goal: a report says what the loop was at for the longest part of the stall.
/// Method: samples with labels, and weights as the report has them.
@Suite struct HeaviestLabelTests {
    private func label(_ parts: (String?, Int64)...) -> String? {
        let samples = parts.map { label, _ in
            RawSample(
                offset: .zero, taken: MonotonicInstant(nanoseconds: 0), isLate: false,
                thread: ThreadID(rawValue: 1), phase: .block, mode: 0, label: label, cost: .zero)
        }
        return heaviestLabel(samples, parts.map(\.1))
    }

    @Test func `the label of the longest time counts, not the last one`() {
        #expect(label(("import", 229), (nil, 50)) == "import")
        #expect(label(("import", 100), ("export", 60), ("export", 60)) == "export")
        #expect(label(("import", 50), (nil, 229)) == nil)
        #expect(label(("import", 0)) == nil && label() == nil)
    }
}

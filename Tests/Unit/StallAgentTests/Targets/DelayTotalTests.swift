import StallModel
import Testing

@testable import StallAgent

/// Goal: the waits for a CPU of a pool's threads are one sum that neither jumps nor loses a wait when the threads are
/// listed anew.
/// Method: the test plays the kernel's counters.
@Suite struct DelayTotalTests {
    let first = ThreadID(rawValue: 11)
    let second = ThreadID(rawValue: 12)

    func forget(_ total: inout DelayTotal, allBut threads: [ThreadID]) {
        threads.withUnsafeBufferPointer { total.forget(allBut: $0) }
    }

    @Test func `a wait that ends between two listings counts`() {
        var total = DelayTotal()
        total.note(.milliseconds(40), of: first)
        forget(&total, allBut: [first])
        total.note(.milliseconds(940), of: first)
        let sum = total.sum
        #expect(sum == .milliseconds(900))
    }

    @Test func `a thread counts from when it is first noted, and for good`() {
        var total = DelayTotal()
        total.note(.seconds(5), of: first)
        let before = total.sum
        #expect(before == .zero)
        total.note(.seconds(6), of: first)
        forget(&total, allBut: [second])
        total.note(.seconds(100), of: second)
        let between = total.sum
        #expect(between == .seconds(1))
        total.note(.seconds(102), of: second)
        let after = total.sum
        #expect(after == .seconds(3))
    }

    @Test func `a thread with the id of one that ended takes nothing away`() {
        var total = DelayTotal()
        total.note(.seconds(3), of: first)
        total.note(.milliseconds(10), of: first)
        total.note(.milliseconds(30), of: first)
        let sum = total.sum
        #expect(sum == .milliseconds(20))
    }

    @Test func `more threads than the limit are left out`() {
        var total = DelayTotal()
        for second in [1, 2] {
            for number in 0..<2 * DelayTotal.limit {
                total.note(.seconds(second), of: ThreadID(rawValue: Int32(number + 1)))
            }
        }
        let sum = total.sum
        #expect(sum == .seconds(DelayTotal.limit))
    }
}

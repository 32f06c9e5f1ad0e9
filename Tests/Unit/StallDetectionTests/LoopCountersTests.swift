import CLinux
import StallModel
import Testing

@testable import StallDetection

/// Goal: what a loop counts of itself is its time, every iteration is counted once, and C and Swift mean the same buckets.
/// Method: the test is the loop and owns the clock.
@Suite struct LoopCountersTests {
    @Test func `the largest counts add up to a number`() {
        let buckets = 0..<LengthHistogram.bucketCount
        let full = LengthHistogram(
            counts: Dictionary(
                uniqueKeysWithValues: buckets.map { ($0, LengthHistogram.largestCount - 1) }))
        var sum = LengthHistogram()
        for _ in 0..<3 { sum.add(full) }
        #expect(sum.count == buckets.count * LengthHistogram.largestCount)
        #expect(sum.quantile(1) == LengthHistogram.bounds(ofBucket: buckets.last!).upperBound)
    }

    @Test func `every length lies in the bucket that counts it`() {
        var lengths: [UInt64] = Array(0...4_100)
        for power in 12..<40 { lengths += [-1, 0, 1].map { UInt64((1 << power) + $0) } }
        for length in lengths {
            let bucket = Int(stall_length_bucket(length))
            let bounds = LengthHistogram.bounds(ofBucket: bucket)
            #expect(bounds.lowerBound <= .microseconds(length))
            #expect(
                .microseconds(length) < bounds.upperBound
                    || bucket == LengthHistogram.bucketCount - 1)
        }
    }

    @Test func `time before a span is split is counted, and the split is progress`() {
        let pointer = stall_beacon_create()!
        defer { stall_beacon_release(pointer) }
        let beacon = LoopBeacon(pointer)
        #expect(stall_beacon_join(pointer, stall_wakeup_create()!, 250_000_000))
        stall_beacon_publish_awake(pointer, 1_000)
        let (word, rests) = (stall_beacon_word(pointer), beacon.rests)
        #expect(stall_beacon_split(pointer, word, 4_000))
        #expect(!stall_beacon_split(pointer, word, 5_000), "the word is another one by now")
        #expect(beacon.finishedBusyTime == .nanoseconds(3_000) && beacon.rests == rests + 1)
        stall_beacon_publish(pointer, UInt8(STALL_LOOP_WAITING), 9_000)
        #expect(beacon.finishedBusyTime == .nanoseconds(8_000))
    }

    @Test func `busy time, iterations and micro-stalls are counted while the loop is watched`() {
        let pointer = stall_beacon_create()!
        defer { stall_beacon_release(pointer) }
        let beacon = LoopBeacon(pointer)
        let wakeup = stall_wakeup_create()!
        func ms(_ value: UInt64) -> UInt64 { 1_000_000_000 + value * 1_000_000 }
        func at(_ value: UInt64) -> MonotonicInstant { MonotonicInstant(nanoseconds: ms(value)) }
        // Not watched: nothing is counted.
        stall_beacon_publish_awake(pointer, ms(0))
        stall_beacon_publish(pointer, UInt8(STALL_LOOP_WAITING), ms(500))
        beacon.connect(to: wakeup, stallLength: .milliseconds(250))
        let before = beacon.counters(at: at(1_000), runDelay: nil)
        // Two iterations: 150 ms after a wait and 5 before the next one; then 40, and 300 that go on.
        stall_beacon_publish_awake(pointer, ms(1_000))
        stall_beacon_publish_iteration(pointer, ms(1_150))
        stall_beacon_publish(pointer, UInt8(STALL_LOOP_WAITING), ms(1_155))
        stall_beacon_publish_awake(pointer, ms(1_655))
        stall_beacon_publish_iteration(pointer, ms(1_690))
        stall_beacon_publish(pointer, UInt8(STALL_LOOP_WAITING), ms(1_690))
        stall_beacon_publish_awake(pointer, ms(1_700))
        let measure = LoopMeasure(from: before, to: beacon.counters(at: at(2_000), runDelay: nil))
        #expect(measure.watched == .milliseconds(1_000) && measure.busy == .milliseconds(490))
        #expect(measure.lengths.count == 2)
        #expect(measure.microStallCount == 1 && measure.microStallTime == .milliseconds(150))
        #expect(beacon.rests == 2)
        // The long one is a stall and no micro-stall, and its time is not counted twice.
        let middle = beacon.counters(at: at(2_000), runDelay: nil)
        stall_beacon_publish_iteration(pointer, ms(2_010))
        let rest = LoopMeasure(from: middle, to: beacon.counters(at: at(2_010), runDelay: nil))
        #expect(rest.busy == .milliseconds(10) && rest.microStallCount == 0)
    }

    @Test func `of short spans one in eight is measured, and stands for all`() {
        let pointer = stall_beacon_create()!
        defer { stall_beacon_release(pointer) }
        let beacon = LoopBeacon(pointer)
        beacon.connect(to: stall_wakeup_create()!, stallLength: .milliseconds(250))
        var spans: UInt32 = 0
        for _ in 0..<800 {
            stall_beacon_publish_awake(pointer, stall_monotonic_ns())
            spans += stall_beacon_publish_rest(pointer)
        }
        // Up to seven are left for the next measurement. One that reaches a tick of the kernel stands for itself.
        #expect(spans > 792 && spans <= 800)
        #expect(beacon.rests == 800 && stall_counters_busy_ns(pointer) > 0)
    }

    @Test func `a span that reached a tick, and a suspected one, ends exactly`() {
        let pointer = stall_beacon_create()!
        defer { stall_beacon_release(pointer) }
        LoopBeacon(pointer).connect(to: stall_wakeup_create()!, stallLength: .milliseconds(250))
        for _ in 0..<3 {
            stall_beacon_publish_awake(pointer, stall_monotonic_ns() - 50_000_000)
            #expect(stall_beacon_publish_rest(pointer) == 1)
        }
        #expect(stall_counters_busy_ns(pointer) >= 150_000_000)
        let now = stall_monotonic_ns()
        stall_beacon_publish_awake(pointer, now)
        stall_beacon_set_alarm(pointer, stall_beacon_word(pointer))
        #expect(stall_beacon_publish_rest(pointer) == 1)
        #expect(stall_beacon_ended(pointer) >= now)
    }
}

import StallModel
import Synchronization
import Testing

@testable import StallAgent

/// Goal: values pass through the ring complete and in order, or not at all, and then the watchdog knows.
/// Method: values and tails of many sizes through a small ring, one thread on each side.
@Suite struct HandoverRingTests {
    private struct Value {
        var number: Int
        var length: Int
    }

    private func write(_ number: Int, length: Int, to ring: HandoverRing) -> Bool {
        let tail = [UInt8](repeating: UInt8(truncatingIfNeeded: number), count: length)
        return tail.withUnsafeBytes { bytes in
            ring.begin()
            ring.append(.sample, Value(number: number, length: length), from: 7, bytes)
            return ring.commit()
        }
    }

    private func isWhole(_ record: HandoverRing.Record) -> Bool {
        let value = record.value.load(as: Value.self)
        return record.kind == .sample && record.sender == 7
            && record.tails.0.count == value.length && record.tails.1.isEmpty
            && record.tails.0.allSatisfy { $0 == UInt8(truncatingIfNeeded: value.number) }
    }

    @Test func `records arrive whole and in their order while the ring goes round`() async throws {
        let ring = try #require(HandoverRing(capacity: 1 << 14))
        let count = 20_000
        async let sent: Void = Task.detached {
            for number in 0..<count {
                while !write(number, length: number * 37 % 1500, to: ring) { await Task.yield() }
            }
        }.value
        var (next, broken) = (0, 0)
        while next < count {
            guard let record = ring.next() else {
                await Task.yield()
                continue
            }
            if record.value.load(as: Value.self).number != next || !isWhole(record) { broken += 1 }
            ring.release()
            next += 1
        }
        await sent
        #expect(broken == 0 && ring.isEmpty)
    }

    @Test func `a group is handed over as a whole or not at all`() throws {
        let ring = try #require(HandoverRing(capacity: 1 << 12))
        #expect(write(1, length: 1000, to: ring))
        ring.begin()
        for _ in 0..<8 { ring.append(.discard, Value(number: 0, length: 0), from: 7) }
        let large = [UInt8](repeating: 0, count: 4000)
        large.withUnsafeBytes { ring.append(.sample, Value(number: 0, length: 0), from: 7, $0) }
        #expect(!ring.commit())
        // Space reserved for more important records is not used either.
        ring.begin(reserve: 3000)
        ring.append(.discard, Value(number: 0, length: 0), from: 7)
        #expect(!ring.commit())
        #expect(write(2, length: 1000, to: ring))
        for number in 1...2 {
            #expect(ring.next()?.value.load(as: Value.self).number == number)
            ring.release()
        }
        #expect(ring.next() == nil)
    }

    @Test func `what could not be handed over is counted once`() throws {
        let ring = try #require(HandoverRing(capacity: 1 << 12))
        ring.countDropped()
        ring.countDropped()
        #expect(ring.takeDropped() == 2 && ring.takeDropped() == 0)
    }
}

/// Goal: a watchdog that is not scheduled is reported once, and a suspension of the whole process is not mistaken for
/// that.
/// Method: the test owns the clock.
@Suite struct WatchdogHealthTests {
    private func at(_ seconds: Int) -> MonotonicInstant {
        MonotonicInstant(nanoseconds: UInt64(100 + seconds) * 1_000_000_000)
    }

    @Test func `a gap is reported once, and its end`() {
        var health = WatchdogHealth()
        #expect(health.poll(delay: .seconds(1), at: at(0)) == nil)
        #expect(health.poll(delay: .seconds(6), at: at(10)) == nil)
        #expect(health.nextPoll(delay: .seconds(6), isWaiting: false, at: at(10)) == at(11))
        #expect(health.poll(delay: .seconds(7), at: at(11)) == .away(.seconds(7)))
        #expect(health.poll(delay: .seconds(8), at: at(12)) == nil)
        #expect(health.poll(delay: .zero, at: at(13)) == .isBack)
        #expect(health.poll(delay: .zero, at: at(14)) == nil)
    }

    @Test func `a watchdog that comes back within a second was stopped with its process`() {
        var health = WatchdogHealth()
        #expect(health.poll(delay: .seconds(3600), at: at(0)) == nil)
        #expect(health.poll(delay: .zero, at: at(1)) == nil)
        #expect(health.nextPoll(delay: .zero, isWaiting: true, at: at(1)) == at(61))
    }
}

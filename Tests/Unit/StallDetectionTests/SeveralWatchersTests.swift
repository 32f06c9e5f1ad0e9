import CLinux
import StallModel
import Testing

@testable import StallDetection

/// Goal: two monitors on one loop, a library's and the app's, are both woken by it, and the end of one does not affect
/// the other.
/// Method: the test simulates the loop and both watchdogs; a wake-up word that was woken is not marked as sleeping.
@Suite struct SeveralWatchersTests {
    let pointer = stall_beacon_create()!
    let one = stall_wakeup_create()!
    let other = stall_wakeup_create()!

    private func wake() {
        stall_beacon_publish(pointer, UInt8(STALL_LOOP_WAITING), 1)
        for wakeup in [one, other] { stall_wakeup_prepare(wakeup, UInt32(STALL_WATCHDOG_WAITING)) }
        stall_beacon_publish_awake(pointer, 2)
    }

    private var wasWoken: [Bool] { [one, other].map { $0.pointee.sleep == STALL_WATCHDOG_AWAKE } }

    @Test func `a loop that wakes wakes all its watchdogs, and no others`() {
        let beacon = LoopBeacon(pointer)
        defer { stall_beacon_release(pointer) }
        wake()
        #expect(wasWoken == [false, false])
        beacon.connect(to: one, stallLength: .seconds(1))
        wake()
        #expect(wasWoken == [true, false])
        beacon.connect(to: other, stallLength: .seconds(2))
        wake()
        #expect(wasWoken == [true, true])
        beacon.disconnect(from: one)
        wake()
        #expect(wasWoken == [false, true])
        beacon.connect(to: one, stallLength: .seconds(1))
        beacon.disconnect(from: other)
        wake()
        #expect(wasWoken == [true, false])
        beacon.disconnect(from: one)
        wake()
        #expect(wasWoken == [false, false] && pointer.pointee.wakeup == nil)
    }

    @Test func `a watchdog that sleeps until a deadline is only woken by an alarm`() {
        let beacon = LoopBeacon(pointer)
        defer { stall_beacon_release(pointer) }
        beacon.connect(to: one, stallLength: .seconds(1))
        beacon.connect(to: other, stallLength: .seconds(1))
        for wakeup in [one, other] {
            stall_wakeup_prepare(wakeup, UInt32(STALL_WATCHDOG_TIMED_WAIT))
        }
        stall_beacon_publish_awake(pointer, 10)
        #expect(wasWoken == [false, false])
        beacon.setAlarm(on: beacon.word)
        beacon.setAlarm(on: beacon.word)
        // One of them gives up its suspicion; the alarm is the other's as well.
        beacon.clearAlarm()
        stall_beacon_publish(pointer, UInt8(STALL_LOOP_WAITING), 20)
        #expect(wasWoken == [true, true])
        #expect(beacon.alarmAnswer == MonotonicInstant(nanoseconds: 20))
    }

    @Test func `an alarm on a word that has gone does not stay`() {
        let beacon = LoopBeacon(pointer)
        defer { stall_beacon_release(pointer) }
        stall_beacon_publish_awake(pointer, 10)
        let past = beacon.word
        stall_beacon_publish_iteration(pointer, 20)
        beacon.setAlarm(on: past)
        stall_beacon_publish_iteration(pointer, 30)
        #expect(pointer.pointee.alarm == 0 && beacon.alarmAnswer == nil)
    }

    @Test func `what is a stall to one of them is no micro-stall`() {
        let beacon = LoopBeacon(pointer)
        defer { stall_beacon_release(pointer) }
        beacon.connect(to: one, stallLength: .milliseconds(500))
        beacon.connect(to: other, stallLength: .milliseconds(250))
        #expect(pointer.pointee.counters.stall_ns == 250_000_000)
        beacon.connect(to: other, stallLength: .milliseconds(750))
        #expect(pointer.pointee.counters.stall_ns == 500_000_000)
        beacon.disconnect(from: one)
        #expect(pointer.pointee.counters.stall_ns == 750_000_000)
    }

    @Test func `watchdogs that come and go at once leave a list that is right`() async {
        let beacon = LoopBeacon(pointer)
        defer { stall_beacon_release(pointer) }
        await withTaskGroup(of: Void.self) { group in
            for _ in 0..<4 {
                group.addTask {
                    let wakeup = stall_wakeup_create()!
                    for _ in 0..<2_000 {
                        beacon.connect(to: wakeup, stallLength: .seconds(1))
                        beacon.disconnect(from: wakeup)
                    }
                }
            }
        }
        #expect(pointer.pointee.wakeup == nil)
        #expect(beacon.connect(to: one, stallLength: .seconds(1)))
        #expect(pointer.pointee.wakeup == one)
    }

    @Test func `there is room for eight`() {
        let beacon = LoopBeacon(pointer)
        defer { stall_beacon_release(pointer) }
        for _ in 0..<STALL_WATCHER_LIMIT {
            #expect(beacon.connect(to: stall_wakeup_create()!, stallLength: .seconds(1)))
        }
        #expect(!beacon.connect(to: one, stallLength: .seconds(1)))
    }
}

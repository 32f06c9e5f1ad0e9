// Gives the detectors of all watched loops one thread. It sleeps exactly until the earliest of them wants to look, and
// without a deadline when every loop waits; the first loop to become busy wakes it (CLinux/stall_beacon.h).
//
// It takes no lock that an app's thread can hold, and it waits for nothing but its own futex. A second thread does
// nothing but sleep (SuspensionProbe.swift).

internal import CLinux
package import StallModel

/// A thread that watches any number of loops.
package final class Watchdog: Sendable {
    private let inbox = WatchdogInbox()
    private let wakeup: Wakeup
    private let suspensionProbe: SuspensionProbe
    private let thread: AgentThread
    private let pulse = WatchdogPulse()
    /// Its monitor's place among those that leave word of open stalls; -1 without one. `join` leaves it to the one that
    /// writes the store.
    package let lastWords = stall_last_words_reserve()
    /// Made beforehand: stopping allocates nothing.
    private let stopRequest = WatchdogInbox.Entry(.stop)

    /// A wake-up word is never freed: a loop may signal it at any moment.
    private struct Wakeup: @unchecked Sendable { let pointer: UnsafeMutablePointer<stall_wakeup> }

    /// Starts the threads; nil when the system gives none.
    package init?() {
        guard let pointer = stall_wakeup_create(), let suspensionProbe = SuspensionProbe() else {
            return nil
        }
        wakeup = Wakeup(pointer: pointer)
        self.suspensionProbe = suspensionProbe
        let thread = AgentThread(name: "stall-watchdog") { [inbox, wakeup, pulse, lastWords] in
            stall_thread_wake_on_time()
            var watch = WatchdogThread(
                inbox: inbox, wakeup: wakeup.pointer, suspensionProbe: suspensionProbe,
                pulse: pulse,
                monitor: lastWords)
            watch.run()
        }
        guard let thread else {
            suspensionProbe.stop()
            return nil
        }
        self.thread = thread
    }

    /// Watches a loop from now on. Any thread.
    package func watch(_ loop: WatchedLoop) { send(.watch(WatchSlot(loop))) }

    /// Judges a loop by other policies from its next look on. Any thread.
    package func setPolicies(_ policies: ModePolicies, of loop: WatchedLoop) {
        send(.setPolicies(loop, policies))
    }

    /// Forgets a loop; a stall that is open is ended with the duration it has. Any thread.
    package func unwatch(_ loop: WatchedLoop) { send(.unwatch(loop)) }

    /// Frees what the watchdog is done with. Any thread but the watchdog's.
    package func collect() { inbox.collect() }

    /// How long the watchdog has been at work without a pause, or has not come back although it should have: its
    /// health.
    package func delay(at now: MonotonicInstant) -> Duration { pulse.delay(at: now) }

    /// It waits for a loop to wake up, without a deadline.
    package var isWaiting: Bool { pulse.isWaiting }

    /// Lets it end what is open and then itself. Allocates nothing and waits for nothing. Call it once.
    package func beginStop() {
        inbox.push(stopRequest)
        stall_wakeup_signal(wakeup.pointer)
    }

    /// Waits for the end of the threads after `beginStop`. Call it once, from any thread but the watchdog's.
    package func join() {
        thread.join()
        suspensionProbe.stop()
        inbox.collect()
    }

    /// Ends what is open, and the threads. Call it once, from any thread but the watchdog's.
    package func stop() {
        beginStop()
        join()
        stall_last_words_release(lastWords, false)
    }

    private func send(_ request: WatchdogRequest) {
        inbox.push(request)
        stall_wakeup_signal(wakeup.pointer)
    }
}

// Gives the detectors of all watched loops one thread. It sleeps exactly until the earliest of them wants to look, and
// without a deadline when every loop waits; the first loop to become busy wakes it (CLinux/stall_beacon.h).
//
// It takes no lock that an app's thread can hold, and it waits for nothing but its own futex. A second thread does nothing
// but sleep (Sentinel.swift).

internal import CLinux
internal import StallModel

/// A thread that watches any number of loops.
package final class Watchdog: Sendable {
    private let inbox = WatchdogInbox()
    private let bell: Bell
    private let sentinel: Sentinel
    private let thread: AgentThread

    /// A bell is never freed: a loop may ring it at any moment.
    private struct Bell: @unchecked Sendable { let pointer: UnsafeMutablePointer<stall_bell> }

    /// Starts the threads; nil when the system gives none.
    package init?() {
        guard let pointer = stall_bell_create(), let sentinel = Sentinel() else { return nil }
        bell = Bell(pointer: pointer)
        self.sentinel = sentinel
        let thread = AgentThread(name: "stall-watchdog") { [inbox, bell] in
            stall_thread_wake_on_time()
            var watch = Watch(inbox: inbox, bell: bell.pointer, sentinel: sentinel)
            watch.run()
        }
        guard let thread else {
            sentinel.stop()
            return nil
        }
        self.thread = thread
    }

    /// Watches a loop from now on. Any thread.
    package func watch(_ loop: WatchedLoop) { send(.watch(loop)) }

    /// Judges a loop by other policies from its next look on. Any thread.
    package func setPolicies(_ policies: ModePolicies, of loop: WatchedLoop) {
        send(.setPolicies(loop, policies))
    }

    /// Forgets a loop; a stall that is open is ended with the duration it has. Any thread.
    package func unwatch(_ loop: WatchedLoop) { send(.unwatch(loop)) }

    /// Ends what is open, and the threads. Call it once, from any thread but the watchdog's.
    package func stop() {
        send(.stop)
        thread.join()
        sentinel.stop()
    }

    private func send(_ request: WatchdogRequest) {
        inbox.push(request)
        stall_bell_ring(bell.pointer)
    }
}

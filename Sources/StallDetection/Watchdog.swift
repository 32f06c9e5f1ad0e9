// Gives the detectors of all watched loops one thread. It sleeps exactly until the earliest of them wants to look, and
// without a deadline when every loop waits; the first loop to become busy wakes it (CLinux/stall_beacon.h).
//
// It takes no lock that an app's thread can hold, and it waits for nothing but its own futex.

internal import CLinux
internal import Glibc
internal import StallModel

/// A thread that watches any number of loops.
package final class Watchdog: Sendable {
    private let inbox = WatchdogInbox()
    private let bell: Bell
    private let thread: Thread

    /// A bell is never freed: a loop may ring it at any moment.
    private struct Bell: @unchecked Sendable { let pointer: UnsafeMutablePointer<stall_bell> }
    private struct Thread: @unchecked Sendable { let id: pthread_t }

    /// Starts the thread; nil when the system gives none.
    package init?() {
        guard let pointer = stall_bell_create() else { return nil }
        bell = Bell(pointer: pointer)
        var id = pthread_t()
        let context = Unmanaged.passRetained(Start(inbox: inbox, bell: bell))
        let error = stall_thread_start(
            &id, "stall-watchdog", 1 << 20,
            { context in
                let start = Unmanaged<Start>.fromOpaque(context!).takeRetainedValue()
                stall_thread_wake_on_time()
                var watch = Watch(inbox: start.inbox, bell: start.bell.pointer)
                watch.run()
                return nil
            }, context.toOpaque())
        guard error == 0 else {
            context.release()
            return nil
        }
        thread = Thread(id: id)
    }

    private final class Start: Sendable {
        let inbox: WatchdogInbox
        let bell: Bell
        init(inbox: WatchdogInbox, bell: Bell) {
            self.inbox = inbox
            self.bell = bell
        }
    }

    /// Watches a loop from now on. Any thread.
    package func watch(_ loop: WatchedLoop) { send(.watch(loop)) }

    /// Forgets a loop; a stall that is open is ended with the duration it has. Any thread.
    package func unwatch(_ loop: WatchedLoop) { send(.unwatch(loop)) }

    /// Ends what is open, and the thread. Call it once, from any thread but the watchdog's.
    package func stop() {
        send(.stop)
        pthread_join(thread.id, nil)
    }

    private func send(_ request: WatchdogRequest) {
        inbox.push(request)
        stall_bell_ring(bell.pointer)
    }
}

/// The watchdog's own state, confined to its thread.
private struct Watch {
    let inbox: WatchdogInbox
    let bell: UnsafeMutablePointer<stall_bell>
    var posts: [Post] = []
    var isStopped = false

    /// A loop with its detector and with what was seen of it.
    struct Post {
        let loop: WatchedLoop
        var detector: StallDetector
        var samples: [RawSample] = []
        var seenWord: UInt64 = 0
        var alarmedWord: UInt64?
    }

    mutating func run() {
        var due: MonotonicInstant?
        while true {
            takeRequests()
            if isStopped { return }
            for index in posts.indices { look(at: index, due: due) }
            due = posts.lazy.compactMap(\.detector.nextLook).min()
            sleep(until: due)
        }
    }

    private mutating func takeRequests() {
        for request in inbox.takeAll() {
            switch request {
            case .watch(let loop):
                loop.beacon.connect(to: bell)
                posts.append(Post(loop: loop, detector: StallDetector(policy: loop.policy)))
            case .unwatch(let loop):
                for index in posts.indices where posts[index].loop === loop { leave(index) }
                posts.removeAll { $0.loop === loop }
            case .stop:
                for index in posts.indices { leave(index) }
                posts = []
                isStopped = true
            }
        }
    }

    private mutating func look(at index: Int, due: MonotonicInstant?) {
        let loop = posts[index].loop
        let beacon = loop.beacon
        let now = MonotonicInstant(nanoseconds: stall_monotonic_ns())
        let lateness = due.map { max(.zero, now - $0) } ?? .zero
        var reading = beacon.read(at: now)
        if reading.status == .busy, now >= reading.since + loop.policy.suspicion {
            loop.responder.correct(reading, at: now)
            reading = beacon.read(at: now)
        }
        let suspected = posts[index].detector.suspectedWord
        let end = suspected == posts[index].alarmedWord ? beacon.alarmAnswer : nil
        posts[index].seenWord = reading.word
        let step = posts[index].detector.look(
            reading, loop.responder.evidence(), at: now, lateness: lateness, end: end)
        // What ended is told before a new suspicion collects samples of its own.
        if step.dropsSuspicion {
            if let incident = step.incident { tell(incident, index) }
            posts[index].samples = []
        }
        setAlarm(index)
        if step.takesSample { takeSample(index, of: reading) }
        if !step.dropsSuspicion, let incident = step.incident { tell(incident, index) }
    }

    private mutating func takeSample(_ index: Int, of reading: LoopReading) {
        let beacon = posts[index].loop.beacon
        let start = MonotonicInstant(nanoseconds: stall_monotonic_ns())
        var sample = RawSample(
            offset: start - reading.since, thread: beacon.thread, phase: beacon.phase,
            mode: beacon.mode,
            label: beacon.label)
        switch posts[index].loop.responder.captureStack() {
        case .success(let stack): sample.stack = stack
        case .failure(let error): sample.failure = String(describing: error)
        }
        sample.isLate = beacon.word != reading.word
        sample.cost = MonotonicInstant(nanoseconds: stall_monotonic_ns()) - start
        posts[index].samples.append(sample)
    }

    private func tell(_ incident: StallIncident, _ index: Int) {
        posts[index].loop.responder.stallChanged(incident, samples: posts[index].samples)
    }

    /// Keeps the alarm on the word under suspicion, if any.
    private mutating func setAlarm(_ index: Int) {
        let suspected = posts[index].detector.suspectedWord
        guard suspected != posts[index].alarmedWord else { return }
        if let suspected {
            posts[index].loop.beacon.setAlarm(on: suspected)
        } else {
            posts[index].loop.beacon.clearAlarm()
        }
        posts[index].alarmedWord = suspected
    }

    private mutating func leave(_ index: Int) {
        let now = MonotonicInstant(nanoseconds: stall_monotonic_ns())
        let loop = posts[index].loop
        if let incident = posts[index].detector.stop(loop.responder.evidence(), at: now) {
            tell(incident, index)
        }
        loop.beacon.clearAlarm()
        loop.beacon.connect(to: nil)
    }

    /// Sleeps unless something happened since the looks: what the loops do first, they tell only a watchdog that has
    /// announced its sleep, so each is read once more after the announcement.
    private func sleep(until due: MonotonicInstant?) {
        let kind = UInt32(due == nil ? STALL_WATCHDOG_PARKED : STALL_WATCHDOG_DOZING)
        stall_bell_announce(bell, kind)
        let moved = posts.contains { post in
            (due == nil || post.detector.suspectedWord != nil)
                && post.loop.beacon.word != post.seenWord
        }
        guard inbox.isEmpty, !moved else {
            return stall_bell_announce(bell, UInt32(STALL_WATCHDOG_AWAKE))
        }
        stall_bell_sleep(bell, kind, due?.nanoseconds ?? .max)
    }
}

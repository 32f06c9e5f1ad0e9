// Requests of other threads to the watchdog, without a lock: an app thread that is stopped while it holds one would
// block the watchdog. Retired objects go back the same way: other threads free them, since freeing may wait.

internal import CLinux
internal import Synchronization

enum WatchdogRequest: Sendable {
    case watch(WatchSlot)
    case setPolicies(WatchedLoop, ModePolicies)
    case unwatch(WatchedLoop)
    case stop
}

/// A stack of requests, pushed from any thread and taken as a whole by the watchdog. Neither taking nor retiring
/// allocates or frees.
final class WatchdogInbox: Sendable {
    /// A request on its way to the watchdog; on the way back it carries the objects that the watchdog has retired.
    final class Entry: @unchecked Sendable {
        // Unchecked because it belongs to one thread at a time: pushing hands it over.
        let request: WatchdogRequest
        /// Slots that are no longer watched, linked by their `next`.
        var retired: WatchSlot?
        /// Policies that are no longer in force.
        var retiredPolicies: ModePolicies?
        fileprivate var next: UInt = 0
        init(_ request: WatchdogRequest) { self.request = request }
    }

    /// The addresses of retained entries, or 0.
    private let top = Atomic<UInt>(0)
    private let spent = Atomic<UInt>(0)
    /// The wake-up word of the thread that frees retired entries, itself never freed; 0 for none.
    private let collector = Atomic<UInt>(0)
    /// The watches that were requested and not seen yet. The other requests are about loops that are watched.
    private let waitingWatches = Atomic<Int>(0)
    static let watchLimit = 1024

    deinit {
        while let entry = takeAll() { entry.retireAll(in: self) }
        collect()
    }

    var isEmpty: Bool { top.load(ordering: .sequentiallyConsistent) == 0 }

    /// Takes room for a watch; false if too many wait.
    func reserveWatch() -> Bool {
        let count = waitingWatches.wrappingAdd(1, ordering: .relaxed).newValue
        if count > Self.watchLimit { releaseWatch() }
        return count <= Self.watchLimit
    }

    /// The watch has been seen, or is not requested after all.
    func releaseWatch() { waitingWatches.wrappingSubtract(1, ordering: .relaxed) }

    func push(_ request: WatchdogRequest) {
        collect()
        push(Entry(request))
    }

    /// Does not allocate.
    func push(_ entry: Entry) { Self.push(entry, to: top) }

    /// The oldest request; `next(after:)` leads to the others. Each must be retired.
    func takeAll() -> Entry? {
        var newest = top.exchange(0, ordering: .sequentiallyConsistent)
        var oldest: UInt = 0
        while newest != 0 {
            let entry = Self.entry(newest)
            (newest, entry.next, oldest) = (entry.next, oldest, newest)
        }
        return oldest == 0 ? nil : Self.entry(oldest)
    }

    func next(after entry: Entry) -> Entry? { entry.next == 0 ? nil : Self.entry(entry.next) }

    /// Passes a request, with what it carries, to the next caller of `collect`.
    func retire(_ entry: Entry) { Self.link(entry, into: spent) }

    /// Whether there is anything to free. Read after `stall_wakeup_prepare` of the collector's word.
    var hasSpent: Bool { spent.load(ordering: .sequentiallyConsistent) != 0 }

    func setCollector(_ wakeup: UnsafeMutablePointer<stall_wakeup>) {
        collector.store(UInt(bitPattern: wakeup), ordering: .releasing)
    }

    /// Wakes the thread that frees: retired entries may hold descriptors, and the next request may never come.
    func wakeCollector() {
        let word = collector.load(ordering: .acquiring)
        if let word = UnsafeMutablePointer<stall_wakeup>(bitPattern: word) {
            stall_wakeup_signal(word)
        }
    }

    /// Frees what the watchdog has retired. Any thread but the watchdog's.
    func collect() {
        var next = spent.exchange(0, ordering: .acquiring)
        while let pointer = UnsafeRawPointer(bitPattern: next) {
            let entry = Unmanaged<Entry>.fromOpaque(pointer).takeRetainedValue()
            next = entry.next
            // One by one: releasing a long list at once would recurse as deep.
            var slot = entry.retired.take()
            while let retired = slot { slot = retired.next.take() }
        }
    }

    private static func push(_ entry: Entry, to list: borrowing Atomic<UInt>) {
        _ = Unmanaged.passRetained(entry)
        link(entry, into: list)
    }

    private static func link(_ entry: Entry, into list: borrowing Atomic<UInt>) {
        let address = UInt(bitPattern: Unmanaged.passUnretained(entry).toOpaque())
        var expected = list.load(ordering: .relaxed)
        while true {
            entry.next = expected
            let (exchanged, original) = list.compareExchange(
                expected: expected, desired: address, ordering: .sequentiallyConsistent)
            if exchanged { return }
            expected = original
        }
    }

    private static func entry(_ address: UInt) -> Entry {
        Unmanaged<Entry>.fromOpaque(UnsafeRawPointer(bitPattern: address)!).takeUnretainedValue()
    }
}

extension WatchdogInbox.Entry {
    /// Retires this request and those after it.
    fileprivate func retireAll(in inbox: WatchdogInbox) {
        var entry: WatchdogInbox.Entry? = self
        while let request = entry {
            entry = inbox.next(after: request)
            inbox.retire(request)
        }
    }
}

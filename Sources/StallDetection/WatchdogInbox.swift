// How other threads reach the watchdog without a lock: an app thread that is stopped while it holds one would take
// the watchdog with it.

internal import Synchronization

enum WatchdogRequest: Sendable {
    case watch(WatchedLoop)
    case setPolicies(WatchedLoop, ModePolicies)
    case unwatch(WatchedLoop)
    case stop
}

/// A stack of requests, pushed from any thread, taken as a whole by the watchdog.
final class WatchdogInbox: Sendable {
    private final class Entry {
        let request: WatchdogRequest
        var next: UInt = 0
        init(_ request: WatchdogRequest) { self.request = request }
    }

    /// The address of a retained `Entry`, or 0.
    private let top = Atomic<UInt>(0)

    deinit { _ = takeAll() }

    var isEmpty: Bool { top.load(ordering: .sequentiallyConsistent) == 0 }

    func push(_ request: WatchdogRequest) {
        let entry = Entry(request)
        let address = UInt(bitPattern: Unmanaged.passRetained(entry).toOpaque())
        var expected = top.load(ordering: .relaxed)
        while true {
            entry.next = expected
            let (exchanged, original) = top.compareExchange(
                expected: expected, desired: address, ordering: .sequentiallyConsistent)
            if exchanged { return }
            expected = original
        }
    }

    /// The requests in the order they were pushed.
    func takeAll() -> [WatchdogRequest] {
        var requests: [WatchdogRequest] = []
        var next = top.exchange(0, ordering: .sequentiallyConsistent)
        while let pointer = UnsafeRawPointer(bitPattern: next) {
            let entry = Unmanaged<Entry>.fromOpaque(pointer).takeRetainedValue()
            requests.append(entry.request)
            next = entry.next
        }
        return requests.reversed()
    }
}

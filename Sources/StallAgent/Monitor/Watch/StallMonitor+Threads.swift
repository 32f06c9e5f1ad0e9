// Any thread that marks its own work.

internal import CLinux
internal import StallCapture
internal import StallDetection
internal import StallModel

extension StallMonitor {
    /// Watches work that the calling thread marks: a piece of work that takes at least the threshold is a stall.
    ///
    ///     let decoder = monitor.watchCurrentThread(as: "decoder")
    ///     while let packet = next() {
    ///         decoder.begin(); defer { decoder.end() }
    ///         decode(packet)
    ///     }
    ///
    /// Between end and begin the thread counts as idle. Watching ends when the result is deallocated or the monitor
    /// stops.
    ///
    /// - Parameters:
    ///   - name: The target's name in reports.
    ///   - threshold: How long a piece of work may take; the configuration's threshold if nil. At least 20 ms.
    public func watchCurrentThread(as name: String, threshold: Duration? = nil) -> WatchedThread {
        guard agent != nil, let beacon = SharedBeacon() else { return WatchedThread(nil) {} }
        let thread = RegisteredThread.current()
        stall_beacon_publish_thread(beacon.pointer, thread.id.rawValue)
        stall_current_keep(beacon.pointer)
        let key = RegistrationKey.marked(UInt(bitPattern: beacon.pointer))
        watch(
            ThreadTarget(thread, beacon: beacon), LoopBeacon(beacon.pointer), as: name,
            threshold: threshold, key: key, thread: thread.id)
        return WatchedThread(beacon) { [self] in unwatch(key) }
    }
}

/// A thread that marks its work with ``begin()`` and ``end()``, from
/// ``StallMonitor/watchCurrentThread(as:threshold:)``.
///
/// **Thread safety:** may be passed to any thread, but only marks on the thread that created it count; others are
/// ignored.
/// **Cost:** one clock reading per mark, and a system call only if the watchdog must be woken: once per idle period.
public final class WatchedThread: @unchecked Sendable {
    // Unchecked because marks check that they are on their thread.
    private let beacon: SharedBeacon?
    private let mark: UnsafeMutablePointer<stall_mark>?
    private let unwatch: @Sendable () -> Void

    init(_ beacon: SharedBeacon?, unwatch: @escaping @Sendable () -> Void) {
        self.beacon = beacon
        self.unwatch = unwatch
        mark = beacon.map { beacon in
            let mark = UnsafeMutablePointer<stall_mark>.allocate(capacity: 1)
            mark.initialize(
                to: stall_mark(beacon: beacon.pointer, thread: stall_this_thread(), depth: 0))
            return mark
        }
    }

    deinit {
        unwatch()
        mark?.deallocate()
    }

    /// The label in reports of stalls in this thread's work; nil for none. Set it on the thread itself.
    ///
    /// At most 63 bytes of UTF-8. ``StallMonitor/withActivity(_:_:)`` does the same for a scope.
    public var activity: String? {
        get { beacon.flatMap { LoopBeacon($0.pointer).label } }
        set {
            guard let beacon, let mark, mark.pointee.thread == stall_this_thread() else { return }
            LoopBeacon(beacon.pointer).writeLabel(newValue)
        }
    }

    /// Work begins. Calls nest; the outermost pair counts.
    public func begin() {
        if let mark { stall_mark_begin(mark) }
    }

    /// Work ends. Does nothing without a begin.
    public func end() {
        if let mark { stall_mark_end(mark) }
    }
}

// A value that only its loop's thread touches, in a box that any thread may hold.

internal import CLinux
internal import StallModel
internal import Synchronization

/// A box for a value of any type that is used on one loop's thread only; the box itself may go anywhere.
///
///     let seen = LoopBound(Set<String>(), to: loop)
///     loop.schedule(every: .seconds(1)) { _ in print(seen.withValue { $0.count }) }
///     let inbox = try FileSource(path: folder) { _, name in seen.withValue { _ = $0.insert(name ?? "") } }
///
/// Handlers of one loop share a variable in this way: they run on its thread, one at a time, so no lock is needed. Using
/// the value on another thread ends the process with a sentence, in release builds too.
///
/// The value is freed on the loop's thread: if another thread releases the last reference, the loop frees it in a
/// common
/// mode, or when its thread ends. Once that has ended, it is freed with the box.
///
/// **Thread safety:** any thread may make the box, hold it and release it.
public final class LoopBound<Value>: @unchecked Sendable {
    /// The loop whose thread may use the value.
    public let loop: EventRunLoop
    private let storage: Storage

    /// Touched by the loop's thread alone.
    private final class Storage: @unchecked Sendable {
        /// Nil once it was freed ahead of the storage.
        var value: Value?
        var isInUse = false
        init(_ value: consuming Value) { self.value = value }
    }

    /// Gives a value to a loop. The caller keeps no part of it.
    public init(_ value: sending Value, to loop: EventRunLoop = .current) {
        self.loop = loop
        storage = Storage(value)
    }

    deinit {
        guard !isAccessible else { return }
        // The block frees it, not the end of the block: this thread may hold the block longer than the loop does.
        loop.post(inMode: .common) { [storage] in storage.value = nil }
    }

    /// Whether the calling code is on the loop's thread, so that it may use the value.
    public var isAccessible: Bool {
        // At its thread's end a loop calls handlers for the last time, when it is no thread's current one any more.
        loop.isCurrent
            || (loop.hasEnded.load(ordering: .acquiring)
                && loop.thread.rawValue == stall_gettid())
    }

    /// Uses the value: on the loop's thread, and not inside of another use, as by a nested run.
    ///
    /// The compiler refuses to return a value that is not sendable, or a part of it, and to put in one that is used
    /// elsewhere. (`Mutex.withLock`, whose result is `sending`, lets `{ $0 }` return it.) To move it out, assign a new
    /// one: `{ value in let old = value; value = []; return old }`. A result that is not sendable stays where the call
    /// is: in the actor's code, if it is an actor's.
    public func withValue<Result, Failure: Error>(
        _ body: (inout sending Value) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        guard isAccessible else {
            fatalError(
                "a value that is bound to the run loop of thread \(loop.thread.rawValue) was used on another thread"
            )
        }
        guard !storage.isInUse else {
            fatalError("a value that is bound to a run loop was used inside of another use of it")
        }
        storage.isInUse = true
        defer { storage.isInUse = false }
        return try body(&storage.value!)
    }
}

extension LoopBound where Value: Sendable {
    /// A copy of the value, on the loop's thread only.
    public var value: Value {
        get { withValue { $0 } }
        set { withValue { $0 = newValue } }
    }
}

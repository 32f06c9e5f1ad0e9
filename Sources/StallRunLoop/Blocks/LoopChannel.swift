// Typed messages to a loop, for the uses of a Mach port source elsewhere.

internal import Synchronization

/// Hands messages of any thread to a handler on a loop's thread, in order, up to a limit.
///
///     let channel = LoopChannel<Frame>(to: loop, capacity: 64) { frame in show(frame) }
///     guard channel.send(frame) else { dropped += 1; return }      // on any thread
///
/// The messages of one iteration are handed over together, so that timers and descriptors have their turn between them.
/// A channel keeps its modes alive, as a source does, until it is closed.
///
/// **Thread safety:** any thread may send and close; the handler runs on the loop's thread.
public final class LoopChannel<Message: Sendable>: Sendable {
    /// How many messages wait at most.
    public let capacity: Int

    private struct Queue {
        /// Nil where one was taken.
        var messages: [Message?] = []
        var head = 0
        /// How many were taken so far: the number of the first that waits.
        var takenCount = 0
        var isClosed = false
        var count: Int { messages.count - head }

        mutating func takeFirst() -> Message? {
            guard head < messages.count else { return nil }
            defer {
                head += 1
                takenCount += 1
                if head * 2 > messages.count {
                    messages.removeFirst(head)
                    head = 0
                }
            }
            return messages[head].take()
        }

        /// Takes no more. The messages that wait are returned, to be dropped without the lock.
        mutating func close() -> [Message?] {
            isClosed = true
            defer { (messages, head) = ([], 0) }
            return messages
        }
    }

    private let queue: SharedQueue
    private let loop: EventRunLoop
    private let source: LoopSource

    /// The messages that wait. Apart from the channel, so that the source does not keep the channel.
    private final class SharedQueue: @unchecked Sendable {
        let value = Locked(Queue())
        /// Set before the source is in a loop; from then on only read.
        weak var source: LoopSource?

        /// The number behind the last message that waits now.
        var end: Int { value.withLock { $0.takenCount + $0.count } }

        /// Takes the oldest message, if its number is below `end`. A run that is nested in a handler has taken those
        /// before it, so all come in order.
        func takeFirst(before end: Int) -> Message? {
            value.withLock { $0.takenCount < end ? $0.takeFirst() : nil }
        }

        /// Releases the handler too, also while the app holds the channel: the loop's thread ends in this way.
        func close() {
            let dropped = value.withLock { $0.close() }
            withExtendedLifetime(dropped) {}
            source?.invalidate()
        }
    }

    /// Makes a channel and adds it to a mode, or to all common modes.
    ///
    /// - Parameters:
    ///   - loop: The loop that the messages are for.
    ///   - mode: The mode in which it takes them.
    ///   - capacity: How many messages may wait; at least 1.
    ///   - order: As that of a ``LoopSource``.
    ///   - handler: Called for each message.
    public init(
        to loop: EventRunLoop, inMode mode: LoopMode = .common, capacity: Int, order: Int = 0,
        handler: sending @escaping (Message) -> Void
    ) {
        let queue = SharedQueue()
        self.capacity = max(1, capacity)
        self.loop = loop
        self.queue = queue
        source = LoopSource(
            order: order, onCancel: { _, _ in queue.close() }
        ) { _ in
            let end = queue.end
            while let message = queue.takeFirst(before: end) { handler(message) }
        }
        queue.source = source
        if !loop.add(source, toMode: mode) { close() }
    }

    deinit { close() }

    /// Adds a message and wakes the loop.
    ///
    /// - Returns: false when the channel is full or closed; the message is not taken. True means that it was taken: messages that wait when
    ///   the channel is closed, or when the loop's thread ends, are dropped.
    @discardableResult
    public func send(_ message: Message) -> Bool {
        let isTaken = queue.value.withLock { queue in
            guard !queue.isClosed, queue.count < capacity else { return false }
            queue.messages.append(message)
            return true
        }
        guard isTaken else { return false }
        source.signal()
        loop.wakeUp()
        return true
    }

    /// How many messages wait.
    public var count: Int { queue.value.withLock { $0.count } }

    /// Takes no more messages, drops those that wait, and releases the handler: when it runs, as soon as it returns.
    /// Releasing the channel does the same, and so does the end of the loop's thread.
    public func close() { queue.close() }
}

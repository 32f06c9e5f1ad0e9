// A plain POSIX thread for the agent, because the Swift pool and Dispatch may be what is stuck.

internal import CLinux
internal import Glibc
internal import StallModel
internal import Synchronization

/// A joinable thread that blocks asynchronous signals.
package final class AgentThread: @unchecked Sendable {
    // Unchecked because the thread's handle is a plain value that is set once.
    private let handle: pthread_t

    private final class Body: Sendable {
        let run: @Sendable () -> Void
        init(_ run: @escaping @Sendable () -> Void) { self.run = run }
    }

    package enum Scheduling {
        /// Of a process that was just started.
        case plain
        /// It must run while its creator does, whatever the creator's priority.
        case ahead
        /// Its creator's.
        case alike
    }

    /// Starts the thread; nil if the system refuses.
    ///
    package init?(
        name: String, stackBytes: Int = 1 << 20, scheduling: Scheduling = .plain,
        _ body: @escaping @Sendable () -> Void
    ) {
        let context = Unmanaged.passRetained(Body(body))
        var handle = pthread_t()
        let start =
            switch scheduling {
            case .plain: stall_thread_start
            case .ahead: stall_thread_start_ahead
            case .alike: stall_thread_start_alike
            }
        let error = start(
            &handle, name, stackBytes,
            { context in
                Unmanaged<Body>.fromOpaque(context!).takeRetainedValue().run()
                return nil
            }, context.toOpaque())
        guard error == 0 else {
            context.release()
            Self.failure.store(error, ordering: .relaxed)
            return nil
        }
        self.handle = handle
    }

    private static let failure = Atomic<CInt>(0)

    /// Why the last thread that could not be started failed, as text for a log.
    package static var failureText: String {
        let errno = failure.load(ordering: .relaxed)
        return errno == 0
            ? "no descriptor or no memory" : "pthread_create failed with errno \(errno)"
    }

    /// Whether the caller runs on this thread.
    package var isCurrent: Bool { pthread_equal(pthread_self(), handle) != 0 }

    /// Waits until the thread has ended. Call it once, from another thread.
    package func join() { pthread_join(handle, nil) }

    /// As `join()`, with a limit. False if the thread has not ended by then; it can still be joined.
    package func join(within limit: Duration) -> Bool {
        let end = MonotonicInstant(nanoseconds: stall_monotonic_ns()) + limit
        return stall_thread_join_until(handle, end.nanoseconds)
    }

    /// Detaches the thread: it will not be joined.
    package func detach() { pthread_detach(handle) }
}

// The loop of the calling thread. A thread-specific value, whose destructor ends the loop with its thread.

internal import CLinux
internal import Glibc
internal import StallModel

enum LoopOfThread {
    private static let key: pthread_key_t = {
        var key = pthread_key_t()
        let error = pthread_key_create(&key) { value in
            guard let value else { return }
            Unmanaged<EventRunLoop>.fromOpaque(value).takeRetainedValue().threadEnded()
        }
        guard error == 0 else { fatalError("pthread_key_create failed with errno \(error)") }
        return key
    }()

    static var current: EventRunLoop {
        if let value = pthread_getspecific(key) {
            return Unmanaged<EventRunLoop>.fromOpaque(value).takeUnretainedValue()
        }
        let thread = stall_gettid()
        let loop =
            thread == getpid()
            ? EventRunLoop.main
            : EventRunLoop(thread: ThreadID(rawValue: thread), isMain: false)
        pthread_setspecific(key, Unmanaged.passRetained(loop).toOpaque())
        return loop
    }

    /// The calling thread's loop, if it has asked for one.
    @inline(__always) static var ifAny: Unmanaged<EventRunLoop>? {
        pthread_getspecific(key).map { Unmanaged.fromOpaque($0) }
    }

    static func isCurrent(_ loop: EventRunLoop) -> Bool {
        if let value = pthread_getspecific(key) {
            return value == Unmanaged.passUnretained(loop).toOpaque()
        }
        return loop.isMain && stall_gettid() == getpid()
    }
}

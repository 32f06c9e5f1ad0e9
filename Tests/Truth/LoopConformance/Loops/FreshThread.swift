internal import Glibc

/// Runs a body on a new thread with a fresh loop, and waits until that thread and its loop have ended.
package func onFreshThread(_ body: @escaping @Sendable () -> Void) {
    let call = Unmanaged.passRetained(Box(body))
    var thread = pthread_t()
    let error = pthread_create(
        &thread, nil,
        { argument in
            Unmanaged<Box<@Sendable () -> Void>>.fromOpaque(argument!).takeRetainedValue().value()
            return nil
        }, call.toOpaque())
    precondition(error == 0, "pthread_create failed with errno \(error)")
    pthread_join(thread, nil)
}

// An item that leaves its loop when its owner goes away.

/// Invalidates an item when it is released, or on request.
///
///     final class Clock {
///         private var ticking: LoopRegistration?
///         func start() { ticking = LoopRegistration(loop.schedule(every: .seconds(1)) { _ in print("tick") }) }
///     }
///
/// A handler that captures the owner strongly keeps it, and so the registration, alive: capture it weakly.
///
/// **Thread safety:** any thread may use it and release it.
public final class LoopRegistration: Sendable {
    private let onCancel: @Sendable () -> Void

    /// Owns a timer's stay in its loop.
    public init(_ timer: LoopTimer) { onCancel = { timer.invalidate() } }

    /// Owns a source's stay in its loops.
    public init(_ source: LoopSource) { onCancel = { source.invalidate() } }

    /// Owns an observer's stay in its loop.
    public init(_ observer: LoopObserver) { onCancel = { observer.invalidate() } }

    /// Owns a descriptor source's stay in its loops. The descriptor stays open.
    public init(_ source: DescriptorSource) { onCancel = { source.invalidate() } }

    /// Owns what `onCancel` ends.
    init(_ onCancel: @escaping @Sendable () -> Void) { self.onCancel = onCancel }

    deinit { onCancel() }

    /// Invalidates the item now.
    public func cancel() { onCancel() }
}

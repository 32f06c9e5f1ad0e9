// Handlers that are isolated to the main actor, for the main loop: `{ @MainActor timer in ... }`. Its thread is the main
// thread, where no other code of the main actor runs while a handler does: `async main` and `dispatchMain()` serve the
// actor elsewhere, but by ending the main thread, and with it the runs of this loop.

public import StallModel

/// A handler for an item, from one on the main actor.
private func isolated<each Argument: Sendable>(
    _ body: @escaping @MainActor (repeat each Argument) -> Void
) -> @Sendable (repeat each Argument) -> Void {
    { (argument: repeat each Argument) in
        EventRunLoop.current.requireMain()
        MainActor.assumeIsolated { body(repeat each argument) }
    }
}

// The same without generics: such a closure holds the types of its arguments first, and a dump does not find the app's function
// behind them.
private func isolated(_ body: @escaping @MainActor () -> Void) -> @Sendable () -> Void {
    { onMainActor { body() } }
}
private func isolated(
    _ body: @escaping @MainActor (LoopTimer) -> Void
) -> @Sendable (LoopTimer) -> Void { { timer in onMainActor { body(timer) } } }
private func isolated(
    _ body: @escaping @MainActor (LoopSource) -> Void
) -> @Sendable (LoopSource) -> Void { { source in onMainActor { body(source) } } }
private func isolated(
    _ body: @escaping @MainActor (LoopObserver, LoopActivity) -> Void
) -> @Sendable (LoopObserver, LoopActivity) -> Void {
    { observer, activity in onMainActor { body(observer, activity) } }
}
private func isolated(
    _ body: @escaping @MainActor (DescriptorSource, DescriptorEvents) -> Void
) -> @Sendable (DescriptorSource, DescriptorEvents) -> Void {
    { source, events in onMainActor { body(source, events) } }
}
private func isolated(
    _ body: @escaping @MainActor (CInt, CInt) -> Void
) -> @Sendable (CInt, CInt) -> Void { { signal, sender in onMainActor { body(signal, sender) } } }
private func isolated(
    _ body: @escaping @MainActor (ChildProcessEnd) -> Void
) -> @Sendable (ChildProcessEnd) -> Void { { end in onMainActor { body(end) } } }
private func isolated(
    _ body: @escaping @MainActor (FileEvents, String?) -> Void
) -> @Sendable (FileEvents, String?) -> Void {
    { events, name in onMainActor { body(events, name) } }
}

private func onMainActor(_ call: @MainActor () -> Void) {
    EventRunLoop.current.requireMain()
    MainActor.assumeIsolated(call)
}

extension EventRunLoop {
    /// Ends the process where a handler on the main actor meets another thread's loop.
    fileprivate func requireMain() {
        guard !isMain else { return }
        fatalError(
            "a handler on @MainActor was given to the run loop of thread \(thread.rawValue); only EventRunLoop.main can call it"
        )
    }
}

// MARK: Blocks

extension EventRunLoop {
    /// As ``perform(inMode:_:)-(_,()->Void)``, for a block on the main actor. On the main loop only.
    @discardableResult
    public func perform(
        inMode mode: LoopMode = .default, _ block: @escaping @MainActor () -> Void
    ) -> Bool {
        requireMain()
        return perform(inMode: mode, isolated(block))
    }

    /// As ``perform(inModes:_:)-(_,()->Void)``, for a block on the main actor. On the main loop only.
    @discardableResult
    public func perform(inModes modes: [LoopMode], _ block: @escaping @MainActor () -> Void) -> Bool
    {
        requireMain()
        return perform(inModes: modes, isolated(block))
    }

    /// As ``post(inMode:_:)-(_,()->Void)``, for a block on the main actor: how a worker hands a result to it. On the main
    /// loop only.
    @discardableResult
    public func post(inMode mode: LoopMode = .default, _ block: @escaping @MainActor () -> Void)
        -> Bool
    {
        requireMain()
        return post(inMode: mode, isolated(block))
    }

    /// As ``performAndWait(inMode:_:)-(_,()->Void)``, for a block on the main actor. On the main loop only.
    public func performAndWait(
        inMode mode: LoopMode = .common, _ block: @escaping @MainActor () -> Void
    ) throws(LoopError) {
        requireMain()
        try performAndWait(inMode: mode, isolated(block))
    }

    /// As ``performWhenIdle(inMode:_:)-(_,()->Void)``, for a unit on the main actor. On the main loop only.
    @discardableResult
    public func performWhenIdle(
        inMode mode: LoopMode = .default, _ unit: @escaping @MainActor () -> Void
    ) -> Bool {
        requireMain()
        return performWhenIdle(inMode: mode, isolated(unit))
    }

    /// As ``perform(after:inMode:_:)-(_,_,()->Void)``, for a block on the main actor. On the main loop only.
    @discardableResult
    public func perform(
        after delay: Duration, inMode mode: LoopMode = .default,
        _ block: @escaping @MainActor () -> Void
    ) -> LoopTimer {
        requireMain()
        return perform(after: delay, inMode: mode, isolated(block))
    }

    /// As ``schedule(every:tolerance:inMode:_:)-(_,_,_,(LoopTimer)->Void)``, for a handler on the main actor. On the main
    /// loop only.
    @discardableResult
    public func schedule(
        every interval: Duration, tolerance: Duration = .zero, inMode mode: LoopMode = .default,
        _ handler: @escaping @MainActor (LoopTimer) -> Void
    ) -> LoopTimer {
        requireMain()
        return schedule(
            every: interval, tolerance: tolerance, inMode: mode, isolated(handler))
    }
}

extension LoopWork {
    /// Makes work on the main actor, for the main loop only.
    public convenience init(_ body: @escaping @MainActor () -> Void) { self.init(isolated(body)) }
}

extension LoopChannel {
    /// Makes a channel with a handler on the main actor, to the main loop.
    ///
    ///     let frames = LoopChannel<Frame>(to: .main, capacity: 64) { @MainActor frame in view.show(frame) }
    public convenience init(
        to loop: EventRunLoop, inMode mode: LoopMode = .common, capacity: Int, order: Int = 0,
        handler: @escaping @MainActor (Message) -> Void
    ) {
        loop.requireMain()
        self.init(
            to: loop, inMode: mode, capacity: capacity, order: order, handler: isolated(handler))
    }
}

extension LoopMessagePort {
    /// Makes a port with handlers on the main actor, on the main loop.
    public convenience init(
        descriptor: CInt, on loop: EventRunLoop, inMode mode: LoopMode = .common,
        coding: MessageCoding<Message>, limits: MessageLimits = MessageLimits(),
        onRoom: @escaping @MainActor (LoopMessagePort) -> Void = { _ in },
        onEnd: @escaping @MainActor (LoopMessagePort, MessagePortEnd) -> Void = { _, _ in },
        handler: @escaping @MainActor (LoopMessagePort, Message) -> Void
    ) throws(LoopError) {
        loop.requireMain()
        try self.init(
            descriptor: descriptor, on: loop, inMode: mode, coding: coding, limits: limits,
            onRoom: isolated(onRoom), onEnd: isolated(onEnd), handler: isolated(handler))
    }
}

// MARK: Items

extension LoopTimer {
    /// Makes a timer with a handler on the main actor, for the main loop only.
    public convenience init(
        after delay: Duration, every interval: Duration? = nil, tolerance: Duration = .zero,
        handler: @escaping @MainActor (LoopTimer) -> Void
    ) {
        self.init(
            after: delay, every: interval, tolerance: tolerance, handler: isolated(handler))
    }

    /// Makes a timer with a handler on the main actor, for the main loop only.
    public convenience init(
        at instant: MonotonicInstant, every interval: Duration? = nil, tolerance: Duration = .zero,
        handler: @escaping @MainActor (LoopTimer) -> Void
    ) {
        self.init(
            at: instant, every: interval, tolerance: tolerance, handler: isolated(handler))
    }
}

extension LoopSource {
    /// Makes a source with a handler on the main actor, for the main loop only. The other two are called by the thread that
    /// adds and removes.
    public convenience init(
        order: Int = 0, onSchedule: (@Sendable (EventRunLoop, LoopMode) -> Void)? = nil,
        onCancel: (@Sendable (EventRunLoop, LoopMode) -> Void)? = nil,
        handler: @escaping @MainActor (LoopSource) -> Void
    ) {
        self.init(
            order: order, onSchedule: onSchedule, onCancel: onCancel, handler: isolated(handler))
    }
}

extension LoopObserver {
    /// Makes an observer with a handler on the main actor, for the main loop only.
    public convenience init(
        activities: LoopActivity = .all, repeats: Bool = true, order: Int = 0,
        handler: @escaping @MainActor (LoopObserver, LoopActivity) -> Void
    ) {
        self.init(
            activities: activities, repeats: repeats, order: order, handler: isolated(handler))
    }
}

extension DescriptorSource {
    /// Makes a source with a handler on the main actor, for the main loop only.
    public convenience init(
        descriptor: CInt, events: DescriptorEvents = .readable,
        handler: @escaping @MainActor (DescriptorSource, DescriptorEvents) -> Void
    ) {
        self.init(descriptor: descriptor, events: events, handler: isolated(handler))
    }

    /// Makes a source with a handler on the main actor, for the main loop only, that reports when its descriptor can be
    /// closed.
    public convenience init(
        descriptor: CInt, events: DescriptorEvents = .readable,
        onCancel: @escaping @Sendable (CInt) -> Void,
        handler: @escaping @MainActor (DescriptorSource, DescriptorEvents) -> Void
    ) {
        self.init(
            descriptor: descriptor, events: events, onCancel: onCancel, handler: isolated(handler))
    }
}

extension SignalSource {
    /// Makes a source with a handler on the main actor, for the main loop only.
    public convenience init(
        _ signals: [CInt], handler: @escaping @MainActor (_ signal: CInt, _ sender: CInt) -> Void
    ) throws(LoopError) { try self.init(signals, handler: isolated(handler)) }
}

extension ChildProcessSource {
    /// Makes a source with a handler on the main actor, for the main loop only.
    public convenience init(
        pid: CInt, handler: @escaping @MainActor (ChildProcessEnd) -> Void
    ) throws(LoopError) { try self.init(pid: pid, handler: isolated(handler)) }
}

extension FileSource {
    /// Makes a source with a handler on the main actor, for the main loop only.
    public convenience init(
        path: String, events: FileEvents = .changes,
        handler: @escaping @MainActor (_ events: FileEvents, _ name: String?) -> Void
    ) throws(LoopError) { try self.init(path: path, events: events, handler: isolated(handler)) }
}

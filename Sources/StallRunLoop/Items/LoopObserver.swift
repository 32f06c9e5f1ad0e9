// A callback at moments of a run. Belongs to at most one loop, in any number of its modes.

internal import Synchronization

/// Calls a handler at chosen moments of a loop's runs.
///
/// Observers do not keep a mode alive. While its handler runs, an observer is not called again by nested runs.
///
/// **Thread safety:** any thread may add, remove and invalidate; the handler runs on the loop's thread.
public final class LoopObserver: @unchecked Sendable {
    /// The moments it is called at.
    public let activities: LoopActivity
    /// Whether it stays after its first call.
    public let repeats: Bool
    /// Observers with a smaller order are called first; equal ones in the order they were added.
    public let order: Int

    /// Nil once the observer was invalidated. Guarded by the lock of its loop; without one, touched by the thread that
    /// has invalidated it alone.
    @exclusivity(unchecked) private(set) var handler: ((LoopObserver, LoopActivity) -> Void)?
    /// Changed with its loop's lock held.
    let owner = ItemOwner()
    /// The modes it is in, `.common` for the common items, each with its slot there; guarded by its loop's lock.
    var places: [(mode: LoopMode, slot: UInt32)] = []
    /// Its handler is running. Changed by the thread that runs it, also when the handler has moved it to another
    /// thread's loop.
    let firing = Atomic<Bool>(false)
    /// Whether the app has named it; see ``ItemLabels``.
    let isLabelled = Atomic<Bool>(false)
    var isFiring: Bool { firing.load(ordering: .relaxed) }

    /// Makes an observer; add it with ``EventRunLoop/add(_:toMode:)-(LoopObserver,_)``.
    public init(
        activities: LoopActivity = .all, repeats: Bool = true, order: Int = 0,
        handler: sending @escaping (LoopObserver, LoopActivity) -> Void
    ) {
        self.activities = activities
        self.repeats = repeats
        self.order = order
        self.handler = handler
    }

    deinit {
        if isLabelled.load(ordering: .relaxed) { ItemLabels.set(nil, of: self) }
    }

    /// False once it was invalidated, or, when it does not repeat, was called.
    public var isValid: Bool { owner.isValid }

    /// The handler, when its turn in a pass of `loop` has come; nil if it was invalidated, or moved to another loop.
    /// One that was only removed is called still. With the lock of `loop`.
    func handlerInTurn(of loop: EventRunLoop) -> ((LoopObserver, LoopActivity) -> Void)? {
        while isValid {
            switch owner.loopNumber {
            case loop.number: return handler
            case 0:
                // No thread invalidates it meanwhile, unless one has begun to.
                if let found = owner.withoutOwner({ owner.isValid ? handler : nil }) {
                    return found
                }
            default: return nil
            }
        }
        return nil
    }

    /// Removes it from its loop for good, and releases the handler: when it runs, as soon as it returns. It is not
    /// called again, not even later in the current pass.
    public func invalidate() {
        guard let number = owner.invalidate() else { return }
        LivingLoops.with(number) { $0.removeFromAllModes(self) }
        // It is in no loop, and no loop takes it any more.
        handler = nil
    }
}

// Calls the app's `onSuspicion` hooks when a loop is suspected, for context that is gone when the report is written. The
// watchdog only stores a number and wakes a thread; it never waits for a hook.
//
//     watchdog -> SuspicionCell -> stall-suspicion thread -> hook -> facts -> recorder

internal import CLinux
internal import StallDetection
internal import StallModel
internal import StallRunLoop
internal import Synchronization

/// The suspicions of one loop, and what hooks said of the last ones.
final class SuspicionCell: Sendable {
    let loop: String
    private let hooks: SuspicionHooks
    /// When the last suspected callout began, in nanoseconds.
    private let began = Atomic<UInt64>(0)
    private let answered = Atomic<UInt64>(0)
    private let facts = AgentLocked<[(began: UInt64, facts: [CauseEvidence])]>([])

    fileprivate init(loop: String, hooks: SuspicionHooks) {
        self.loop = loop
        self.hooks = hooks
    }

    /// Called on the watchdog's thread. Neither allocates nor waits.
    func announce(_ began: MonotonicInstant) {
        guard hooks.isWanted else { return }
        self.began.store(began.nanoseconds, ordering: .releasing)
        hooks.wake()
    }

    /// The suspicion that no hook was called for yet. An earlier one that was not taken is left out.
    fileprivate func takeNew() -> UInt64? {
        let began = began.load(ordering: .acquiring)
        return answered.exchange(began, ordering: .relaxed) == began ? nil : began
    }

    fileprivate func add(_ new: [CauseEvidence], began: UInt64) {
        facts.withLock { all in
            if let known = all.firstIndex(where: { $0.began == began }) {
                return all[known].facts += new
            }
            all.append((began, new))
            if all.count > 4 { all.removeFirst() }
        }
    }

    /// The facts that hooks added to this callout so far.
    func facts(began: MonotonicInstant) -> [CauseEvidence] {
        facts.withLock { $0.first { $0.began == began.nanoseconds }?.facts ?? [] }
    }
}

/// The hooks of one monitor, and their thread.
final class SuspicionHooks: Sendable {
    typealias Hook = @Sendable (_ loop: String, _ elapsed: Duration) -> [String: String]

    private struct WeakCell { weak var cell: SuspicionCell? }
    private struct State {
        var hooks: [(mask: SignalMask, body: Hook)] = []
        var cells: [WeakCell] = []
        var thread: AgentThread?
        var isStopped = false
    }
    private struct Wakeup: @unchecked Sendable { let pointer: UnsafeMutablePointer<stall_wakeup> }

    private let state = AgentLocked(State())
    private let hasHooks = Atomic<Bool>(false)
    /// Never freed; nil without memory: then no hook is called.
    private let wakeup = stall_wakeup_create().map { Wakeup(pointer: $0) }

    /// Facts per hook, and bytes of a fact: a report has limits.
    private static let (factLimit, byteLimit) = (8, 200)

    fileprivate var isWanted: Bool { hasHooks.load(ordering: .relaxed) }

    fileprivate func wake() {
        if let wakeup { stall_wakeup_signal(wakeup.pointer) }
    }

    func makeCell(for loop: String) -> SuspicionCell {
        let cell = SuspicionCell(loop: loop, hooks: self)
        state.withLock { state in
            state.cells.removeAll { $0.cell == nil }
            state.cells.append(WeakCell(cell: cell))
        }
        return cell
    }

    func add(_ hook: @escaping Hook) {
        guard let wakeup else { return }
        state.withLock { state in
            guard !state.isStopped else { return }
            state.hooks.append((.current(), hook))
            if state.thread == nil {
                state.thread = AgentThread(name: "stall-suspicion") { [self] in
                    run(wakeup.pointer)
                }
            }
        }
        hasHooks.store(true, ordering: .relaxed)
    }

    /// Ends the thread. One that is stuck in a hook is left to itself.
    func stop() {
        hasHooks.store(false, ordering: .relaxed)
        let thread = state.withLock { state in
            state.isStopped = true
            return state.thread.take()
        }
        guard let thread else { return }
        wake()
        if !thread.join(within: .seconds(1)) { thread.detach() }
    }

    private func run(_ wakeup: UnsafeMutablePointer<stall_wakeup>) {
        while true {
            // Announced before the cells are read, so that no suspicion is lost in between.
            stall_wakeup_prepare(wakeup, UInt32(STALL_WATCHDOG_TIMED_WAIT))
            let (hooks, cells, isStopped) = state.withLock {
                ($0.hooks, $0.cells.compactMap(\.cell), $0.isStopped)
            }
            if isStopped { return }
            var wasBusy = false
            for cell in cells {
                guard let began = cell.takeNew() else { continue }
                wasBusy = true
                for (mask, hook) in hooks {
                    let now = MonotonicInstant(nanoseconds: stall_monotonic_ns())
                    var said: [String: String] = [:]
                    mask.run {
                        said = hook(cell.loop, now - MonotonicInstant(nanoseconds: began))
                    }
                    cell.add(Self.facts(said), began: began)
                }
            }
            if !wasBusy {
                stall_wakeup_wait(wakeup, UInt32(STALL_WATCHDOG_TIMED_WAIT), UInt64.max)
            }
        }
    }

    static func facts(_ said: [String: String]) -> [CauseEvidence] {
        said.keys.sorted().prefix(factLimit).map { name in
            CauseEvidence(
                String(decoding: name.utf8.prefix(byteLimit), as: UTF8.self),
                String(decoding: said[name]!.utf8.prefix(byteLimit), as: UTF8.self))
        }
    }
}

// Runs a random sequence on a loop, and compares the traces of two loops.

internal import CLinux
internal import Glibc

extension RandomSequence {
    /// The trace of the sequence on a fresh loop of the given kind: every callback in order, the results of all runs,
    /// the schedule and cancel callouts, and the final contents of all modes.
    package func trace(on type: any PlayedLoop.Type) -> [String] {
        let result = Unchecked(Box<[String]>([]))
        let type = Unchecked(type)
        onFreshThread {
            let player = Player(self, type.value.current)
            player.play()
            result.value.value = player.trace + player.scheduling.sorted()
            player.close()
        }
        return result.value.value
    }

    /// The two traces if they differ, also when repeated: the kernel may have been slow with a due timer.
    ///
    /// - Parameter retries: Counts the repetitions.
    package func difference(retries: inout Int) -> (ours: [String], real: [String])? {
        for attempt in 0..<4 {
            if attempt > 0 { retries += 1 }
            let (ours, real) = (trace(on: PlayedEventRunLoop.self), trace(on: PlayedCFRunLoop.self))
            if ours == real { return nil }
        }
        return (trace(on: PlayedEventRunLoop.self), trace(on: PlayedCFRunLoop.self))
    }

    package func difference() -> (ours: [String], real: [String])? {
        var retries = 0
        return difference(retries: &retries)
    }

    /// The shortest sequence, reached by leaving out one action after the other, that still differs.
    package func shrunk() -> RandomSequence {
        var current = self
        while let next = current.shorter().first(where: { $0.difference() != nil }) {
            current = next
        }
        return current
    }
}

private final class Player {
    let sequence: RandomSequence
    let loop: any PlayedLoop
    var trace: [String] = []
    var scheduling: [String] = []
    private var items: [any PlayedItem] = []
    private var descriptors: [CInt] = []
    private var calls: [String: Int] = [:]
    private var depth = 0
    private var firing: Set<Int> = []
    /// Nothing may run the loop inside a run that sleeps: a nested run would consume the stop meant for it.
    private var isSleeping = false

    init(_ sequence: RandomSequence, _ loop: any PlayedLoop) {
        self.sequence = sequence
        self.loop = loop
    }

    func play() {
        makeItems()
        for action in sequence.script {
            perform(action)
            trace.append(";")
        }
        for (index, item) in items.enumerated() {
            var modes = RandomSequence.modes.filter { loop.contains(item, $0) }
            // For items in no mode, the real loop forgets that a timer is a common item, and does not forget that any
            // other item was one when it is invalidated.
            if item is any PlayedTimer || !item.isValid, modes == ["common"] { modes = [] }
            let isSignalled = (item as? any PlayedSource)?.isSignalled ?? false
            trace.append("\(index)\(item.isValid ? "" : "!")\(isSignalled ? "*" : "")\(modes)")
        }
    }

    func close() {
        for item in items { item.invalidate() }
        for descriptor in descriptors { Glibc.close(descriptor) }
    }

    private func makeItems() {
        // All modes exist: in one that does not, the real loop leaves even blocks for the common modes alone.
        for mode in RandomSequence.modes.dropLast() {
            let passing = loop.source(order: 0, scheduling: nil) {}
            loop.add(passing, mode)
            passing.invalidate()
        }
        for index in 0..<RandomSequence.sourceCount {
            // Different orders: equal ones are ordered by a clock that is too coarse in the real loop.
            items.append(
                loop.source(
                    order: 2 - index,
                    scheduling: { [unowned self] isScheduled, mode in
                        scheduling.append("\(isScheduled ? "+" : "-")s\(index)(\(mode))")
                    }
                ) { [unowned self] in react("s\(index)") })
        }
        for (index, shape) in sequence.observers.enumerated() {
            items.append(
                loop.observer(shape.activities, repeats: shape.repeats, order: shape.order) {
                    [unowned self] _, activity in react("o\(index)", detail: Stage.letter(activity))
                })
        }
        for index in 0..<RandomSequence.extraCount {
            switch sequence.flavour {
            case .timers:
                let shape = sequence.timers[index]
                items.append(
                    loop.timer(in: shape.isDue ? -1 : 1_000, every: shape.repeats ? 1_000 : 0) {
                        [unowned self] _ in
                        let item = RandomSequence.firstExtra + index
                        firing.insert(item)
                        react("x\(index)")
                        firing.remove(item)
                    })
            case .wakeUps: break
            case .descriptors:
                descriptors.append(stall_eventfd_create())
                items.append(
                    loop.descriptor(descriptors[index], takes: true) { [unowned self] in
                        react("x\(index)")
                    })
            }
        }
    }

    /// A callback: logs its name, and performs the operations for this call.
    private func react(_ name: String, detail: String = "") {
        trace.append(name + detail)
        let call = calls[name, default: 0]
        calls[name] = call + 1
        guard let reactions = sequence.reactions[name], call < reactions.count else { return }
        trace.append("{")
        for action in reactions[call] { perform(action) }
        trace.append("}")
    }

    private func perform(_ action: RandomSequence.Action) {
        let modes = RandomSequence.modes
        switch action {
        case .add(let item, let mode): loop.add(items[item], modes[mode])
        case .remove(let item, let mode): loop.remove(items[item], modes[mode])
        case .invalidate(let item): items[item].invalidate()
        case .signal(let item): (items[item] as! any PlayedSource).signal()
        case .redate(let item, let isLater):
            // Re-dated by its own callback, a timer of several modes is armed again by the real loop in one of
            // them alone. Row T7 has the case of one mode.
            guard !firing.contains(item) else { return }
            (items[item] as! any PlayedTimer).setNextFire(in: isLater ? 2_000 : -1)
        case .write(let item): write(item - RandomSequence.firstExtra)
        case .perform(let block, let among):
            loop.perform(among.map { modes[$0] }) { [unowned self] in react("b\(block)") }
        case .addCommonMode(let mode): loop.addCommonMode(modes[mode])
        case .wakeUp: loop.wakeUp()
        case .stop: loop.stop()
        case .poll(let mode, let once): poll(modes[mode], once)
        case .sleep(let mode, let once): sleep(modes[mode], once)
        case .elsewhere(let inner):
            let work = Unchecked((self, inner))
            onFreshThread { work.value.0.perform(work.value.1) }
        }
    }

    private func poll(_ mode: String, _ once: Bool) {
        guard depth < 2, !isSleeping else { return }
        depth += 1
        let result = loop.run(mode, 0, returnAfterSourceHandled: once)
        depth -= 1
        trace.append("=\(result)")
        if depth == 0 { settle() }
    }

    /// A ready descriptor is served by the run that follows, or not at all: which of several is first is no rule.
    private func write(_ index: Int) {
        guard depth == 0, !isSleeping else { return }
        stall_eventfd_write(descriptors[index])
        poll("default", false)
        _ = stall_eventfd_take(descriptors[index])
    }

    private func sleep(_ mode: String, _ once: Bool) {
        guard depth == 0 else { return }
        isSleeping = true
        let stop = { [unowned self] in
            trace.append("stop")
            loop.stop()
        }
        if sequence.flavour == .timers {
            loop.add(loop.timer(in: 0, every: 0) { _ in stop() }, mode)
        } else {
            loop.perform([mode], stop)
        }
        trace.append("=\(loop.run(mode, 1e10, returnAfterSourceHandled: once))")
        isSleeping = false
        settle()
    }

    /// Consumes a wake-up that the real loop has left pending: it would cost the next run an iteration.
    private func settle() {
        let keep = loop.source(order: 0, scheduling: nil) {}
        loop.add(keep, "settle")
        _ = loop.run("settle", 0, returnAfterSourceHandled: false)
        keep.invalidate()
    }
}

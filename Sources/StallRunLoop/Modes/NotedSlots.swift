// The sources of a mode that may be signalled, so that a pass checks these and not all.

/// A source whose turn has come, with the position of its signal.
struct SignalledSource {
    let source: LoopSource
    let ticket: UInt64
    let slot: UInt32
}

/// Slots in the order in which they were first noted, each once.
struct NotedSlots {
    private(set) var slots: [UInt32] = []
    /// By slot.
    private var isNoted: [Bool] = []

    @inline(__always) mutating func note(_ slot: UInt32) {
        if slot < isNoted.count && isNoted[Int(slot)] { return }
        append(slot)
    }

    private mutating func append(_ slot: UInt32) {
        while isNoted.count <= slot { isNoted.append(false) }
        isNoted[Int(slot)] = true
        slots.append(slot)
    }

    @inline(__always) mutating func removeAll(where isOver: (UInt32) -> Bool) {
        var kept = 0
        for index in slots.indices {
            let slot = slots[index]
            if isOver(slot) {
                isNoted[Int(slot)] = false
            } else {
                slots[kept] = slot
                kept += 1
            }
        }
        slots.removeLast(slots.count - kept)
    }
}

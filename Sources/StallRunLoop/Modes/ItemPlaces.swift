// Where a source is: in several modes, and in several loops. Guarded by a lock of the source's own.

/// One mode of one loop, or the loop's common items, which mode `.common` stands for.
///
/// Nothing in it is retained. A loop takes its places out before it ends, with the lock of the places, so what a place
/// points to lives for as long as that lock is held; the modes of a loop, also for as long as the loop's lock is held.
struct ItemPlace {
    let loop: Unmanaged<EventRunLoop>
    /// Nil for the common items.
    let items: Unmanaged<ModeItems>?
    let mode: LoopMode
    /// Its slot in the list of that mode.
    let slot: UInt32

    init(_ loop: EventRunLoop, _ mode: LoopMode, slot: UInt32, items: ModeItems?) {
        self.loop = .passUnretained(loop)
        self.items = items.map { .passUnretained($0) }
        self.mode = mode
        self.slot = slot
    }

    @inline(__always) func isIn(_ loop: EventRunLoop) -> Bool {
        self.loop.toOpaque() == Unmanaged.passUnretained(loop).toOpaque()
    }
}

/// All places of a source. Most are in the default mode, some as common items too: two are kept inline.
struct ItemPlaces {
    private var first: ItemPlace?
    private var second: ItemPlace?
    private var others: [ItemPlace]?

    @inline(__always) var isEmpty: Bool { first == nil }

    /// A loop that the source is in. With the lock of the places held; the reference keeps it alive after that.
    var anyLoop: EventRunLoop? { first?.loop.takeUnretainedValue() }

    @inline(__always) func forEach(_ body: (ItemPlace) -> Void) {
        guard let first else { return }
        body(first)
        guard let second else { return }
        body(second)
        if let others { for place in others { body(place) } }
    }

    @inline(__always) func contains(_ mode: LoopMode, of loop: EventRunLoop) -> Bool {
        guard let first else { return false }
        if first.mode == mode && first.isIn(loop) { return true }
        guard let second else { return false }
        if second.mode == mode && second.isIn(loop) { return true }
        return others?.contains { $0.mode == mode && $0.isIn(loop) } ?? false
    }

    @inline(__always) mutating func append(_ place: ItemPlace) {
        if first == nil {
            first = place
        } else if second == nil {
            second = place
        } else {
            if others == nil { others = [] }
            others?.append(place)
        }
    }

    /// Takes the place in one mode of one loop out; nil when the source is not there.
    mutating func remove(_ mode: LoopMode, of loop: EventRunLoop) -> ItemPlace? {
        var removed: ItemPlace?
        removeAll {
            guard $0.mode == mode && $0.isIn(loop) else { return false }
            removed = $0
            return true
        }
        return removed
    }

    /// Takes the places in one loop out, and returns them.
    @inline(__always) mutating func removeAll(of loop: EventRunLoop) -> ItemPlaces {
        var taken = ItemPlaces()
        // Most sources are in one loop: its places are handed on as they are.
        if others == nil && first?.isIn(loop) ?? true && second?.isIn(loop) ?? true {
            swap(&taken, &self)
        } else {
            removeAll {
                guard $0.isIn(loop) else { return false }
                taken.append($0)
                return true
            }
        }
        return taken
    }

    /// Takes the places among the common items of a loop, and in its common modes, out; none when it is no common item. One
    /// pass: there may be thousands of modes.
    mutating func removeCommon(of loop: EventRunLoop) -> ItemPlaces {
        var taken = ItemPlaces()
        guard contains(.common, of: loop) else { return taken }
        removeAll { place in
            guard place.isIn(loop),
                place.items?._withUnsafeGuaranteedRef({ $0.isCommon }) ?? true
            else { return false }
            taken.append(place)
            return true
        }
        return taken
    }

    /// The modes of a loop that it is in.
    func modes(of loop: EventRunLoop) -> Set<LoopMode> {
        var modes: Set<LoopMode> = []
        forEach { if $0.isIn(loop) { modes.insert($0.mode) } }
        return modes
    }

    /// The loops it is in.
    var loops: [EventRunLoop] {
        var loops: [EventRunLoop] = []
        forEach { place in
            let loop = place.loop.takeUnretainedValue()
            if !loops.contains(where: { $0 === loop }) { loops.append(loop) }
        }
        return loops
    }

    @inline(never) private mutating func removeAll(where isOver: (ItemPlace) -> Bool) {
        var kept = ItemPlaces()
        forEach { if !isOver($0) { kept.append($0) } }
        self = kept
    }
}

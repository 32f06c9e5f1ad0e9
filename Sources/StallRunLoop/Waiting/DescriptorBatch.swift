// Events that one wait has reported, and the sources they are for.

internal import CLinux

/// Buffers for the events of one wait. Its user gives it back to the loop or deallocates it.
struct DescriptorBatch {
    static let capacity = 256

    /// The events that the kernel has reported.
    let reported: UnsafeMutablePointer<stall_ready>
    /// The same, one event for each source: one that is reported may have many.
    private(set) var ready: UnsafeMutablePointer<stall_ready>
    /// One for each event, with a reference of its own.
    private(set) var sources: UnsafeMutablePointer<Unmanaged<DescriptorSource>>
    private var room = Self.capacity
    var count = 0
    /// How many descriptors the mode had lost when they were looked up.
    var removals = 0

    init() {
        reported = .allocate(capacity: Self.capacity)
        ready = .allocate(capacity: Self.capacity)
        sources = .allocate(capacity: Self.capacity)
    }

    @inline(__always) mutating func append(_ event: stall_ready, _ source: DescriptorSource) {
        if count == room { grow() }
        ready[count] = event
        (sources + count).initialize(to: .passRetained(source))
        count += 1
    }

    @inline(never) private mutating func grow() {
        let old = self
        room *= 2
        ready = .allocate(capacity: room)
        sources = .allocate(capacity: room)
        ready.update(from: old.ready, count: count)
        sources.moveInitialize(from: old.sources, count: count)
        old.ready.deallocate()
        old.sources.deallocate()
    }

    func deallocate() {
        reported.deallocate()
        ready.deallocate()
        sources.deallocate()
    }
}

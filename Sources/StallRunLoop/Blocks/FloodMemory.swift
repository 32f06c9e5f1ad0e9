// What is left of a flood of posts: not the loop's own memory, which SegmentMemory.swift gives back, but what the blocks have
// captured. Each is a small allocation of malloc's, and glibc keeps small ones that were freed as they are, of all its
// threads and for ever: 10 million posts left 279 MB with the process.

internal import CLinux
internal import Dispatch
internal import Synchronization

enum FloodMemory {
    private static let isGivingBack = Atomic<Bool>(false)

    /// Has malloc give back what is free. Costs 10 ns for each block of the flood, a tenth of what it cost to run them: on a thread
    /// of Dispatch's, one at a time.
    static func giveBack() {
        guard !isGivingBack.exchange(true, ordering: .relaxed) else { return }
        DispatchQueue.global(qos: .utility).async {
            stall_memory_trim()
            isGivingBack.store(false, ordering: .relaxed)
        }
    }
}

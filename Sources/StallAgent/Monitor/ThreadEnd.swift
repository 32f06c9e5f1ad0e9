// Notices the end of a thread, on the thread itself: its targets must not be watched longer than it lives.

internal import Glibc

/// Runs blocks at the end of the threads that registered them.
enum ThreadEnd {
    private struct Block {
        weak var owner: AnyObject?
        let run: () -> Void
    }

    private final class Blocks {
        var all: [ObjectIdentifier: Block] = [:]
    }

    private static let key: pthread_key_t? = {
        var key = pthread_key_t()
        let error = pthread_key_create(&key) { blocks in
            for block in Unmanaged<Blocks>.fromOpaque(blocks!).takeRetainedValue().all.values {
                block.run()
            }
        }
        return error == 0 ? key : nil
    }()

    /// Runs `block` when the calling thread ends, replacing an earlier block of the same owner. Not on the main thread,
    /// which ends with its process.
    static func run(for owner: AnyObject, _ block: @escaping () -> Void) {
        guard let key else { return }
        if let known = pthread_getspecific(key) {
            let blocks = Unmanaged<Blocks>.fromOpaque(known).takeUnretainedValue()
            // A thread can outlive many owners.
            blocks.all = blocks.all.filter { $0.value.owner != nil }
            blocks.all[ObjectIdentifier(owner)] = Block(owner: owner, run: block)
            return
        }
        let blocks = Blocks()
        blocks.all = [ObjectIdentifier(owner): Block(owner: owner, run: block)]
        pthread_setspecific(key, Unmanaged.passRetained(blocks).toOpaque())
    }

    /// The number of blocks of the calling thread.
    static var count: Int {
        guard let key, let known = pthread_getspecific(key) else { return 0 }
        return Unmanaged<Blocks>.fromOpaque(known).takeUnretainedValue().all.count
    }
}

// The numbers under which SQLite has a store's files open. It has no function that returns them, and an app may close
// them: a daemon closes descriptors that it did not open, and opens its own files under the same numbers. SQLite would
// write its pages into those.

internal import CLinux
internal import StallModel

/// The descriptors that this process has of a store, as they were when it was asked for.
struct HeldDescriptors {
    private struct Held {
        var number: CInt
        var identity: stall_file_identity
    }

    private var held: [Held] = []

    /// - Parameters:
    ///   - path: The store. It must have been read from: then its log is open as well.
    ///   - others: Those that the process had of it before, left out here: another monitor's, which it will close.
    init(of path: String, except others: HeldDescriptors? = nil) {
        for name in [path, path + "-wal", path + "-shm"] {
            guard let facts = FileFacts(name) else { continue }
            let identity = stall_file_identity(device: facts.device, inode: facts.inode)
            let numbers = withUnsafeTemporaryAllocation(of: CInt.self, capacity: 16) { buffer in
                let count = stall_descriptors_of(identity, buffer.baseAddress!, 16)
                return Array(buffer.prefix(Int(count)))
            }
            held += numbers.map { Held(number: $0, identity: identity) }
        }
        if let others { held.removeAll { others.contains($0) } }
    }

    private func contains(_ other: Held) -> Bool {
        held.contains { $0.number == other.number && $0.identity.isOf(other.identity) }
    }

    /// Whether each is still open, and the same file.
    ///
    /// **Cost:** one system call per descriptor, 0.2 us each.
    var areIntact: Bool {
        held.allSatisfy { held in
            var now = stall_file_identity()
            return stall_descriptor_identity(held.number, &now)
                && now.isOf(held.identity)
        }
    }
}

extension stall_file_identity {
    /// Whether both are of one file.
    fileprivate func isOf(_ other: stall_file_identity) -> Bool {
        device == other.device && inode == other.inode
    }
}

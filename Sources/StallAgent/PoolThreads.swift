// Which threads of the process belong to Dispatch, by the names it gives them. The Swift cooperative pool is made of them.

internal import Glibc
internal import StallCapture
internal import StallModel

enum PoolThreads {
    /// The workers of the queue that Swift's pool runs on, or of any other whose name ends in `suffix`.
    ///
    /// Linux keeps 15 bytes of a name, and Dispatch keeps the last ones: `com.apple.root.default-qos` is seen as
    /// `oot.default-qos`.
    static func all(named suffix: String? = nil) -> [RegisteredThread] {
        ids().compactMap { id in
            guard let name = name(of: id),
                suffix.map({ name.hasSuffix($0) })
                    ?? (name.hasSuffix("-qos") || name.hasSuffix(".overcommit"))
            else { return nil }
            return try? RegisteredThread.other(id)
        }
    }

    static let cooperative = "oot.default-qos"

    /// The thread's name in the kernel.
    static func name(of thread: ThreadID) -> String? {
        let file = open("/proc/self/task/\(thread.rawValue)/comm", O_RDONLY | O_CLOEXEC)
        guard file >= 0 else { return nil }
        defer { close(file) }
        return withUnsafeTemporaryAllocation(of: UInt8.self, capacity: 16) { bytes in
            let count = read(file, bytes.baseAddress!, bytes.count)
            guard count > 0 else { return nil }
            return String(decoding: bytes[..<count].prefix { $0 != UInt8(ascii: "\n") }, as: UTF8.self)
        }
    }

    private static func ids() -> [ThreadID] {
        guard let directory = opendir("/proc/self/task") else { return [] }
        defer { closedir(directory) }
        var ids: [ThreadID] = []
        while let entry = readdir(directory) {
            let id = withUnsafePointer(to: &entry.pointee.d_name) {
                $0.withMemoryRebound(to: CChar.self, capacity: 256) { atoi($0) }
            }
            if id > 0 { ids.append(ThreadID(rawValue: id)) }
        }
        return ids
    }
}

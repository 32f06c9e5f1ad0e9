// Whether a process that is short of descriptors has some for us.

internal import Dispatch
internal import Glibc

/// Descriptors that the process can still open.
enum DescriptorRoom {
    /// A store takes four. When it cannot be opened for want of them, GRDB's queue is let go of, which Dispatch does on a
    /// thread of its own: it takes two for its first one, and ends the process where it gets none.
    private static let needed = 8

    /// Lets Dispatch take its two descriptors now, while there are some: a store that is closed later, when none are left, would
    /// end the process.
    static let dispatchIsReady: Void = DispatchQueue.global().async {}

    /// Whether enough can be opened; also where `/proc` does not tell.
    static func isEnough() -> Bool {
        var limit = rlimit()
        guard getrlimit(__rlimit_resource_t(7), &limit) == 0 else { return true }  // RLIMIT_NOFILE
        guard let directory = opendir("/proc/self/fd") else { return errno != EMFILE }
        defer { closedir(directory) }
        var count = 0
        while readdir(directory) != nil { count += 1 }
        // Two of the names are no descriptors, and one is the directory's own: on the safe side.
        return UInt(count + needed) <= limit.rlim_cur
    }
}

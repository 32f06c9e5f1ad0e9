// Changes of a file or directory as events of a loop, by inotify(7).

internal import CLinux
internal import Glibc
internal import Synchronization

/// The changes of a watched file, or to a file of a watched directory.
public struct FileEvents: OptionSet, Hashable, Sendable {
    /// The bits.
    public let rawValue: UInt32

    /// Wraps bits.
    public init(rawValue: UInt32) { self.rawValue = rawValue }

    /// A file came into the directory: it was created there, or moved there.
    public static let created = FileEvents(rawValue: 1)
    /// A file left the directory: it was deleted, or moved away.
    public static let deleted = FileEvents(rawValue: 2)
    /// A file was closed that was open for writing: its content is complete.
    public static let written = FileEvents(rawValue: 4)
    /// The contents or the length of a file changed.
    public static let modified = FileEvents(rawValue: 8)
    /// The owner, the permissions, the times or the number of links of a file changed.
    public static let attributes = FileEvents(rawValue: 16)
    /// The watched file or directory itself was deleted, moved or unmounted. Always reported, once; nothing comes after
    /// it. A file that was deleted while it is open anywhere is gone when the last of these is closed; its deletion
    /// comes as `attributes`, for it has one link less.
    public static let gone = FileEvents(rawValue: 32)
    /// Events were lost, because too many came at once, or before the file was watched again: look at the whole directory.
    /// Always reported.
    public static let lost = FileEvents(rawValue: 64)
    /// Everything but `modified`, which comes with every write.
    public static let changes: FileEvents = [.created, .deleted, .written, .attributes]
}

/// Calls a handler on a loop's thread when a file, or a file of a directory, has changed.
///
///     let inbox = try FileSource(path: "/var/spool/app") { events, name in
///         if events.contains(.written), let name { read(name) }
///     }
///     try loop.add(inbox, toMode: .default)
///
/// A directory is watched without its subdirectories. Takes one descriptor. If the app closes that, as a daemon closes all,
/// or forks, the loop opens another one when it renews its own, and reports ``FileEvents/lost``, or ``FileEvents/gone`` if
/// there is no such file any more.
///
/// **Thread safety:** any thread may invalidate; the handler runs on the loop's thread.
public final class FileSource: Sendable {
    /// The watched file or directory.
    public let path: String
    let source: DescriptorSource

    /// Starts watching; events before the source is added to a loop are kept by the kernel, up to its limit.
    ///
    /// - Parameters:
    ///   - path: A file or directory that exists.
    ///   - events: The events to call the handler for.
    ///   - handler: Gets what happened, and the name of the file in a watched directory. In a name that is not UTF-8,
    ///     what is wrong is replaced by U+FFFD, and no file is found by it: read the directory then.
    /// - Throws: ``LoopError/system(call:errno:)``: `ENOENT` or `EACCES` for the path, `EINVAL` for one with a NUL in
    ///   it, `EMFILE` without descriptors or when the user has as many watches as the kernel allows (`ENOSPC`).
    public init(
        path: String, events: FileEvents = .changes,
        handler: sending @escaping (_ events: FileEvents, _ name: String?) -> Void
    ) throws(LoopError) {
        // C would watch what comes before it.
        guard !path.utf8.contains(0) else {
            throw .system(call: "inotify_add_watch", errno: EINVAL)
        }
        let watch = FileWatch(path, events)
        guard let opened = OpenedDescriptor({ watch.descriptor(again: $0) }) else {
            throw .system(call: watch.failedCall, errno: errno)
        }
        self.path = path
        source = DescriptorSource(opened: opened, onCancel: { _ in opened.close() }) { source, _ in
            // The first that the closure captures, where a dump looks for the app's function.
            let call = handler
            if opened.isOver {
                source.invalidate()
                return call(.gone, nil)
            }
            guard opened.isOwn else { return source.watchAgain() }
            // The events up to now, in one piece; the rest has its turn in a later iteration.
            withUnsafeTemporaryAllocation(byteCount: 4_096, alignment: 8) { buffer in
                let memory = buffer.baseAddress!
                let number = watch.number
                let size = stall_watch_read(opened.number, memory, buffer.count)
                var (offset, bits, name) = (0, UInt32(0), FileSource.noCall)
                while source.isValid,
                    stall_watch_next(memory, size, number, &offset, &bits, &name)
                {
                    let events = FileEvents(rawValue: bits)
                    if events.contains(.gone) { source.invalidate() }
                    let file = String(cString: name)
                    call(events, file.isEmpty ? nil : file)
                }
            }
        }
    }

    nonisolated(unsafe) fileprivate static let noCall = UnsafePointer(strdup("")!)

    /// Stops watching, and releases the handler: when it runs, as soon as it returns.
    public func invalidate() { source.invalidate() }
}

/// The file and its events, to watch it again.
private final class FileWatch: Sendable {
    /// Absolute: the app may change its directory.
    private let path: String
    private let events: UInt32
    /// The kernel's number of the watch; -1 before.
    private let watch = Atomic<CInt>(-1)
    private let failed = Locked("")

    init(_ path: String, _ events: FileEvents) {
        self.events = events.rawValue
        guard !path.hasPrefix("/"), let directory = getcwd(nil, 0) else {
            self.path = path
            return
        }
        self.path = String(cString: directory) + "/" + path
        free(directory)
    }

    var number: CInt { watch.load(ordering: .relaxed) }
    var failedCall: String { failed.withLock { $0 } }

    func descriptor(again: Bool) -> CInt {
        var call: UnsafePointer<CChar> = FileSource.noCall
        var watch: CInt = -1
        let number = stall_watch_descriptor(path, events, again, &watch, &call)
        let error = errno
        self.watch.store(watch, ordering: .relaxed)
        failed.withLock { $0 = String(cString: call) }
        errno = error
        return number
    }
}

extension EventRunLoop {
    /// Adds a watched file to a mode, or to all common modes, as ``add(_:toMode:)-(DescriptorSource,_)`` does.
    @discardableResult
    public func add(_ source: FileSource, toMode mode: LoopMode) throws(LoopError) -> Bool {
        try add(source.source, toMode: mode)
    }

    /// Removes a watched file from a mode, or from the common items.
    public func remove(_ source: FileSource, fromMode mode: LoopMode) {
        remove(source.source, fromMode: mode)
    }
}

// What stacks say a thread waited for, and the words that a group's title has for it. What a group's stalls waited for
// is decided by their causes, which rest on the kernel's evidence; the stacks alone decide only where there is none.

/// What a thread waits for, as far as function names tell. The words are stored and in JSON; never change one.
package enum WaitClass: String, CaseIterable, Hashable, Sendable {
    case sleep, lock, disk, network, ipc, io
    /// For any of several descriptors.
    case poll

    /// The cause that the frames alone show; nil where they do not say what was waited for.
    package var cause: CauseClass? {
        switch self {
        case .sleep: .sleep
        case .lock: .lock
        case .disk: .disk
        case .network: .network
        case .ipc: .ipc
        case .io, .poll: nil
        }
    }
}

extension ReportGroup {
    /// The title as people read it: `lock in save() <- Editor.close()`.
    ///
    /// - Parameter cause: The cause of the group's stalls, or of the one that is shown; nil when nothing looked for one.
    package func title(under cause: CauseClass?) -> String {
        let prefix = wait.map { "\($0.rawValue) in " } ?? ""
        // A group of another store may have been given any title.
        guard title.hasPrefix(prefix) else { return title }
        let word = (cause ?? wait?.cause)?.titleWord
        return (word.map { "\($0) in " } ?? "") + title.dropFirst(prefix.count)
    }
}

extension CauseClass {
    /// Before the functions of a title; nil for a thread that ran, and where nothing is known.
    fileprivate var titleWord: String? { self == .cpu || self == .unknown ? nil : word }
}

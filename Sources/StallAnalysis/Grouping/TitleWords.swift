// Titles speak the causes' words. What a group's stalls waited for is decided by their causes, which rest on the kernel's
// evidence; the stacks alone decide only where there is none.

package import StallModel

extension WaitClass {
    /// The cause that the frames alone tell of; nil where they do not say what was waited for.
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

extension CauseClass {
    /// Before the functions of a title; nil for a thread that ran, and where nothing is known.
    private var titleWord: String? { self == .cpu || self == .unknown ? nil : word }

    fileprivate func title(of functions: some StringProtocol) -> String {
        (titleWord.map { "\($0) in " } ?? "") + functions
    }
}

extension Signature {
    /// The title as people read it: `lock in save() <- Editor.close()`.
    ///
    /// - Parameter cause: The cause of the group's stalls, or of the one that is shown; nil when nothing looked for one.
    package func title(under cause: CauseClass?) -> String {
        let prefix = wait.map { "\($0.rawValue) in " } ?? ""
        guard title.hasPrefix(prefix) else { return title }
        return (cause ?? wait?.cause ?? .unknown).title(of: title.dropFirst(prefix.count))
    }

    /// The title of a group in a ranking: those that other facts make have no words before them.
    package func title(under cause: CauseClass?, in key: GroupKey) -> String {
        key == .signature ? title(under: cause) : title
    }
}

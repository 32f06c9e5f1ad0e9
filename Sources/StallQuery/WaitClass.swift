// The kind of a thread's wait according to its stacks, and the word for it in a group's title. The causes of a group's
// stalls take precedence, because they rest on the kernel's evidence; the stacks decide only without a cause.

package import StallModel

/// The kind of a thread's wait, judging by function names. The words are stored and in JSON; never change one.
package enum WaitClass: String, CaseIterable, Hashable, Sendable {
    case sleep, lock, disk, network, ipc, io
    /// Any of several descriptors.
    case poll

    /// The cause that follows from the frames alone; nil if they do not show what was waited for.
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
    /// Of stalls of which no sample has a stack.
    package static let titleWithoutStack = "no stack was taken"

    /// The title for display: `lock in save() <- Editor.close()`.
    ///
    /// - Parameter cause: The cause of the group's stalls, or of the one shown; nil if none was determined.
    package func title(under cause: CauseClass?) -> String {
        let prefix = wait.map { "\($0.rawValue) in " } ?? ""
        // A group of an imported store may have any title.
        guard title.hasPrefix(prefix) else { return title }
        let word = (cause ?? wait?.cause)?.titleWord
        if title == Self.titleWithoutStack { return word.map { "\($0), \(title)" } ?? title }
        return (word.map { "\($0) in " } ?? "") + title.dropFirst(prefix.count)
    }
}

extension CauseClass {
    /// The word before the functions of a title; nil for a thread that ran, and for an unknown cause.
    fileprivate var titleWord: String? { self == .cpu || self == .unknown ? nil : word }
}

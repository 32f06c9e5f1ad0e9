// Frames that are as unsure as the merged function that they call.

import StallModel

extension [Frame] {
    /// For each frame, whether it has no symbol and calls merged code of its own image: directly, through others like
    /// it, or through libraries.
    ///
    /// Optimizers merge such callers as well: closures, and what destroys their contexts. Their address and line are
    /// those of one of several, so they name nothing; the caller does.
    package var callMerged: [Bool] { callMerged { SymbolKey(frame: self[$0]).role == .merged } }

    /// - Parameter isMerged: Whether the frame of this index is of a merged function.
    func callMerged(_ isMerged: (Int) -> Bool) -> [Bool] {
        var answer = [Bool](repeating: false, count: count)
        for index in indices where self[index].mayBeMerged {
            // Functions inlined into a callee come before it, and are no calls of their own.
            let callee = self[..<index].lastIndex { !$0.isInlined && $0.isOfImage(of: self[index]) }
            answer[index] = callee.map { answer[$0] || isMerged($0) } ?? false
        }
        return answer
    }
}

extension Frame {
    fileprivate var mayBeMerged: Bool {
        function == nil && rawName == nil && imagePath != nil && !isInlined
            && kind == .returnAddress
    }

    fileprivate func isOfImage(of other: Frame) -> Bool {
        imagePath == other.imagePath && buildID == other.buildID
    }
}

// The frames of a report that no image contains.

internal import StallCapture
internal import StallCause
internal import StallDetection
internal import StallModel
internal import StallSymbols

extension PendingReport {
    /// Gives the functions that a compiler made at run time their names, as far as it wrote them down.
    mutating func nameGeneratedCode(by map: inout PerfMap, _ images: ImageTable) {
        var addresses: Set<UInt64> = []
        forEachStack { stack in
            for address in stack.addresses where address.isNowhere(in: images) {
                addresses.insert(address.lookupAddress)
            }
        }
        let functions = map.functions(at: addresses)
        guard !functions.isEmpty else { return }
        forEachStack { stack in
            for index in stack.addresses.indices where stack.addresses[index].isNowhere(in: images)
            {
                stack.addresses[index].script = functions[stack.addresses[index].lookupAddress]
            }
        }
    }

    /// The names of all frames that have them without an image.
    mutating func scripts() -> Set<ScriptFrame> {
        var found: Set<ScriptFrame> = []
        forEachStack { found.formUnion($0.addresses.compactMap(\.script)) }
        return found
    }

    private mutating func forEachStack(_ body: (inout CapturedStack) -> Void) {
        for index in samples.indices { samples[index].stack.change(body) }
        for index in members.indices { members[index].stack.change(body) }
        for index in others.threads.indices { others.threads[index].stack.change(body) }
        for index in evidenceLog.observations.indices {
            for suspect in evidenceLog.observations[index]?.suspects.indices ?? 0..<0 {
                evidenceLog.observations[index]?.suspects[suspect].stack.change(body)
            }
        }
    }
}

extension CodeAddress {
    fileprivate func isNowhere(in images: ImageTable) -> Bool {
        script == nil && images.image(containing: lookupAddress) == nil
    }
}

extension Optional<CapturedStack> {
    fileprivate mutating func change(_ body: (inout CapturedStack) -> Void) {
        guard var stack = self else { return }
        body(&stack)
        self = stack
    }
}

extension Result<CapturedStack, CaptureError> {
    fileprivate mutating func change(_ body: (inout CapturedStack) -> Void) {
        guard var stack = try? get() else { return }
        body(&stack)
        self = .success(stack)
    }
}

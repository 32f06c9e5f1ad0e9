// How the other threads of a report are written into one blob. Part of the file format.

package import StallModel

/// One look at another thread, with the number of a `stack` row instead of the stack.
package struct StoredThread: Equatable {
    package var thread: Int32
    package var name: String?
    package var role: ThreadRole
    package var method: CaptureMethod?
    package var stack: Int64?
    package var failure: String?

    package init(
        thread: Int32, name: String? = nil, role: ThreadRole, method: CaptureMethod? = nil,
        stack: Int64? = nil, failure: String? = nil
    ) {
        self.thread = thread
        self.name = name
        self.role = role
        self.method = method
        self.stack = stack
        self.failure = failure
    }
}

private struct ThreadFlags: OptionSet {
    var rawValue: UInt64
    static let hasStack = ThreadFlags(rawValue: 1)
    static let hasFailure = ThreadFlags(rawValue: 2)
    static let hasName = ThreadFlags(rawValue: 4)
    /// The stack could be taken: the method is among the numbers.
    static let hasMethod = ThreadFlags(rawValue: 8)
}

extension [StoredThread] {
    /// For each thread: flags, role, thread; then, as the flags say, the method, the stack's number, the failure and
    /// the name.
    package var encoded: [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(count * 20)
        for thread in self {
            var flags = ThreadFlags()
            if thread.stack != nil { flags.insert(.hasStack) }
            if thread.failure != nil { flags.insert(.hasFailure) }
            if thread.name != nil { flags.insert(.hasName) }
            if thread.method != nil { flags.insert(.hasMethod) }
            bytes.append(leb128: flags.rawValue)
            bytes.append(leb128: UInt64(thread.role.rawValue))
            bytes.append(leb128: UInt64(Swift.max(0, thread.thread)))
            if let method = thread.method { bytes.append(leb128: UInt64(method.rawValue)) }
            if let stack = thread.stack { bytes.append(leb128: UInt64(bitPattern: stack)) }
            if let failure = thread.failure { bytes.append(text: failure) }
            if let name = thread.name { bytes.append(text: name) }
        }
        return bytes
    }

    /// Nil when the bytes are no such list.
    package init?(encoded bytes: UnsafeRawBufferPointer) {
        self = []
        var rest = bytes[...]
        while !rest.isEmpty {
            guard count < ValueLimits.threadsOfReport, let first = rest.popLEB128(), first < 16,
                let role: ThreadRole = rest.popValue(),
                let number = rest.popLEB128().flatMap({ Int32(exactly: $0) })
            else { return nil }
            let flags = ThreadFlags(rawValue: first)
            var thread = StoredThread(thread: number, role: role)
            if flags.contains(.hasMethod) {
                guard let method: CaptureMethod = rest.popValue() else { return nil }
                thread.method = method
            }
            if flags.contains(.hasStack) {
                guard let stack = rest.popDuration() else { return nil }
                thread.stack = stack
            }
            if flags.contains(.hasFailure) {
                guard let failure = rest.popText() else { return nil }
                thread.failure = failure
            }
            if flags.contains(.hasName) {
                guard let name = rest.popText() else { return nil }
                thread.name = name
            }
            append(thread)
        }
    }
}

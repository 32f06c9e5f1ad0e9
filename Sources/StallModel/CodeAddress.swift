// An address before symbolication. Off by one is the classic bug: only the interrupted instruction is looked up
// as it is; a return address belongs to the call before it.

/// What an address on a stack is. The raw values are stored; never renumber them.
public enum CodeAddressKind: UInt8, Hashable, Sendable {
    /// The instruction the thread was at.
    case interrupted = 0
    /// Where a call will return to; the call is the instruction before.
    case returnAddress = 1
    /// Where an awaiting async function will resume. Follows the physical frames.
    case asyncResume = 2
}

/// One raw address of a captured stack.
package struct CodeAddress: Hashable, Sendable {
    package var rawValue: UInt64
    package var kind: CodeAddressKind
    /// The unwinder had to guess a register to get here; everything above it is a guess as well.
    package var isGuessed: Bool

    package init(_ rawValue: UInt64, _ kind: CodeAddressKind, isGuessed: Bool = false) {
        self.rawValue = rawValue
        self.kind = kind
        self.isGuessed = isGuessed
    }

    /// The address to look up in symbol and line tables.
    package var lookupAddress: UInt64 {
        kind == .returnAddress && rawValue > 0 ? rawValue - 1 : rawValue
    }
}

/// How a stack was taken. The raw values are stored; never renumber them.
public enum CaptureMethod: UInt8, Hashable, Sendable {
    /// Read from outside while the thread was blocked in the kernel; the thread was not disturbed.
    case signalFree = 0
    /// Copied by the thread itself in a signal handler.
    case signal = 1
}

/// One thread's stack as addresses, innermost first. Nothing here is symbolized.
package struct CapturedStack: Hashable, Sendable {
    package var addresses: [CodeAddress]
    /// The stack went deeper than what was read or could be unwound.
    package var isTruncated: Bool
    package var method: CaptureMethod

    package init(addresses: [CodeAddress], isTruncated: Bool, method: CaptureMethod) {
        self.addresses = addresses
        self.isTruncated = isTruncated
        self.method = method
    }
}

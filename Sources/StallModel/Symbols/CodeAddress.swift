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
    /// Copied by the thread itself when the system call that it was in returned. It had executed nothing of its own
    /// since it was asked, so that the stack is the one of the whole time between.
    case lateSignal = 2
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

/// A stack that came after it had been waited for. The thread executed nothing of its own between the two instants, so
/// that it is the stack of each instant between them.
package struct LateStack: Hashable, Sendable {
    package var asked: MonotonicInstant
    package var answered: MonotonicInstant
    package var stack: CapturedStack
    /// The loop had moved on when the thread answered.
    package var isLate: Bool

    package init(
        asked: MonotonicInstant, answered: MonotonicInstant, stack: CapturedStack,
        isLate: Bool = false
    ) {
        self.asked = asked
        self.answered = answered
        self.stack = stack
        self.isLate = isLate
    }
}

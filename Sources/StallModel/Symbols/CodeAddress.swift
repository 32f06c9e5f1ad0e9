// An address before symbolication. Off by one is the classic bug: only the interrupted instruction is looked up at its
// own address; a return address belongs to the call before it.

/// The kind of an address on a stack. The raw values are stored; never renumber them.
public enum CodeAddressKind: UInt8, Hashable, Sendable {
    /// The instruction that the thread was executing.
    case interrupted = 0
    /// Where a call will return to; the call is the instruction before.
    case returnAddress = 1
    /// Where an awaiting async function will resume. Follows the physical frames.
    case asyncResume = 2
}

/// One raw address of a captured stack.
package struct CodeAddress: Equatable, Sendable {
    package var rawValue: UInt64
    package var kind: CodeAddressKind
    /// The unwinder had to guess a register to get here; all outer frames are guesses as well.
    package var isGuessed: Bool
    /// Set if no image contains the frame: `rawValue` is then where its runtime keeps it.
    package var script: ScriptFrame?

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

/// How a stack was captured. The raw values are stored; never renumber them.
public enum CaptureMethod: UInt8, Hashable, Sendable {
    /// Read from outside while the thread was blocked in the kernel, without disturbing it.
    case signalFree = 0
    /// Copied by the thread itself in a signal handler.
    case signal = 1
    /// Copied by the thread itself when its system call returned. It had executed no user code since the request, so
    /// the stack is valid for the whole time in between.
    case lateSignal = 2
}

/// One thread's stack as addresses, innermost first, before symbolication.
package struct CapturedStack: Equatable, Sendable {
    package var addresses: [CodeAddress]
    /// The stack is deeper than what was read or could be unwound.
    package var isTruncated: Bool
    package var method: CaptureMethod

    package init(addresses: [CodeAddress], isTruncated: Bool, method: CaptureMethod) {
        self.addresses = addresses
        self.isTruncated = isTruncated
        self.method = method
    }
}

/// A stack that arrived after the request had timed out. The thread executed no user code between the two instants, so
/// the stack is valid for every instant between them.
package struct LateStack: Equatable, Sendable {
    package var requested: MonotonicInstant
    package var answered: MonotonicInstant
    package var stack: CapturedStack
    /// The loop had made progress when the thread answered.
    package var isLate: Bool

    package init(
        requested: MonotonicInstant, answered: MonotonicInstant, stack: CapturedStack,
        isLate: Bool = false
    ) {
        self.requested = requested
        self.answered = answered
        self.stack = stack
        self.isLate = isLate
    }
}

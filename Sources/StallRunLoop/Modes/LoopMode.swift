// The name under which sources, timers, observers and blocks are grouped; a run serves one mode.
// Names are interned for the whole process, so that comparing two modes compares two numbers.

/// The name of a run-loop mode. Any string makes one; the same string makes the same mode.
///
/// **Cost:** making one from a string takes a lock and a table look-up, and the name is kept for the life of the
/// process; keep modes in constants. Comparing and copying are free.
public struct LoopMode: RawRepresentable, Hashable, Sendable {
    /// The number that stands for the name in this process; what the beacon publishes.
    package let number: UInt32

    /// The mode a loop runs in when nothing else is said.
    public static var `default`: LoopMode { LoopMode(number: 0) }
    /// The mode for the time in which a user drags or scrolls: only what is added to it, or to the common
    /// modes, is served. It is a common mode of every loop.
    public static var tracking: LoopMode { LoopMode(number: 1) }
    /// Stands for all common modes of a loop. Items are added to it; it cannot be run.
    public static var common: LoopMode { LoopMode(number: 2) }

    /// The mode named `rawValue`.
    public init(rawValue: String) { number = LoopModeNames.number(of: rawValue) }

    /// The mode named `name`.
    public init(_ name: String) { self.init(rawValue: name) }

    private init(number: UInt32) { self.number = number }

    /// The name.
    public var rawValue: String { LoopModeNames.name(of: number) }

    /// Whether both name the same mode. Written out, because a RawRepresentable type would otherwise compare its raw
    /// values: two look-ups and two strings.
    public static func == (left: Self, right: Self) -> Bool { left.number == right.number }

    /// Hashes the number, as `==` compares it.
    public func hash(into hasher: inout Hasher) { hasher.combine(number) }
}

extension LoopMode: ExpressibleByStringLiteral, CustomStringConvertible {
    /// The mode that a string literal names.
    public init(stringLiteral value: String) { self.init(rawValue: value) }

    /// The name.
    public var description: String { rawValue }
}

/// The table of all mode names of the process; it only grows.
enum LoopModeNames {
    private struct Table {
        var names = ["default", "tracking", "common"]
        var numbers: [String: UInt32] = ["default": 0, "tracking": 1, "common": 2]
    }

    private static let table = Locked(Table())

    private static let forkHolder = ForkHolder()

    /// See ``ForkHandlers``.
    static func holdForFork() { _ = forkHolder.take { table.lockForFork() } }
    static func letGoAfterFork(isChild: Bool) {
        if forkHolder.release(isChild: isChild) { table.unlockAfterFork() }
    }

    static func number(of name: String) -> UInt32 {
        table.withLock { table in
            if let number = table.numbers[name] { return number }
            let number = UInt32(table.names.count)
            table.names.append(name)
            table.numbers[name] = number
            return number
        }
    }

    static func name(of number: UInt32) -> String { table.withLock { $0.names[Int(number)] } }

    /// Never waits: nil when the number is unknown, or another thread is in the table at this moment.
    static func nameIfAvailable(of number: UInt32) -> String? {
        table.withLockIfAvailable {
            $0.names.indices.contains(Int(number)) ? $0.names[Int(number)] : nil
        }
            ?? nil
    }
}

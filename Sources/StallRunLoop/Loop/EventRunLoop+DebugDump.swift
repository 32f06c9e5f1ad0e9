// The content of a loop, for people: all that CFRunLoop's description shows, and the work that waits.

internal import CLinux
internal import StallModel

extension EventRunLoop: CustomDebugStringConvertible {
    /// A readable dump of the loop, a line an item: what it does, its modes with their sources, descriptors, observers,
    /// timers, waiting blocks and idle work, and when it would wake. Any thread may call it; the loop keeps running.
    ///
    /// An item without a label is called by the function of its handler, if its symbol is in the program's files. They are read
    /// for each dump, which is for people and tests.
    public var debugDescription: String {
        var names = DumpedNames()
        lock.lock()
        let text = dumpText(&names)
        lock.unlock()
        return names.put(into: text)
    }

    /// With the loop's lock held.
    private func dumpText(_ names: inout DumpedNames) -> String {
        var blocks = blocks.countByMode()
        let now = stall_monotonic_ns()
        var lines = [
            "run loop of thread \(thread.rawValue)\(isMain ? " (main)" : ""): \(activityText)",
            "wake-ups: \(ignoresWakeUps ? "dropped" : "counted")\(wake.isWoken ? ", one pending" : "")",
            "descriptors: wake-up \(wake.descriptor), \(timerText(now)),"
                + " delivery \(descriptorDelivery)",
            "common modes: \(commonModes.map(\.dumpedName).sorted().joined(separator: ", "))",
            "common items: \(commonSources.count) sources, \(commonDescriptors.count) descriptors,"
                + " \(commonObservers.count) observers, \(commonTimers.count) timers,"
                + " \(blocks.removeValue(forKey: .common) ?? 0) blocks waiting",
        ]
        if drainDepth > 0 { lines.append("blocks are being run; those are not counted as waiting") }
        let modes = Array(modes)
        let titles = modes.map(\.mode.rawValue)
        for items in sortedPlaces(modes.count, by: { titles[$0] < titles[$1] }).map({ modes[$0] }) {
            lines.append(title(of: items))
            lines += items.dumpLines(now: now, &names).map { "  " + $0 }
            if let count = blocks.removeValue(forKey: items.mode) {
                lines.append("  blocks: \(count) waiting")
            }
            if let count = idleWork[items.mode]?.count, count > 0 {
                lines.append("  idle work: \(count) waiting")
            }
        }
        for name in blocks.keys.map(\.rawValue).sorted() {
            let mode = LoopMode(rawValue: name)
            guard let count = blocks[mode] else { continue }
            lines.append("mode \(mode.dumpedName), without items")
            lines.append("  blocks: \(count) waiting")
        }
        return lines.joined(separator: "\n")
    }

    private var activityText: String {
        guard let running else { return isDead ? "its thread has ended" : "not running" }
        let depth = runDepth > 1 ? ", \(runDepth) runs deep" : ""
        let stop = isStopRequested ? ", told to stop" : ""
        return "\(wake.isSleeping ? "waiting" : "busy") in mode \(running.mode.dumpedName)"
            + depth + stop
    }

    /// The descriptor that ends its sleeps; most kernels need none.
    private func timerText(_ now: UInt64) -> String {
        guard timerDescriptor >= 0 else { return "no timer" }
        guard armedDeadline > now, armedDeadline != .max else { return "timer \(timerDescriptor)" }
        return "timer \(timerDescriptor) (set to \(Text.duration(from: now, to: armedDeadline)))"
    }

    private func title(of items: ModeItems) -> String {
        "mode \(items.mode.dumpedName)\(items === running ? ", running" : "")"
            + (items.isCommon ? ", common" : "")
            + (items.poller.map { ", poller \($0.epoll)" } ?? "")
            + (items.poller?.watchesMainQueue == true ? ", serves the main queue" : "")
    }
}

/// The names of items in the dump: their labels, or the functions of their handlers, which are looked up without the
/// lock.
private struct DumpedNames {
    /// In nothing that comes from the app; see ``Text/printable(_:)``.
    private static let mark: Character = "\0"
    private var handlers: [DumpedHandler] = []

    /// The label of an item, or the place where the name of its handler comes.
    mutating func name(_ label: String?, _ handler: DumpedHandler?) -> String {
        if let label { return " \(Text.printable(label))" }
        guard let handler else { return "" }
        handlers.append(handler)
        return String(Self.mark)
    }

    func put(into text: String) -> String {
        var rest = handlers[...]
        return text.reduce(into: "") { result, character in
            if character != Self.mark || rest.isEmpty { return result.append(character) }
            if let name = rest.removeFirst().name { result += " (\(name))" }
        }
    }
}

extension ModeItems {
    /// The items of the mode, at most ten timers, the earliest first. With the loop's lock held.
    fileprivate func dumpLines(now: UInt64, _ names: inout DumpedNames) -> [String] {
        var lines = sources.map {
            "source\(names.name($0.label, $0.dumpedHandler)), order \($0.order)"
                + ($0.isSignalled ? ", signalled" : "")
        }
        lines += descriptors.map {
            "descriptor \($0.descriptor)\(names.name($0.label, $0.dumpedHandler)), \($0.events)"
        }
        lines += observers.map {
            "observer\(names.name($0.label, $0.dumpedHandler)), order \($0.order), \($0.activities)\($0.repeats ? "" : ", once")"
                + ($0.isValid ? "" : ", invalid")
        }
        let earliest = timers.pointee.due(at: .max)
        lines += earliest.prefix(10).map {
            "timer\(names.name($0.label, $0.dumpedHandler)), due in \(Text.duration(from: now, to: $0.deadline))\($0.dumpDetails)"
        }
        if earliest.count > 10 { lines.append("and \(earliest.count - 10) more timers") }
        timers.pointee.forEach { timer in
            if timer.isFiring {
                let name = names.name(timer.label, timer.dumpedHandler)
                lines.append("timer\(name), firing\(timer.dumpDetails)")
            }
        }
        if let first = earliest.first {
            let latest = timers.pointee.wakeDeadline()
            lines.append(
                "wakes for timers in \(Text.duration(from: now, to: latest))"
                    + (latest == first.deadline
                        ? ""
                        : ", of which the first is due in \(Text.duration(from: now, to: first.deadline))")
            )
        }
        return lines
    }
}

extension LoopTimer {
    fileprivate var dumpDetails: String {
        (repeats ? ", every \(Text.milliseconds(Int64(clamping: intervalNanoseconds)))" : "")
            + (toleranceNanoseconds > 0
                ? ", tolerance \(Text.milliseconds(Int64(clamping: toleranceNanoseconds)))" : "")
    }
}

extension LoopMode {
    fileprivate var dumpedName: String { Text.printable(rawValue) }
}

private enum Text {
    /// Text of the app on one line: control characters as in a Swift literal.
    static func printable(_ text: String) -> String {
        guard text.unicodeScalars.contains(where: { $0.properties.generalCategory == .control })
        else { return text }
        return text.unicodeScalars.reduce(into: "") { result, scalar in
            result +=
                scalar.properties.generalCategory == .control
                ? scalar.escaped(asASCII: false) : String(scalar)
        }
    }

    static func duration(from: UInt64, to: UInt64) -> String {
        milliseconds(Int64(clamping: to) - Int64(clamping: from))
    }

    static func milliseconds(_ nanoseconds: Int64) -> String {
        "\(Duration.nanoseconds(nanoseconds).milliseconds) ms"
    }
}

extension DescriptorEvents: CustomStringConvertible {
    /// The names of the events, with bars between.
    public var description: String {
        let names: [(DescriptorEvents, String)] = [
            (.readable, "readable"), (.writable, "writable"), (.hangUp, "hangUp"),
            (.error, "error"),
        ]
        return names.filter { contains($0.0) }.map(\.1).joined(separator: "|")
    }
}

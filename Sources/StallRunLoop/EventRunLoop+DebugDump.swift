// What is in a loop, for people: modes, sources, observers, timers and when they are due.

internal import CLinux
internal import StallModel

extension EventRunLoop: CustomDebugStringConvertible {
    /// A readable dump of the loop, a line an item. Any thread may ask; the loop keeps running.
    public var debugDescription: String {
        lock.lock()
        defer { lock.unlock() }
        var lines = [
            "run loop of thread \(thread.rawValue)\(isMain ? " (main)" : ""): \(activityText)",
            "common modes: \(commonModes.map(\.rawValue).sorted().joined(separator: ", "))",
        ]
        for items in modes.sorted(by: { $0.mode.rawValue < $1.mode.rawValue }) {
            lines.append("mode \(items.mode)\(items === running ? ", running" : "")")
            lines += items.dumpLines(now: stall_monotonic_ns()).map { "  " + $0 }
        }
        return lines.joined(separator: "\n")
    }

    private var activityText: String {
        guard let running else { return isDead ? "its thread has ended" : "not running" }
        let stop = isStopRequested ? ", told to stop" : ""
        return "\(wake.isSleeping ? "waiting" : "busy") in mode \(running.mode)\(stop)"
    }
}

extension ModeItems {
    /// The items of the mode, at most ten timers, the earliest first. With the loop's lock held.
    fileprivate func dumpLines(now: UInt64) -> [String] {
        var lines = sources.map {
            "source, order \($0.order)\($0.isSignalled ? ", signalled" : "")"
        }
        lines += descriptors.map { "descriptor \($0.descriptor), \($0.events)" }
        lines += observers.map {
            "observer, order \($0.order), \($0.activities)\($0.repeats ? "" : ", once")"
        }
        let earliest = timers.pointee.due(at: .max)
        lines += earliest.prefix(10).map { timer in
            var line =
                "timer, due in \(Self.text(Int64(clamping: timer.deadline) - Int64(clamping: now)))"
            if timer.repeats {
                line += ", every \(Self.text(Int64(clamping: timer.intervalNanoseconds)))"
            }
            if timer.toleranceNanoseconds > 0 {
                line += ", tolerance \(Self.text(Int64(clamping: timer.toleranceNanoseconds)))"
            }
            return line
        }
        if earliest.count > 10 { lines.append("and \(earliest.count - 10) more timers") }
        if timers.pointee.count > earliest.count {
            lines.append("\(timers.pointee.count - earliest.count) timers firing")
        }
        return lines
    }

    private static func text(_ nanoseconds: Int64) -> String {
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

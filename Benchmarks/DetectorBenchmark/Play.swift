// One measurement: a load on one or more loops, and who watches them.

import Foundation

/// What the loops do while they are watched.
enum Load: Hashable {
    /// Every iteration sleeps and is woken by the loop's own descriptor.
    case busy
    /// Every iteration has work to do: the poll path.
    case spinning
    /// The two before, watched and not watched in turns: what separate processes do to each other's numbers cancels out.
    case busyInTurns
    case spinningInTurns
    /// Only what an iteration publishes for the detector, which a loop always does, watched or not.
    case publishing
    /// Nothing happens.
    case idle
    /// One loop that stalls now and then, for 300 to 600 ms.
    case stalling
    /// This many loops with a timer of 10 ms each; each stalls once, finally all at the same time.
    case many(Int)

    var title: String {
        switch self {
        case .busy: "busy loop, sleep path"
        case .spinning: "busy loop, poll path"
        case .busyInTurns: "sleep path, watched in turns"
        case .spinningInTurns: "poll path, watched in turns"
        case .publishing: "what an iteration publishes"
        case .idle: "idle loop"
        case .stalling: "one loop that stalls"
        case .many(let count): "\(count) loops"
        }
    }

    var word: String {
        switch self {
        case .busy: "busy"
        case .spinning: "spinning"
        case .busyInTurns: "busy-in-turns"
        case .spinningInTurns: "spinning-in-turns"
        case .publishing: "publishing"
        case .idle: "idle"
        case .stalling: "stalling"
        case .many(let count): "many=\(count)"
        }
    }

    init?(word: Substring) {
        let parts = word.split(separator: "=")
        switch (parts.first, parts.count > 1 ? Int(parts[1]) : nil) {
        case ("busy", nil): self = .busy
        case ("spinning", nil): self = .spinning
        case ("busy-in-turns", nil): self = .busyInTurns
        case ("spinning-in-turns", nil): self = .spinningInTurns
        case ("publishing", nil): self = .publishing
        case ("idle", nil): self = .idle
        case ("stalling", nil): self = .stalling
        case ("many", let count?): self = .many(count)
        default: return nil
        }
    }
}

/// Who watches.
enum Watcher: String {
    case none
    case stallwatch
    /// Five timeouts of 50 ms in a row.
    case classicShort = "classic 5 x 50 ms"
    /// One timeout of a second.
    case classicLong = "classic 1 s"
}

/// A load and its watcher, as one argument: `busy/stallwatch`.
struct Play: Hashable {
    let load: Load
    let watcher: Watcher

    init(_ load: Load, _ watcher: Watcher) {
        self.load = load
        self.watcher = watcher
    }

    init?(_ argument: String) {
        let parts = argument.split(separator: "/")
        guard parts.count == 2, let load = Load(word: parts[0]),
            let watcher = Watcher(rawValue: String(parts[1]))
        else { return nil }
        self.init(load, watcher)
    }

    var argument: String { "\(load.word)/\(watcher.rawValue)" }

    /// Runs it in this process and returns the measurements.
    func run() -> [(String, Double)] {
        let watch = Watch(watcher)
        defer { watch.stop() }
        return switch load {
        case .busy: iterate(100_000, watch, work: wakeThroughDescriptor)
        case .spinning: iterate(1_000_000, watch, work: signalItself)
        case .busyInTurns: iterateInTurns(2_500, watch, work: wakeThroughDescriptor)
        case .spinningInTurns: iterateInTurns(10_000, watch, work: signalItself)
        case .publishing: publish(10_000_000)
        case .idle: stayIdle(for: 5, watch)
        case .stalling: stall(times: 12, watch)
        case .many(let count): stallMany(loops: count, watch)
        }
    }
}

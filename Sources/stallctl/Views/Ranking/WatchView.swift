// `top --watch`: the ranking on a live screen. Key handling is pure, without a terminal.

internal import ArgumentParser
internal import Glibc
internal import StallAnalysis
internal import StallModel

/// The settings chosen with keys.
struct WatchChoice: Equatable {
    var order: RankingOrder
    var group: GroupKey
    var isDone = false

    /// Applies a key; false if it has no meaning.
    mutating func obey(_ key: Character) -> Bool {
        switch key {
        case "t": order = .total
        case "c": order = .count
        case "p": order = .p95
        case "m": order = .max
        case "r": order = .rate
        case "g": group = group.following
        case "q": isDone = true
        case " ": break  // refreshes, like every other key
        default: return false
        }
        return true
    }

    /// The last line of the screen: the keys, with the current choice in brackets.
    var legend: String {
        let orders: [(String, RankingOrder)] = [
            ("t total", .total), ("c count", .count), ("p p95", .p95), ("m max", .max),
            ("r rate", .rate),
        ]
        let sort = orders.map { $0.1 == order ? "[\($0.0)]" : $0.0 }.joined(separator: " ")
        return "\(sort)  g group: \(group.rawValue)  q quit"
    }
}

extension GroupKey {
    fileprivate var following: GroupKey {
        let all = Self.allCases
        return all[(all.firstIndex(of: self)! + 1) % all.count]
    }
}

/// One screen.
struct WatchView {
    /// The ranking's lines, or the current error of the store.
    var content: [String]
    var choice: WatchChoice
    var terminal: Terminal

    /// Exactly `rows` lines: content is cut off if it does not fit, the legend never.
    func lines(rows: Int) -> [String] {
        let shown = content.prefix(Swift.max(0, rows - 1))
        let blank = Array(repeating: "", count: Swift.max(0, rows - 1 - shown.count))
        let legend = choice.legend.truncatedInMiddle(to: terminal.columns ?? .max)
        return shown + blank + [terminal.paint(legend, .faint)]
    }
}

extension Top {
    /// Redraws the ranking until a key or a signal ends it.
    func watch(_ store: any QueryableStore) throws {
        // With the terminal restored, die of the signal, so that the parent sees it.
        guard let end = try drawUntilEnd(store) else { return }
        var ending = sigset_t()
        sigemptyset(&ending)
        sigaddset(&ending, end)
        signal(end, SIG_DFL)
        pthread_sigmask(SIG_UNBLOCK, &ending, nil)  // its parent may have blocked it
        raise(end)
    }

    /// - Returns: The signal that ended it, if one did.
    private func drawUntilEnd(_ store: any QueryableStore) throws -> CInt? {
        guard let live = LiveTerminal() else {
            throw ValidationError(
                "--watch requires a terminal on standard input and standard output.")
        }
        var choice = WatchChoice(order: by, group: group)
        var question = try grouping.question(to: store, filters.filter)
        while !choice.isDone {
            var terminal = rows.output.colors.terminal
            let size = live.size
            terminal.columns = size.columns
            var content: [String]
            // A summary, two lines around the table, the lines below it.
            let shown = Swift.max(1, Swift.min(limit, size.rows - 6))
            do {
                question.key = choice.group
                let ranking = try question.ranking(by: choice.order, limit: shown)
                content =
                    TopView(
                        ranking: ranking, limit: shown, frameCount: frames, terminal: terminal,
                        isLive: true
                    ).lines
            } catch {
                content = ["\(error)".printable]
            }
            // Painted lines come from tables, which fit already.
            content = content.map { line in
                line.contains("\u{1b}") ? line : line.truncatedInMiddle(to: size.columns)
            }
            guard
                live.draw(
                    WatchView(content: content, choice: choice, terminal: terminal).lines(
                        rows: size.rows))
            else { return nil }
            while true {
                switch live.nextEvent(within: interval * 1000) {
                case .key(let key): if !choice.obey(key) { continue }
                case .resized, .timeout: break
                case .ended(let signal): return signal
                }
                break
            }
        }
        return nil
    }
}

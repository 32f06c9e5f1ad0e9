// `top --watch`: reads, draws, and waits for a key, a signal or the next reading.

internal import ArgumentParser
internal import Glibc
internal import StallAnalysis
internal import StallModel
internal import StallQuery

extension Top {
    /// Shows the ranking, and what the user opens from it, until a key or a signal ends it.
    func watch(_ store: any QueryableStore) throws {
        // With the terminal restored, die of the signal, so that the parent sees it.
        guard let end = try drawUntilEnd(store) else { return }
        var signals = sigset_t()
        sigemptyset(&signals)
        sigaddset(&signals, end)
        signal(end, SIG_DFL)
        pthread_sigmask(SIG_UNBLOCK, &signals, nil)  // its parent may have blocked it
        raise(end)
    }

    /// The default limit is for a table on paper; this one scrolls.
    private static let (paperLimit, scrolledLimit) = (20, 500)

    /// - Returns: The signal that ended it, if one did.
    private func drawUntilEnd(_ store: any QueryableStore) throws -> CInt? {
        var reader = try WatchReader(
            store, filter, grouping,
            limit: limit == Self.paperLimit ? Self.scrolledLimit : limit, frameCount: frames)
        guard var live = LiveTerminal() else {
            throw ValidationError(
                "--watch requires a terminal on standard input and standard output.")
        }
        var state = WatchState(order: order, group: group)
        // Of each open page, so that the way back is there when the store is not.
        var contents = [WatchContent()]
        var (reading, fault): (String, String?) = ("", nil)
        var isDue = true
        while true {
            var terminal = rows.output.bareTerminal
            let size = live.size
            terminal.columns = size.columns
            while contents.count > state.depth { contents.removeLast() }
            while contents.count < state.depth { contents.append(WatchContent()) }
            if isDue {
                do {
                    let clock = UnixTime.now.clockText(on: terminal)
                    if let read = try reader.content(of: state, on: terminal, clock: clock) {
                        (contents[state.depth - 1], reading) = (read, "read at \(clock)")
                    }
                    fault = nil
                } catch {
                    // The page that was read before stays on the screen.
                    fault = "\(error)".printable
                }
                isDue = false
            }
            let content = contents[state.depth - 1]
            var screen = WatchScreen(
                state: state, content: content, reading: reading, notice: fault ?? reader.notice,
                terminal: terminal)
            let height = screen.height(rows: size.rows)
            state.settle(on: content, height: height)
            screen.state = state
            guard live.draw(screen.lines(rows: size.rows)) else { return nil }
            var isChanged = false
            while !isChanged {
                switch live.nextEvent(within: interval * 1000) {
                case .key(let key):
                    switch state.apply(key, to: content, height: height) {
                    case .none: continue
                    case .draw: break
                    case .read: isDue = true
                    case .quit: return nil
                    }
                // Rows are rendered for the width.
                case .resized, .timeout: isDue = true
                case .ended(let signal): return signal
                }
                isChanged = true
            }
        }
    }
}

// Lines that are written on a thread of its own, so that no request waits for a disk, a pipe or a terminal.

internal import Synchronization

/// Writes lines in order, on a thread of its own. Lines that find it full are dropped and counted.
package final class LineQueue: Sendable {
    private let thread: WorkThread
    private let write: @Sendable (String) -> Bool
    private let limit: Int
    private let waiting = Atomic(0)
    private let dropped = Atomic<Int64>(0)

    /// - Parameters:
    ///   - limit: The lines that may wait to be written.
    ///   - write: Writes a line, and may take as long as it likes. False if it could not; the line is counted.
    package init(_ name: String, limit: Int = 1000, write: @escaping @Sendable (String) -> Bool) {
        thread = WorkThread(name)
        self.limit = limit
        self.write = write
    }

    /// The lines that could not be written.
    package var droppedCount: Int64 { dropped.load(ordering: .relaxed) }

    /// Appends a line, which is made on the thread. Waits for nothing.
    package func add(_ line: @escaping @autoclosure @Sendable () -> String) {
        guard waiting.wrappingAdd(1, ordering: .relaxed).newValue <= limit,
            thread.add({ [self] in
                if !write(line()) { dropped.wrappingAdd(1, ordering: .relaxed) }
                waiting.wrappingSubtract(1, ordering: .relaxed)
            })
        else {
            waiting.wrappingSubtract(1, ordering: .relaxed)
            dropped.wrappingAdd(1, ordering: .relaxed)
            return
        }
    }

    /// Writes the lines that wait, as far as they are written in time: there may be no one who reads the pipe.
    ///
    /// - Returns: Whether all were written. Otherwise the thread is left to itself.
    @discardableResult
    package func stop(within seconds: Double = 2) -> Bool { thread.stop(within: seconds) }
}

// All threads of the process, one after another. Nothing is stopped: each stack is of its own instant.

internal import CStackCapture
internal import Glibc
package import StallModel

/// A thread as it was seen, or why it was not.
package struct SeenThread: Sendable {
    package let id: ThreadID
    /// The thread's name in the kernel (`comm`).
    package let name: String?
    package let stack: Result<CapturedStack, CaptureError>

    package init(id: ThreadID, name: String?, stack: Result<CapturedStack, CaptureError>) {
        self.id = id
        self.name = name
        self.stack = stack
    }
}

/// One look at many threads.
package struct ThreadRound: Sendable {
    /// In the order of their ids.
    package var threads: [SeenThread] = []
    /// Threads that there was neither room nor time for.
    package var skippedCount = 0

    package init(threads: [SeenThread] = [], skippedCount: Int = 0) {
        self.threads = threads
        self.skippedCount = skippedCount
    }
}

extension StackSampler {
    /// Captures the threads of this process, except the calling one.
    ///
    /// Those that are blocked come first, since they cost neither them nor us any waiting; a running one is waited for.
    ///
    /// - Parameters:
    ///   - excluded: Threads to leave out.
    ///   - limit: The most threads to look at.
    ///   - budget: How long all of it may take.
    ///
    /// **Cost:** some 30 us a thread that is blocked; nothing on it.
    package mutating func captureThreads(
        except excluded: Set<ThreadID>, limit: Int = 512, budget: Duration = .milliseconds(200)
    ) -> ThreadRound {
        let deadline = ContinuousClock.now + budget
        let own = ThreadID(rawValue: stall_thread_self())
        let all = Self.threads().filter { $0 != own && !excluded.contains($0) }
        var seen: [ThreadID: Result<CapturedStack, CaptureError>] = [:]
        var running: [ThreadID] = []
        for id in all.prefix(limit) {
            guard ContinuousClock.now < deadline else { break }
            let stack = capture(id, timeout: .zero)
            if case .failure(.timedOut) = stack { running.append(id) } else { seen[id] = stack }
        }
        for (index, id) in running.enumerated() {
            let left = ContinuousClock.now.duration(to: deadline)
            guard left > .zero else { break }
            seen[id] = capture(id, timeout: left / (running.count - index))
        }
        // A thread that ended meanwhile is no thread of the process.
        let threads = all.compactMap { id -> SeenThread? in
            guard let stack = seen[id] else { return nil }
            if case .failure(.threadEnded) = stack { return nil }
            return SeenThread(id: id, name: threadName(id), stack: stack)
        }
        return ThreadRound(threads: threads, skippedCount: all.count - seen.count)
    }

    private mutating func capture(
        _ id: ThreadID, timeout: Duration
    ) -> Result<CapturedStack, CaptureError> {
        do throws(CaptureError) {
            return .success(try captureStack(of: .found(id), timeout: timeout))
        } catch {
            return .failure(error)
        }
    }

    /// The threads of this process, in the order of their ids.
    package static func threads() -> [ThreadID] {
        guard let directory = opendir("/proc/self/task") else { return [] }
        defer { closedir(directory) }
        var threads: [ThreadID] = []
        while let entry = readdir(directory) {
            let name = withUnsafeBytes(of: &entry.pointee.d_name) {
                String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self)
            }
            if let id = Int32(name) { threads.append(ThreadID(rawValue: id)) }
        }
        return threads.sorted { $0.rawValue < $1.rawValue }
    }
}

/// The thread's name in the kernel (`comm`); nil when it has ended or `/proc` cannot be read.
package func threadName(_ thread: ThreadID) -> String? {
    let file = open("/proc/self/task/\(thread.rawValue)/comm", O_RDONLY | O_CLOEXEC)
    guard file >= 0 else { return nil }
    defer { close(file) }
    return withUnsafeTemporaryAllocation(byteCount: 64, alignment: 1) { buffer in
        let count = read(file, buffer.baseAddress!, buffer.count)
        guard count > 0 else { return nil }
        return String(decoding: buffer[..<count].prefix { $0 != UInt8(ascii: "\n") }, as: UTF8.self)
    }
}

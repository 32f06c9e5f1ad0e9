// Captures all threads of the process, one after another. No thread is stopped: each stack is of its own instant.

internal import CLinux
internal import CStackCapture
internal import Glibc
package import StallModel

/// A captured thread, or why the capture failed.
package struct CapturedThread: Sendable {
    package let id: ThreadID
    /// The thread's name in the kernel (`comm`).
    package let name: String?
    package var stack: Result<CapturedStack, CaptureError>

    package init(id: ThreadID, name: String?, stack: Result<CapturedStack, CaptureError>) {
        self.id = id
        self.name = name
        self.stack = stack
    }
}

/// One round over many threads.
package struct ThreadRound: Sendable {
    /// In order of thread id.
    package var threads: [CapturedThread] = []
    /// The number of threads skipped for lack of room or time.
    package var skippedCount = 0

    package init(threads: [CapturedThread] = [], skippedCount: Int = 0) {
        self.threads = threads
        self.skippedCount = skippedCount
    }

    /// Puts the threads in order of id.
    package mutating func sort() {
        let threads = threads
        self.threads = sortedPlaces(threads.count) {
            threads[$0].id.rawValue < threads[$1].id.rawValue
        }.map { threads[$0] }
    }
}

extension StackSampler {
    /// Captures the threads of this process, except the calling one, and passes each to `visit` without allocating.
    ///
    /// Blocked threads come first, because they need no waiting; then each running one is waited for.
    ///
    /// - Parameters:
    ///   - isExcluded: Threads to leave out.
    ///   - limit: The maximum number of threads to capture.
    ///   - budget: The time limit for all of them.
    ///   - visit: Called for each captured thread. The stack is in the sampler's memory until the next call.
    /// - Returns: How many threads were skipped for lack of room or time.
    ///
    /// **Cost:** about 30 us per blocked thread; none for the thread itself.
    package mutating func visitThreads(
        except isExcluded: (ThreadID) -> Bool, limit: Int = 512,
        budget: Duration = .milliseconds(200), _ visit: (StackCopy) -> Void
    ) -> Int {
        let deadline = ContinuousClock.now + budget
        let own = stall_thread_self()
        var total: UInt32 = 0
        let count = Int(
            stall_threads_list(roundIDs.baseAddress!, UInt32(Self.longestRound), &total))
        var skipped = Int(total) - count
        var (visited, running, index) = (0, 0, 0)
        while index < count {
            let id = ThreadID(rawValue: roundIDs[index])
            roundCaptured[index] = true
            defer { index += 1 }
            guard id.rawValue != own, !isExcluded(id) else { continue }
            guard visited < limit, ContinuousClock.now < deadline else {
                skipped += 1
                continue
            }
            visited += 1
            let stack = copyStack(ofFound: id, timeout: .zero)
            if stack.isOfMovingThread {
                roundCaptured[index] = false
                running += 1
            } else if !stack.isOfEndedThread {
                visit(stack)
            }
        }
        index = 0
        while index < count {
            defer { index += 1 }
            guard !roundCaptured[index] else { continue }
            let left = ContinuousClock.now.duration(to: deadline)
            guard left > .zero else {
                skipped += 1
                continue
            }
            let id = ThreadID(rawValue: roundIDs[index])
            let stack = copyStack(ofFound: id, timeout: left / running)
            running -= 1
            // A thread that ended meanwhile is not counted.
            if !stack.isOfEndedThread { visit(stack) }
        }
        return skipped
    }

    private mutating func copyStack(ofFound id: ThreadID, timeout: Duration) -> StackCopy {
        do throws(CaptureError) {
            return copyStack(of: try .found(id), timeout: timeout)
        } catch {
            return StackCopy(id, failure: error)
        }
    }

    /// The same, decoded. Allocates.
    package mutating func captureThreads(
        except excluded: Set<ThreadID>, limit: Int = 512, budget: Duration = .milliseconds(200)
    ) -> ThreadRound {
        var threads: [CapturedThread] = []
        let skipped = visitThreads(
            except: { excluded.contains($0) }, limit: limit, budget: budget
        ) { threads.append(CapturedThread($0, name: threadName($0.header.thread))) }
        var round = ThreadRound(threads: threads, skippedCount: skipped)
        round.sort()
        return round
    }

    /// Calls `body` with the threads of this process in order of id, without allocating. At most the first 256.
    package static func forEachThread(_ body: (ThreadID) -> Void) {
        withUnsafeTemporaryAllocation(of: Int32.self, capacity: 256) { ids in
            var total: UInt32 = 0
            let count = Int(stall_threads_list(ids.baseAddress!, 256, &total))
            var index = 0
            while index < count {
                body(ThreadID(rawValue: ids[index]))
                index += 1
            }
        }
    }
}

extension CapturedThread {
    /// Decodes a captured thread.
    package init(_ copy: StackCopy, name: String?) {
        let stack = Result { () throws(CaptureError) in try copy.decoded() }
        self.init(id: copy.header.thread, name: name, stack: stack)
    }
}

/// The thread's name in the kernel (`comm`); nil if it has ended or `/proc` cannot be read.
package func threadName(_ thread: ThreadID) -> String? {
    withUnsafeTemporaryAllocation(of: CChar.self, capacity: 16) { name in
        stall_thread_read_name(thread.rawValue, name.baseAddress!)
            ? String(cString: name.baseAddress!) : nil
    }
}

/// Whether the thread's name ends with `suffix`. Does not allocate.
package func isThread(_ thread: ThreadID, named suffix: StaticString) -> Bool {
    withUnsafeTemporaryAllocation(of: CChar.self, capacity: 16) { name in
        guard stall_thread_read_name(thread.rawValue, name.baseAddress!) else { return false }
        let (length, wanted) = (strlen(name.baseAddress!), suffix.utf8CodeUnitCount)
        guard length >= wanted else { return false }
        return memcmp(name.baseAddress! + (length - wanted), suffix.utf8Start, wanted) == 0
    }
}

/// Whether the thread's name contains `text`. Does not allocate.
package func isThread(_ thread: ThreadID, withNameHolding text: StaticString) -> Bool {
    withUnsafeTemporaryAllocation(of: CChar.self, capacity: 16) { name in
        guard stall_thread_read_name(thread.rawValue, name.baseAddress!) else { return false }
        // A literal ends with a zero.
        return text.utf8Start.withMemoryRebound(to: CChar.self, capacity: text.utf8CodeUnitCount) {
            strstr(name.baseAddress!, $0) != nil
        }
    }
}

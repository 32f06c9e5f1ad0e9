// The tasks of a process, found in its heap: each is an object whose class is the runtime's task class. Nothing has to
// run in the process, and no list of tasks exists there.
//
// Every value is checked before it is followed: memory that was a task once looks like one until it is used again.
//
// Source: swift/ABI/Task.h, TaskStatus.h; stdlib/public/Concurrency/TaskPrivate.h (6.3). The variables named
// `_swift_concurrency_debug_...` are there for debuggers.

internal import CInspection
package import StallModel

package struct InspectedTask: Sendable {
    package enum State: Equatable, Sendable {
        /// A thread has it.
        case running
        /// It could run, and waits for a thread of its executor.
        case enqueued
        case suspended
    }

    /// The reason of a suspension.
    package enum Awaited: Equatable, Sendable {
        /// By its address.
        case task(UInt64)
        case continuation
        case group(UInt64)
        /// Enqueued; 0: the concurrency pool, otherwise an actor or an executor of its own.
        case executor(UInt64)
    }

    package let address: UInt64
    package let id: UInt64
    package let state: State
    package let isCancelled: Bool
    /// Of a child task: its parent's address.
    package let parent: UInt64?
    package let awaited: Awaited?
    /// Where it will resume, then the functions that await that one. Of a running task that is outdated, and empty here.
    package let stack: [CodeAddress]
}

private enum Layout {
    static let flags = 4, identifier = 4
    static let resumeFunction = 7, resumeContext = 8
    static let status = 12, record = 13
    /// The words that are read of a task.
    static let count = 24

    static let isRunning: UInt64 = 0x800
    static let isEnqueued: UInt64 = 0x1000
    static let isComplete: UInt64 = 0x2000
    static let isCancelled: UInt64 = 0x100
    static let hasDependency: UInt64 = 0x4000
    static let isChild: UInt64 = 1 << 24
}

extension InspectedProcess {
    private static let longestStack = 256
    private static let mostTasks = 20_000

    /// Those that have not completed, in the order of their identifiers.
    package func tasks() -> [InspectedTask] {
        let names = ["asyncTaskMetadata", "asyncTaskSize", "supportsPriorityEscalation"].map {
            "_swift_concurrency_debug_" + $0
        }
        let variables = addresses(of: names)
        guard let place = variables[names[0]], let metadata = memory.word(at: place), metadata != 0
        else { return [] }
        let size = variables[names[1]].flatMap { memory.halfWords(at: $0, count: 1).first }
        let hasLock = variables[names[2]].flatMap { memory.bytes(at: $0, count: 1)?.first } ?? 0
        var found: [UInt64] = []
        for region in map.heapLike where found.count < Self.mostTasks {
            found += [UInt64](unsafeUninitializedCapacity: Self.mostTasks - found.count) {
                $1 = stall_process_find_word(
                    id, region.start, region.end, metadata, $0.baseAddress!, $0.count)
            }
        }
        return found.compactMap {
            task(at: $0, size: size.map(UInt64.init) ?? 0, hasLock: hasLock != 0)
        }.sorted { $0.id < $1.id }
    }

    private func task(at address: UInt64, size: UInt64, hasLock: Bool) -> InspectedTask? {
        guard let words = memory.words(at: address, count: Layout.count) else { return nil }
        let flags = words[Layout.flags] & 0xFFFF_FFFF
        let status = words[Layout.status]
        // The kind of a job that is a task is 0.
        guard flags & 0xFF == 0, status & Layout.isComplete == 0,
            isCode(words[Layout.resumeFunction])
        else { return nil }
        let isRunning =
            hasLock ? status >> 32 & 0x3FFF_FFFF != 0 : status & Layout.isRunning != 0
        let state: InspectedTask.State =
            isRunning ? .running : status & Layout.isEnqueued != 0 ? .enqueued : .suspended
        var parent: UInt64?
        if flags & Layout.isChild != 0, (128...1024).contains(size) {
            parent = memory.word(at: address &+ size)
        }
        let hasDependency = status & Layout.hasDependency != 0
        return InspectedTask(
            address: address, id: words[Layout.identifier] >> 32, state: state,
            isCancelled: status & Layout.isCancelled != 0, parent: parent,
            awaited: hasDependency ? awaited(by: words[Layout.record]) : nil,
            stack: isRunning
                ? [] : stack(words[Layout.resumeFunction], words[Layout.resumeContext]))
    }

    private func awaited(by record: UInt64) -> InspectedTask.Awaited? {
        guard let words = memory.words(at: record, count: 5) else { return nil }
        switch words[4] & 0xFFFF_FFFF {
        case 1: return .task(words[2])
        case 2: return .continuation
        case 3: return .group(words[2])
        case 4: return .executor(words[2])
        default: return nil
        }
    }

    private func stack(_ function: UInt64, _ context: UInt64) -> [CodeAddress] {
        var addresses = [CodeAddress(function, .asyncResume)]
        var (context, seen) = (context, Set<UInt64>())
        while context != 0, context % 8 == 0, seen.insert(context).inserted,
            addresses.count < Self.longestStack,
            let words = memory.words(at: context, count: 2), isCode(words[1])
        {
            addresses.append(CodeAddress(words[1], .asyncResume))
            context = words[0]
        }
        return addresses
    }

    private func isCode(_ address: UInt64) -> Bool {
        map.regions.contains { $0.isExecutable && $0.start <= address && address < $0.end }
    }
}

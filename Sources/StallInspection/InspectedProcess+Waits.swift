// The object that a thread of another process waits for, by the arguments of its system call.

internal import Glibc
package import StallModel

/// An open file of a process.
package struct InspectedDescriptor: Equatable, Sendable {
    package var number: Int32
    /// The link in /proc/PID/fd: a path, `pipe:[5]`, `socket:[7]`.
    package var target: String
}

extension InspectedProcess {
    package func descriptor(_ number: Int32) -> InspectedDescriptor? {
        guard number >= 0, let target = ProcFile.link("/proc/\(id)/fd/\(number)") else {
            return nil
        }
        return InspectedDescriptor(number: number, target: target)
    }

    /// The descriptors in the array of a call of poll or ppoll.
    package func polled(at address: UInt64, count: UInt64) -> [InspectedDescriptor] {
        // struct pollfd: the descriptor, then two 16-bit sets.
        let words = memory.halfWords(at: address, count: Int(min(count, 16)) * 2)
        return stride(from: 0, to: words.count, by: 2).compactMap {
            descriptor(Int32(bitPattern: words[$0]))
        }
    }

    /// Other processes that have a pipe or a socket open.
    package func processes(sharing target: String) -> [Int32] {
        guard target.hasPrefix("pipe:") || target.hasPrefix("socket:") else { return [] }
        return ProcFile.names(in: "/proc").compactMap { Int32($0) }.filter { other in
            other != id
                && ProcFile.names(in: "/proc/\(other)/fd").contains {
                    ProcFile.link("/proc/\(other)/fd/\($0)") == target
                }
        }
    }

    /// Whether a socket is one between processes of this machine, and not of a network.
    ///
    /// **Source:** proc(5), /proc/net/unix: the inode is in the seventh column.
    package func isLocalSocket(_ descriptor: InspectedDescriptor) -> Bool {
        let inode = descriptor.target.dropFirst("socket:[".count).dropLast()
        return (ProcFile.text("/proc/\(id)/net/unix", limit: 16 << 20) ?? "")
            .split(separator: "\n").contains { line in
                let words = line.split(separator: " ", maxSplits: 7)
                return words.count > 6 && words[6] == inode
            }
    }

    /// The CPU time of a thread since its start.
    ///
    /// **Source:** proc(5), /proc/pid/schedstat: nanoseconds on a CPU come first.
    package func cpuTime(of thread: ThreadID) -> Duration {
        let text = ProcFile.text("/proc/\(id)/task/\(thread.rawValue)/schedstat") ?? ""
        return text.split(separator: " ").first.flatMap { Int64($0) }.map { .nanoseconds($0) }
            ?? .zero
    }

    /// The process that holds the file lock which this process waits for.
    ///
    /// **Source:** proc(5), /proc/locks: a lock's waiters follow it, with its number and an arrow.
    package func fileLockHolder() -> Int32? {
        var holder: (number: Substring, process: Int32)?
        var found: Set<Int32> = []
        for line in (ProcFile.text("/proc/locks") ?? "").split(separator: "\n") {
            let words = line.split(separator: " ")
            guard words.count > 5 else { continue }
            if words[1] == "->" {
                guard Int32(words[5]) == id, let holder, holder.number == words[0] else { continue }
                found.insert(holder.process)
            } else if let process = Int32(words[4]) {
                holder = (words[0], process)
            }
        }
        return found.count == 1 ? found.first : nil
    }

    /// The thread that drains the dispatch queue which `waiter` waits for in dispatch_sync, by the context on its stack.
    ///
    /// **Source:** libdispatch, `struct dispatch_sync_context_s`, `struct dispatch_queue_s`; as in CLinux/stall_queue.c.
    package func syncQueueHolder(futex: UInt64, waiter: ThreadID) -> ThreadID? {
        let (context, queue, event, count) = (5, 7, 12, 13)
        guard futex % 8 == 0, futex >= UInt64(count * 8) else { return nil }
        let start = futex - UInt64(event * 8)
        guard let words = memory.words(at: start, count: count), words[context] == start,
            words[event] >> 32 == UInt64(UInt32(bitPattern: waiter.rawValue))
        else { return nil }
        var next = words[queue]
        for _ in 0..<16 where next != 0 {
            let (target, state) = (3, 7)
            guard let words = memory.words(at: next, count: 15) else { return nil }
            let drainer = Int32(words[state] & 0x3FFF_FFFF)
            if drainer != 0, drainer != waiter.rawValue { return ThreadID(rawValue: drainer) }
            next = words[target]
        }
        return nil
    }

    /// How many processors it may use; the concurrency pool has a thread for each.
    package var processorCount: Int {
        // Cpus_allowed_list:  0-1,4
        let status = ProcFile.text("/proc/\(id)/status") ?? ""
        guard
            let line = status.split(separator: "\n").first(where: {
                $0.hasPrefix("Cpus_allowed_list:")
            })
        else {
            return 1
        }
        return line.drop { $0 != ":" }.dropFirst().split(separator: ",").reduce(0) { count, part in
            let ends = part.split(separator: "-").compactMap { Int($0.filter(\.isNumber)) }
            guard let first = ends.first, let last = ends.last, last >= first else { return count }
            return count + min(last - first, 1 << 16) + 1
        }
    }

    /// Processes that this one has started and not waited for.
    package var children: [RunningProcess] { ProcessTree.children(of: id) }
}

extension RunningProcess {
    /// The kernel's name of it.
    package var name: String {
        String((ProcFile.text("/proc/\(id)/comm") ?? "").prefix { $0 != "\n" })
    }
}

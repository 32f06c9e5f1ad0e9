// A second copy of the agent in the process, in a library that is loaded and perhaps unloaded again.

import CHostSafety
import CStallAgent
import Foundation
import StallAgent
import StallArchive
import StallModel
import StallQuery
import StallRunLoop

extension Play {
    static let copies: [Play] = [
        // After dlclose the kernel must not call a handler that is gone: SIGURG is ignored by default, and SIGPROF of an
        // interval timer may come at any moment.
        Play(name: "library-unloaded") { stage in
            let library = try LoadedAgent(in: stage.directory)
            let agent = try library.start(stage.directory + "/store-library.sqlite")
            library.watchStall(agent)
            library.stop(agent)
            library.unload()
            raise(SIGURG)
            for number in [SIGURG, SIGPROF, SIGSEGV, SIGABRT] {
                if library.hasHandlerInUnmappedMemory(number) {
                    print("crashed the handler of signal \(number) is gone")
                }
            }
        },
        // By a thread of a pool, which is pinned and of a low priority: the agent's threads take neither from it.
        Play(name: "library-loaded-by-pinned-thread") { stage in
            let ended = DispatchSemaphore(value: 0)
            let own = statusLine("Cpus_allowed_list", of: getpid())
            let ownNice = getpriority(Int32(PRIO_PROCESS.rawValue), id_t(getpid()))
            Thread.detachNewThread {
                defer { ended.signal() }
                guard host_pin(), host_schedule("nice", 15),
                    let library = try? LoadedAgent(in: stage.directory),
                    let agent = try? library.start(stage.directory + "/store-library.sqlite")
                else { return print("skipped no library of the agent, or no scheduling") }
                usleep(100_000)
                let tasks = try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/task")
                for thread in (tasks ?? []).compactMap({ Int32($0) }) {
                    let name = statusLine("Name", of: thread)
                    guard name.hasPrefix("stall-") else { continue }
                    let cpus = statusLine("Cpus_allowed_list", of: thread)
                    if cpus != own { print("crashed \(name) may run on \(cpus) of \(own)") }
                    // Only a privileged process can go back to a higher priority.
                    let nice = getpriority(Int32(PRIO_PROCESS.rawValue), id_t(thread))
                    if geteuid() == 0, nice > ownNice { print("crashed \(name) has nice \(nice)") }
                }
                library.stop(agent)
            }
            ended.wait()
        },
        // Started and stopped by both, in each order. Both see a thread that computes.
        Play(name: "two-copies") { stage in
            let library = try LoadedAgent(in: stage.directory)
            for isFirst in [true, false] {
                let seen = SeenReports()
                let (path, start) = (stage.directory + "/library-\(isFirst).sqlite", stage.start)
                let early = isFirst ? try library.start(path) : nil
                let monitor = try start { $0.store = stage.directory + "/store-\(isFirst).sqlite" }
                seen.follow(monitor)
                let agent = try early ?? library.start(path)
                nonisolated(unsafe) let (loaded, watching) = (library, agent)
                for _ in 0..<3 { stage.stall(monitor) { loaded.watchStall(watching) } }
                // What is the other copy's is not in the way of the first one's stop.
                if isFirst {
                    stage.stop(monitor)
                    library.stop(agent)
                } else {
                    library.stop(agent)
                    stage.stall(monitor) { host_spin(250_000_000) }
                    stage.stop(monitor)
                }
                seen.expectStack()
                if try deepestStack(path) == 0 { print("blind the library's agent has no stack") }
            }
        },
    ]

    private static func statusLine(_ field: String, of thread: Int32) -> String {
        let text = try? String(contentsOfFile: "/proc/self/task/\(thread)/status", encoding: .utf8)
        let line = text?.split(separator: "\n").first { $0.hasPrefix(field + ":") }
        return line.map { $0.dropFirst(field.count + 1).trimmingCharacters(in: .whitespaces) } ?? ""
    }

    private static func deepestStack(_ path: String) throws -> Int {
        let store = try ReportStore.open(path: path)
        let reports = try store.stalls().map {
            try store.report(idPrefix: $0.id.description)
        }
        return reports.flatMap(\.samples).map(\.frames.count).max() ?? 0
    }
}

/// The agent's C library, loaded beside the copy that this program is linked with, as a plug-in would be.
private final class LoadedAgent {
    private let handle: UnsafeMutableRawPointer

    /// Of a copy without the flag that keeps it loaded, as a library that an app's authors link has none.
    init(in directory: String) throws {
        let folder = URL(filePath: Play.ownProgram).deletingLastPathComponent()
        guard var image = FileManager.default.contents(atPath: folder.path + "/libStallAgentC.so")
        else { throw Skipped(reason: "libStallAgentC.so is not built") }
        let path = directory + "/libplugin.so"
        image.withUnsafeMutableBytes { host_allow_unloading($0.baseAddress!, $0.count) }
        try image.write(to: URL(filePath: path))
        guard let handle = dlopen(path, RTLD_NOW | RTLD_LOCAL) else {
            throw Skipped(reason: String(cString: dlerror()))
        }
        self.handle = handle
    }

    func start(_ store: String) throws -> OpaquePointer {
        typealias Start =
            @convention(c) (
                UnsafePointer<stall_agent_configuration>?, UnsafeMutablePointer<CChar>?, Int
            ) -> OpaquePointer?
        let agent = "plugin".withCString { app in
            store.withCString { store in
                var configuration = stall_agent_configuration()
                configuration.app = app
                configuration.store = store
                configuration.threshold_ms = 100
                return call("stall_agent_start", as: Start.self)(&configuration, nil, 0)
            }
        }
        guard let agent else { throw Skipped(reason: "the library's agent does not start") }
        return agent
    }

    /// Computes for 300 ms in a thread that the library's agent watches.
    func watchStall(_ agent: OpaquePointer) {
        typealias Watch =
            @convention(c) (OpaquePointer?, UnsafePointer<CChar>?, UInt32) ->
            OpaquePointer?
        typealias Mark = @convention(c) (OpaquePointer?) -> Void
        let marks = call("stall_agent_watch_current_thread", as: Watch.self)(agent, "plugin", 0)
        call("stall_begin", as: Mark.self)(marks)
        host_spin(300_000_000)
        call("stall_end", as: Mark.self)(marks)
        call("stall_thread_marks_free", as: Mark.self)(marks)
    }

    func stop(_ agent: OpaquePointer) {
        call("stall_agent_stop", as: (@convention(c) (OpaquePointer?) -> Void).self)(agent)
    }

    func unload() { dlclose(handle) }

    func hasHandlerInUnmappedMemory(_ number: Int32) -> Bool { !host_handler_is_mapped(number) }

    private func call<Function>(_ name: String, as type: Function.Type) -> Function {
        unsafeBitCast(dlsym(handle, name), to: type)
    }
}

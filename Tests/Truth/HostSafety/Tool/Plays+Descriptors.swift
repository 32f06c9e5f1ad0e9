// An app that closes descriptors which it did not open, and one that needs nearly all that it may have.

import CHostSafety
import Foundation
import StallAgent
import StallRunLoop
import Synchronization

extension Play {
    static let descriptors: [Play] = [
        Play(name: "descriptors-replaced") { stage in
            var index: Int32 = 0
            while let kind = host_descriptor_kind(index) {
                index += 1
                fflush(stdout)
                let child = host_fork()
                if child == 0 {
                    runKind(String(cString: kind), stage.directory)
                    exit(0)
                }
                var status: Int32 = 0
                waitpid(child, &status, 0)
                if status != 0 { print("crashed \(String(cString: kind)): status \(status)") }
            }
        },
        // Standard input, output and error, closed before the agent starts: each of the eight sets of them.
        Play(name: "standard-descriptors-closed") { stage in
            for closed in Int32(0)..<8 {
                fflush(stdout)
                let child = host_fork()
                if child == 0 { exit(runWithout(closed, stage.directory)) }
                var status: Int32 = 0
                waitpid(child, &status, 0)
                let occupied = status >> 8 & 0xff
                if occupied != 0 { print("descriptors touched 1 of \(closed): \(occupied)") }
                if status & 0x7f != 0 { print("crashed without \(closed): status \(status)") }
            }
        },
        // The descriptor of Dispatch's main queue is made while other threads use a closed number for moments.
        Play(name: "standard-descriptors-contended") { _ in
            var occupied = 0
            for number in 0..<150 {
                let child = host_fork()
                if child == 0 { _exit(startAmongMoves(closed: 1 << (number % 3))) }
                var status: Int32 = 0
                waitpid(child, &status, 0)
                if status != 0 { occupied += 1 }
            }
            if occupied > 0 { print("descriptors touched \(occupied) of 150") }
        },
        descriptorLimit("descriptors-1024", limit: 1024, threads: 250, files: 750),
        descriptorLimit("descriptors-256", limit: 256, threads: 60, files: 150),
    ]

    /// Everything that may close or write a descriptor of the agent's, after the app has replaced them all.
    private static func runKind(_ kind: String, _ directory: String) {
        let stage = Stage(directory)
        guard
            let monitor = try? stage.start({
                $0.store = directory + "/store-\(getpid()).sqlite"
                $0.settings = directory + "/settings.json"
            })
        else { return print("crashed no monitor") }
        guard let work = try? LoopThread(name: "work") else { return print("crashed no thread") }
        monitor.watch(work.loop, as: "work")
        // A loop that sleeps on a set that was closed cannot be woken, nor its thread be joined.
        _ = Unmanaged.passRetained(work)
        let ended = DispatchSemaphore(value: 0)
        let thread = Thread {
            monitor.watchCurrentThread(as: "short").begin()
            usleep(150_000)
            ended.signal()
        }
        thread.start()
        stage.rest(.milliseconds(50))
        guard host_replace_descriptors(kind) else { return print("skipped no \(kind)") }
        // Posts to a sleeping loop, timers, the end of a watched thread, an own stall, a child, the end.
        for _ in 0..<5 { work.loop.perform {} }
        ended.wait()
        stage.rest(.milliseconds(300))
        EventRunLoop.main.perform { host_rest(150_000_000) }
        stage.rest(.milliseconds(50))
        var status: Int32 = 0
        let child = host_fork()
        if child == 0 {
            EventRunLoop.main.run(until: .now + .milliseconds(20))
            _exit(Int32(host_touched_descriptors()))
        }
        waitpid(child, &status, 0)
        _ = monitor.stop(within: .seconds(2))
        let touched = Int(host_touched_descriptors()) + Int(status >> 8 & 0xff)
        if touched > 0 { print("descriptors touched \(touched) \(kind)") }
    }

    /// Everything that opens a descriptor. Returns the closed ones that were in use in between.
    private static func runWithout(_ closed: Int32, _ directory: String) -> Int32 {
        let stage = Stage(directory)
        host_close_standard(closed)
        if getenv("SABOTAGE") != nil { _ = open("/dev/null", O_RDONLY) }
        var occupied: Int32 = 0
        let look = { occupied |= host_occupied_standard(closed) }
        guard
            let monitor = try? stage.start({
                $0.store = directory + "/store-\(getpid()).sqlite"
                $0.settings = directory + "/settings.json"
            })
        else { return 128 }
        look()
        let work = try? LoopThread(name: "work")
        if let work { monitor.watch(work.loop, as: "work") }
        monitor.watch(DispatchQueue(label: "queue"), as: "queue")
        let child = host_fork()
        if child == 0 { _exit(0) }
        let sockets = try? MessageSockets()
        let sources = (
            try? SignalSource([SIGUSR2]) { _, _ in }, try? ChildProcessSource(pid: child) { _ in },
            try? FileSource(path: directory, events: [.created]) { _, _ in }
        )
        look()
        let marks = monitor.watchCurrentThread(as: "marked")
        marks.begin()
        stage.stall(monitor)
        look()
        EventRunLoop.main.perform { host_spin(250_000_000) }
        stage.settle()
        look()
        withExtendedLifetime((sockets, sources, marks)) { _ = monitor.stop(within: .seconds(2)) }
        look()
        return occupied
    }

    /// Returns the closed number if it stays in use.
    private static func startAmongMoves(closed: Int32) -> Int32 {
        host_close_standard(closed)
        host_move_files()
        EventRunLoop.main.run(until: .now + .milliseconds(1))
        host_stop_moving_files()
        return host_occupied_standard(closed)
    }

    private static func descriptorLimit(
        _ name: String, limit: UInt64, threads: Int, files: Int32
    ) -> Play {
        Play(name: name) { stage in
            host_limit(7, limit)
            let monitor = try stage.start()
            let seen = Mutex(0)
            monitor.onStall { report in
                if report.loop == "last", report.samples.contains(where: { !$0.frames.isEmpty }) {
                    seen.withLock { $0 += 1 }
                }
            }
            let (end, begun) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
            for number in 1...threads {
                let thread = Thread {
                    let isLast = number == threads
                    let marks = monitor.watchCurrentThread(as: isLast ? "last" : "many")
                    marks.begin()
                    usleep(isLast ? 400_000 : 1_000)
                    marks.end()
                    begun.signal()
                    end.wait()
                    end.signal()
                }
                thread.stackSize = 1 << 17
                thread.start()
            }
            for _ in 0..<threads { begun.wait() }
            stage.stall(monitor)
            let opened = host_open_files(files)
            if opened < files { print("open failed after \(opened)") }
            end.signal()
            stage.stop(monitor)
            if seen.withLock({ $0 }) == 0 { print("blind no stack of the last thread") }
        }
    }
}

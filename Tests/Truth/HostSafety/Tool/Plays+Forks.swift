// An app that forks while its other threads hold locks of the Swift runtime: the child has these locks for ever.

import CHostSafety
import Foundation
import StallAgent
import StallRunLoop

extension Play {
    static let forks: [Play] = [
        Play(name: "fork-while-types-are-made") { stage in
            let monitor = try stage.start()
            // Both are in the child's loop then: a timer whose handler runs, and an observer.
            let observer = LoopObserver(activities: .beforeWaiting) { _, _ in }
            EventRunLoop.main.add(observer, toMode: .default)
            nonisolated(unsafe) var hung = 0
            let timer = LoopTimer(after: .zero) { _ in
                for first in 0..<2 as Range<UInt32> {
                    Thread { makeTypes(from: first << 20) }.start()
                }
                // By the loop's own thread, and by one without a loop.
                hung = hungChildren(of: 40)
                let done = DispatchSemaphore(value: 0)
                Thread {
                    hung += hungChildren(of: 40)
                    done.signal()
                }.start()
                done.wait()
            }
            EventRunLoop.main.add(timer, toMode: .default)
            stage.rest(.milliseconds(50))
            for _ in 0..<hung { print("hung child") }
            stage.stop(monitor)
        },
        // A child that was not asked to know the agent needs the loader: NSS, iconv, plug-ins, threads.
        Play(name: "fork-while-images-are-listed") { stage in
            let monitor = try stage.start()
            let isOver = Flag()
            for number in 0..<2 {
                Thread.detachNewThread {
                    let marks = monitor.watchCurrentThread(
                        as: "thread \(number)", threshold: .milliseconds(20))
                    while !isOver.isSet {
                        marks.begin()
                        usleep(45_000)
                        marks.end()
                        usleep(5_000)
                    }
                }
            }
            stage.settle()
            host_keep_loader_longer(2_000_000)
            let hung = hungChildren(of: 200) { host_use_loader() }
            host_keep_loader_longer(0)
            isOver.set()
            for _ in 0..<hung { print("hung child") }
            stage.stall(monitor)
            stage.stop(monitor)
        },
        // The runtime in the child takes its thread for the parent's: see CLinux/stall_runtime_thread.h.
        Play(name: "start-in-a-child") { stage in
            let hung = hungChildren(of: 60) { _ = begun(in: stage.directory) }
            for _ in 0..<hung { print("hung child") }
            try stage.stop(stage.start())
        },
        Play(name: "start-in-a-lazy-global-of-a-child") { stage in
            InLazyGlobal.directory = stage.directory
            let hung = hungChildren(of: 60) { _ = InLazyGlobal.monitor }
            for _ in 0..<hung { print("hung child") }
            try stage.stop(stage.start())
        },
        // Other threads use the monitor at every moment, and hold its locks at the fork.
        Play(name: "fork-while-the-monitor-is-used") { stage in
            let monitor = try stage.start()
            for name in 0..<2_000 { monitor.setThreshold(.milliseconds(200), for: "none \(name)") }
            let isOver = Flag()
            for number in 0..<3 {
                Thread.detachNewThread {
                    while !isOver.isSet {
                        monitor.setThreshold(.milliseconds(200), for: "none \(number)")
                        monitor.withActivity("none") {}
                        usleep(100)
                    }
                }
            }
            let hung = hungChildren(of: 40) {
                let child = Stage(stage.directory)
                guard monitor.restartAfterFork(store: stage.directory + "/child.sqlite") else {
                    _exit(3)
                }
                monitor.watch(EventRunLoop.main, as: "main")
                let marks = monitor.watchCurrentThread(as: "marks")
                marks.begin()
                monitor.setThreshold(.milliseconds(200), for: "main")
                monitor.withActivity("child") {}
                marks.end()
                monitor.watchTasks()
                child.stop(monitor)
            }
            isOver.set()
            for _ in 0..<hung { print("hung child") }
            stage.stall(monitor)
            stage.stop(monitor)
        },
    ]

    private static func begun(in directory: String) -> StallMonitor? {
        var configuration = StallMonitor.Configuration(app: "child", version: "1")
        configuration.store = directory + "/child-\(getpid()).sqlite"
        return try? StallMonitor.start(configuration)
    }

    private enum InLazyGlobal {
        nonisolated(unsafe) static var directory = ""
        static let monitor = begun(in: directory)
    }

    /// How many of the children do not get to their end. Not many more are made after two of them.
    static func hungChildren(of count: Int, _ body: () -> Void = {}) -> Int {
        var hung = 0
        for _ in 0..<count where hung < 3 {
            usleep(UInt32.random(in: 0..<2_000))
            fflush(stdout)
            let child = host_fork()
            if child == 0 {
                body()
                _exit(0)
            }
            var waited = 0
            while waited < 5000, waitpid(child, nil, WNOHANG) != child {
                usleep(1000)
                waited += 1
            }
            guard waited == 5000 else { continue }
            hung += 1
            kill(child, SIGKILL)
            waitpid(child, nil, 0)
        }
        return hung
    }

    /// Makes the metadata of types that are not made yet, until the process ends.
    private static func makeTypes(from first: UInt32) {
        for number in first... { make(Left<Int>.self, number, depth: 24) }
    }

    private static func make<Value>(_ type: Value.Type, _ number: UInt32, depth: Int) {
        guard depth > 0 else { return }
        if number & 1 == 0 {
            make(Left<Value>.self, number >> 1, depth: depth - 1)
        } else {
            make(Right<Value>.self, number >> 1, depth: depth - 1)
        }
    }
}

private struct Left<Value> { var value: Value? }
private struct Right<Value> { var value: Value? }

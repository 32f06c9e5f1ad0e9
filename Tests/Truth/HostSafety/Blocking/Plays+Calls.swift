// Calls that may block where that is forbidden, made under locks, in handlers, and by threads and processes that end.

import CBlockingCalls
import CBlockingPlants
import CHostSafety
import Foundation
import StallAgent
import StallBlocking
import StallRunLoop

extension Play {
    static let calls: [Play] = [
        Play(name: "calls-under-locks") { stage in
            let monitor = try stage.startForbidding()
            for _ in 0..<20 {
                stage.call()
                stage.call(in: "call_once") { host_call_in_loader() }
                stage.call(in: "host_call_in_stream") { host_call_in_stream() }
            }
            stage.call("nanosleep", in: "host_block_heap") { host_block_heap(1_000_000) }
            stage.call("nanosleep", in: "host_hold_heap") {
                if !host_hold_heap(1_000_000) { host_block_heap(1_000_000) }
            }
            stage.call("dispatch_sync", in: "closure") {
                DispatchQueue(label: "sync").sync { host_call() }
            }
            stage.call()
            stage.stall(monitor)
            stage.stop(monitor)
        },
        // Calls that a report makes on its own thread may block as well.
        Play(name: "calls-of-a-report") { stage in
            let monitor = try StallMonitor.start(stage.configuration())
            let marks = monitor.watchCurrentThread(as: "main")
            guard stall_blocking_start({ _ in host_call_deep(2) }, nil) else {
                return print("crashed: nothing is noted")
            }
            for _ in 0..<100 {
                marks.begin()
                host_call_deep(1)
                marks.end()
            }
            let violation = UnsafeMutablePointer<stall_violation>.allocate(capacity: 1)
            var count = 0
            while stall_blocking_take(0, violation) { count += 1 }
            stall_blocking_stop()
            if count != 100 { print("blind: \(count) calls of 100") }
            stage.stop(monitor)
        },
        // A read with a time limit, the old way: the call that was left is over.
        Play(name: "calls-left-by-a-jump") { stage in
            let monitor = try stage.startForbidding()
            for _ in 0..<10 {
                EventRunLoop.main.perform {
                    if !host_jump_out_of_read() { print("crashed: not left") }
                }
                stage.rest(.milliseconds(8))
                stage.call { host_call_deep(60) }
                stage.call()
            }
            stage.stop(monitor)
        },
        // The jump comes at any moment of the call and of its report.
        Play(name: "reports-left-by-a-jump") { stage in
            let monitor = try stage.startForbidding()
            let done = DispatchSemaphore(value: 0)
            Thread.detachNewThread {
                let marks = monitor.watchCurrentThread(as: "jumper")
                for number in 0..<2_000 {
                    marks.begin()
                    host_jump_out_after(1_000 + number % 400 * 1_000)
                    marks.end()
                }
                done.signal()
            }
            while done.wait(timeout: .now()) == .timedOut { stage.rest(.milliseconds(5)) }
            stage.rest(.milliseconds(200))
            let began = host_now()
            for _ in 0..<20 { stage.call() }
            let took = (host_now() - began) / 1_000_000
            // Of these 40 are rests. One that waits for a report which has no end takes several.
            print("20 calls took \(took) ms")
            if took > 140 { print("crashed: 20 calls took \(took) ms") }
            stage.stop(monitor)
        },
        Play(name: "calls-cancelled") { stage in
            let monitor = try stage.startForbidding()
            Watched.monitor = monitor
            var index: Int32 = 0
            while let kind = host_cancellable(index).map({ String(cString: $0) }) {
                if !host_cancel_in_call(index, { Watched.enter() }) { print("crashed in \(kind)") }
                // A call that its thread has not survived is not reported, the next thread's is.
                if !host_call_on_small_stack({ Watched.enter() }) { print("crashed: no thread") }
                stage.planCall("usleep", in: "call_small")
                let isEnded = host_cancel_before_call(index, nil)
                if host_cancel_before_call(index, { Watched.enter() }) != isEnded {
                    print("crashed before \(kind): libc \(isEnded ? "ends" : "does not end") it")
                }
                stage.call()
                index += 1
            }
            stage.stop(monitor)
        },
        storm("on-its-stack", isAlternate: false), storm("on-another-stack", isAlternate: true),
        // The last call before the end of the monitor, whose loops are no longer watched then.
        Play(name: "calls-before-stop") { stage in
            for number in 0..<10 {
                let monitor = try StallMonitor.start(
                    stage.configuration {
                        $0.limits = .none
                        $0.store = stage.directory + "/store-\(number).sqlite"
                    })
                monitor.watch(EventRunLoop.main, as: "main")
                monitor.forbidBlocking()
                stage.settle()
                EventRunLoop.main.perform { host_call_deep(3) }
                stage.rest(.microseconds(10))
                stage.planCall("usleep", in: "host_call_deep")
                stage.stop(monitor)
            }
        },
        // The last call before a thread's marks are released, after which it is not watched.
        Play(name: "calls-before-release") { stage in
            let monitor = try stage.startForbidding()
            for _ in 0..<50 {
                let done = DispatchSemaphore(value: 0)
                Thread.detachNewThread {
                    do {
                        let marks = monitor.watchCurrentThread(as: "short")
                        marks.begin()
                        host_call_deep(3)
                        withExtendedLifetime(marks) {}
                    }
                    done.signal()
                }
                done.wait()
                stage.planCall("usleep", in: "host_call_deep")
            }
            stage.stop(monitor)
        },
        // A thread that has no more than the least.
        Play(name: "calls-on-small-stacks") { stage in
            let monitor = try stage.startForbidding()
            Watched.monitor = monitor
            for _ in 0..<5 {
                if !host_call_on_small_stack({ Watched.enter() }) { print("crashed: no thread") }
                stage.planCall("usleep", in: "call_small")
            }
            stage.call()
            stage.stop(monitor)
        },
        // The last callout of a thread is its end.
        Play(name: "calls-of-ending-threads") { stage in
            let monitor = try stage.startForbidding()
            Watched.monitor = monitor
            let made = host_end_threads(1_000, { Watched.enter() })
            if made != 3_000 { print("crashed: \(made) destructors of 3000 ran") }
            for _ in 0..<5 { stage.call() }
            stage.stall(monitor)
            stage.stop(monitor, within: .seconds(10))
        },
        Play(name: "calls-keep-errno") { stage in
            let monitor = try stage.startForbidding()
            guard plants_open(stage.directory) else { throw Skipped(reason: "no plants here") }
            defer { plants_close() }
            let marks = monitor.watchCurrentThread(as: "plants")
            let before: Int32 = 4711
            for number in 0..<plant_count() {
                let plant = plant_at(number).pointee
                plant.prepare?()
                let allowed = host_errno_after(before, plant.play)
                plant.prepare?()
                marks.begin()
                let forbidden = host_errno_after(before, plant.play)
                marks.end()
                if allowed != forbidden {
                    print(
                        "crashed \(String(cString: plant.name)): errno \(forbidden), not \(allowed)"
                    )
                }
            }
            stage.call()
            stage.stop(monitor)
        },
        Play(name: "calls-and-processes") { stage in
            let monitor = try stage.startForbidding()
            let isOver = Flag()
            stage.keepCalling(monitor, threads: 2, until: isOver)
            for how in ["vfork", "spawn", "fork", "system", "popen"] {
                for _ in 0..<10 {
                    EventRunLoop.main.perform {
                        if !host_make_process(how) { print("crashed: \(how) failed") }
                    }
                    stage.rest(.milliseconds(5))
                }
            }
            isOver.set()
            stage.rest(.milliseconds(200))
            for _ in 0..<5 { stage.call() }
            stage.stop(monitor)
        },
        // Other threads are within a call, or its report, at the fork.
        Play(name: "calls-in-children") { stage in
            let monitor = try stage.startForbidding()
            let isOver = Flag()
            stage.keepCalling(monitor, threads: 3, until: isOver)
            nonisolated(unsafe) var hung = 0
            EventRunLoop.main.perform { hung = hungChildren(of: 40) { host_call_all() } }
            stage.rest(.milliseconds(50))
            for number in 0..<30 as Range<Int32> {
                hung += hungChildren(of: 1) {
                    let path = "\(stage.directory)/store-\(number).sqlite"
                    guard monitor.restartAfterFork(store: path) else { _exit(3) }
                    monitor.watch(EventRunLoop.main, as: "main")
                    monitor.forbidBlocking()
                    stage.settle()
                    stage.call { host_call_deep(number) }
                    stage.stop(monitor)
                    fflush(stdout)
                }
            }
            isOver.set()
            for _ in 0..<hung { print("hung child") }
            stage.rest(.milliseconds(200))
            for _ in 0..<5 { stage.call() }
            stage.stop(monitor)
        },
    ]

    private static func storm(_ name: String, isAlternate: Bool) -> Play {
        Play(name: "calls-in-handlers-\(name)", environment: ["SWIFT_BACKTRACE": "enable=no"]) {
            stage in
            let monitor = try stage.startForbidding()
            nonisolated(unsafe) var changed: Int32 = 0
            host_storm_begin(isAlternate)
            for _ in 0..<1_000 {
                EventRunLoop.main.perform { changed += host_calls_that_change_errno() }
                stage.rest(.milliseconds(1))
            }
            let runs = host_storm_end()
            print("the handler ran \(runs) times")
            if changed > 0 { print("crashed: errno changed by \(changed) calls") }
            if runs < 500 { print("crashed: no storm") }
            stage.rest(.milliseconds(500))
            for _ in 0..<5 { stage.call() }
            stage.stall(monitor)
            stage.stop(monitor, within: .seconds(10))
        }
    }
}

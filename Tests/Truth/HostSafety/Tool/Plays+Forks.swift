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
        }
    ]

    /// How many of the children do not get out of fork.
    private static func hungChildren(of count: Int) -> Int {
        (0..<count).count { _ in
            let child = host_fork()
            if child == 0 { _exit(0) }
            for _ in 0..<2000 {
                if waitpid(child, nil, WNOHANG) == child { return false }
                usleep(1000)
            }
            kill(child, SIGKILL)
            waitpid(child, nil, 0)
            return true
        }
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

// Stalls on purpose, captures its own stack with the product's sampler, and prints it, for a debugger to compare with.
//
//     stack-victims SCENARIO          "READY pid tid handler", then, a stack for each line on standard input:
//                                     "STACK method truncated address:kind:guessed ..." or "FAILED reason"
//
// scripts/truth_stacks.py drives it.

import CStackVictims
import Foundation
import StallCapture
import StallModel
import Synchronization

@main enum StackVictim {
    static func main() {
        setlinebuf(stdout)
        let arguments = CommandLine.arguments.dropFirst()
        if arguments.count == 1, let stall = victims[arguments[1]] {
            let isComputing = arguments[1].hasPrefix("cpu-")
            onWatchdog { try answer(mustRun: isComputing) }
            stall()
        } else if arguments.count == 3, arguments[1] == "agree", let stall = victims[arguments[2]],
            let count = Int(arguments[3])
        {
            onWatchdog { try agree(count) }
            stall()
        } else {
            print(victims.keys.sorted().joined(separator: "\n"))
            exit(64)
        }
    }

    static func onWatchdog(_ body: @escaping @Sendable () throws -> Void) {
        Thread.detachNewThread {
            do { try body() } catch { print("FAILED \(error)") }
        }
    }

    static func waitForVictim() -> RegisteredThread {
        while true {
            if let thread = victim.withLock({ $0 }) { return thread }
            usleep(10_000)
        }
    }

    static func agree(_ count: Int) throws {
        guard agreement_prepare() != 0 else {
            print("agreement: libunwind.so.8 is not installed; run scripts/setup")
            exit(1)
        }
        var sampler = try StackSampler(signalUse: .never)
        let thread = waitForVictim()
        var agreement = Agreement()
        usleep(300_000)
        for _ in 0..<count {
            usleep(.random(in: 50...1_000))
            agreement.compare(thread, &sampler)
        }
        print(agreement.summary)
        exit(0)
    }

    /// Answers each line of standard input with a stack. A debugger may stop everything for long: hence the timeout.
    static func answer(mustRun: Bool) throws {
        var sampler = try StackSampler()
        let thread = waitForVictim()
        usleep(200_000)  // now it has reached its stall
        print("READY \(getpid()) \(thread.id.rawValue) \(signalHandler())")
        while readLine() != nil {
            // So that a running victim is seen elsewhere each time.
            usleep(.random(in: 1_000...20_000))
            do {
                var stack = try sampler.captureStack(of: thread, timeout: .seconds(60))
                // A debugger resumes threads one by one: this one may run while the victim is still stopped by it.
                while mustRun && stack.method != .signal {
                    stack = try sampler.captureStack(of: thread, timeout: .seconds(60))
                }
                print(describe(stack))
            } catch { print("FAILED \(error)") }
        }
        exit(0)
    }

    /// The address of the SIGPROF handler: where a debugger stops to see a running thread as the sampler will.
    static func signalHandler() -> UInt {
        var action = sigaction()
        sigaction(SIGPROF, nil, &action)
        return unsafeBitCast(action.__sigaction_handler.sa_sigaction, to: UInt.self)
    }

    static func describe(_ stack: CapturedStack) -> String {
        let addresses = stack.addresses.map {
            "\(String($0.rawValue, radix: 16)):\($0.kind.rawValue):\($0.isGuessed ? 1 : 0)"
        }
        let flags = "\(stack.method.rawValue) \(stack.isTruncated ? 1 : 0)"
        return "STACK \(flags) " + addresses.joined(separator: " ")
    }
}

nonisolated(unsafe) private let victims = stalls.merging(strangers) { first, _ in first }

private let victim = Mutex<RegisteredThread?>(nil)

/// Called on the thread that is about to stall.
func register() {
    let thread = RegisteredThread.current()
    victim.withLock { $0 = thread }
}

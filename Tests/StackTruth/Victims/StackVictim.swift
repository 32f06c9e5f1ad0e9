// Stalls on purpose, captures its own stack with the product's sampler, and prints it, for a debugger to compare with.
//
//     stack-victims SCENARIO          "READY pid tid handler", then, a stack for each line on standard input:
//                                     "STACK method truncated address:kind:guessed ..." or "FAILED reason"
//
// scripts/truth_stacks.py drives it.

import Foundation
import StallCapture
import StallModel
import Synchronization

@main enum StackVictim {
    static func main() {
        setlinebuf(stdout)
        guard CommandLine.arguments.count == 2, let stall = stalls[CommandLine.arguments[1]] else {
            print(stalls.keys.sorted().joined(separator: "\n"))
            exit(64)
        }
        Thread.detachNewThread {
            do { try answer() } catch { print("FAILED \(error)") }
        }
        stall()
    }

    /// Answers each line of standard input with a stack. A debugger may stop everything for long: hence the timeout.
    static func answer() throws {
        var sampler = try StackSampler()
        var thread: RegisteredThread?
        while thread == nil {
            usleep(10_000)
            thread = victim.withLock { $0 }
        }
        usleep(200_000)  // now it has reached its stall
        print("READY \(getpid()) \(thread!.id.rawValue) \(signalHandler())")
        while readLine() != nil {
            usleep(.random(in: 1_000...20_000))  // so that a running victim is seen elsewhere each time
            do {
                print(describe(try sampler.captureStack(of: thread!, timeout: .seconds(60))))
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

private let victim = Mutex<RegisteredThread?>(nil)

/// Called on the thread that is about to stall.
func register() {
    let thread = try! RegisteredThread.current()
    victim.withLock { $0 = thread }
}

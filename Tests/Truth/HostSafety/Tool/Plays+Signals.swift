// What the agent's signals meet: small stacks, short waits, other handlers, other copies of the agent.

import CHostSafety
import CLinux
import CStackCapture
import Foundation
import StallAgent
import StallRunLoop

extension Play {
    static let signals: [Play] = [
        // An app without a signal handler has never seen EINTR. The CPUs are shared, so that threads are preempted on
        // their way into a wait. The second number is that of the waits.
        Play(name: "waits after short bursts of work") { stage in
            let monitor = try stage.start { $0.threshold = .milliseconds(20) }
            for _ in 0..<3 { Thread.detachNewThread { host_spin(4_000_000_000) } }
            // A stall has few samples: many short ones have more than a long one.
            let total = Waits()
            for _ in 0..<60 {
                EventRunLoop.main.perform {
                    let waits = host_work_in_bursts(1_000_000, 1_100_000, 60_000_000)
                    total.count += waits.count
                    total.ended += waits.ended
                }
                stage.rest(.milliseconds(5))
            }
            print("eintr \(total.ended) of \(total.count)")
            stage.stop(monitor)
        },
        // Some runtimes give each thread exactly what the kernel's frame of a signal needs.
        Play(name: "alternate-stacks-of-the-minimum") { stage in
            let monitor = try stage.start()
            let seen = SeenReports()
            seen.follow(monitor)
            for extra in [0, 64, 256, 1024, 2048] {
                guard host_use_small_alternate_stack(extra) else {
                    throw Skipped(reason: "no memory")
                }
                stage.stall(monitor) { host_spin(250_000_000) }
            }
            stage.stop(monitor)
            seen.expectStack()
        },
        // The first fault comes before anything else has called what the agent's handler calls: the loader binds a function
        // at its first call, on this stack. What libc's siglongjmp needs for that is not the agent's.
        Play(name: "faults-on-small-stacks") { stage in
            host_handle_faults(true, false)
            host_survive(Int32(HOST_SIGLONGJMP))
            stall_process_record_prepare(stall_process_record_reserve(), 1, 2)
            guard host_use_small_alternate_stack(512) else { throw Skipped(reason: "no memory") }
            host_survive(Int32(HOST_RETURN))
            let monitor = try stage.start()
            for way in [HOST_SIGLONGJMP, HOST_RETURN, HOST_SIGLONGJMP] {
                EventRunLoop.main.perform { host_survive(Int32(way)) }
            }
            stage.settle()
            stage.stall(monitor)
            stage.stop(monitor)
        },
        lostHandlers("fatal", SIGSEGV) {
            stall_process_record_prepare(stall_process_record_reserve(), 1, 2)
        },
        lostHandlers("capture", SIGURG) {
            _ = stall_sampler_create(64, 1 << 16, STALL_SIGNAL_UNLESS_OWNED)
        },
    ]

    /// An app whose threads set handlers while another one starts the agent: each must be called afterwards. With SABOTAGE
    /// the action is read first and then replaced, as the agent once did.
    private static func lostHandlers(
        _ name: String, _ signal: Int32, _ start: @escaping @convention(c) () -> Void
    ) -> Play {
        Play(name: "handlers-set-at-start-\(name)", environment: ["SWIFT_BACKTRACE": "enable=no"]) {
            _ in
            let isSabotaged = getenv("SABOTAGE") != nil
            let lost = host_lost_handlers(
                signal, 1500, isSabotaged ? host_replace_handlers : start)
            if lost > 0 { print("crashed handlers lost \(lost) of 1500") }
        }
    }
}

/// What all stalls of a play counted, on the main thread.
private final class Waits: @unchecked Sendable {
    var count: UInt64 = 0
    var ended: UInt64 = 0
}

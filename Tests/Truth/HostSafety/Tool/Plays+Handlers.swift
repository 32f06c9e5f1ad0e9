// Harm that a handler of the agent's could do: see handlers.c.

import CHostSafety
import CLinux
import CStackCapture
import Foundation
import StallAgent
import StallRunLoop

extension Play {
    static let handlers: [Play] = [
        // The app emulates a system call in its handler of SIGSYS. A handler that blocks the signal and makes the call ends
        // the process; so does one on a thread that blocks it.
        Play(
            name: "calls-emulated-in-handlers", mayLose: true,
            environment: ["SWIFT_BACKTRACE": "enable=no"]
        ) { stage in
            var index: Int32 = 0
            while let call = host_handler_call(index) {
                for isBlocked in [false, true] {
                    fflush(stdout)
                    let child = host_fork()
                    if child == 0 {
                        emulate(index, isBlocked, stage.directory)
                        exit(0)
                    }
                    var status: Int32 = 0
                    waitpid(child, &status, 0)
                    let kind = isBlocked ? "blocked" : "handled"
                    if status != 0 {
                        print("crashed \(String(cString: call)) \(kind): status \(status)")
                    }
                }
                index += 1
            }
        },
        Play(name: "guard-page-in-own-stack") { stage in
            let monitor = try stage.start()
            let seen = SeenReports()
            seen.follow(monitor)
            for _ in 0..<3 {
                stage.stall(monitor) { _ = host_spin_below_guard_page(250_000_000) }
            }
            stage.stop(monitor)
            seen.expectStack()
        },
        // Crash reporters and profilers that are installed twice and call what they found.
        Play(
            name: "handlers-in-a-circle", environment: ["SWIFT_BACKTRACE": "enable=no"]
        ) { _ in
            let isSabotaged = getenv("SABOTAGE") != nil
            // One that jumps to the handler before it is seen at the second call.
            for (jumps, most) in [(false, 1), (true, 2)] {
                for (signal, isSent) in [(SIGSEGV, false), (SIGSEGV, true), (SIGTRAP, true)] {
                    var status: Int32 = 0
                    let count = host_report_in_circle(
                        signal, isSent, jumps,
                        isSabotaged ? host_chain_without_end : startFatal, &status)
                    if !(1...most).contains(Int(count)) || status & 0x7f != signal {
                        print("crashed signal \(signal): \(count) reports, status \(status)")
                    }
                }
                var status: Int32 = 0
                let count = host_report_in_circle(
                    SIGPROF, true, jumps, isSabotaged ? host_chain_without_end : startCapture,
                    &status)
                if !(1...most).contains(Int(count)) || status != 0 {
                    print("crashed a profiler: \(count) calls, status \(status)")
                }
            }
        },
    ]

    private static func emulate(_ call: Int32, _ isBlocked: Bool, _ directory: String) {
        let stage = Stage(directory)
        host_handle_all_blocked()
        guard
            let monitor = try? stage.start({
                $0.store = directory + "/store-\(getpid()).sqlite"
            })
        else { return print("crashed no monitor") }
        let marks = monitor.watchCurrentThread(as: "emulated")
        marks.begin()
        // From here on only handlers make the agent's calls on this thread.
        guard host_emulate_handler_call(call) else { return print("skipped no filters here") }
        host_block_refusals(isBlocked)
        host_run_in_coroutine { host_spin(250_000_000) }
        host_spin(250_000_000)
        host_recover_from_faults(3)
        withExtendedLifetime(marks) { _exit(0) }
    }
}

private func startFatal() {
    stall_process_record_prepare(stall_process_record_reserve(), 1, 2)
}

private func startCapture() {
    _ = stall_sampler_create(64, 1 << 16, STALL_SIGNAL_CHAINED)
}

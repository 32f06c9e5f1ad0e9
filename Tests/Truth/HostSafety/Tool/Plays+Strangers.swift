// Apps that do what few do: see strangers.c. Each was harmed, or made the agent blind, before its play was written.

import CHostSafety
import Foundation
import StallAgent
import StallRunLoop
import Synchronization

extension Play {
    static let strangers: [Play] = [
        Play(name: "coroutine-without-stack-limit") { stage in
            let words = ["host-safety", "play", "inner-coroutine", stage.directory]
            var arguments: [UnsafeMutablePointer<CChar>?] = words.map { strdup($0) }
            arguments.append(nil)
            host_restart_without_stack_limit(&arguments)
            throw Skipped(reason: "the limit of stacks cannot be raised")
        },
        Play(name: "inner-coroutine", isInner: true) { stage in
            let monitor = try stage.start()
            for _ in 0..<2 {
                stage.stall(monitor) { host_run_in_coroutine { host_spin(300_000_000) } }
            }
            stage.stop(monitor)
        },
        // A garbage collector's barriers: one fault after another on a thread that computes meanwhile.
        Play(name: "faults-without-end") { stage in
            host_handle_faults(false, false)
            let monitor = try stage.start()
            let isOver = Flag()
            Thread.detachNewThread {
                while !isOver.isSet {
                    host_survive(Int32(HOST_SIGLONGJMP))
                    host_spin(300_000_000)
                }
            }
            stage.rest(.milliseconds(2500))
            stage.stall(monitor)
            stage.stall(monitor, for: .milliseconds(900))
            isOver.set()
            stage.stop(monitor)
        },
        Play(name: "handler-on-its-own-stack") { stage in
            host_handle_on_own_stack()
            let monitor = try stage.start()
            EventRunLoop.main.perform { host_fault_on_own_stack() }
            stage.settle()
            stage.stall(monitor)
            stage.stop(monitor)
        },
        Play(name: "emulated-system-calls", environment: ["SWIFT_BACKTRACE": "enable=no"]) {
            stage in
            host_handle_refused_calls()
            let monitor = try stage.start()
            stage.stall(monitor)
            stage.stop(monitor)
            guard host_emulate_getpid() else { throw Skipped(reason: "no filters here") }
            if host_emulated_getpid() != 4711 { print("crashed the call is not emulated") }
        },
        Play(name: "signals-waited-for") { stage in
            let monitor = try stage.start()
            let came = host_wait_for_profile_signals(20)
            if came != 20 { print("crashed \(came) of 20 signals came") }
            stage.stall(monitor)
            stage.stop(monitor)
        },
        Play(name: "signals-ignored") { stage in
            host_ignore_profile_signals()
            let monitor = try stage.start()
            stage.stall(monitor) { host_spin(250_000_000) }
            if !host_ignores_profile_signals() { print("crashed SIGPROF is not ignored any more") }
            stage.stop(monitor)
        },
        // The first process of a container.
        Play(name: "init-trap") { stage in try endInit(stage, "trap") },
        Play(name: "init-fault") { stage in try endInit(stage, "fault") },
        Play(name: "inner-init-trap", isInner: true) { try die($0, "trap") },
        Play(name: "inner-init-fault", isInner: true) { try die($0, "fault") },
        Play(name: "marks-refused") { stage in
            guard host_refuse_marks() else { throw Skipped(reason: "no filters here") }
            let monitor = try stage.start()
            let before = host_count_descriptors()
            for _ in 0..<200 {
                let done = DispatchSemaphore(value: 0)
                Thread.detachNewThread {
                    let marks = monitor.watchCurrentThread(as: "short")
                    marks.begin()
                    marks.end()
                    done.signal()
                }
                done.wait()
            }
            // Those of a thread that has ended are closed once the recorder has seen its end.
            stage.settle()
            let after = host_count_descriptors()
            if after > before + 20 { print("crashed descriptors \(before) -> \(after)") }
            stage.stall(monitor)
            stage.stop(monitor)
        },
        Play(name: "marks-refused-later") { stage in
            // The store is gone by then: a new one has to be made without marks.
            let monitor = try stage.start()
            stage.settle()
            guard host_refuse_marks() else { throw Skipped(reason: "no filters here") }
            try? FileManager.default.removeItem(atPath: stage.store)
            let before = host_count_descriptors()
            for _ in 0..<3 { stage.stall(monitor) }
            let after = host_count_descriptors()
            if after > before + 20 { print("crashed descriptors \(before) -> \(after)") }
            stage.stop(monitor)
        },
        Play(name: "descriptors-replaced-while-stopped", mayLose: true) { stage in
            let monitor = try stage.start()
            let lost = host_lost_bytes_after_stop(60)
            if lost != 0 { print("descriptors touched \(lost) bytes") }
            stage.stop(monitor)
        },
    ]

    private static func die(_ stage: Stage, _ how: String) throws {
        let monitor = try stage.start()
        stage.stall(monitor)
        fflush(stdout)
        host_die(how)
        print("crashed it lives on after a \(how)")
    }

    private static func endInit(_ stage: Stage, _ how: String) throws {
        fflush(stdout)
        let words = ["host-safety", "play", "inner-init-\(how)", stage.directory]
        var arguments: [UnsafeMutablePointer<CChar>?] = words.map { strdup($0) }
        arguments.append(nil)
        setenv("SWIFT_BACKTRACE", "enable=no", 1)
        let status = host_run_in_pid_namespace(ownProgram, &arguments)
        guard status != -1 else { throw Skipped(reason: "not allowed on this machine") }
        if status == 0 { print("crashed its end was a success") }
    }
}

/// Set by one thread, seen by others.
final class Flag: Sendable {
    private let value = Atomic<Bool>(false)
    var isSet: Bool { value.load(ordering: .relaxed) }
    func set() { value.store(true, ordering: .relaxed) }
}

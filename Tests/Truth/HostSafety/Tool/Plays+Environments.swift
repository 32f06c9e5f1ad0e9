// Whose environment counts: that of a program with more rights than its caller does not.

import CHostSafety
import Foundation
import StallAgent

extension Play {
    static let environments: [Play] = [
        // SQLite asks access(2) for the rights of the caller, so nothing can be stored here.
        Play(name: "setuid-program", mayLose: true) { stage in
            guard getuid() == 0 else { throw Skipped(reason: "not root") }
            let program = stage.directory + "/setuid"
            let callers = stage.directory + "/callers"
            try FileManager.default.copyItem(atPath: Play.ownProgram, toPath: program)
            guard host_make_setuid(program) else { throw Skipped(reason: "no setuid here") }
            defer { unlink(program) }
            chmod(stage.directory, 0o777)
            mkdir(callers, 0o777)
            chmod(callers, 0o777)
            setenv("STALLWATCH_STORE", callers + "/store.sqlite", 1)
            setenv("STALLWATCH_SETTINGS", callers + "/settings.json", 1)
            setenv("STATE_DIRECTORY", callers, 1)
            let words = ["host-safety", "play", "inner-setuid-program", stage.directory]
            var arguments: [UnsafeMutablePointer<CChar>?] = words.map { strdup($0) }
            arguments.append(nil)
            let status = host_run_as(65534, program, &arguments)
            for name in ["STALLWATCH_STORE", "STALLWATCH_SETTINGS", "STATE_DIRECTORY"] {
                unsetenv(name)
            }
            if status != 0 { print("crashed status \(status)") }
            let made = (try? FileManager.default.contentsOfDirectory(atPath: callers)) ?? []
            if !made.isEmpty { print("crashed the caller's directory has \(made)") }
        },
        Play(name: "inner-setuid-program", isInner: true) { stage in
            guard geteuid() != getuid() else { throw Skipped(reason: "setuid has no effect here") }
            let given = StallMonitor.Configuration.defaultStore
            if given != "stalls.sqlite" { print("crashed default store \(given)") }
            let monitor = try stage.start()
            stage.stall(monitor)
            stage.stop(monitor)
        },
    ]
}

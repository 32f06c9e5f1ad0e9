import Glibc
import StallRunLoop

let loop = EventRunLoop.main

// Before other threads start: they inherit that the signals are blocked.
let signals = try SignalSource([SIGTERM, SIGINT, SIGHUP]) { signal, _ in
    if signal == SIGHUP {
        print("reading the settings again")
        fflush(nil)
    } else {
        print("ending")
        loop.stop()
    }
}
try loop.add(signals, toMode: .common)
print("process \(getpid())")
fflush(nil)
loop.run()

import StallRunLoop

let loop = EventRunLoop.main
var ticks = 0  // of the main actor, as all variables of a main.swift are

loop.schedule(every: .milliseconds(100)) { @MainActor timer in
    ticks += 1
    print("tick \(ticks)")
    guard ticks == 3 else { return }
    timer.invalidate()
    loop.stop()
}
loop.run()
print("\(ticks) ticks")

import StallRunLoop

let loop = EventRunLoop.main

let save = LoopWork { print("never printed") }
loop.performWhenIdle(save)
print("the work had not begun: \(save.cancel())")

let reminder = loop.perform(after: .milliseconds(1)) { print("never printed") }
reminder.invalidate()
print("the reminder is valid: \(reminder.isValid)")

let nap = Task {
    do {
        try await LoopClock(loop: loop).sleep(for: .seconds(600))
    } catch {
        print("the nap ended: \(error)")
    }
    loop.stop()
}
loop.perform(after: .milliseconds(20)) { nap.cancel() }
loop.run()

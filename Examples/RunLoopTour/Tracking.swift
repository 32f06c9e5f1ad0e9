import StallRunLoop

/// While a user drags, the loop runs in the tracking mode. A timer of the default mode does not fire then; one of the
/// common modes does.
func tourOfTracking() {
    let loop = EventRunLoop.main
    // The handlers run on this thread, inside of `run`; the compiler cannot know that.
    nonisolated(unsafe) var ofDefault = 0
    nonisolated(unsafe) var ofCommon = 0
    let timers = [
        LoopTimer(after: .milliseconds(10), every: .milliseconds(10)) { _ in ofDefault += 1 },
        LoopTimer(after: .milliseconds(10), every: .milliseconds(10)) { _ in
            ofCommon += 1
            if ofCommon == 5 { loop.stop() }
        },
    ]
    loop.add(timers[0], toMode: .default)
    loop.add(timers[1], toMode: .common)
    loop.run(mode: .tracking)
    print(
        "  while tracking: default-mode timer \(ofDefault) times, common-mode timer \(ofCommon) times"
    )

    // Back in the default mode, the silent timer fires once for all that it missed.
    ofCommon = 5
    loop.run(mode: .default, for: .zero)
    print("  then, in one pass of the default mode: default-mode timer \(ofDefault) times")
    for timer in timers { timer.invalidate() }
}

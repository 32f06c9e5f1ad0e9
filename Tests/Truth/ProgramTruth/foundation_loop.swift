// Foundation's run loop in a program that was built without the agent, with planted stalls: PLANTS SECONDS-OF-IDLE. Each
// line it prints is a plant, as in asyncio_loop.py.
import Foundation

func now() -> Double {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
}

@inline(never) func plantedSleep() { Thread.sleep(forTimeInterval: .random(in: 0.3...0.6)) }

@inline(never) func plantedSpin() {
    let end = now() + .random(in: 0.3...0.6)
    while now() < end {}
}

@inline(never) func plantedLock() {
    let lock = NSLock()
    let isHeld = DispatchSemaphore(value: 0)
    Thread.detachNewThread {
        lock.lock()
        isHeld.signal()
        Thread.sleep(forTimeInterval: .random(in: 0.3...0.6))
        lock.unlock()
    }
    isHeld.wait()
    lock.lock()
    lock.unlock()
}

@inline(never) func plantedCommand() {
    let process = Process()
    process.executableURL = URL(fileURLWithPath: "/bin/sleep")
    process.arguments = ["0.4"]
    try! process.run()
    process.waitUntilExit()
}

let plants = Int(CommandLine.arguments[1])!
let sites: [(name: String, run: () -> Void)] = [
    ("plantedSleep", plantedSleep), ("plantedSpin", plantedSpin), ("plantedLock", plantedLock),
    ("plantedCommand", plantedCommand),
]
var (planted, ticks) = (0, 0)
let animation = Timer.scheduledTimer(withTimeInterval: 0.02, repeats: true) { _ in ticks += 1 }

func plant() {
    let begin = now()
    sites[planted % 4].run()
    print(sites[planted % 4].name, begin, now())
    fflush(stdout)
    planted += 1
    if planted < plants {
        _ = Timer.scheduledTimer(withTimeInterval: .random(in: 0.3...0.5), repeats: false) { _ in
            plant()
        }
    } else {
        _ = Timer.scheduledTimer(withTimeInterval: 0.5, repeats: false) { _ in exit(0) }
    }
}
let idle = Double(CommandLine.arguments[2])!
let first = Timer.scheduledTimer(withTimeInterval: idle + 0.3, repeats: false) { _ in plant() }
RunLoop.main.run()

// A loop that waits through libc, of no library that the agent knows: the door sees it.
//
//     DoorFixture SCENARIO STORE        the threshold is 200 ms, every planned stall 500 ms

import CDoorLoop
import Glibc
import StallAgent
import StallDoor

@inline(never) func plannedStall() { usleep(500_000) }

let calls = [
    "epoll": DOOR_LOOP_EPOLL, "epoll-mask": DOOR_LOOP_EPOLL_MASK, "poll": DOOR_LOOP_POLL,
    "ppoll": DOOR_LOOP_PPOLL, "select": DOOR_LOOP_SELECT,
]

func play(_ scenario: String, _ monitor: StallMonitor) {
    var loop = door_loop_make()
    let waits = monitor.watchWaits(ofCurrentThreadAs: "loop")
    func wait(_ milliseconds: Int32, _ call: Int = Int(DOOR_LOOP_EPOLL)) {
        door_loop_wait(&loop, Int32(call), milliseconds)
    }
    switch scenario {
    case "other-wait":
        // Work that waits for something else, in a loop that waits by epoll.
        wait(50)
        wait(500, Int(DOOR_LOOP_POLL))
        wait(50)
    case "spin":
        for _ in 0..<1000 {
            wait(0)
            usleep(1000)
        }
    case "replaced":
        wait(50)
        door_loop_replace_set(&loop, 0)
        for _ in 0..<3 { wait(300) }
    case "kept":
        // Only the third wait for the new set shows that it has replaced the old one, which is still open.
        wait(50)
        door_loop_replace_set(&loop, 1)
        for _ in 0..<2 { wait(20) }
        for _ in 0..<3 { wait(300) }
    case "request":
        // A synchronous request through the function by which the loop waits.
        var other = door_loop_make()
        wait(50)
        swap(&loop, &other)
        wait(500)
        swap(&loop, &other)
        wait(50)
    case "other-set":
        wait(50)
        door_loop_wait_elsewhere(500)
        wait(50)
    case "signal", "signal-alternate":
        // A handler that polls in the middle of the wait.
        door_loop_poll_in_handler(scenario == "signal" ? 0 : 1)
        for _ in 0..<2 {
            alarm(1)
            wait(1400)
            wait(400)
        }
    case "stopped":
        wait(50)
        waits.stop()
        usleep(500_000)
        wait(50)
    case "twice", "twice-in-time":
        // Its library watches the loop as well. Idle for long, then one stall.
        wait(50)
        let again = monitor.watchWaits(ofCurrentThreadAs: "again", threshold: .milliseconds(300))
        for _ in 0..<2 { wait(400) }
        // One of the two ends: the other one still watches.
        if scenario == "twice" { waits.stop() } else { again.stop() }
        wait(50)
        plannedStall()
        wait(400)
        again.stop()
        waits.stop()
        usleep(500_000)
        wait(50)
    case "two-monitors":
        wait(50)
        let path = arguments[2] + "-other"
        let other = try! StallMonitor.start(
            .init(app: "door", version: "1", store: path, threshold: .milliseconds(200)))
        other.watchWaits(ofCurrentThreadAs: "other")
        wait(400)
        plannedStall()
        wait(50)
        other.stop()
        wait(400)
        plannedStall()
        wait(50)
    case "fork":
        wait(50)
        print("child \(door_loop_wait_in_child(&loop))")
        wait(50)
    default:
        // Three waits of 300 ms, which are no stalls, and one stall.
        guard let call = calls[scenario].map({ Int($0) }) else { fatalError("no such scenario") }
        for _ in 0..<3 { wait(300, call) }
        plannedStall()
        wait(50, call)
    }
    print("waits \(waits.waitCount) of \(loop.rounds)")
}

let arguments = CommandLine.arguments
guard arguments.count == 3 else { fatalError("usage: DoorFixture SCENARIO STORE") }
let monitor = try StallMonitor.start(
    .init(app: "door", version: "1", store: arguments[2], threshold: .milliseconds(200)))
play(arguments[1], monitor)
monitor.stop()
print("done")

// host-safety: does the agent harm its host? See scripts/host-safety.

import CHostSafety
import Foundation

setvbuf(stdout, nil, _IOLBF, 0)
let arguments = CommandLine.arguments
switch arguments.dropFirst().first {
case "allocations":
    let isQuiet = try countAllocations(arguments.count > 2 ? arguments[2] : NSTemporaryDirectory())
    exit(isQuiet ? 0 : 1)
case "footprint" where arguments.count == 3: try printFootprint(arguments[2])
case "calls" where arguments.count == 3: try playCalls(arguments[2])
case "allowed" where arguments.count > 3:
    try playAllowed(arguments[2], arguments.dropFirst(3).compactMap { Int32($0) })
case "play" where arguments.count == 4: exit(runPlay(arguments[2], arguments[3]))
case "successor":
    // The successor of a play's process: it does nothing and must not be killed, least of all by a signal meant for its
    // predecessor.
    host_block_signals(false)
    usleep(20_000)
    exit(0)
case "list": for play in Play.all { print(play.name) }
case "run":
    let seconds = arguments.count > 2 ? Int(arguments[2]) ?? 600 : 600
    exit(drive(seconds: seconds, only: arguments.count > 3 ? arguments[3] : nil) ? 0 : 1)
default:
    print(
        "usage: host-safety run [SECONDS [PLAY]] | list | play NAME DIR | allocations DIR | footprint DIR"
            + " | calls DIR | allowed DIR NUMBER...")
    exit(64)
}

// host-safety: does the agent harm its host? See scripts/host-safety.

import Foundation

setvbuf(stdout, nil, _IOLBF, 0)
let arguments = CommandLine.arguments
switch arguments.dropFirst().first {
case "allocations":
    let isQuiet = try countAllocations(arguments.count > 2 ? arguments[2] : NSTemporaryDirectory())
    exit(isQuiet ? 0 : 1)
default:
    print("usage: host-safety allocations DIR")
    exit(64)
}

// Kills, and failing disks, until something is lost.
//
//     StoreFaults rounds [COUNT]         kills writers and ingests COUNT times, fills disks, then
//                                        fails every disk operation once
//     StoreFaults write STORE [COUNT]    records COUNT reports; prints each id once it is durable
//     StoreFaults stall STORE            records one report that stays open, prints it, and waits
//     StoreFaults ingest CENTRAL PATH... ingests; prints a line a file
//     StoreFaults as-nobody COMMAND      the same as a user without rights; for root
//
// The last line of `rounds` is `faults rounds=N lost=N duplicate=N broken=N`: acknowledged reports that
// are gone, reports that are there twice, and stores that SQLite or we find fault with. Its exit
// status is 1 when any of these is not 0.

import Glibc
import StallStore

@main struct StoreFaults {
    static func main() {
        var arguments = CommandLine.arguments.dropFirst()
        // Root may read everything; user nobody may not.
        if arguments.first == "as-nobody" {
            arguments.removeFirst()
            guard setuid(65534) == 0 else { exit(1) }
        }
        do {
            switch (arguments.popFirst(), arguments.popFirst()) {
            case ("rounds", let count):
                try rounds(count.flatMap { Int($0) } ?? 500)
            case ("write", let store?):
                try Victim.write(to: store, count: Int(arguments.first ?? "") ?? .max)
            case ("stall", let store?): try Victim.stall(store)
            case ("ingest", let central?): try Victim.ingest(Array(arguments), into: central)
            default:
                say(
                    "usage: StoreFaults rounds [COUNT] | write STORE [COUNT] | ingest CENTRAL PATH..."
                )
                exit(64)
            }
        } catch {
            say("\(error)")
            exit(1)
        }
    }

    static func rounds(_ count: Int) throws {
        var tally = Tally()
        if count > 0 { try KillRounds.run(count, &tally) }
        try FullDisk.run((count + 24) / 25, &tally)
        try FailingOperations.run(&tally)
        say(tally.description)
        exit(tally.isClean ? 0 : 1)
    }
}

/// One line, written at once: what was printed before a kill has happened.
func say(_ line: String) {
    let bytes = Array((line + "\n").utf8)
    _ = Glibc.write(1, bytes, bytes.count)
}

// Kills, and failing disks, until something is lost.
//
//     StoreFaults rounds [COUNT]         kills writers and ingests COUNT times, fills disks, limits descriptors, locks
//                                        stores, then kills in every disk operation, and fails every one, once
//     StoreFaults hold STORE             holds a transaction open, and waits
//     StoreFaults write STORE [COUNT]    records COUNT reports; prints each id once it is durable
//     StoreFaults stall STORE            records one report that stays open, prints it, and waits
//     StoreFaults ingest CENTRAL PATH... ingests; prints a line a file
//     StoreFaults ingest-parts REPORTS CENTRAL PATH...   the same, large stores in parts of so many reports, a line each
//     StoreFaults as-nobody COMMAND      the same as a user without rights; for root
//     StoreFaults die-at NUMBER COMMAND  the same, killed within that operation of the disk
//     StoreFaults files COUNT COMMAND    the same with at most so many open files
//
// The last line of `rounds` is `faults rounds=N lost=N duplicate=N broken=N`: acknowledged reports that
// are gone, reports that are there twice, and stores that SQLite or we find fault with. Its exit
// status is 1 when any of these is not 0. With SABOTAGE=1 writers acknowledge reports before they write them.

import CFaultyDisk
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
        handicap(&arguments)
        do {
            switch (arguments.popFirst(), arguments.popFirst()) {
            case ("rounds", let count):
                try rounds(count.flatMap { Int($0) } ?? 500)
            case ("write", let store?):
                try Victim.write(to: store, count: Int(arguments.first ?? "") ?? .max)
            case ("hold", let store?): Victim.hold(store)
            case ("stall", let store?): try Victim.stall(store)
            case ("ingest", let central?): try Victim.ingest(Array(arguments), into: central)
            case ("ingest-parts", let limit?):
                guard let limit = Int(limit), let central = arguments.popFirst() else { exit(64) }
                try Victim.ingest(Array(arguments), into: central, partLimit: limit)
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

    /// Takes what stands before a command: where it dies, or how few files it may open. One that hangs is ended.
    private static func handicap(_ arguments: inout ArraySlice<String>) {
        guard let number = arguments.dropFirst().first.flatMap({ UInt64($0) }) else { return }
        switch arguments.first {
        case "die-at":
            guard faulty_disk_install() == 0 else { exit(1) }
            faulty_disk_kill_at(number)
        case "files":
            var limit = rlimit(rlim_cur: rlim_t(number), rlim_max: rlim_t(number))
            setrlimit(__rlimit_resource_t(7), &limit)  // RLIMIT_NOFILE
        default: return
        }
        alarm(120)
        arguments.removeFirst(2)
    }

    static func rounds(_ count: Int) throws {
        var tally = Tally()
        if count > 0 { try KillRounds.run(count, &tally) }
        try FullDisk.run((count + 24) / 25, &tally)
        try FewDescriptors.run(&tally)
        try LockedStore.run(20, &tally)
        // Few rounds are for the unit tests.
        let step = count < 100 ? 20 : 1
        try KilledOperations.run(step: step, &tally)
        try FailingOperations.run(step: step, &tally)
        say(tally.description)
        exit(tally.isClean ? 0 : 1)
    }
}

/// One line, written at once: what was printed before a kill has happened.
func say(_ line: String) {
    let bytes = Array((line + "\n").utf8)
    _ = Glibc.write(1, bytes, bytes.count)
}

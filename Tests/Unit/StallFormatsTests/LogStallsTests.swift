import StallModel
import StallQuery
import TestSupport
import Testing

@testable import StallFormats

/// Goal: the lines of each stall are found among those of others, and a stall that a log has several times is one.
/// Method: logs of made-up stalls, line by line.
@Suite struct LogStallsTests {
    private static func hang(_ duration: Int = 122, task: String = "db:42") -> [String] {
        [
            "INFO: task \(task) blocked for more than \(duration) seconds.", "Call Trace:",
            " <TASK>", " a+0x1/0x9", " b+0x1/0x9", " c+0x1/0x9", " </TASK>",
        ]
    }

    // MARK: Lines of others

    private static let noise = [
        "audit: type=1400 audit(1795166071.2:312): apparmor=\"DENIED\"", "[UFW BLOCK] IN=eth0 OUT=",
        "usb 1-1: new high-speed USB device number 7", "EXT4-fs error (device sda1): bad block",
        "Reactor stalled for 33 ms on shard 0. Backtrace: 0x1 0x2",
    ]

    @Test(arguments: noise) func `a message between a stack's lines does not end it`(line: String) {
        for hasMarks in [true, false] {
            var lines = Self.hang()
            lines.insert(line, at: 4)
            if !hasMarks { lines.removeAll { $0.contains("TASK") } }
            let stall = readWhole(lines.map { "[100.1] \($0)" }).first
            #expect(functions(stall) == ["a", "b", "c"])
            #expect(stall?.samples.first?.isTruncated == false)
        }
    }

    @Test func `a stack that does not go on behind many messages is truncated`() {
        var lines = Self.hang()
        lines.insert(contentsOf: [String](repeating: Self.noise[0], count: 17), at: 5)
        let stall = readWhole(lines.map { "[100.1] \($0)" }).first
        #expect(functions(stall) == ["a", "b"])
        #expect(stall?.samples.first?.isTruncated == true)
        let cut = readWhole(Self.hang().dropLast(2).map { "[100.1] \($0)" }).first
        #expect(cut?.samples.first?.isTruncated == true)
    }

    @Test(arguments: [
        ("Nov 20 09:14:31 h1 kernel: ", "Nov 20 09:14:31 h2 kernel: "),
        ("[9.1][   C3] ", "[9.1][   C5] "),
        ("[9.1][  T12] ", "[9.1][  T13] "),
    ]) func `stalls of two writers whose lines alternate have their own stacks`(
        one: String, other: String
    ) {
        let second = Self.hang(task: "web:7").map { $0.replacing("+0x1/", with: "_2+0x1/") }
        let lines = zip(Self.hang(), second).flatMap { [one + $0, other + $1] }
        let stalls = readWhole(lines)
        #expect(stalls.map(\.run.app) == ["db", "web"])
        #expect(stalls.map(functions) == [["a", "b", "c"], ["a_2", "b_2", "c_2"]])
    }

    @Test func `a process of the same number on another host is another one`() {
        let stalls = readWhole([
            "2026-11-20T09:14:31Z h1 scylla[1]: Reactor stalled for 33 ms on shard 0. Backtrace: 0x1 0x2",
            "2026-11-20T09:14:31Z h2 scylla[1]: kernel callstack: 0xffffffff99ffbc97",
        ])
        #expect(stalls.map { $0.samples.first?.locations.count } == [2])
    }

    // MARK: Repetitions

    @Test(arguments: ["time", "year", "uptime"]) func `a hang that the kernel repeats is one stall`(
        clock: String
    ) {
        func lines(_ durations: [Int], task: String = "db:42") -> [String] {
            durations.flatMap { duration in
                let (minute, second) = (14 + duration / 60, duration % 60)
                let time = "09:\(minute):\(second < 10 ? "0" : "")\(second)"
                let prefix =
                    switch clock {
                    case "time": "2026-11-20T\(time)Z h1 kernel: "
                    case "year": "Nov 20 \(time) h1 kernel: "
                    default: "[\(100 + duration).5] "
                    }
                return Self.hang(duration, task: task).map { prefix + $0 }
            }
        }
        let stalls = readWhole(lines([120, 241, 362]))
        #expect(stalls.map(\.duration) == [.seconds(362)])
        #expect(stalls.map(functions) == [["a", "b", "c"]])
        if clock != "uptime" { #expect(readWhole(lines([120])).map(\.id) == stalls.map(\.id)) }
        #expect(readWhole(lines([120]) + lines([241], task: "web:7")).count == 2)
        let bare = lines([241]).prefix(1)
        #expect(readWhole(lines([120]) + bare).map(functions) == [["a", "b", "c"]])
        // One that is late is another one, and so is a task that began to hang later.
        #expect(
            readWhole(lines([120]) + lines([120]).map { $0.replacing("120", with: "60") }).count
                == 2)
    }

    @Test func `many hangs are read in the order of the log`() {
        let tasks = (0..<600).map {
            "[\(1000 + $0).5] INFO: task t:\($0 + 1) blocked for more than 120 seconds."
        }
        #expect(readWhole(tasks).map(\.run.pid) == (1...600).map { Int32($0) })
    }

    @Test func `hangs of several processors, or of a task and its processor, are several`() {
        let idle = (0..<3).map {
            "[100.\($0)] BUG: soft lockup - CPU#\($0) stuck for \($0 == 1 ? 63 : 67)s! [swapper:0]"
        }
        #expect(readWhole(idle).map(\.duration) == [.seconds(67), .seconds(63), .seconds(67)])
        let both = [
            "[500.0] INFO: task db:42 blocked for more than 122 seconds.",
            "[501.0] watchdog: BUG: soft lockup - CPU#3 stuck for 122s! [db:42]",
        ]
        #expect(readWhole(both).count == 2)
    }

    @Test func `hangs of two boots are two, each with its own stack`() {
        func boot(_ name: String) -> [String] {
            ["[0.0] Linux version 6.5"]
                + [122, 245].flatMap { duration in
                    Self.hang(duration, task: "swapper/0:1").map {
                        "[\(10 + duration).5] \($0.replacing("+0x1/", with: "_\(name)\(duration)+0x1/"))"
                    }
                }
        }
        let stalls = readWhole(boot("x") + boot("y"))
        #expect(stalls.map(\.duration) == [.seconds(245), .seconds(245)])
        #expect(stalls.map { functions($0).first } == ["a_x245", "a_y245"])
    }

    @Test func `a clock that is set does not divide a hang whose lines have the time since boot`() {
        let stalls = readWhole([
            "Nov 20 09:14:02 h1 kernel: [200.5] INFO: task db:42 blocked for more than 122 seconds.",
            "Nov 20 09:16:11 h1 kernel: [323.5] INFO: task db:42 blocked for more than 245 seconds.",
        ])
        #expect(stalls.map(\.duration) == [.seconds(245)])
    }

    @Test func `hundreds of hangs at once are repeated, each by itself`() {
        let lines = [122, 245, 368].flatMap { duration in
            (1...600).map {
                "[\(1000 + duration).\($0)] INFO: task t:\($0) blocked for more than \(duration) seconds."
            }
        }
        let stalls = readWhole(lines)
        #expect(stalls.count == 600 && stalls.allSatisfy { $0.duration == .seconds(368) })
    }

    @Test func `a cut repetition keeps the whole stack`() {
        let later = Self.hang(245).dropLast(3).map { $0.replacing("+0x1/", with: "_2+0x1/") }
        let stalls = readWhole(
            Self.hang(122).map { "[200.5] \($0)" } + later.map { "[323.5] \($0)" })
        #expect(stalls.map(functions) == [["a", "b", "c"]])
        #expect(stalls.map(\.duration) == [.seconds(245)])
    }

    // MARK: Identity

    @Test(arguments: [
        "Reactor stalled for 33 ms on shard 0. Backtrace: 0x1 0x2",
        "Nov 20 09:14:31 h1 scylla[42]: Reactor stalled for 33 ms on shard 0. Backtrace: 0x1 0x2",
        "watchdog: BUG: soft lockup - CPU#3 stuck for 22s! [db:42]",
    ]) func `equal lines without an exact time are several stalls, in each file the same`(
        line: String
    ) {
        let ids = readWhole([line, line, line]).map(\.id)
        #expect(Set(ids).count == 3)
        #expect(readWhole([line]).map(\.id) == [ids[0]])
        #expect(readWhole([line, line, line]).map(\.id) == ids)
    }

    @Test(arguments: ["Nov 20 09:14:31 h1 kernel: ", "2026-11-20T09:14:31Z h1 kernel: [12.5] "])
    func `a stall that a log ended within is the same in the whole log`(prefix: String) {
        let lines = Self.hang().map { prefix + $0 }
        #expect(readWhole(Array(lines.prefix(5))).map(\.id) == readWhole(lines).map(\.id))
    }

    // MARK: Prefixes

    @Test(arguments: [
        "Nov 20 09:14:02 web sshd[913]: Invalid user kernel: ", "Nov 20 09:14:02 web su: kernel: ",
        "Nov 20 09:14:00 web CRON[12]: (root) CMD (echo kernel: ",
        "Nov 20 09:14:02 web sshd[913]: Nov 20 09:14:02 web kernel: ",
        "10.0.0.1 - - [20/Nov/2026:09:14:31 +0000] \"GET / kernel: ",
    ]) func `a text of another program is not the kernel's`(prefix: String) {
        let stall = "Nov 20 09:15:02 web kernel: \(Self.hang(task: "right:1")[0])"
        #expect(readWhole([prefix + Self.hang()[0], stall]).map(\.run.app) == ["right"])
    }

    @Test(arguments: [
        "[12.5] h1 kernel: ", "[12.5 <    0.000001 >] h1 kernel: ", "h1 kernel: ",
        "Nov 20 2026 09:14:31 h1 kernel: ", "Nov 20 09:14:31 h1 kernel: ",
        "2026-11-20T09:14:31Z h1   !INFO | kernel: ", "kern.log: Nov 20 09:14:31 h1 kernel: ",
        "Nov 20 09:14:31 h1.example.com h1 kernel: ",
    ]) func `the kernel's tag is found behind each kind of beginning`(prefix: String) {
        let stalls = readWhole(Self.hang().map { prefix + $0 })
        #expect(stalls.map(\.run.app) == ["db"])
        #expect(stalls.map(functions) == [["a", "b", "c"]])
    }

    @Test(arguments: [
        "<3>Nov 20 09:14:31 h1 kernel: ", "<3>2026-11-20T09:14:31Z h1 kernel: [12.5] ",
        "<3>1 2026-11-20T09:14:31Z h1 kernel - - [timeQuality tzKnown=\"1\" x=\"\\\"] \"][o ip=\"1\"] [12.5] ",
    ]) func `a prefix of syslog has the time and the host`(prefix: String) {
        let stalls = readWhole(Self.hang(31).map { prefix + $0 })
        #expect(stalls.map(\.run.host) == ["h1"])
        #expect(stalls.map(\.start) == [AppleHeader.time("2026-11-20 09:14:00 +0000")])
        #expect(stalls.map(functions) == [["a", "b", "c"]])
    }

    // MARK: Stacks

    @Test func `the words of a stack between registers and frames are passed over`() {
        let stall = readWhole(
            [
                "BUG: soft lockup - CPU#1 stuck for 22s! [java:2331]",
                "RIP: 0010:[<ffffffff810c0e1b>]  [<ffffffff810c0e1b>] spin+0x17b/0x190", "Stack:",
            ].map { "[9.1] \($0)" }
                + (0..<20).map { _ in "[9.1]  ffff8800bae57d08 ffffffff81180e6e ffff8800bae57d18" }
                + ["[9.1] Call Trace:", "[9.1]  [<ffffffff81180e6e>] lock+0x1/0x2"]
        ).first
        #expect(functions(stall) == ["spin", "lock"])
    }

    @Test func `a task that blocks in a fault has the frames on both sides of it`() {
        let lines = [
            "INFO: task db:42 blocked for more than 122 seconds.", "Call Trace:", " <TASK>",
            " schedule+0x1/0x2", " asm_exc_page_fault+0x1/0x2", "RIP: 0010:read_user+0x1/0x2",
            "Code: 00 00", "RAX: 0000000000000000 RBX: 0000000000001000", " vfs_write+0x1/0x2",
            "RIP: 0033:0x7f8020f0fe94", " </TASK>",
        ]
        let stall = readWhole(lines.map { "[9.1] \($0)" }).first
        #expect(
            functions(stall) == ["schedule", "asm_exc_page_fault", "read_user", "vfs_write"])
    }

    /// Of a warning and of the killer of a process that took too much memory.
    private static let others = [
        [
            "------------[ cut here ]------------", "WARNING: CPU: 5 PID: 99 at x.c:12 foo+0x1/0x2",
            "CPU: 5 PID: 99 Comm: foo Not tainted 5.18.0 #1", "RIP: 0010:warn+0x1/0x2",
            "Call Trace:", " <TASK>", " warn_a+0x1/0x2", " </TASK>",
        ],
        [
            "foo invoked oom-killer: gfp_mask=0x100, order=0",
            "CPU: 5 PID: 99 Comm: foo Not tainted 5.18.0 #1", "Call Trace:", " <TASK>",
            " oom+0x1/0x2", " </TASK>",
        ],
        [
            "divide error: 0000 [#1] SMP", "Pid: 99, comm: foo Not tainted 2.6.32",
            "RIP: 0010:[<ffffffff81234567>]  [<ffffffff81234567>] div+0x1/0x2", "Call Trace:",
            " [<ffffffff81234567>] div_caller+0x1/0x2",
        ],
    ]

    @Test(arguments: others) func `another report's stack is not the task's`(other: [String]) {
        let hang = Self.hang(task: "nfsd:55")
        let alternating =
            hang.prefix(1).map { "[9.1][   T33] \($0)" } + other.map { "[9.1][   T99] \($0)" }
            + hang.dropFirst().map { "[9.1][   T33] \($0)" }
        #expect(readWhole(alternating).map(functions) == [["a", "b", "c"]])
        let behind = (hang.filter { !$0.contains("TASK") } + other).map { "[9.1] \($0)" }
        #expect(readWhole(behind).map(functions) == [["a", "b", "c"]])
        let without = (hang.prefix(1) + other).map { "[9.1] \($0)" }
        #expect(readWhole(without).map(functions) == [[]])
    }

    @Test(arguments: [
        "Watchdog detected hard LOCKUP on cpu 3",
        "BUG: soft lockup - CPU#3 stuck for 22s! [own:31]",
    ]) func `a processor's stack is that of its number`(header: String) {
        func stack(_ cpu: Int, _ task: String) -> [String] {
            [
                "CPU: \(cpu) PID: \(cpu + 28) Comm: \(task) Not tainted 5.18.0 #1",
                "RIP: 0010:\(task)+0x1/0x2", "Call Trace:", " <TASK>", " \(task)_a+0x1/0x2",
                " </TASK>",
            ]
        }
        for hasCallers in [true, false] {
            func written(_ cpu: Int, _ lines: [String]) -> [String] {
                lines.map { "[9.1]\(hasCallers ? "[    C\(cpu)]" : "") \($0)" }
            }
            let stall = readWhole(
                written(0, ["watchdog: " + header]) + written(5, stack(5, "other"))
                    + written(3, stack(3, "own"))
            ).first
            #expect(functions(stall) == ["own", "own_a"])
            #expect(stall?.run.app == "own" && stall?.run.pid == 31)
        }
    }

    @Test func `lines of other programs do not count as the kernel's`() {
        var lines = Self.hang().map { "Nov 20 09:14:31 h1 kernel: \($0)" }
        lines.insert(
            contentsOf: (0..<300).map { "Nov 20 09:14:31 h1 app[7]: message \($0)" }, at: 5)
        #expect(readWhole(lines).map(functions) == [["a", "b", "c"]])
    }

    @Test func `a stall of RCU has the task that its stack is of`() {
        let stall = readWhole([
            "[9.1] rcu: INFO: rcu_preempt detected stalls on CPUs/tasks:",
            "[9.1] task:rt-app          state:R  running task     stack:0     pid:1234  ppid:1      flags:0x8",
            "[9.1] Call trace:", "[9.1]  a+0x1/0x2",
        ]).first
        #expect(stall?.run.app == "rt-app" && stall?.run.pid == 1234)
        #expect(functions(stall) == ["a"])
    }

    @Test func `a stack may go on in the next year`() {
        let lines = Self.hang()
        let old = lines.prefix(4).map { "Dec 31 23:59:59 h1 kernel: \($0)" }
        let new = lines.dropFirst(4).map { "Jan  1 00:00:00 h1 kernel: \($0)" }
        #expect(readWhole(old + new).map(functions) == [["a", "b", "c"]])
    }
}

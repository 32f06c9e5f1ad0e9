import StallModel
import StallQuery
import TestSupport
import Testing

@testable import StallFormats

/// Goal: each stall of a log is one report, with what the log says of it and nothing that it says of others.
@Suite struct ForeignLogsTests {
    private static func stall(_ prefix: String) -> String {
        """
        \(prefix)BUG: soft lockup - CPU#3 stuck for 22s! [mysqld:4711]
        \(prefix)RIP: 0010:spin+0x64/0x2a0
        \(prefix)Call Trace:
        \(prefix) foo+0x31/0x40

        """
    }

    // MARK: Identity

    @Test(arguments: [
        ["[1000.0] ", "[1028.0] "],
        ["Nov 20 09:14:31 db-7 kernel: ", "Nov 20 09:14:59 db-7 kernel: "],
        ["Nov 20 09:14:31 db-7 kernel: ", "Nov 21 09:14:31 db-7 kernel: "],
    ]) func `stalls that differ only in their time are several reports, in each file the same`(
        prefixes: [String]
    ) {
        let ids = readWhole(prefixes.map(Self.stall).joined()).map(\.id)
        #expect(Set(ids).count == 2)
        #expect(readWhole(Self.stall(prefixes[1])).map(\.id) == [ids[1]])
    }

    @Test func `stalls of Seastar without a year are several reports`() {
        let text = ["20 09:14:31", "20 09:15:31", "21 09:15:31"].map {
            "Nov \($0) db-7 scylla[42]: Reactor stalled for 33 ms on shard 0. Backtrace: 0x1 0x2\n"
        }
        #expect(Set(readWhole(text.joined()).map(\.id)).count == 3)
    }

    @Test(arguments: [
        ("Nov 20 09:14:53", "2026-11-20 09:14:31"), ("Nov 28 09:14:53", "2026-11-28 09:14:31"),
        ("Dec  3 09:14:53", "2025-12-03 09:14:31"), ("Feb 29 09:14:53", "2024-02-29 09:14:31"),
    ]) func `a time without a year is of the last one before the log was written`(
        written: String, expected: String
    ) {
        let report = readWhole(Self.stall("\(written) db-7 kernel: ")).first
        #expect(report?.start == AppleHeader.time("\(expected) +0000"))
    }

    // MARK: Recognition

    @Test(arguments: [
        (
            (0..<2000).map { "[  \($0).000001] usb 1-1: new high-speed USB device number 7\n" },
            ReportFormat.kernelStalls
        ),
        (
            (0..<2000).map { _ in
                "Nov 20 09:14:31 db-7 systemd[1]: Started a service of the host.\n"
            },
            .kernelStalls
        ),
        (
            (0..<2000).map { _ in
                "INFO  2026-11-20 09:14:30,000 [shard  0:main] compaction - of 2\n"
            },
            .seastarStalls
        ),
    ]) func `a log whose first stall is far from its beginning is recognized`(
        lines: [String], format: ReportFormat
    ) {
        let stall =
            format == .kernelStalls
            ? Self.stall("[99.5] ") : "Reactor stalled for 33 ms on shard 0. Backtrace: 0x1 0x2\n"
        for count in [1, 9] {
            let log = [[String]](repeating: lines, count: count).flatMap(\.self).joined()
            #expect(log.utf8.count > ReportFormat.beginningSize)
            let text = log + stall + log
            #expect(ForeignReports.format(of: ByteStream(bytes: Array(text.utf8))) == format)
            #expect(ForeignReports.format(of: ByteStream(bytes: Array(log.utf8))) == nil)
            #expect(readWhole(text).count == 1)
        }
    }

    @Test func `a text that is no log is not searched for stalls`() {
        let text = String(repeating: "The kernel writes lines about tasks.\n", count: 2000)
        let bytes = Array((text + Self.stall("[99.5] ")).utf8)
        #expect(ForeignReports.format(of: ByteStream(bytes: bytes)) == nil)
    }

    // MARK: Spellings

    @Test(arguments: [
        "NMI watchdog: Watchdog detected hard LOCKUP on cpu 1",
        "watchdog: CPU3: Watchdog detected hard LOCKUP on cpu 3",
        "watchdog: CPU 4 self-detected hard LOCKUP @ foo+0x1/0x2",
        "watchdog: CPU 4 detected hard LOCKUP on other CPUs 7",
        "Watchdog CPU:2 Hard LOCKUP",
        "rcu: INFO: rcu_preempt detected expedited stalls on CPUs/tasks: { 2-... } 21012 jiffies",
        "INFO: rcu_tasks detected stalls on tasks:",
    ]) func `lockups and stalls of RCU are read in each spelling`(line: String) {
        #expect(readWhole("[   99.9] \(line)\n").count == 1)
        let quoted = Array("[   99.9] about \(line)\n".utf8)
        #expect(ForeignReports.format(of: ByteStream(bytes: quoted)) == nil)
    }

    @Test(arguments: [
        "kern  :err   : [12345.678901] ", "kern  :warn  : [Fri Nov 20 09:14:31 2026] ",
        "<3>1 2026-11-20T09:14:31Z db-7 kernel - - - ",
        "\u{1b}[32m[Fri Nov 20 09:14:31 2026] \u{1b}[0m\u{1b}[1m",
        "2026-11-20T09:14:31.204567890Z stderr F ", "[Nov20 09:14] ", "[  +0.000003] ",
        "2026-11-20T09:14:31.204567890Z stdout F [   60.123456] [    T35] ",
    ]) func `a line is read behind each kind of beginning`(prefix: String) {
        let reports = readWhole(Self.stall(prefix))
        #expect(reports.map(\.run.app) == ["mysqld"])
        #expect(functions(reports.first) == ["spin", "foo"])
        let isDated = prefix.contains("2026")
        #expect((reports.first?.start.microseconds == modified.microseconds) != isDated)
    }

    @Test(arguments: ["UTC", "GMT", "CET", "EST"]) func `a zone's name is not the host`(
        zone: String
    ) {
        let report = readWhole(Self.stall("Fri 2026-11-20 09:14:53 \(zone) db-7 kernel: ")).first
        #expect(report?.run.host == "db-7")
        #expect(report?.start == AppleHeader.time("2026-11-20 09:14:31 +0000"))
    }

    @Test(arguments: ["+01:00", "+0100", "+01"]) func `a zone in numbers is one`(zone: String) {
        let report = readWhole(Self.stall("Fri 2026-11-20 09:14:53 \(zone) db-7 kernel: ")).first
        #expect(report?.run.host == "db-7")
        #expect(report?.start == AppleHeader.time("2026-11-20 08:14:31 +0000"))
    }

    @Test func `a stack in a container's log is read to its end`() {
        let message = [
            "WARN  2026-11-20 09:14:31,204 [shard 3:main] seastar - Reactor stalled for 33 ms on shard 3.",
            "Backtrace:", "  0x6a7b12", "  /opt/lib/libc.so.6+0x24412",
            "kernel callstack: 0xffffffff99ffbc97",
        ]
        let kubernetes = message.map { "2026-11-20T09:14:31.204567890Z stderr F \($0)\n" }
        let docker = message.map {
            #"{"log":"\#($0)\n","stream":"stderr","time":"2026-11-20T09:14:31.204567890Z"}"# + "\n"
        }
        for text in [kubernetes.joined(), docker.joined()] {
            let reports = readWhole(text)
            #expect(reports.count == 1)
            #expect(reports.first?.samples.first?.locations.count == 3)
            #expect(reports.first?.run.host == "")
        }
    }

    // MARK: Stacks

    @Test func `an address without a function does not end a stack`() {
        let report = readWhole(
            """
            [363.1] INFO: task foo:123 blocked for more than 120 seconds.
            [363.1] Call trace:
            [363.1]  __switch_to+0x114/0x160 (T)
            [363.1]  0xffff800008a1b2c4
            [363.1]  schedule+0x64/0x110

            """
        ).first
        #expect(functions(report) == ["__switch_to", "schedule"])
        #expect(report?.samples.first?.locations.count == 3)
    }

    @Test(arguments: [
        "[120.2] Call Trace:", "[100.2] sysrq: Show Blocked State",
        "[100.2] WARNING: CPU: 1 PID: 7 at mm/slub.c:1", "[100.2] BUG: kernel NULL pointer",
        "[100.2] task:other           state:D stack:0     pid:77    ppid:2",
        "[100.2] other           D    0    77      2 0x00000000",
    ]) func `another stack is not that of a stall without one`(line: String) {
        let reports = readWhole(
            """
            [100.1] INFO: task foo:123 blocked for more than 120 seconds.
            \(line)
            \(line.prefix(7))  other_function+0x1/0x2

            """)
        #expect(reports.map(\.run.pid) == [123])
        #expect(functions(reports.first).isEmpty)
    }

    @Test func `stalls of Seastar and of the kernel in one log are both read`() {
        let seastar =
            "2026-11-20T09:14:31+0000 h scylla[42]: Reactor stalled for 33 ms on shard 0. Backtrace: 0x1 0x2\n"
        let kernel = Self.stall("2026-11-20T09:14:31+0000 h kernel: ")
        let alone = readWhole(kernel).map(\.id) + readWhole(seastar).map(\.id)
        for text in [seastar + kernel, kernel + seastar] {
            #expect(Set(readWhole(text).map(\.id)) == Set(alone))
        }
        #expect(functions(readWhole(kernel + seastar).first) == ["spin", "foo"])
    }
}

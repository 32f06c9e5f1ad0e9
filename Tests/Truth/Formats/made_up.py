"""Made-up reports, each as the text of a format and as the reading that it must have.

The texts are written, never parsed: what is in them is known."""
import json
import random
from reading import Frame, Report, Sample, Thread

FUNCTIONS = [
    "main", "-[AlbumController reload:]", "$s6Photos9SyncQueueC5flushyyF", "Library.waitForIndex()", "std::sort<int*>(int*, int*)",
    "closure #1 in Reader.page(_:)", "operator new(unsigned long)", "read", "__psynch_mutexwait", "größe", "a b",
]
IMAGES = ["Photos", "libc.so.6", "Reader App", "UIKitCore", "libswiftCore.dylib"]
NAMES = ["com.example.worker", "pool-1", "Görli", "name with spaces"]


def made_up(seed):
    return Maker(random.Random(seed))


class Maker:
    def __init__(self, rng):
        self.rng = rng
        self.binaries = {
            name: (0x1_0000_0000 + 0x1000_0000 * index, "%032x" % rng.getrandbits(128)) for index, name in enumerate(IMAGES)
        }

    def path(self, image):
        return f"/opt/{image}/{image}"

    def frames(self, named=1.0, depth=12):
        """Innermost first, at an address of a binary each; a part of them without a name."""
        frames = []
        for index in range(self.rng.randint(1, depth)):
            image = self.rng.choice(IMAGES)
            frame = Frame(image=self.path(image), build=self.binaries[image][1], offset=16 * self.rng.randint(1, 10**6))
            frame.kind = "interrupted" if index == 0 else "return_address"
            if self.rng.random() < named:
                frame.function = self.rng.choice(FUNCTIONS)
                if self.rng.random() < 0.3:
                    frame.file, frame.line = self.rng.choice(["main.swift", "a file.m"]), self.rng.randint(1, 9999)
            frames.append(frame)
        return frames

    def address(self, frame):
        return self.binaries[frame.image.rsplit("/", 1)[1]][0] + frame.offset

    def threads(self, **how):
        count = self.rng.randint(1, 5)
        threads = [Thread(n, self.rng.choice([None] + NAMES), n == 0, [Sample(self.frames(**how))]) for n in range(count)]
        threads[0].name = None
        return threads

    def time(self):
        """Microseconds, and the text without a zone."""
        import datetime
        seconds = self.rng.randint(1_600_000_000, 1_900_000_000)
        return seconds * 10**6, datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc).strftime("%Y-%m-%d %H:%M:%S")

    def machine(self):
        """A system as Apple's writers state it and in its normal form, and a device, with what says that it is unknown."""
        stated, normal = self.rng.choice([
            ("iPhone OS 17.4 (21E219)", "iOS 17.4"), ("iOS 16.0.2 (20A380)", "iOS 16.0.2"), ("Mac OS X 14.4 (23E214)", "macOS 14.4"),
            ("Mac OS X 10.15.7 (19H15)", "Mac OS X 10.15.7"), ("macOS 11.0 (???)", "macOS 11.0"), ("Apple tvOS 15.1 (19J572)", "tvOS 15.1"),
            ("Unknown (7) 1.0 (???)", None), ("???", None),
        ])
        device = self.rng.choice(["iPhone14,5", "Mac15,7", "x86_64", None])
        return stated, normal, device

    # Formats: each gives (text, report), or (text, [report, ...]).

    def plcrashreporter(self):
        threads = self.threads(named=0.8)
        start, when = self.time()
        report = Report(threads, app="Photos", version="2.4 (118)", pid=self.rng.randint(1, 99999), start=start)
        stated, report.os, report.device = self.machine()
        reporter = Thread(len(threads), None, False, [Sample([
            Frame("-[PLCrashReporter generateLiveReportWithThread:error:]", self.path("Photos"), self.binaries["Photos"][1], 4096,
                  kind="interrupted")])])
        threads.append(reporter)
        for thread in threads:
            thread.name = None
            for frame in thread.samples[0].frames:
                frame.file = frame.line = None
        text = (
            f"lag happen, detail below: \nIncident Identifier: {self.rng.getrandbits(64):X}\nHardware Model:      {report.device or '???'}\n"
            f"Process:         Photos [{report.pid}]\nPath:            {self.path('Photos')}\nIdentifier:      a.b\n"
            f"Version:         2.4 (118)\nCode Type:       ARM-64\n\nDate/Time:       {when} +0000\n"
            f"OS Version:      {stated}\nReport Version:  104\n\nException Type:  SIGTRAP\n"
            f"Exception Codes: TRAP_TRACE at 0x1000\nCrashed Thread:  {reporter.number}\n\n"
        )
        for thread in threads:
            text += f"Thread {thread.number}{' Crashed' if thread is reporter else ''}:\n"
            for index, frame in enumerate(thread.samples[0].frames):
                image = frame.image.rsplit("/", 1)[1]
                base = self.binaries[image][0]
                name = f"{frame.function} + {self.rng.randint(0, 999)}" if frame.function else f"0x{base:x} + {frame.offset}"
                text += f"{index:<4}{image:<35} 0x{base + frame.offset:016x} {name}\n"
            text += "\n"
        text += "Binary Images:\n"
        for image, (base, uuid) in self.binaries.items():
            text += f"    0x{base:x} -     0x{base + 0xFFFFFFF:x} {'+' if image == 'Photos' else ' '}{image} arm64  <{uuid}> {self.path(image)}\n"
        return text, report

    def ips(self):
        threads = self.threads(named=0.9)
        start, when = self.time()
        allowance = self.rng.randint(100, 2000)
        report = Report(
            threads, app="Photos", version="3.1 (7)", pid=self.rng.randint(1, 9999), start=start, duration=allowance * 10**7, state="hang")
        order = list(self.binaries)
        stated, report.os, report.device = self.machine()
        train, build = stated.rsplit(" ", 1) if " " in stated else (stated, "")
        body = {
            "pid": report.pid, "procName": "Photos", "captureTime": f"{when}.0000 +0000", "faultingThread": 0,
            "bundleInfo": {"CFBundleShortVersionString": "3.1", "CFBundleVersion": "7", "CFBundleIdentifier": "a.b"},
            "termination": {"namespace": "FRONTBOARD", "code": 2343432205, "flags": 6, "reasons": [
                "<RBSTerminateContext| code:0x8BADF00D explanation:[application<a.b>] exhausted real (wall clock) time allowance "
                f"of {allowance // 100}.{allowance % 100:02d} seconds>"]},
            "modelCode": report.device,
            "threads": [], "usedImages": [
                {"base": base, "size": 1 << 28, "uuid": f"{uuid[:8]}-{uuid[8:12]}-{uuid[12:16]}-{uuid[16:20]}-{uuid[20:]}".upper(),
                 "name": image, "path": self.path(image), "arch": "arm64"} for image, (base, uuid) in self.binaries.items()],
        }
        for thread in threads:
            thread.number += 100
            frames = []
            for frame in thread.samples[0].frames:
                entry = {"imageOffset": frame.offset, "imageIndex": order.index(frame.image.rsplit("/", 1)[1])}
                if frame.function:
                    entry |= {"symbol": frame.function, "symbolLocation": 4}
                if frame.file:
                    entry |= {"sourceFile": frame.file, "sourceLine": frame.line}
                frames.append(entry)
            body["threads"].append({"id": thread.number, "frames": frames} | ({"name": thread.name} if thread.name else {}))
        # Either part states it; the metadata counts where it names a system.
        is_in_body = self.rng.random() < 0.5
        if is_in_body:
            body["osVersion"] = {"train": train, "build": build.strip("()"), "releaseType": "User"}
        head = {"app_name": "Photos", "timestamp": f"{when}.00 +0000", "app_version": "3.1", "build_version": "7", "bug_type": "309"}
        if not is_in_body or self.rng.random() < 0.5:
            head["os_version"] = stated
        if is_in_body and report.os is not None and "os_version" in head:
            body["osVersion"]["train"] = "iPhone OS 9.9"
        return json.dumps(head) + "\n" + json.dumps(body, indent=self.rng.choice([None, 2])) + "\n", report

    def gdb(self):
        threads = self.threads()
        report = Report(threads)
        text = ""
        for thread in threads:
            thread.number += 4000
            thread.is_main = thread.number == 4000
            for index, frame in enumerate(thread.samples[0].frames):
                frame.function = self.rng.choice(["main", "wait_for", "$s6Photos9SyncQueueC5flushyyF", "std::sort<int*>"])
                frame.build = frame.offset = None
                if frame.file:
                    frame.file, frame.image = "/src/" + frame.file.replace(" ", "_"), None
                else:
                    frame.image = "/lib/" + frame.image.rsplit("/", 1)[1].replace(" ", "_") + ".so"
        for thread in reversed(threads):
            name = f' "{thread.name}"' if thread.name else ""
            text += f"\nThread {thread.number - 3999} (Thread 0x7f00{thread.number:08x} (LWP {thread.number}){name}):\n"
            for index, frame in enumerate(thread.samples[0].frames):
                place = f" at {frame.file}:{frame.line}" if frame.file else f" from {frame.image}"
                arguments = self.rng.choice(["", "x=1", 'name=0x55 "a (b) at c:1"', "p=<optimized out>, f=0x1 <g(int)>"])
                text += f"#{index:<3}0x{self.rng.getrandbits(44):016x} in {frame.function} ({arguments}){place}\n"
        threads.reverse()
        report.stalled = len(threads) - 1
        return text, report

    def perf(self):
        """Two threads that are sampled by turns, 10 ms apart, without a pause."""
        threads = [Thread(700, "server", True), Thread(701, "server", False)]
        step, start = 10**7, self.rng.randint(1, 10**6) * 10**9
        text = ""
        for index in range(self.rng.randint(4, 30)):
            thread = threads[index % 2]
            frames = [Frame(f"f{self.rng.randint(0, 2)}", "/bin/server", kind="interrupted"), Frame("main", "/bin/server")]
            at = start + index * step // 2
            text += f"server   700/{thread.number} [00{index % 2}] {at // 10**9}.{at % 10**9:09d}:    10000000 cpu-clock:u: \n"
            for frame in frames:
                # An address for each function: a stack that differs in an address only is another one.
                text += f"\t{0x55_0000_0000 + ord(frame.function[-1]):16x} {frame.function}+0x1f (/bin/server)\n"
            text += "\n"
            offset = index // 2 * step
            if thread.samples and thread.samples[-1].frames == frames:
                thread.samples[-1].count += 1
            else:
                thread.samples.append(Sample(frames, 1, offset))
        reports = [
            Report([thread], verdict="stalled", app="server", pid=700,
                   duration=sum(sample.count for sample in thread.samples) * step) for thread in threads]
        return text, reports


    def metrickit(self):
        start, when = self.time()
        frames = self.frames(named=0)
        hang = self.rng.randint(3, 200)
        stated, system, device = self.machine()
        tree = None
        for frame in frames:
            image = frame.image.rsplit("/", 1)[1]
            uuid = self.binaries[image][1]
            node = {
                "binaryName": image, "binaryUUID": f"{uuid[:8]}-{uuid[8:12]}-{uuid[12:16]}-{uuid[16:20]}-{uuid[20:]}".upper(),
                "address": self.address(frame), "offsetIntoBinaryTextSegment": frame.offset, "sampleCount": 20}
            if tree:
                node["subFrames"] = [tree]
            tree = node
            frame.image = image
        payload = {
            "timeStampBegin": "2020-01-01 00:00:00 +0000", "timeStampEnd": f"{when} +0000", "hangDiagnostics": [{
                "version": "1.0.0", "callStackTree": {"callStackPerThread": True, "callStacks": [
                    {"threadAttributed": True, "callStackRootFrames": [tree]}]},
                "diagnosticMetaData": {
                    "appVersion": "2.4", "appBuildVersion": "118", "bundleIdentifier": "com.example.photos",
                    "osVersion": stated, "deviceType": device, "hangDuration": f"{hang / 10} sec"}}]}
        thread = Thread(0, None, True, [Sample(frames, 20)])
        return json.dumps(payload), Report(
            [thread], app="com.example.photos", version="2.4 (118)", start=start, duration=hang * 10**8, os=system, device=device)


    def log_prefix(self, name):
        """A prefix, and the time in it in microseconds, the host, and whether it names the process."""
        import datetime
        seconds, fraction = self.rng.randint(1_600_000_000, 1_900_000_000), self.rng.randint(0, 999)
        zone = self.rng.choice([0, 60, -420])
        when = datetime.datetime.fromtimestamp(seconds + zone * 60, datetime.timezone.utc)
        plain = datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc)
        # A time without a year is one of the year before the file's, which is 1970 here: but for its first day.
        yearless = when.replace(day=3) if (when.month, when.day) == (1, 1) else when
        sign = f"{'-' if zone < 0 else '+'}{abs(zone) // 60:02}"
        micro = seconds * 10**6 + fraction * 1000
        return self.rng.choice([
            ("", 0, "", False),
            (f"{yearless:%b %e %H:%M:%S} db-7 {name}: ", 0, "db-7", True),
            (f"{when:%Y-%m-%dT%H:%M:%S}.{fraction:03}{sign}:00 db-7 {name}: ", micro, "db-7", True),
            (f"{when:%Y-%m-%dT%H:%M:%S}{sign}00 db-7 {name}: ", seconds * 10**6, "db-7", True),
            (f"{plain:%a %Y-%m-%d %H:%M:%S} UTC db-7 {name}: ", seconds * 10**6, "db-7", True),
            (f"{seconds}.{fraction:03}000 db-7 {name}: ", micro, "db-7", True),
        ])

    def seastar(self):
        pid = self.rng.randint(1, 99999)
        text, reports = self.rng.choice(["", "INFO  2026-11-20 09:14:30,018 [shard  0:main] init - starting up\n"]), []
        for _ in range(self.rng.randint(1, 4)):
            prefix, micro, host, named = self.log_prefix(f"scylla[{pid}]")
            shard, duration, own = self.rng.randint(0, 127), self.rng.randint(1, 20000), prefix
            if not named and self.rng.random() < 0.5:
                when = "2026-11-20 09:14:31,204"
                own, micro = f"WARN  {when} [shard {shard:2}:main] seastar - ", 1795166071204000
            group = self.rng.choice(["", ", in scheduling group main", ", in scheduling group a.b"])
            addresses = [self.rng.getrandbits(self.rng.choice([20, 47])) for _ in range(self.rng.randint(1, 30))]
            frames = []
            head = f"{own}Reactor stalled for {duration} ms on shard {shard}{group}."
            if self.rng.random() < 0.5:
                text += head + " Backtrace: " + " ".join(map(hex, addresses)) + "\n"
                frames += [Frame(offset=address) for address in addresses]
            else:
                text += f"{head}\n{prefix}Backtrace:\n"
                for address in addresses:
                    image = self.rng.choice([None, None, "/opt/lib/libc.so.6"])
                    text += f"{prefix}  {image + '+' if image else ''}0x{address:016x}\n"
                    frames.append(Frame(image=image, offset=address))
                    if named and self.rng.random() < 0.1:
                        text += "Nov 20 09:14:31 db-7 sshd[1]: 0x1\n"
            if self.rng.random() < 0.4:
                inner = [(1 << 64) - self.rng.randint(5000, 1 << 30) for _ in range(self.rng.randint(1, 9))]
                text += f"{prefix}kernel callstack: 0xffffffffffffff80 " + " ".join(map(hex, inner)) + "\n"
                frames[:0] = [Frame(image="[kernel]", offset=address, kind="return_address" if at else "interrupted")
                              for at, address in enumerate(inner)]
            text += self.rng.choice(["", f"{prefix}Rate-limit: suppressed 7 backtraces on shard {shard}\n"])
            reports.append(Report(
                [Thread(shard, f"shard {shard}", False, [Sample(frames)])], app="scylla" if named else "", pid=pid if named else 0,
                host=host, start=micro - duration * 1000 if micro else 0, duration=duration * 10**6))
        return text, reports

    def kernel(self):
        text, reports = "", []
        for _ in range(self.rng.randint(1, 4)):
            prefix, micro, host, named = self.log_prefix("kernel")
            if not named:
                prefix, micro = self.rng.choice([
                    ("", 0), ("[Fri Nov 20 09:14:31 2026] ", 1795166071 * 10**6), ("[ 2704.414619] ", 0), ("[ 2704.414619][  T12] ", 0),
                    ("2026-11-20T09:14:31,204567+01:00 ", 1795162471204567)])
            elif self.rng.random() < 0.5:
                prefix += "[ 2704.414619] "
            task = self.rng.choice(["nginx", "kworker/u8:0", "jbd2/nvme0n1p2-", "a b", "x: y"])
            pid, seconds = self.rng.randint(1, 4_000_000), self.rng.randint(10, 5000)
            hung, frames, body = self.rng.random() < 0.5, [], []
            if hung:
                body.append(f"INFO: task {task}:{pid} blocked for more than {seconds} seconds.")
                body.append("      Not tainted 6.12.0 #1")
                body.append(f"task:{task} state:D stack:0     pid:{pid} ppid:2 flags:0x00000000")
            else:
                body.append(f"{self.rng.choice(['', 'watchdog: ', 'NMI watchdog: '])}BUG: soft lockup - CPU#3 stuck for {seconds}s! [{task}:{pid}]")
                body.append(f"CPU: 3 PID: 1 Comm: other Tainted: G        W   6.12.0 #1")
                if self.rng.random() < 0.6:
                    frames.append(Frame("csd_lock_wait", "[kernel]"))
                    body += ["RIP: 0010:csd_lock_wait+0x4/0xa", "Code: 7f 08 <8b> 4e", "RAX: 0000000000000001 RBX: 0000000000000246"]
            body.append("Call Trace:")
            marks = self.rng.random() < 0.5
            if marks:
                body.append(" <TASK>")
            for _ in range(self.rng.randint(1, 20)):
                name = self.rng.choice(["__schedule", "schedule", "mutex_lock.isra.0", "vfs_read", "__x64_sys_read"])
                module = self.rng.choice([None, None, "zfs", "nfsv4"])
                address = self.rng.choice(["", "", "[<ffffffff8168c889>] "])
                doubt = self.rng.random() < 0.2
                body.append(f" {address}{'? ' if doubt else ''}{name}+0x{self.rng.getrandbits(12):x}/0x1000{f' [{module}]' if module else ''}")
                if not doubt:
                    frames.append(Frame(name, module or "[kernel]"))
            body.append(" </TASK>" if marks else "---[ end trace ]---")
            body.append("usb 1-1: new device")
            text += "".join(f"{prefix}{line}\n" for line in body)
            if frames:
                frames[0].kind = "interrupted"
            reports.append(Report(
                [Thread(pid, task, False, [Sample(frames)] if frames else [])], app=task, pid=pid, host=host,
                start=micro - seconds * 10**6 if micro else 0, duration=seconds * 10**9, state="hang"))
        return text, reports

    def pprof(self):
        from write_pprof import Profile, msg, num, packed
        p, self.next = Profile(), 0
        start, duration = self.rng.randint(1, 1 << 60), self.rng.randint(1, 10**12)
        text = p.type(1, "samples", "count") + p.type(1, "wall", "nanoseconds")
        chosen = self.rng.choice([None, 0, 1])
        images = list(self.binaries)
        for index, (image, (base, build)) in enumerate(self.binaries.items()):
            text += p.mapping(index + 1, base + 0x1000, base + 0x1000_0000, 0x1000, self.path(image), build)
        locations, functions = {}, {}

        def function(name, file):
            nonlocal text
            if (name, file) not in functions:
                functions[name, file] = len(functions) + 1
                text += p.function(len(functions), name, "", file or "")
            return functions[name, file]

        def location(frames):
            nonlocal text
            key = tuple((frame.function, frame.file, frame.line, frame.image, frame.offset) for frame in frames)
            if key not in locations:
                locations[key] = 7 * len(locations) + 3
                outer = frames[-1]
                lines = [(function(frame.function, frame.file), frame.line or 0) for frame in frames if frame.function]
                text += p.location(locations[key], images.index(outer.image.rsplit("/", 1)[1]) + 1, self.address(outer), *lines)
            return locations[key]

        reports = []
        for group in range(self.rng.randint(1, 3)):
            stacks = {}
            for _ in range(self.rng.randint(1, 6)):
                made, ids = [], []
                for frame in self.frames(named=0.8):
                    frame.offset += 0x1000
                    parts = [frame]
                    if frame.function and self.rng.random() < 0.3:
                        inner = Frame(f"inlined {self.rng.randint(0, 3)}", frame.image, frame.build, frame.offset, inlined=True, kind=frame.kind)
                        parts = [inner, frame]
                    ids.append(location(parts))
                    made += parts
                stacks[tuple(ids)] = [made, 0]
            for _ in range(self.rng.randint(len(stacks), 20)):
                ids = self.rng.choice(list(stacks))
                values = [self.rng.randint(1, 9), self.rng.randint(1, 10**9)]
                # The time, whichever is shown first.
                stacks[ids][1] += values[1]
                text += msg(2, (packed(1, ids) if self.rng.random() < 0.5 else b"".join(num(1, id) for id in ids))
                            + packed(2, values) + p.label("thread id", 100 + group) + p.label("thread name", f"worker {group}"))
                stacks[ids] = stacks.pop(ids) if stacks[ids][1] == values[1] else stacks[ids]
            seen = [Sample(made, count) for made, count in stacks.values() if count]
            reports.append(Report(
                [Thread(100 + group, f"worker {group}", False, seen)], app="Photos", start=start // 1000, duration=sum(sample.count for sample in seen)))
        if chosen is not None:
            text += num(14, p.text(["samples", "wall"][chosen]))
        return text + p.table() + num(9, start) + num(10, duration), reports


FORMATS = ["plcrashreporter", "ips", "gdb", "perf", "metrickit", "seastar", "kernel", "pprof"]

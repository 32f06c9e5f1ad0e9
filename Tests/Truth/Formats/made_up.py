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

    # Formats: each gives (text, report), or (text, [report, ...]).

    def plcrashreporter(self):
        threads = self.threads(named=0.8)
        start, when = self.time()
        report = Report(threads, app="Photos", version="2.4 (118)", pid=self.rng.randint(1, 99999), start=start)
        reporter = Thread(len(threads), None, False, [Sample([
            Frame("-[PLCrashReporter generateLiveReportWithThread:error:]", self.path("Photos"), self.binaries["Photos"][1], 4096,
                  kind="interrupted")])])
        threads.append(reporter)
        for thread in threads:
            thread.name = None
            for frame in thread.samples[0].frames:
                frame.file = frame.line = None
        text = (
            f"lag happen, detail below: \nIncident Identifier: {self.rng.getrandbits(64):X}\nHardware Model:      x\n"
            f"Process:         Photos [{report.pid}]\nPath:            {self.path('Photos')}\nIdentifier:      a.b\n"
            f"Version:         2.4 (118)\nCode Type:       ARM-64\n\nDate/Time:       {when} +0000\n"
            "OS Version:      iPhone OS 17.4 (21E219)\nReport Version:  104\n\nException Type:  SIGTRAP\n"
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
        body = {
            "pid": report.pid, "procName": "Photos", "captureTime": f"{when}.0000 +0000", "faultingThread": 0,
            "bundleInfo": {"CFBundleShortVersionString": "3.1", "CFBundleVersion": "7", "CFBundleIdentifier": "a.b"},
            "termination": {"namespace": "FRONTBOARD", "code": 2343432205, "flags": 6, "reasons": [
                "<RBSTerminateContext| code:0x8BADF00D explanation:[application<a.b>] exhausted real (wall clock) time allowance "
                f"of {allowance // 100}.{allowance % 100:02d} seconds>"]},
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
        head = {"app_name": "Photos", "timestamp": f"{when}.00 +0000", "app_version": "3.1", "build_version": "7", "bug_type": "309"}
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
                    "osVersion": "iPhone OS 17.0 (21A329)", "deviceType": "iPhone14,5", "hangDuration": f"{hang / 10} sec"}}]}
        thread = Thread(0, None, True, [Sample(frames, 20)])
        return json.dumps(payload), Report(
            [thread], app="com.example.photos", version="2.4 (118)", start=start, duration=hang * 10**8)


FORMATS = ["plcrashreporter", "ips", "gdb", "perf", "metrickit"]

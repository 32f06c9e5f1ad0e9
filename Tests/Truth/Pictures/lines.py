"""Stores of made-up stalls, ingested from JSON lines (docs/ingest.md): random ones, and one of hostile names."""

import json
import os
import random
import sqlite3
import subprocess

START_US = 1_763_200_000_000_000  # 15 November 2025
HOUR_US = 3_600_000_000

# Names that have broken a page, a table or a terminal.
HOSTILE = [
    "</script><script>document.title='owned'</script>", "<img src=x onerror=document.title='owned'>",
    "<svg/onload=document.title='owned'>", "\"><script>document.title='owned'</script>", "'><b>bold</b>", "<!--", "-->",
    "<![CDATA[", "]]>", "&lt;script&gt;", "&amp;", "&#x3c;b&#x3e;", "javascript:document.title='owned'",
    "</style><style>body{display:none}</style>", "</title><h1>x", "<iframe src=http://127.0.0.1:1/>", "<link rel=stylesheet href=//x>",
    "<base href=//x>", "<meta http-equiv=refresh content=0>", "\\u003cscript\\u003e", "\\\"}];alert(1)//", "`${document.title='owned'}`",
    "{{7*7}}", "<%= 7 %>", "__proto__", "constructor", "hasOwnProperty", "toString", "\u202egnp.exe", "\u2066isolate\u2069", "\u200fRTL \u05d0\u05d1\u05d2",
    "\u2028line", "\u2029paragraph", "\u0007bell", "\u001b[31mred", "a\nb\tc", "\u0000nul", "\ufeffbom", "日本語 👩‍💻 e\u0301", "\U0010ffff",
    "=cmd|' /C calc'!A0", "%s%n%x", "../../etc/passwd", "std::" + "vector<std::map<int, std::pair<A, B>>>::" * 250 + "operator()",
    " " * 40, "x" * 9000,
    "valueOf", "prototype", "__defineGetter__", "watch", "length", "data", "</script", "<!--<script>", "--!><script>document.title='owned'</script>",
    "<script>/*", "*/document.title='owned'/*", "\u0085next", "\u2067\u202b\u2069abc", "\u061carabic", "a\u200b\u2060b", "\U000e0041\U000e0042", "\u0301\u0300mark",
    "\ufffe\uffff", "\r\n\r\nHTTP/1.1 200", "';alert(1);'", "\"};document.title='owned';{\"", "data:text/html,<script>1</script>", "@@data@@", "@@script@@",
    "#g=0000000000000000", "' onmouseover='document.title=1", "<a href=javascript:document.title=1>x</a>", "<math><mi//xlink:href='data:x,<script>1'>",
    "\x1b]8;;http://x\x07link\x1b]8;;\x07", "\U0001f468\u200d\U0001f469" * 200, "é" * 3000, "<b>" * 20000, "a" * 65_000, "::" * 32_000,  # 65,536 bytes are taken in
]


def identifier(rng, start_us):
    return f"{start_us // 1000:012x}7{rng.getrandbits(12):03x}8{rng.getrandbits(60):015x}"


def rfc3339(us):
    import datetime
    moment = datetime.datetime(1970, 1, 1) + datetime.timedelta(microseconds=us)
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def frame(name, image="/opt/photos/photos", offset=None, **more):
    number = sum(ord(c) * (i + 7) for i, c in enumerate(name)) % 0xffffff if offset is None else offset
    return {"function": name, "image": image, "build_id": "aa" if image.startswith("/opt") else "bb", "offset": hex(number), **more}


LIBC = "/lib/x86_64-linux-gnu/libc.so.6"
WAITS = {"lock": "pthread_mutex_lock", "disk": "fsync", "sleep": "clock_nanosleep", "cpu": None}


class Fleet:
    """Reports of a few processes; the same seed makes the same ones."""

    def __init__(self, seed, functions=None, hours=200, groups=12, versions=("1.0", "1.1", "2.0")):
        self.random = random.Random(seed)
        self.hours = hours
        self.functions = functions or [f"step{i}()" for i in range(40)]
        self.paths = []
        for _ in range(groups):
            depth = self.random.randint(3, 14)
            path = self.random.sample(self.functions, min(depth, len(self.functions)))
            self.paths.append((path, self.random.choice(list(WAITS))))
        self.versions = versions

    def report(self):
        rng = self.random
        start = START_US + rng.randrange(self.hours * HOUR_US)
        duration = rng.randrange(250_000_000, 4_000_000_000) / 1e6
        version = self.versions[min(int((start - START_US) / (self.hours * HOUR_US) * len(self.versions)), len(self.versions) - 1)]
        pick = min(int(rng.random() ** 2 * len(self.paths)), len(self.paths) - 1)
        path, wait = self.paths[pick]
        samples, offsets = [], sorted(rng.uniform(0, duration) for _ in range(rng.randint(1, 6)))
        bounds = [0] + [(a + b) / 2 for a, b in zip(offsets, offsets[1:])] + [duration]
        for index, offset in enumerate(offsets):
            names = list(path[rng.choice([0, 0, 0, 1]):]) or list(path)
            stack = [frame(WAITS[wait], LIBC)] if WAITS[wait] else []
            stack += [frame(name, file="/src/photos/Store.swift", line=len(name)) for name in names]
            stack += [frame("main"), frame("__libc_start_call_main", LIBC)]
            samples.append({"offset_ms": round(offset, 6), "weight_ms": round(bounds[index + 1] - bounds[index], 6), "thread": 7, "stack": stack,
                            "method": "signal"})
        report = {
            "schema": "stallctl.report/1", "id": identifier(rng, start), "app": rng.choice(["photos", "photos", "mail"]), "version": version,
            "host": rng.choice(["web-1", "web-2", "web-3"]), "pid": rng.randint(2, 9), "loop": rng.choice(["main", "main", "decoder"]),
            "mode": "default", "phase": "timer", "start": rfc3339(start), "duration_ms": duration, "cpu_ms": 12.5, "threshold_ms": 250,
            "state": rng.choice(["ended", "ended", "ended", "hang"]), "verdict": rng.choice(["stalled"] * 9 + ["starved"]), "samples": samples,
            "build_id": "aa",
            "cause": {"class": wait, "confidence": 0.9, "shares": [{"class": wait, "fraction": 1}],
                      "evidence": [{"name": "system call", "value": "futex 0x5570c0de1040" if wait == "lock" else "read(7)"}]},
        }
        if wait == "lock" and rng.random() < 0.7:
            report["cause"]["lock_holder"] = {"thread": 4719, "name": "compactor", "deadlock": False}
            report["threads"] = [{"id": 4719, "name": "compactor", "role": "holder", "method": "signal_free", "stack": [
                frame("fsync", LIBC), frame("compactDatabase()"), frame("start_thread", LIBC)]}]
        return report


def write_store(stallctl, path, reports):
    """A central store of the reports."""
    lines = path + ".jsonl"
    with open(lines, "w", encoding="utf-8") as file:
        for report in reports:
            file.write(json.dumps(report) + "\n")
    for suffix in ("", "-wal", "-shm"):
        if os.path.exists(path + suffix):
            os.remove(path + suffix)
    done = subprocess.run([stallctl, "ingest", "--store", path, lines], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    os.remove(lines)
    return path


def random_store(stallctl, folder, seed, count=150):
    fleet = Fleet(seed)
    return write_store(stallctl, os.path.join(folder, f"random-{seed}.sqlite"), [fleet.report() for _ in range(count)])


def hostile_store(stallctl, folder):
    """Each hostile name as a function, a loop, a version, a host and a label of its own."""
    fleet = Fleet(1, hours=100)
    reports = []
    for index, name in enumerate(HOSTILE):
        # A NUL ends a name in many programs; the store keeps it.
        report = fleet.report()
        report.update(app=name[:200] or "app", version=name[:200] or "1", host=name[:200] or "host", loop=name[:200] or "loop", activity=name[:200],
                      verdict="stalled", pid=index + 2)
        for sample in report["samples"]:
            sample["stack"] = [frame(name or "f", offset=index * 64), frame(name + "caller", "/opt/" + name[:100], offset=index * 64 + 32)] + sample["stack"][-2:]
            for entry in sample["stack"]:
                entry["file"] = "/" + name[:300]
        report["mode"] = name[:200] or "m"
        # Each waits for a lock that a thread of such a name holds, in a function of such a name.
        report["cause"] = {"class": "lock", "confidence": 0.9, "shares": [{"class": "lock", "fraction": 1}],
                           "evidence": [{"name": name[:200] or "n", "value": name[:200] or "v"}],
                           "lock_holder": {"thread": 4719 + index, "name": name[:200] or "n", "deadlock": index % 5 == 0}}
        report["threads"] = [{"id": 4719 + index, "name": name[:200] or "n", "role": "holder", "method": "signal_free", "stack": [
            frame(name or "f", "/lib/" + name[:100], offset=index * 64 + 8), frame(name + "held", offset=index * 64 + 16)]}]
        reports.append(report)
    return write_store(stallctl, os.path.join(folder, "hostile.sqlite"), reports)


def broken_store(stallctl, folder):
    """Names that are no UTF-8 at all, put there by another program: half of a pair, a cut letter, bytes that begin nothing;
    and names longer than any that is taken in."""
    path = random_store(stallctl, folder, 31, 60)
    broken = ["x'eda080'", "x'c3'", "x'ff3cfe'", "x'e282'", "x'f8a1a1a1a1'", "x'c03c'", "x'61ed' || x'b0803c62'"]
    store = sqlite3.connect(path, isolation_level=None)
    for table, column in (("function", "name"), ("function", "file"), ("process_run", "host"), ("process_run", "version"), ("loop", "name"),
                          ("image", "path")):
        for index, value in enumerate(broken):
            store.execute(f"update {table} set {column} = cast('n{index}' || {value} as text) where id % {len(broken)} = {index}")
    store.execute("update function set name = name || ? where id % 11 = 1", ("<i>" * 40_000,))
    store.execute("update report set checksum = null")
    store.close()
    return path

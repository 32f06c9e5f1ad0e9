"""A fleet of agents' stores, made from docs/schema.md and migrations/ alone, and what is true of it."""

import dataclasses
import os
import random
import shutil
import sqlite3
import zlib

import packed

DAY_US = 86_400_000_000
FIRST_US = 20_400 * DAY_US  # a day in 2025
DAYS = 40
VERDICTS = ["stalled", "starved", "stopped", "throttled", "debugger", "saturated"]
STATES = ["open", "ended", "hang"]
CAUSES = ["unknown", "cpu", "lock", "disk", "network", "ipc", "sleep", "page-fault", "starved", "throttled", "stopped"]
# What the leaf of a stack says that it waited for, and the cause that an agent would give.
WAITS = {"sleep": ("clock_nanosleep", 6), "lock": ("pthread_mutex_lock", 2), "disk": ("fsync", 3), None: (None, 1)}
APPS = {"photos": ["1.0", "1.1", "2.0"], "mail": ["1.0", "2.0"]}
LOSSES = ["suppressed", "dropped", "unwritable", "evicted", "callback"]
SUPPRESSIONS = ["place", "hour", "debugger"]
NUMBERS_ARE_REVISIONS = False
# Whether stalls have a part that was not their thread's own time.
HAVE_DELAYS = False


@dataclasses.dataclass
class Run:
    uuid: bytes
    app: str
    version: str
    host: str
    pid: int
    started_us: int
    length_us: int
    is_watched: bool
    loops: tuple

    @property
    def build_id(self):
        return bytes([len(self.app), *self.version.encode()]).ljust(20, b"\1")


@dataclasses.dataclass
class Report:
    uuid: bytes
    run: Run
    loop: str
    start_us: int
    duration_ns: int
    cpu_ns: int
    state: int
    verdict: int
    cause: int | None
    confidence: float
    wait: str | None
    frames: tuple  # the app's functions, the innermost first
    is_cut: bool
    seq: int
    revision: int
    watched: bool = False  # the central store has watched time of its loop
    delayed_ns: int = 0  # its thread waited for a CPU or was stopped

    @property
    def own_ns(self):
        return self.duration_ns - self.delayed_ns


@dataclasses.dataclass
class Exposure:
    run: Run
    loop: str
    start_us: int
    watched_ns: int
    busy_ns: int
    ready_ns: int
    micro_count: int
    micro_ns: int
    counts: dict
    revision: int


class Store:
    """One agent's store: what it holds, and its file."""

    def __init__(self, random, host, app, path, store_id=None):
        self.random, self.host, self.app, self.path = random, host, app, path
        self.id = store_id or random.randbytes(16)
        self.revision = self.seq = 0
        self.runs, self.reports, self.exposures = [], [], []
        self.losses = {}  # (run uuid, reason) -> (run, count, revision)
        self.suppressions = {}  # (run uuid, loop, place, reason) -> (run, count, total_ns, revision)
        for _ in range(random.randint(1, 3)):
            self.start_run()
        for _ in range(random.randint(5, 55)):
            self.add_report()

    def next_revision(self):
        self.revision += 1
        return self.revision

    def start_run(self):
        draw = self.random
        length = int(draw.uniform(5, 40) * 60e6)
        run = Run(
            uuid=draw.randbytes(16), app=self.app, version=draw.choice(APPS[self.app]), host=self.host,
            pid=draw.randint(100, 30_000), started_us=FIRST_US + int(draw.random() * DAYS * DAY_US), length_us=length,
            is_watched=draw.random() < 0.7, loops=draw.choice([("main",), ("main", "io"), ("main", "io", "ui")]))
        self.runs.append(run)
        if run.is_watched:
            for loop in run.loops:
                self.watch(run, loop)
        if draw.random() < 0.3:
            self.lose(run)
        if draw.random() < 0.4:
            self.suppress(run)

    def watch(self, run, loop):
        draw, start = self.random, run.started_us
        while start < run.started_us + run.length_us:
            watched = int(draw.uniform(55e9, 65e9))
            busy = int(watched * draw.random())
            counts = {draw.randint(0, 200): draw.randint(1, 5000) for _ in range(draw.randint(1, 5))}
            self.exposures.append(Exposure(
                run, loop, start, watched, busy, draw.randint(0, 10**9), draw.randint(0, 3), draw.randint(0, 10**9),
                counts, self.next_revision()))
            start += watched // 1000

    def lose(self, run):
        draw = self.random
        reason = draw.randrange(len(LOSSES))
        known = self.losses.get((run.uuid, reason), (run, 0, 0))[1]
        self.losses[run.uuid, reason] = (run, known + draw.randint(1, 50), self.next_revision())

    def suppress(self, run):
        draw = self.random
        key = (run.uuid, draw.choice(run.loops), draw.randint(-2**63, 2**63 - 1), draw.randrange(3))
        count = draw.randint(1, 30)
        self.suppressions[key] = (run, count, count * draw.randint(10**8, 10**9), self.next_revision())

    def add_report(self):
        draw = self.random
        run = draw.choice(self.runs)
        function = min(int(draw.expovariate(0.15)), 29)
        depth = draw.randint(1, 3)
        callers = [f"caller{(function * 7 + draw.randrange(2)) % 13}", f"root{function % 4}"]
        frames = (f"work{function}", *callers)
        is_cut = draw.random() < 0.12
        if is_cut:
            frames = frames[:min(depth, 2)]
        wait = draw.choice(["sleep", "lock", "disk", None, None]) if function % 3 else ["sleep", "lock", None][function % 9 // 3]
        start = run.started_us + int(draw.random() * run.length_us)
        state = draw.choices([0, 1, 2], [3, 94, 3])[0]
        # A report's number is the revision that it was first written with. The stores that Tests/Truth/Freeze has recorded outputs
        # of are from before that was known here.
        self.seq = self.next_revision() if NUMBERS_ARE_REVISIONS else self.seq + 1
        self.reports.append(Report(
            uuid=(start // 1000).to_bytes(6, "big") + b"\x70" + draw.randbytes(9), run=run, loop=draw.choice(run.loops),
            start_us=start, duration_ns=int(250e6 * 1.1 ** draw.expovariate(0.07)) + draw.randrange(10**6),
            cpu_ns=draw.randint(0, 10**8), state=state, verdict=draw.choices(range(6), [88, 4, 3, 2, 2, 1])[0],
            cause=WAITS[wait][1] if draw.random() < 0.7 else None, confidence=round(draw.random(), 3), wait=wait,
            frames=frames, is_cut=is_cut, seq=self.seq,
            revision=self.seq if NUMBERS_ARE_REVISIONS else self.next_revision()))
        # Of two stalls in three; without a draw, which would make another fleet of the rest.
        report = self.reports[-1]
        if HAVE_DELAYS and report.verdict == 0 and report.uuid[-1] % 3:
            report.delayed_ns = report.duration_ns * report.uuid[-2] // 256

    def go_on(self):
        """The app goes on: open stalls end, others begin, what is counted grows."""
        for index, report in enumerate(self.reports):
            if report.state == 0:
                self.reports[index] = dataclasses.replace(
                    report, state=1, duration_ns=report.duration_ns + self.random.randint(1, 10**9),
                    revision=self.next_revision())
        for _ in range(self.random.randint(0, 6)):
            self.add_report()
        if self.random.random() < 0.5:
            self.start_run()
            self.add_report()
        self.lose(self.random.choice(self.runs))

    # The file

    def write(self, template):
        shutil.copyfile(template, self.path)
        database = sqlite3.connect(self.path)
        database.execute("pragma synchronous = off")
        Writer(database, self).write()
        database.commit()
        database.close()


class Writer:
    """Writes a store's rows; everything that reports share is stored once."""

    def __init__(self, database, store):
        self.database, self.store = database, store
        self.ids = {}

    def insert(self, table, **columns):
        names = ", ".join(columns)
        marks = ", ".join("?" * len(columns))
        cursor = self.database.execute(f"insert into {table} ({names}) values ({marks})", list(columns.values()))
        return cursor.lastrowid

    def once(self, key, make):
        if key not in self.ids:
            self.ids[key] = make()
        return self.ids[key]

    def run(self, run):
        return self.once(("run", run.uuid), lambda: self.insert(
            "process_run", uuid=run.uuid, app=run.app, version=run.version, build_id=run.build_id, host=run.host,
            pid=run.pid, boot_id="00000000-0000-0000-0000-000000000000", start_ticks=1, started_us=run.started_us))

    def loop(self, run, name):
        return self.once(("loop", run.uuid, name), lambda: self.insert(
            "loop", run=self.run(run), name=name, threshold_ns=250_000_000))

    def label(self, value):
        return self.once(("label", value), lambda: self.insert("label", value=value))

    def location(self, path, build_id, function):
        """A place in a function, at an offset that its name decides."""
        image_hash = packed.image_hash(path, build_id)
        image = self.once(("image", image_hash), lambda: self.insert(
            "image", hash=image_hash, path=path, build_id=build_id))
        offset = zlib.crc32(function.encode()) % 2**24 * 16
        hash = packed.location_hash(image_hash, offset, 1)

        def make():
            location = self.insert("location", hash=hash, image=image, offset=offset, kind=1, detail=2, revision=0)
            named = packed.function_hash(function)
            row = self.once(("function", named), lambda: self.insert("function", hash=named, name=function))
            self.insert("location_frame", location=location, position=0, function=row, is_inlined=0)
            return location, hash
        return self.once(("location", hash), make)

    def stack(self, report):
        run, libc = report.run, ("/lib/x86_64-linux-gnu/libc.so.6", b"\2" * 20)
        program = (f"/usr/bin/{run.app}", run.build_id)
        leaf = WAITS[report.wait][0]
        places = [self.location(*libc, leaf)] if leaf else []
        places += [self.location(*program, name) for name in report.frames]
        if not report.is_cut:
            places += [self.location(*program, "main"), self.location(*libc, "__libc_start_main")]
        hash = packed.stack_hash([place[1] for place in places], report.is_cut)
        return self.once(("stack", hash), lambda: self.insert(
            "stack", hash=hash, is_truncated=int(report.is_cut),
            locations=packed.leb128(*(place[0] * 2 for place in places))))

    def write(self):
        store = self.store
        source = self.insert("source", store=store.id, revision=store.revision)
        for run in store.runs:
            self.run(run)
        for report in store.reports:
            detail = None
            delay = {"delayed_ns": report.delayed_ns} if report.delayed_ns else {}
            if report.cause is not None:
                detail = packed.leb128(1, report.cause, 1000, 0)
            self.insert(
                "report", source=source, seq=report.seq, revision=report.revision, id=report.uuid,
                loop=self.loop(report.run, report.loop), mode=self.label("default"), phase=3, state=report.state,
                verdict=report.verdict, start_us=report.start_us, duration_ns=report.duration_ns, cpu_ns=report.cpu_ns,
                detection_delay_ns=100_000, samples=packed.samples(self.stack(report), report.duration_ns, report.run.pid),
                cause=report.cause, cause_confidence=None if report.cause is None else report.confidence,
                cause_detail=detail, **delay)
        for span in store.exposures:
            self.insert(
                "exposure", source=source, revision=span.revision, loop=self.loop(span.run, span.loop),
                start_us=span.start_us, watched_ns=span.watched_ns, busy_ns=span.busy_ns, ready_delay_ns=span.ready_ns,
                micro_stall_count=span.micro_count, micro_stall_ns=span.micro_ns,
                iteration_count=sum(span.counts.values()), lengths=packed.lengths(span.counts))
        for (_, reason), (run, count, revision) in store.losses.items():
            self.insert("loss", source=source, run=self.run(run), reason=reason, report_count=count, revision=revision)
        for (_, loop, place, reason), (run, count, total, revision) in store.suppressions.items():
            self.insert(
                "suppression", source=source, revision=revision, loop=self.loop(run, loop), place=place, reason=reason,
                stall_count=count, total_ns=total)


def make_template(path, migrations):
    """An empty store of an agent: every migration, in order."""
    database = sqlite3.connect(path)
    names = sorted(name for name in os.listdir(migrations) if name.endswith(".sql"))
    for name in names:
        database.executescript(open(os.path.join(migrations, name), encoding="utf-8").read())
    database.execute(f"pragma user_version = {int(names[-1][:4])}")
    database.execute(f"pragma application_id = {0x53544C31}")
    database.commit()
    database.close()


def make_fleet(seed, count, folder):
    draw = random.Random(seed)
    stores = []
    for number in range(count):
        host = f"host{draw.randrange(max(3, count // 25))}"
        path = os.path.join(folder, f"store{number:05}.sqlite")
        stores.append(Store(random.Random(draw.random()), host, draw.choice(list(APPS)), path))
    return stores

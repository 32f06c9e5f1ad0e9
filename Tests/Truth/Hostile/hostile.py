#!/usr/bin/env python3
"""Feeds crafted and broken stores and lines to stallctl and to the agent, and counts what goes wrong.

Shares no code with the product: what a store looks like is read from SQLite's own schema. scripts/hostile calls it.

What is a *hung* or *crashed* run stands in runs.py. The central store is *poisoned* when top, status or check say something else
than of a store that saw only what was accepted, when top of the good stores' hosts is not what it was before, and when a
file changed that hostile stores name in a link or a journal.

Every hostile store is read by every reading command, alone and beside a good one (reads.py), and so are an agent's and a
central store of which a number was changed.
"""
import argparse, glob, json, multiprocessing, os, queue, random, shutil, socket, sqlite3, subprocess, sys, tempfile, threading

import reads
from reads import MOST_READ_MB
from runs import MOST_MB, ForkServer, Run

FULL = dict(flips=2000, header=True, truncations=100)
SHORT = dict(flips=25, header=False, truncations=5)
# Inputs that one run of ingest is given.
BATCH = 16
AGENTS, READERS = 4, 2
# Batches that wait for a reader: each of them is files that nothing else touches meanwhile.
MOST_WAITING = 8
# Of a sound store.
REPORTS = 3
# So many of the good stores are those that others say to be; the rest is of a host that no other names.
CLAIMED = 3
GOOD_HOST = "the-good-host"
SPECIAL = ("special", "sparse", "zeroblob", "many", "journal", "big", "long-name")


class Corpus:
    """Writes the inputs: files in a directory each, so that companions lie beside them."""

    # The file beside the inputs that links and journals of hostile stores name: it stays as it is.
    STRANGER = "stranger"

    def __init__(self, root, bases, lines, rng, short):
        self.root, self.bases, self.lines, self.rng, self.short = root, bases, lines, rng, short
        self.size = SHORT if short else FULL
        self.number = 0
        self.stranger = os.path.join(os.path.dirname(root), self.STRANGER)
        with open(self.stranger, "w", encoding="ascii") as file:
            file.write("root:x:0:0\n")

    def path(self, kind, suffix=".sqlite"):
        self.number += 1
        directory = os.path.join(self.root, "%05d-%s" % (self.number, kind))
        os.makedirs(directory)
        return os.path.join(directory, "x" + suffix)

    def base(self):
        return self.rng.choice(self.bases)

    def store(self, kind, own=True):
        """A sound store; mostly under a name of its own, otherwise that of a good one."""
        path = self.path(kind)
        shutil.copyfile(self.base(), path)
        if own and self.rng.random() < 0.9:
            with sqlite3.connect(path) as database:
                database.execute("update source set store = ?", (self.rng.randbytes(16),))
            database.close()
        return path

    def change(self, path, *statements):
        """Runs SQL without any of the schema's constraints; false where SQLite itself refuses it."""
        database = sqlite3.connect(path)
        try:
            database.execute("pragma ignore_check_constraints = on")
            for statement in statements:
                if isinstance(statement, tuple):
                    database.execute(*statement)
                else:
                    database.executescript(statement)
            database.commit()
        except (sqlite3.Error, OverflowError):
            return False
        finally:
            database.close()
        return True

    def feed(self, pipe):
        """Writes all inputs and their paths, as fast as they are wanted. In a process of its own: what that needs of memory
        would count as that of every program that is run later, since a process begins as the one that it comes from."""
        for path in self.all():
            pipe.put(path)
        pipe.put(None)

    def all(self):
        for part in (self.extremes, self.schemas, self.headers, self.flips, self.truncations,
                     self.companions, self.journals, self.bombs, self.tricks, self.claims, self.line_inputs,
                     self.line_tricks):
            yield from part()

    def tables(self):
        database = sqlite3.connect(self.bases[0])
        names = [r[0] for r in database.execute("select name from sqlite_schema where type = 'table'")]
        columns = [(t, c[1]) for t in names for c in database.execute("pragma table_info(%s)" % t)]
        database.close()
        return columns

    def extremes(self):
        loose = ("pragma writable_schema = on; update sqlite_schema set sql = replace(replace(replace(sql, "
                 "'strict', ''), 'not null', ''), 'without rowid, ', 'without rowid') where type = 'table'; "
                 "pragma writable_schema = reset;")
        values = [-2**63, 2**63 - 1, -1, 0, 2**31, 2**53, 1e308, None, "", "x" * 100_000, b"", b"\xff" * 300]
        # The short form is of a debug build, which takes forty times as long for a name.
        values = values[:3] + [values[7], "x" * 20_000] if self.short else values
        columns = self.tables()
        for table, column in columns[::16] if self.short else columns:
            for value in values:
                path = self.store("extreme-%s-%s" % (table, column))
                # A checksum rejects changed rows; the ranges are for writers without checksums.
                unsigned = ["update or ignore %s set checksum = null" % table] if (table, "checksum") in columns else []
                done = self.change(
                    path, ("update or ignore %s set %s = ?" % (table, column), (value,)), *unsigned)
                if not done:
                    # A wrong type: the table is changed to accept it.
                    path = self.store("type-%s-%s" % (table, column))
                    self.change(path, loose, ("update or ignore %s set %s = ?" % (table, column), (value,)), *unsigned)
                yield path

    def schemas(self):
        tables = sorted({t for t, _ in self.tables()})
        for table in tables[::9] if self.short else tables:
            path = self.store("view-" + table)
            self.change(path, "pragma legacy_alter_table = on; alter table %s rename to old_%s; "
                        "create view %s as with recursive n(i) as (select 1 union all select i + 1 from n) "
                        "select old_%s.* from old_%s, n;" % (table, table, table, table, table))
            yield path
            path = self.store("generated-" + table)
            self.change(path, "alter table %s add column g blob generated always as (zeroblob(900000000));" % table)
            yield path
            path = self.store("trigger-" + table)
            self.change(path, "create trigger t_%s after insert on %s begin insert into label (value) "
                        "select hex(randomblob(100000)); end;" % (table, table))
            yield path
            path = self.store("dropped-" + table)
            self.change(path, "drop table %s" % table)
            yield path
        for table, column in [("process_run", "app"), ("loop", "name"), ("label", "value"), ("function", "name")]:
            path = self.store("generated-as-%s-%s" % (table, column))
            self.change(path, "pragma writable_schema = on; update sqlite_schema set sql = replace(sql, "
                        "'%s text not null', '%s text generated always as (hex(zeroblob(50000000)))') "
                        "where name = '%s'; pragma writable_schema = reset;" % (column, column, table))
            yield path

    def headers(self):
        versions = [-2147483640, -2147483648, -1, 9, 2147483647, 0, 1, 5]
        for version in versions[:3] if self.short else versions:
            path = self.store("user-version")
            self.change(path, "pragma user_version = %d" % version)
            yield path
            path = self.store("application-id")
            self.change(path, "pragma application_id = %d" % version)
            yield path
        if self.size["header"]:
            for byte in range(100):
                for bit in range(8):
                    path = self.store("header-%d-%d" % (byte, bit))
                    self.flip(path, byte * 8 + bit)
                    yield path

    def flip(self, path, bit):
        with open(path, "r+b") as file:
            file.seek(bit // 8)
            value = file.read(1)[0]
            file.seek(bit // 8)
            file.write(bytes([value ^ 1 << bit % 8]))

    def flips(self):
        for _ in range(self.size["flips"]):
            path = self.store("flip")
            self.flip(path, self.rng.randrange(os.path.getsize(path) * 8))
            yield path

    def truncations(self):
        for _ in range(self.size["truncations"]):
            path = self.store("truncated")
            os.truncate(path, self.rng.randrange(os.path.getsize(path)))
            yield path

    def companions(self):
        """Something else than a file beside a store, or in its place."""
        kinds = ["fifo", "link", "zero", "directory", "socket", "dangling", "device"]
        for suffix in ["", "-wal", "-shm", "-journal"]:
            for kind in kinds[:2] if self.short else kinds:
                path = self.store("special%s-%s" % (suffix, kind))
                if self.rng.random() < 0.5 and suffix:
                    self.change(path, "pragma journal_mode = wal")
                    with open(path, "r+b") as file:
                        file.seek(18)
                        file.write(b"\2\2")
                place = path + suffix
                for each in (place,) if suffix else (place,):
                    if os.path.lexists(each):
                        os.unlink(each)
                if kind == "fifo":
                    os.mkfifo(place)
                elif kind == "link":
                    os.symlink(self.stranger, place)
                elif kind == "zero":
                    os.symlink("/dev/zero", place)
                elif kind == "dangling":
                    os.symlink("/nowhere/at/all", place)
                elif kind == "directory":
                    os.mkdir(place)
                elif kind == "socket":
                    name = os.path.relpath(place, self.root)
                    here = os.getcwd()
                    os.chdir(self.root)
                    socket.socket(socket.AF_UNIX).bind(name)
                    os.chdir(here)
                else:
                    os.symlink("/dev/tty", place)
                yield path
        for suffix in ["", "-wal", "-journal"]:
            path = self.store("sparse" + suffix)
            with open(path, "r+b") as file:
                file.seek(18)
                file.write(b"\2\2")
            with open(path + suffix, "ab") as file:
                file.truncate(60 << 30)
            yield path

    def journals(self):
        for index in range(3 if self.short else 60):
            path = self.store("journal")
            # A transaction that is cut short: its pages are in the file, and the journal beside it.
            code = ("import os, sqlite3, sys\n"
                    "d = sqlite3.connect(sys.argv[1], isolation_level=None)\n"
                    "d.execute('pragma cache_size = 1'); d.execute('pragma journal_mode = delete')\n"
                    "d.execute('begin immediate')\n"
                    "d.execute(\"update process_run set app = 'uncommitted'\")\n"
                    "d.execute('create table t (x)')\n"
                    "d.executemany('insert into t values (?)', [('y' * 4000,)] * 200)\n"
                    "os.kill(os.getpid(), 9)\n")
            subprocess.run([sys.executable, "-c", code, path], stderr=subprocess.DEVNULL)
            journal = path + "-journal"
            if os.path.exists(journal) and index % 3 == 1:
                for _ in range(20):
                    self.flip(journal, self.rng.randrange(os.path.getsize(journal) * 8))
            elif os.path.exists(journal) and index % 3 == 2:
                name = os.fsencode(self.stranger)
                with open(journal, "ab") as file:
                    file.write((1073741824 // 4096 + 1).to_bytes(4, "big") + name
                               + len(name).to_bytes(4, "big") + sum(name).to_bytes(4, "big")
                               + bytes.fromhex("d9d505f920a163d7"))
            yield path

    def bombs(self):
        path = self.store("zeroblob")
        self.change(path, "update report set samples = zeroblob(300000000)")
        yield path
        path = self.store("long-name")
        self.change(path, "update process_run set app = hex(zeroblob(8000000))")
        yield path
        path = self.store("many-samples")
        self.change(path, ("update report set samples = ?", (b"\x40\0\0\1" * 250_000,)))
        yield path
        path = self.store("many-labels")
        self.change(path, "with recursive n(i) as (select 1 union all select i + 1 from n limit 300000) "
                    "insert into label (value) select 'l' || i from n;")
        yield path
        path = self.store("many-sources")
        self.change(path, "with recursive n(i) as (select 1 union all select i + 1 from n limit 20000) "
                    "insert into source (store, revision) select randomblob(16), 5 from n;")
        yield path
        path = self.store("big-schema")
        self.change(path, "create table wide (%s)" % ", ".join("c%d" % i for i in range(1900)))
        yield path
        path = self.store("big-stack")
        self.change(path, ("update stack set locations = ?", (b"\2" * 3_000_000,)))
        yield path

    def tricks(self):
        """Databases that SQLite itself takes, and that are made otherwise than ours."""
        def trick(kind, *statements):
            path = self.store(kind)
            self.change(path, *statements)
            return path

        def patch(path, *changes):
            with open(path, "r+b") as file:
                for offset, data in changes:
                    file.seek(offset)
                    file.write(data)
            return path

        def number(path, offset):
            with open(path, "rb") as file:
                file.seek(offset)
                return int.from_bytes(file.read(4), "big")

        for size in (512, 65536):
            yield trick("page-size-%d" % size, "pragma journal_mode = delete; pragma page_size = %d; vacuum;" % size)
        for mode in (1, 2):
            yield trick("auto-vacuum", "pragma auto_vacuum = %d; vacuum;" % mode)
            path = trick("pointer-map", "pragma auto_vacuum = %d; vacuum;" % mode)
            # The second page says what each page is for, and whose.
            yield patch(path, (4096, self.rng.randbytes(2000)))
        for count in (1, 2**31, 2**32 - 2, 10**6):
            path = self.store("page-count")
            yield patch(path, (28, count.to_bytes(4, "big")), (92, number(path, 24).to_bytes(4, "big")))
            yield patch(self.store("free-list"), (32, count.to_bytes(4, "big")), (36, count.to_bytes(4, "big")))
        for encoding in ("UTF-16le", "UTF-16be"):
            path = self.path("encoding")
            database = sqlite3.connect(path)
            database.execute("pragma encoding = '%s'" % encoding)
            source = sqlite3.connect(self.base())
            for line in source.iterdump():
                try:
                    database.execute(line)
                except sqlite3.Error:
                    pass
            for name in ("application_id", "user_version"):
                database.execute("pragma %s = %d" % (name, source.execute("pragma " + name).fetchone()[0]))
            database.commit()
            database.close()
            source.close()
            yield path
        tables = sorted({table for table, _ in self.tables()})
        for table in tables[::9] if self.short else tables:
            yield trick("virtual-" + table, "pragma legacy_alter_table = on; alter table %s rename to old_%s; "
                        "create virtual table %s using fts5(value, id, checksum, name, run, source);" % ((table,) * 3))
            yield trick("row-id-" + table, "pragma writable_schema = on; update sqlite_schema set sql = "
                        "replace(sql, 'without rowid', '') where name = '%s'; pragma writable_schema = reset;" % table)
            yield trick("swapped-" + table, "pragma writable_schema = on; update sqlite_schema set rootpage = "
                        "(select rootpage from sqlite_schema where name = 'report') where name = '%s';" % table)
            yield trick("root-" + table, "pragma writable_schema = on; update sqlite_schema set rootpage = %d "
                        "where name = '%s';" % (self.rng.choice([1, 2, 2**31 - 1, 40]), table))
            yield trick("index-" + table, "create index i_%s on %s (abs(length(hex(zeroblob(100000000)))));" % (table, table))
            yield trick("columns-" + table, "".join(
                "alter table %s add column extra%d text default '%s';" % (table, n, "d" * 900) for n in range(80)))
        yield trick("statistics", "analyze; update sqlite_stat1 set stat = '-1 0 99999999999999999999 ' || hex(zeroblob(50000));")
        yield trick("statistics-lies", "analyze; update sqlite_stat1 set stat = '1 1 1 1', idx = tbl || '_x';")
        yield trick("recursive-trigger", "create trigger a after update on source begin update source set revision = "
                    "revision + 1; end; pragma recursive_triggers = on;")
        yield trick("all-views", "pragma legacy_alter_table = on;" + "".join(
            "alter table %s rename to o_%s; create view %s as select * from o_%s;" % ((table,) * 4) for table in tables))
        yield trick("text-nul", "update process_run set app = 'a' || char(0) || 'b', checksum = null;")
        yield trick("escapes", "update process_run set app = char(27) || ']0;x' || char(7) || char(27) || '[2J', "
                    "host = char(8238) || 'tsoh', checksum = null;")
        for text in (b"\xc0\xaf", b"\xf8\x88\x80\x80\x80", b"\xed\xa0\x80", b"\xff\xfe", b"a\x80"):
            path = self.store("utf-8")
            self.change(path, ("update process_run set app = cast(? as text), version = cast(? as text), checksum = null",
                               (text * 3, text)))
            yield path
        path = self.store("many-rows")
        self.change(path, "with recursive n(i) as (select 1 union all select i + 1 from n limit 400000) insert into loss "
                    "select 1, 1000 + i, i % 5, 1, i from n; update source set revision = 500000;")
        yield path
        path = self.store("big-samples")
        self.change(path, ("update report set samples = ?, checksum = null", (b"\x42\0\0\1" * 900_000,)))
        yield path
        path = self.store("big-threads")
        self.change(path, ("update report set threads = ?, checksum = null", (b"\1" * 3_900_000,)))
        yield path
        for suffix in ("-wal", "-journal", "-shm"):
            path = self.store("special-garbage")
            with open(path + suffix, "wb") as file:
                file.write(self.rng.randbytes(40_000))
            yield path
        path = self.store("special-shm-link")
        os.symlink(path, path + "-shm")
        yield path

    def claims(self):
        """Stores that say to be a good one."""
        for revision in [2**60, 2**62, 2**63 - 1, 2**40, 10**9]:
            path = self.store("claim-revision", own=False)
            self.change(path, "delete from report; delete from exposure; "
                        "update source set revision = %d" % revision)
            yield path
            path = self.store("claim-numbers", own=False)
            self.change(path, "update report set revision = %d - seq, seq = %d - seq, id = randomblob(16); "
                        "update source set revision = %d" % (revision, revision, revision))
            yield path
            path = self.store("claim-names")
            self.change(path, "update location set detail = %d" % min(revision, 2**31))
            yield path
        # Within the limits each; what they add up to is not.
        path = self.store("claim-sums")
        self.change(path, "with recursive n(i) as (select 1 union all select i + 1 from n limit 1100) insert into exposure "
                    "select 1, 1000 + i, loop.id, process_run.started_us + i * 60000000, 60000000000, 310000000000000000, "
                    "310000000000000000, 1000000000000, 310000000000000000, 1 << 53, x'' "
                    "from n, loop join process_run on process_run.id = loop.run; update source set revision = 5000")
        yield path
        for _ in range(15):
            path = self.store("claim-long")
            self.change(path, "update report set duration_ns = 315000000000000000, cpu_ns = 315000000000000000, "
                        "delayed_ns = 310000000000000000, checksum = null")
            yield path

    def line_inputs(self):
        good = [json.loads(line) for line in self.lines]
        values = [-1, 2**63, -2**63, 1e308, "", "x" * 100_000, None, [], {}, True, "\u0000", "1969-12-31T23:59:59Z"]
        values = values[:4] if self.short else values

        def write(kind, data):
            path = self.path(kind, ".jsonl")
            with open(path, "wb") as file:
                file.write(data)
            return path

        def keys(value, prefix=()):
            items = value.items() if isinstance(value, dict) else enumerate(value[:1])
            for key, part in items:
                yield prefix + (key,)
                if isinstance(part, (dict, list)):
                    yield from keys(part, prefix + (key,))

        template = good[0]
        places = list(keys(template))
        for place in places[::25] if self.short else places:
            for value in values:
                line = json.loads(json.dumps(template))
                line["store"] = self.rng.randbytes(16).hex()
                part = line
                for key in place[:-1]:
                    part = part[key]
                part[place[-1]] = value
                yield write("line-" + "-".join(map(str, place)).replace("/", ""), json.dumps(line).encode() + b"\n")
        text = (self.lines[0] + "\n").encode()
        yield write("utf-16", b"\xff\xfe" + text.decode().encode("utf-16-le"))
        yield write("utf-16-be", b"\xfe\xff" + text.decode().encode("utf-16-be"))
        yield write("utf-16-bare", text.decode().encode("utf-16-le"))
        yield write("deep", b"[" * 1_000_000 + b"\n" + b'{"a":' * 500_000 + b"\n")
        yield write("long", b"{" + b" " * (40 << 20) + b"\n")
        yield write("nul", b"\0" * 1_000_000)
        yield write("not-utf-8", b'{"schema": "\xff\xfe"}\n' * 1000)
        yield write("no-end", text.rstrip(b"\n")[:-20])
        for _ in range(5 if self.short else 300):
            data = bytearray(text)
            for _ in range(self.rng.randrange(1, 6)):
                data[self.rng.randrange(len(data))] = self.rng.randrange(256)
            yield write("smudged", bytes(data))


    def line_tricks(self):
        """JSON that readers disagree on."""
        good = json.loads(self.lines[0])

        def write(kind, text):
            path = self.path("json-" + kind, ".jsonl")
            with open(path, "wb") as file:
                file.write(text if isinstance(text, bytes) else text.encode())
                file.write(b"\n")
            return path

        def line(**changes):
            return json.dumps(dict(good, store=self.rng.randbytes(16).hex(), **changes))

        yield write("double-key", line()[:-1] + ', "app": "second", "store": "%s"}' % self.rng.randbytes(16).hex())
        numbers = ("1e400", "-1e400", "1e-400", "0x10", "1_0", "NaN", "Infinity", "-0", "1" * 5000, "1." + "0" * 5000,
                       "9223372036854775808", "18446744073709551616", "1E+308")
        for number in numbers[::4] if self.short else numbers:
            for key in ("duration_ms", "own_ms", "pid", "seq", "revision"):
                yield write("number", line(**{key: 77665544}).replace("77665544", number))
        texts = ("\\ud800", "\\udc00\\ud800", "\\u0000", "\\u001b[2J\\u0007", "\\u202e", "\\ud83d\\ude00", "\\x41")
        for text in texts[::3] if self.short else texts:
            for key in ("app", "loop", "host", "version", "mode"):
                yield write("text", line(**{key: "QQQ"}).replace("QQQ", text))
        for text in (b"\xc0\xaf", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\x80", b"\x1b]0;x\x07", b"\0"):
            yield write("bytes", line(app="QQQ").encode().replace(b"QQQ", text))
        for depth in (500, 513, 100_000):
            yield write("deep", line(unknown=0)[:-1] + ', "deep": ' + "[" * depth + "]" * depth + "}")
        frame = dict(offset="0x10", function="f")
        sample = dict(offset_ms=0, weight_ms=1, thread=1)
        for count in (100, 900_000):
            yield write("big-frames", line(samples=[dict(sample, stack=[dict(offset="0x1")] * count)]))
        if self.short:
            return
        yield write("big-samples", line(samples=[dict(sample, stack=[])] * 200_000))
        yield write("big-threads", line(threads=[dict(id=1, role="other")] * 300_000))
        yield write("big-empty", "[" + "{}," * 5_000_000 + "{}]")
        yield write("big-list", '{"samples": [' + "0," * 7_000_000 + "0]}")
        yield write("big-object", "{" + ",".join('"%x":0' % n for n in range(1_200_000)) + "}")
        yield write("big-images", line(images=[dict(path="/x", load_address="0x0", end_address="0x1")] * 150_000))
        yield write("big-name", line(samples=[dict(sample, stack=[dict(frame, function="g" * 15_000_000)])]))
        yield write("big-escapes", line(app="QQQ").replace("QQQ", "\\u0041" * 2_600_000))
        yield write("many-keys", line()[:-1] + "".join(', "k%d": %d' % (n, n) for n in range(250_000)) + "}")
        yield write("many-lines", "\n".join(["{}"] * 100_000))
        yield write("many-reports", "\n".join(line(id="%032x" % n, seq=n + 1, revision=n + 1) for n in range(500)))


def written(paths, writer):
    """The inputs as they come; ends where their writer ended without the last one, as on a full disk."""
    while True:
        try:
            path = paths.get(timeout=1)
        except queue.Empty:
            if writer.exitcode:
                sys.exit("hostile: the inputs could not be written: status %d" % writer.exitcode)
            continue
        if path is None:
            return
        yield path


def stamp(path):
    """What changes with a file's content."""
    try:
        facts = os.stat(path)
    except OSError as error:
        return str(error)
    return facts.st_ino, facts.st_size, facts.st_mtime_ns


class Trial:
    """Gives the inputs to ingest, in batches; then each batch to a reader, and what is read to an agent."""

    def __init__(self, tools, work, corpus, good):
        self.tools, self.work, self.corpus, self.good = tools, work, corpus, good
        self.central = os.path.join(work, "central.sqlite")
        self.crashed = self.hung = self.poisoned = self.died = self.inputs = self.max_mb = 0
        self.reads_mb = 0
        # In the order in which they were: of two stores of one name the first one keeps it.
        self.accepted = []
        # Their files as they were then: a file that has changed since is another input to the clean store.
        self.stamps = {}
        # Those of which every report was new; of others ingest has not read all.
        self.taken = set()
        self.for_reader, self.for_agent = queue.Queue(MOST_WAITING), queue.Queue()
        self.lock = threading.Lock()
        self.copies = os.path.join(work, "agent")
        os.makedirs(self.copies)
        self.readers = [reads.Reads(tools.stallctl, tools.server, good[-1], self.note) for _ in range(READERS)]
        self.failures = []
        # Of the short form every store is read by some of the commands.
        self.commands_at_once = 4 if tools.short else len(reads.COMMANDS)

    def note(self, run, what, path):
        is_reading = what == "read"
        most_mb = MOST_READ_MB if is_reading else MOST_MB
        with self.lock:
            if is_reading:
                self.reads_mb = max(self.reads_mb, run.max_mb)
            else:
                self.max_mb = max(self.max_mb, run.max_mb)
            self.hung += run.hung
            self.crashed += run.crashed
        if run.hung or run.crashed or run.max_mb > most_mb:
            print("%s: %s: hung=%s signal=%d max_mb=%d %s %s" % (
                what, path, run.hung, run.signal, run.max_mb, run.output.strip()[-200:], run.where), file=sys.stderr)

    def play(self, sabotage):
        if sabotage:
            self.readers[0].read("/nowhere", None, [["top"]], kind=ForkServer.DIE)
            self.readers[0].read("/nowhere", None, [["-c", "echo refused; exit 1"]], program="sh", is_taken=True)
        # Agents mostly wait, for disks and for the stalls that they are to see. Daemons: an error here must end the program.
        readers = [threading.Thread(target=self.play_reader, args=(reader,), daemon=True) for reader in self.readers]
        agents = [threading.Thread(target=self.play_agent, args=(number,), daemon=True) for number in range(AGENTS)]
        for thread in readers + agents:
            thread.start()
        self.read_changed()
        good, batch = list(self.good), []
        for path in self.corpus:
            self.inputs += 1
            # A pipe that is named is read as lines, and waited for; one that is found is not. And SIGTERM is for those.
            if any(word in os.path.basename(os.path.dirname(path)) for word in SPECIAL):
                self.take_special(path)
                continue
            batch.append(path)
            # Good ones between the bad.
            if len(batch) == BATCH - 1:
                self.take(batch + ([good.pop()] if good else []))
                batch = []
        self.take(batch + good)
        for threads, waiting in ((readers, self.for_reader), (agents, self.for_agent)):
            for _ in threads:
                self.hand_over(waiting, None)
            for thread in threads:
                thread.join()
        if self.failures:
            raise self.failures[0]
        self.compare(sabotage)

    def hand_over(self, waiting, what):
        """Queues it; ends where its receiver has failed, since a part that was not read must not pass for one that was."""
        while not self.failures:
            try:
                return waiting.put(what, timeout=1)
            except queue.Full:
                pass
        raise self.failures[0]

    def play_reader(self, reader):
        """Reads stores that ingest is done with, and agents have not touched yet."""
        try:
            for stores, paths in iter(self.for_reader.get, None):
                for path, beside, is_taken in stores:
                    reader.read(path, beside, self.commands(reader), is_taken=is_taken)
                    if not paths:
                        os.unlink(path)
                if paths:
                    self.hand_to_agent(paths)
        except BaseException as error:
            self.failures.append(error)

    def hand_to_reader(self, paths):
        good, accepted = set(self.good), set(self.accepted[-len(paths):])
        hostile = [path for path in paths if path not in good and path.endswith(".sqlite")]
        # Accepted inputs are imported once more at the end, unchanged.
        self.hand_over(self.for_reader, (
            [(path, self.good[-1], path in self.taken) for path in hostile],
            [(path, path in accepted or os.path.dirname(path) in accepted) for path in hostile]))

    def commands(self, reader):
        first = reader.count % len(reads.COMMANDS)
        return (reads.COMMANDS * 2)[first:first + self.commands_at_once]

    def read_changed(self):
        """Reads stores of which one number was changed: an agent's, and a central one."""
        central = os.path.join(self.work, "changed.sqlite")
        self.note(self.ingest(central, *self.good[-4:]), "ingest", central)
        values = reads.SHORT_VALUES if self.tools.short else reads.VALUES
        for base in (central, self.good[-1]):
            columns = reads.numbers(base, self.tools.short)
            for path in reads.changed(self.work, base, columns, values):
                self.hand_over(self.for_reader, ([(path, self.good[-2], False)], []))

    def take(self, paths):
        """Takes a batch; where something is wrong with it, each of it alone says what."""
        if not paths:
            return
        run = self.ingest(self.central, *paths)
        if run.is_well:
            self.note(run, "ingest", paths[0])
            self.note_accepted(run, paths)
        else:
            well = True
            for path in paths:
                alone = self.ingest(self.central, path)
                well = well and alone.is_well
                self.note(alone, "ingest", path)
                self.note_accepted(alone, [path])
            if well:
                self.note(run, "ingest of a batch from", paths[0])
        self.hand_to_reader(paths)

    def take_special(self, path):
        directory = os.path.dirname(path)
        run = self.ingest(self.central, directory)
        self.note(run, "ingest", directory)
        self.note_accepted(run, [directory])
        other = os.path.join(self.work, "other.sqlite")
        run = self.ingest(other, directory, term_after=0.05)
        self.note(run, "SIGTERM", directory)
        self.hand_to_reader([path])

    def ingest(self, central, *paths, **options):
        return Run([self.tools.stallctl, "ingest", "--retry", "--json", "--store", central, *paths], **options)

    def note_accepted(self, run, given):
        try:
            files = json.loads(run.output.strip().splitlines()[-1])["files"]
        except (ValueError, IndexError, KeyError):
            return
        taken = {file["path"] for file in files if not file.get("error")}
        self.taken |= {file["path"] for file in files if not file.get("error") and file["added"] >= REPORTS}
        self.accepted += [path for path in given
                          if path in taken or any(file.startswith(path + "/") for file in taken)]
        self.stamps.update((path, stamp(path)) for path in taken)

    def hand_to_agent(self, paths):
        """Gives stores to an agent: of those that are to stay as they are, a copy."""
        mine = []
        for path, is_accepted in paths:
            if is_accepted:
                directory = os.path.dirname(path)
                copy = os.path.join(self.copies, os.path.basename(directory))
                subprocess.run(["cp", "-a", "--sparse=always", directory, copy], check=True)
                path = os.path.join(copy, os.path.basename(path))
            mine.append(path)
        self.for_agent.put(mine)

    def play_agent(self, number):
        """Each broken store as an agent's own, in a process that notes which one it is at."""
        listed = os.path.join(self.copies, "list%d" % number)

        def play(paths, seconds):
            with open(listed, "w") as file:
                file.write("".join(path + "\n" for path in paths))
            run = Run([self.tools.agent, listed], seconds=seconds)
            done = run.output.count("done ")
            with self.lock:
                self.max_mb = max(self.max_mb, run.max_mb)
            if run.max_mb > MOST_MB:
                print("agent: %s and others: max_mb=%d" % (paths[0], run.max_mb), file=sys.stderr)
            return run, done, not run.signal and not run.hung and done >= len(paths)

        for rest in iter(self.for_agent.get, None):
            while rest:
                run, done, is_well = play(rest, 30 + 5 * len(rest))
                if is_well:
                    break
                path = rest[min(done, len(rest) - 1)]
                rest = rest[done + 1:]
                # Many together may take long on a busy machine; one alone must not.
                if run.hung and play([path], 30)[2]:
                    continue
                with self.lock:
                    self.died += 1
                print("agent: %s: signal=%d hung=%s %s" % (path, run.signal, run.hung, run.output[-300:]), file=sys.stderr)

    def compare(self, sabotage):
        """What the store says, beside one that saw only what was accepted."""
        clean = os.path.join(self.work, "clean.sqlite")
        for first in range(0, len(self.accepted), 100):
            subprocess.run([self.tools.stallctl, "ingest", "--retry", "--store", clean]
                           + self.accepted[first:first + 100], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        if sabotage:
            database = sqlite3.connect(self.central)
            database.execute("update rollup set total_ns = total_ns + 1000000000")
            database.commit()
            database.close()
        for command in (["top", "--json", "--limit", "1000"], ["status", "--json"], ["check", "--json"]):
            ours = Run([self.tools.stallctl] + command + ["--store", self.central])
            theirs = Run([self.tools.stallctl] + command + ["--store", clean])
            self.note(ours, command[0], self.central)
            if ours.code != 0 or self.shown(ours) != self.shown(theirs):
                self.poisoned += 1
                print("poisoned: %s: exit %d\n  %s\n  %s" % (
                    command[0], ours.code, ours.output[:600], theirs.output[:600]), file=sys.stderr)
        stranger = os.path.join(self.work, Corpus.STRANGER)
        if not os.path.exists(stranger) or open(stranger, encoding="ascii").read() != "root:x:0:0\n":
            self.poisoned += 1
            print("poisoned: a file that hostile stores name was changed or deleted", file=sys.stderr)
        if self.poisoned:
            for path, before in self.stamps.items():
                if stamp(path) != before:
                    print("changed since it was taken: %s: %s, now %s" % (path, before, stamp(path)), file=sys.stderr)
            self.keep(self.central, clean)
        # Good stores are in it: every command has an answer, and so has who asks in SQL.
        self.readers[0].read(self.central, None, reads.COMMANDS, is_taken=True)
        for view, error in reads.broken_views(self.central):
            self.readers[0].refused += 1
            print("refused: view %s of %s: %s" % (view, self.central, error), file=sys.stderr)
        # And what it says of those that nothing claims to be.
        alone = os.path.join(self.work, "alone.sqlite")
        self.ingest(alone, *self.good[CLAIMED:])
        top = ["top", "--json", "--limit", "1000", "--host", GOOD_HOST, "--store"]
        for group in ("signature", "app", "version", "loop", "inclusive"):
            before, after = (Run([self.tools.stallctl] + top + [store, "--group", group]) for store in (alone, self.central))
            self.note(after, "top", self.central)
            if after.code != 0 or self.shown(before) != self.shown(after):
                self.poisoned += 1
                print("poisoned: top --group %s of the good hosts: exit %d\n  %s\n  %s" % (
                    group, after.code, before.output[:600], after.output[:600]), file=sys.stderr)
        want = set()
        for path in self.good:
            database = sqlite3.connect("file:%s?mode=ro" % path, uri=True)
            want |= {r[0] for r in database.execute("select hex(id) from report")}
            database.close()
        database = sqlite3.connect("file:%s?mode=ro" % self.central, uri=True)
        have = {r[0] for r in database.execute("select hex(id) from report")}
        database.close()
        self.lost = len(want - have)

    def keep(self, central, clean):
        """Keeps both stores, and the order of what was accepted; says which sources only one of them has."""
        kept = tempfile.mkdtemp(prefix="hostile-poisoned-")
        sources = []
        for path in (central, clean):
            shutil.copy(path, kept)
            database = sqlite3.connect("file:%s?mode=ro" % path, uri=True)
            sources.append(set(database.execute(
                "select hex(store), hex(origin), revision, (select count(*) from report where source = source.id) from source")))
            database.close()
        with open(os.path.join(kept, "accepted"), "w") as file:
            file.write("".join(path + "\n" for path in self.accepted))
        print("kept in %s\n  only in the central store: %s\n  only in the clean one: %s" % (
            kept, *(sorted(map(str, these))[:20] for these in (sources[0] - sources[1], sources[1] - sources[0]))), file=sys.stderr)

    @staticmethod
    def shown(run):
        lines = []
        for line in run.output.splitlines():
            try:
                row = json.loads(line)
            except ValueError:
                return [run.output]
            for key in ("store", "bytes", "quarantined_count"):
                row.pop(key, None)
            lines.append(row)
        return lines


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--stallctl", required=True)
    parser.add_argument("--writer", required=True)
    parser.add_argument("--agent", required=True)
    parser.add_argument("--fuzz", required=True)
    parser.add_argument("--server", required=True, help="what ForkServer of runs.py loads into stallctl")
    parser.add_argument("--image", required=True, help="a small ELF file with DWARF")
    parser.add_argument("--short", action="store_true")
    parser.add_argument("--seed", type=int, default=1)
    tools = parser.parse_args()
    rng = random.Random(tools.seed)
    with tempfile.TemporaryDirectory(prefix="hostile-") as work:
        bases = []
        for index in range(4 if tools.short else 12):
            path = os.path.join(work, "base-%d.sqlite" % index)
            subprocess.run([tools.writer, "write", path, str(REPORTS)], check=True, stdout=subprocess.DEVNULL)
            bases.append(path)
        good = []
        for index in range(10 if tools.short else 100):
            path = os.path.join(work, "good-%03d.sqlite" % index)
            subprocess.run([tools.writer, "write", path, str(REPORTS)], check=True, stdout=subprocess.DEVNULL)
            if index >= CLAIMED:
                with sqlite3.connect(path) as database:
                    database.execute("update process_run set host = ?, checksum = null", (GOOD_HOST,))
                database.close()
            good.append(path)
        exported = subprocess.run([tools.stallctl, "export", "--format", "jsonl", "--store", bases[0]],
                                  check=True, stdout=subprocess.PIPE)
        lines = exported.stdout.decode().splitlines()
        inputs = os.path.join(work, "inputs")
        os.makedirs(inputs)
        # Some stores say to be a good one.
        corpus = Corpus(inputs, bases + good[:CLAIMED], lines, rng, tools.short)
        paths = multiprocessing.get_context("fork").Queue(100)
        writer = multiprocessing.get_context("fork").Process(target=corpus.feed, args=(paths,), daemon=True)
        writer.start()
        trial = Trial(tools, work, written(paths, writer), good)
        trial.play(os.environ.get("SABOTAGE") == "1")
        with open(os.path.join(work, "lines.jsonl"), "w") as file:
            file.write("".join(line + "\n" for line in lines[:2]))
        fuzz = subprocess.run([tools.fuzz, "--seconds", "4" if tools.short else "60", bases[0],
                               os.path.join(work, "lines.jsonl"), tools.image] + sorted(glob.glob("sample-data/dsym/*"))
                              + sorted(glob.glob("sample-data/formats/*")),
                              stdout=subprocess.PIPE)
        counts = dict(part.split("=") for part in fuzz.stdout.decode().split() if "=" in part)
        if fuzz.returncode:
            trial.crashed += 1
        refused = sum(reader.refused for reader in trial.readers)
        print("hostile inputs=%d crashed=%d hung=%d poisoned=%d good_lost=%d host_died=%d fuzz_executions=%s max_mb=%d reads=%d reads_mb=%d refused=%d" % (
            trial.inputs, trial.crashed, trial.hung, trial.poisoned, trial.lost, trial.died,
            counts.get("executions", "0"), trial.max_mb, sum(reader.count for reader in trial.readers), trial.reads_mb, refused))
        bad = trial.crashed + trial.hung + trial.poisoned + trial.lost + trial.died + refused
        sys.exit(1 if bad or trial.max_mb > MOST_MB or trial.reads_mb > MOST_READ_MB else 0)


main()

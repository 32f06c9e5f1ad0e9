"""Every reading command over every hostile store: an agent's, a central one, and several at once.

hostile.py gives it the stores. Whatever a store holds, a command that reads it answers or says in one line why it does not.
"""
import os, queue, sqlite3, sys, threading, time

from runs import ForkServer, Run

SEVERAL = (
    ["top", "--json"], ["top", "--group", "inclusive"], ["trend"], ["diff", "..2026-06-01", "2026-06-01.."], ["status", "--json"],
)
COMMANDS = SEVERAL + (
    ["top", "--by", "p95"], ["top", "--group", "function", "--since", "2001-01-01", "--until", "2026-12-31T11:00:00Z"],
    ["top", "--group", "host", "--by", "rate"], ["top", "--markdown"],
    ["list"], ["list", "--json", "--sort", "lasted"], ["list", "*"], ["list", "--state", "hang", "--min-duration", "1ms"],
    ["tree"], ["tree", "--json", "--invert", "--frames", "all"],
    ["trend", "--by", "hour", "--json"], ["trend", "--by", "day", "*"],
    ["diff", "..2026-06-01", "2026-06-01..", "--json", "--group", "cause"],
    ["show", "latest"], ["show", "latest", "--json"], ["show", "1", "--markdown"], ["why", "latest"],
    ["report"], ["report", "--compare", "..2026-06-01", "2026-06-01.."],
    ["status"], ["check", "--json"],
    ["export", "--format", "json"], ["export", "--format", "jsonl"], ["export", "--format", "jsonl", "--rows", "all"],
    ["export", "--format", "csv"], ["export", "--format", "csv", "--rows", "groups"],
    ["export", "--format", "csv", "--rows", "frames", "--limit", "5"],
    ["export", "--format", "folded"], ["export", "--format", "folded", "--weight", "count"],
    ["export", "--format", "pprof"], ["export", "--format", "speedscope"], ["export", "--format", "firefox"],
    ["export", "--format", "chrome-trace"], ["export", "--format", "perf-script"],
)
VALUES = (2**63 - 1, -2**63, -1, 0, 2**62, 2**53, 2**31, 320_000_000_000_000_000, 253_402_300_799_999_999)
SHORT_VALUES = VALUES[:2]
# Columns whose numbers are added up or divided; the short form reads only these.
NUMBERS = ("report.start_us", "report.duration_ns", "report.samples", "rollup.total_ns", "rollup.report_count", "rollup.first_us",
           "rollup.first_day", "rollup.histogram", "exposure.watched_ns", "exposure_day.watched_ns", "suppression.stall_count",
           "process_run.started_us", "report_day.day", "location.offset", "grouping.pruned_before_us", "image_load.end_address",
           "report.delayed_ns", "rollup.delayed_ns")
# Commands that are read for one store at the same time.
READERS = 2


def changed(work, base, columns, values):
    """Copies of a store of which one row, or all rows, hold an extreme number."""
    for table, column in columns:
        for value in values:
            for rows in ("all", "one"):
                path = os.path.join(work, "read-%s-%s-%s-%s.sqlite" % (rows, table, column, value))
                with open(base, "rb") as source, open(path, "wb") as copy:
                    copy.write(source.read())
                database = sqlite3.connect(path)
                try:
                    database.execute("pragma ignore_check_constraints = on")
                    one = "" if rows == "all" else " where %s = (select max(%s) from %s)" % (column, column, table)
                    count = database.execute("update or ignore %s set %s = ?%s" % (table, column, one), (value,)).rowcount
                    names = [c[1] for c in database.execute("pragma table_info(%s)" % table)]
                    if "checksum" in names:
                        database.execute("update or ignore %s set checksum = null" % table)
                    database.commit()
                except (sqlite3.Error, OverflowError):
                    count = 0
                finally:
                    database.close()
                if count > 0:
                    yield path
                os.path.exists(path) and os.unlink(path)


def numbers(base, short):
    database = sqlite3.connect(base)
    found = []
    for (table,) in database.execute("select name from sqlite_schema where type = 'table' and name not like 'sqlite%'"):
        found += [(table, c[1]) for c in database.execute("pragma table_info(%s)" % table)
                  if c[2].upper() in ("INTEGER", "REAL", "ANY") or "%s.%s" % (table, c[1]) in NUMBERS]
    database.close()
    return [c for c in found if not short or "%s.%s" % c in NUMBERS]


def answered(run):
    """Whether a command told what is in a store; also that a report is not in it, or what is wrong with it."""
    if run.code == 0 or run.hung or run.crashed:
        return True
    # `check` found something, and says what.
    answers = ('"schema":"stallctl.check/1"', "the store has no reports", "no report id begins with")
    return run.code == 1 and any(words in run.output for words in answers)


def broken_views(path, seconds=60):
    """The views of a store that SQLite cannot read, or not in time, with what it says."""
    database = sqlite3.connect("file:%s?mode=ro" % path, uri=True)
    for (view,) in database.execute("select name from sqlite_schema where type = 'view'").fetchall():
        end = time.monotonic() + seconds
        database.set_progress_handler(lambda: time.monotonic() > end, 100_000)
        try:
            for _ in database.execute("select * from %s limit 1000" % view):
                pass
        except sqlite3.Error as error:
            yield view, error
    database.close()


class Reads:
    """Runs the commands, and notes through `note(run, what, path)` what became of each.

    Most are run by a fork server for each reader; every `COLD`th, and each with which something is wrong, as a process of
    its own.
    """
    COLD = 16

    def __init__(self, stallctl, library, good, note):
        self.stallctl, self.note = stallctl, note
        self.count, self.refused, self.lock = 0, 0, threading.Lock()
        self.servers = queue.SimpleQueue()
        for _ in range(READERS):
            self.servers.put(ForkServer(stallctl, library, COMMANDS, good))

    def read(self, path, beside, commands, program=None, kind=ForkServer.RUN, is_taken=False):
        """Reads a store; one that ingest has taken must be answered for. `program` and `kind` are SABOTAGE's."""
        waiting, failures = queue.SimpleQueue(), []
        for command in commands:
            waiting.put(command + ["--store", path])
            if beside and command in SEVERAL:
                waiting.put(command + ["--store", path, "--store", beside])

        def work(server):
            try:
                while True:
                    command = waiting.get_nowait()
                    with self.lock:
                        self.count += 1
                        is_cold = kind == ForkServer.RUN and (program or self.count % self.COLD == 0)
                    run = self.alone(command, program) if is_cold else server.run(command, kind)
                    self.judge(run, command, is_taken)
                    if not is_cold and (run.hung or run.crashed or is_taken and not answered(run)):
                        again = self.alone(command)
                        print("  as a process of its own: hung=%s signal=%d exit %d" % (again.hung, again.signal, again.code),
                              file=sys.stderr)
            except queue.Empty:
                self.servers.put(server)
            except BaseException as error:
                failures.append(error)

        threads = [threading.Thread(target=work, args=(self.servers.get(),), daemon=True) for _ in range(READERS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        # A part that was not read must not pass for one that was.
        if failures:
            raise failures[0]

    def alone(self, command, program=None):
        return Run([program or self.stallctl, *command], keeps_all=False)

    def judge(self, run, command, is_taken):
        if is_taken and not answered(run):
            with self.lock:
                self.refused += 1
            print("refused: %s: exit %d: %s" % (" ".join(command), run.code, run.output.strip()[-300:]), file=sys.stderr)
        self.note(run, "read", " ".join(command))

"""Every reading command over every hostile store: an agent's, a central one, and several at once.

hostile.py gives it the stores. Whatever a store holds, a command that reads it answers or says in one line why it does not.
"""
import os, sqlite3, sys, time

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
# A group of commands that takes more is run again, one by one. SQLite takes a row of a table without row ids into memory whole:
# the largest here has 300 MB. Ingest refuses it before.
MOST_READ_MB = 350


def changed(work, base, columns, values):
    """Copies of a store of which one row, or all rows, hold an extreme number: each content once."""
    for table, column in columns:
        seen = set()
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
                    content = hash(tuple(database.execute("select * from %s" % table)))
                except (sqlite3.Error, OverflowError):
                    count = 0
                finally:
                    database.close()
                if count > 0 and content not in seen:
                    seen.add(content)
                    yield path
                else:
                    os.unlink(path)


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
    """Runs the commands, and notes through `note(run, what, path)` what became of each. Of one thread.

    Most are run in children of a fork server, as many of a store's in one as succeed; every `COLD`th, and each with which
    something is wrong, as a process of its own.
    """
    COLD = 32

    def __init__(self, stallctl, library, good, note):
        self.stallctl, self.note = stallctl, note
        self.count = self.refused = 0
        self.server = ForkServer(stallctl, library, COMMANDS, good)

    def read(self, path, beside, commands, program=None, kind=ForkServer.RUN, is_taken=False):
        """Reads a store; one that ingest has taken must be answered for. `program` and `kind` are SABOTAGE's."""
        wanted = []
        for command in commands:
            wanted.append(command + ["--store", path])
            if beside and command in SEVERAL:
                wanted.append(command + ["--store", path, "--store", beside])
        served = []
        for command in wanted:
            self.count += 1
            if kind == ForkServer.RUN and (program or self.count % self.COLD == 0):
                self.judge(self.alone(command, program), command, is_taken)
            else:
                served.append(command)
        while served:
            # A store that was not taken need not be answered for: no output is looked at.
            goes_on = kind == ForkServer.RUN and not is_taken
            count, run = self.server.run(served, ForkServer.RUN_ALL if goes_on else kind)
            if run.max_mb > MOST_READ_MB and count > 1:
                for command in served[:count]:
                    self.judge(self.server.run([command])[1], command, is_taken)
            else:
                self.judge(run, served[count - 1], is_taken)
                if run.hung or run.crashed or is_taken and not answered(run):
                    again = self.alone(served[count - 1])
                    print("  as a process of its own: hung=%s signal=%d exit %d" % (again.hung, again.signal, again.code),
                          file=sys.stderr)
            served = served[count:]

    def alone(self, command, program=None):
        return Run([program or self.stallctl, *command], keeps_all=False)

    def judge(self, run, command, is_taken):
        if is_taken and not answered(run):
            self.refused += 1
            print("refused: %s: exit %d: %s" % (" ".join(command), run.code, run.output.strip()[-300:]), file=sys.stderr)
        self.note(run, "read", " ".join(command))

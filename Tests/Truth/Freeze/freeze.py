"""What every command of stallctl prints of stores that never change, held against a record: see scripts/freeze.

usage: freeze.py STALLCTL [record] [--quick] [--keep FOLDER]

Recorded are a line with a hash for each output (outputs.txt, for reviewing) and the outputs themselves (outputs.tar.xz,
for showing what differs). What is printed depends on nothing but the stores: no time zone, width, home folder or path of
this machine. In another year than the record's, the year itself is not compared."""

import argparse
import concurrent.futures
import difflib
import hashlib
import io
import os
import random
import re
import shutil
import sqlite3
import subprocess
import sys
import tarfile
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(HERE)))
sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "TotalsTruth"))

import fleet  # noqa: E402

RECORD = os.path.join(HERE, "outputs.tar.xz")
LIST = os.path.join(HERE, "outputs.txt")
GROUPS = ["signature", "family", "function", "inclusive", "cause", "loop", "version", "host", "app"]
ORDERS = ["total", "count", "p95", "max", "rate"]
# Ranked from roll-ups beyond 5,000 reports: one fleet is below, one above.
SMALL, LARGE = 12, 240
SHOWN_DIFFERENCES = 20
RECORDED_YEAR = 2026


class Freeze:
    def __init__(self, stallctl, folder, is_quick):
        self.stallctl, self.folder, self.is_quick = stallctl, folder, is_quick
        self.outputs = {}
        self.asked = []
        self.environment = {
            "PATH": os.environ["PATH"], "HOME": folder, "TZ": "UTC", "TERM": "dumb", "LC_ALL": "C.UTF-8",
            "XDG_CONFIG_HOME": os.path.join(folder, "config"), "XDG_STATE_HOME": os.path.join(folder, "state")}

    # Asking

    def run(self, words, columns=None):
        environment = dict(self.environment, **({"COLUMNS": str(columns)} if columns else {}))
        done = subprocess.run(
            [self.stallctl, *words], cwd=self.folder, env=environment, capture_output=True, check=False, timeout=300)
        text = done.stdout.decode("utf-8", "backslashreplace")
        errors = done.stderr.decode("utf-8", "backslashreplace")
        return text + (f"--- standard error\n{errors}" if errors else "") + f"--- exit code {done.returncode}\n"

    def say(self, store, *words, columns=None):
        """Runs a command that changes something, now, and keeps what it says."""
        name = f"{store}/{' '.join(words)}" + (f" @{columns}" if columns else "")
        self.outputs[name] = self.run([word.replace("STORE", f"{store}.sqlite") for word in words], columns)

    def ask(self, store, *words, columns=None):
        """Has a question asked, at any time and beside others."""
        name = f"{store}/{' '.join(words)}" + (f" @{columns}" if columns else "")
        command = [words[0], "--store", f"{store}.sqlite", *words[1:]]
        self.asked.append((name, command, columns))

    def ask_in_every_form(self, store, *words, csv=True, json=True):
        self.ask(store, *words, columns=80)
        self.ask(store, *words, columns=200)
        if json:
            self.ask(store, *words, "--json")
        if csv:
            self.ask(store, *words, "--csv")

    def answer(self):
        def run(question):
            name, command, columns = question
            return name, self.run(command, columns)
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            for name, output in pool.map(run, self.asked):
                self.outputs[name] = output
        self.asked = []

    # Stores

    def path(self, store):
        return os.path.join(self.folder, f"{store}.sqlite")

    def take(self, source, store):
        shutil.copyfile(source, self.path(store))
        os.chmod(self.path(store), 0o600)

    def schema(self, store):
        database = sqlite3.connect(f"file:{self.path(store)}?mode=ro", uri=True)
        rows = database.execute(
            "select type, name, sql from sqlite_schema where sql is not null order by type, name").fetchall()
        marks = [database.execute(f"pragma {name}").fetchone()[0] for name in ("application_id", "user_version")]
        counts = [(name, database.execute(f'select count(*) from "{name}"').fetchone()[0])
                  for kind, name, _ in rows
                  # Files that were too young to be remembered at ingest: how many depends on the machine's speed.
                  if kind == "table" and name != "source_file"]
        database.close()
        text = f"application_id {marks[0]}\nuser_version {marks[1]}\n"
        text += "".join(f"{name}: {count} rows\n" for name, count in counts)
        self.outputs[f"{store}/schema"] = text + "".join(f"\n{sql};\n" for _, _, sql in rows)

    def ids(self, store):
        """The ids of a few reports: the longest of each kind."""
        database = sqlite3.connect(f"file:{self.path(store)}?mode=ro", uri=True)
        columns = {row[1] for row in database.execute("pragma table_info(report)")}
        kind = ", ".join(name for name in ("cause", "state", "verdict") if name in columns)
        rows = database.execute(
            f"select hex(id) from (select id, max(duration_ns) from report group by {kind} order by {kind}) limit 12"
        ).fetchall()
        database.close()
        return [row[0].lower() for row in rows]

    # Questions

    def ask_everything(self, store, versions, times):
        for order in ORDERS:
            self.ask_in_every_form(store, "top", "--by", order)
        for group in GROUPS:
            self.ask_in_every_form(store, "top", "--group", group, "--frames", "3", "--limit", "10")
        for option, value in (("--cause", "lock"), ("--loop", "main"), ("--since", times[0]), ("--until", times[1]),
                              ("--version", versions[0])):
            self.ask_in_every_form(store, "top", option, value, csv=False)
            self.ask_in_every_form(store, "list", option, value, csv=False)
        self.ask_in_every_form(store, "list", "--limit", "100")
        self.ask_in_every_form(store, "trend")
        self.ask_in_every_form(store, "trend", "--by", "day", "--since", times[0])
        self.ask_in_every_form(store, "trend", "w")
        self.ask_in_every_form(store, "diff", *versions)
        self.ask_in_every_form(store, "diff", f"..{times[1]}", f"{times[1]}..", "--group", "function")
        self.ask(store, "diff", *versions, "--fail-above", "1.01")
        self.ask_in_every_form(store, "tree")
        self.ask_in_every_form(store, "tree", "--invert", "--depth", "4", csv=False)
        self.ask_in_every_form(store, "tree", "--frames", "all", "--min-share", "5", csv=False)
        self.ask_in_every_form(store, "status", csv=False)
        self.ask(store, "check")
        self.ask(store, "check", "--json")
        for rows in ("reports", "groups", "frames"):
            self.ask(store, "export", "--format", "csv", "--rows", rows, "--limit", "200")
        for form in ("json", "jsonl", "folded"):
            self.ask(store, "export", "--format", form, "--limit", "200")
        self.ask(store, "export", "--format", "folded", "--weight", "count", "--cause", "sleep")
        for report in self.ids(store):
            self.ask(store, "show", report, columns=80)
            self.ask(store, "show", report, "--json")
            self.ask(store, "why", report, columns=80)
            self.ask(store, "why", report, "--json")
        self.ask(store, "show", "0000000")
        self.schema(store)

    def ask_the_least(self, store):
        for words in (("top",), ("list",), ("status",), ("tree",)):
            self.ask(store, *words, columns=80)
            self.ask(store, *words, "--json")
        self.ask(store, "export", "--format", "jsonl", "--limit", "200")
        self.ask(store, "check")
        self.schema(store)

    # The stores

    def play(self):
        demo = os.path.join(ROOT, "sample-data")
        versions, times = ("1.0", "1.0"), ("2026-11-21T11:57:10Z", "2026-11-21T11:57:13Z")
        self.take(os.path.join(demo, "demo.sqlite"), "demo")
        self.ask_everything("demo", versions, times)
        self.answer()
        # Ingest remembers a file from two seconds after its last change on: on a fast machine that is not over yet.
        time.sleep(max(0, 2.1 - (time.time() - os.stat(self.path("demo")).st_ctime)))
        self.say("demo-central", "ingest", "--store", "STORE", "demo.sqlite")
        self.say("demo-central", "ingest", "--store", "STORE", "demo.sqlite", "--json")
        self.ask_everything("demo-central", versions, times)
        shutil.copyfile(os.path.join(demo, "demo.jsonl"), os.path.join(self.folder, "demo.jsonl"))
        self.say("lines", "ingest", "--store", "STORE", "demo.jsonl", "--json")
        self.ask_everything("lines", versions, times)
        self.answer()
        self.play_versions(os.path.join(demo, "stores"))
        self.play_fleet()
        self.answer()

    def play_versions(self, folder):
        for name in sorted(os.listdir(folder)):
            if not name.endswith(".sqlite"):
                continue
            store = name.removesuffix(".sqlite")
            self.take(os.path.join(folder, name), store)
            self.ask_the_least(store)
            self.answer()
            self.say("versions", "ingest", "--store", "STORE", name, "--json")
            self.take(os.path.join(folder, name), f"{store}-migrated")
            self.say(f"{store}-migrated", "migrate", "--store", "STORE", "--json")
            self.say(f"{store}-migrated", "migrate", "--store", "STORE")
            self.ask_the_least(f"{store}-migrated")
        self.ask_the_least("versions")

    def play_fleet(self):
        versions, times = ("1.0", "2.0"), ("2025-11-20", "2025-12-01T12:00:00Z")
        template = os.path.join(self.folder, "template")
        fleet.make_template(template, os.path.join(ROOT, "migrations"))
        half = SMALL // 2
        stores = fleet.make_fleet(16, LARGE, self.folder)[:SMALL if self.is_quick else LARGE]
        for number, store in enumerate(stores):
            part = "first" if number < half else "second" if number < SMALL else "rest"
            store.path = os.path.join(self.folder, part, os.path.basename(store.path))
            os.makedirs(os.path.dirname(store.path), exist_ok=True)
            store.write(template)
        self.take(stores[0].path, "fleet-agent")
        self.ask_everything("fleet-agent", versions, times)
        self.say("small", "ingest", "--store", "STORE", "first", "second", "--json")
        self.ask_everything("small", versions, times)
        self.answer()
        self.take(self.path("small"), "small-changed")
        self.say("small-changed", "regroup", "--store", "STORE")
        self.say("small-changed", "merge", "--store", "STORE", "work0", "work2", "--into", "merged")
        self.say("small-changed", "regroup", "--store", "STORE")
        self.say("small-changed", "regroup", "--store", "STORE", "--json")
        self.say("small-changed", "check", "--store", "STORE", "--repair")
        self.ask_the_least("small-changed")
        self.answer()
        # What merge wrote is found beside every other store of the folder.
        rules = os.path.join(self.folder, "stallwatch.rules")
        if os.path.exists(rules):
            os.remove(rules)
        self.take(self.path("small"), "small-pruned")
        self.say("small-pruned", "prune", "--store", "STORE", "--older-than", times[1])
        self.say("small-pruned", "prune", "--store", "STORE", "--rollups-older-than", times[0], "--json")
        self.ask_everything("small-pruned", versions, times)
        self.say("part1", "ingest", "--store", "STORE", "first")
        self.say("part2", "ingest", "--store", "STORE", "second")
        self.say("parts", "ingest", "--store", "STORE", "part1.sqlite", "part2.sqlite", "--json")
        self.ask_the_least("parts")
        for store in stores[:SMALL]:
            store.go_on()
            store.write(template)
        self.say("small", "ingest", "--store", "STORE", "first", "second")
        self.answer()
        self.take(self.path("small"), "small-later")
        self.ask_the_least("small-later")
        self.answer()
        if self.is_quick:
            return
        self.say("large", "ingest", "--store", "STORE", "first", "second", "rest")
        self.ask_everything("large", versions, times)
        self.answer()
        self.take(self.path("large"), "large-pruned")
        self.say("large-pruned", "prune", "--store", "STORE", "--older-than", times[1], "--json")
        self.ask_everything("large-pruned", versions, times)


def without_machine(text, folder):
    """What differs between machines and runs, and says nothing of the program: rows of many sources are written in an
    order that the hash seed of the run decides, and pages split by it."""
    return re.sub(r'("bytes(_before|_after)?":)\d{7,}', r"\1MANY", text.replace(folder, "FOLDER"))


def without_year(text):
    """In another year than the record's, texts show the year of their times, in wider columns."""
    return re.sub(r" {2,}", "  ", re.sub(r"(\d [A-Z][a-z][a-z]) 20\d\d\b", r"\1", text))


def is_same(before, after):
    if before is None or after is None or time.gmtime().tm_year == RECORDED_YEAR:
        return before == after
    return without_year(before) == without_year(after)


def recorded():
    if not os.path.exists(RECORD):
        return {}
    with tarfile.open(RECORD, "r:xz") as archive:
        return {member.name: archive.extractfile(member).read().decode() for member in archive.getmembers()}


def record(outputs):
    with tarfile.open(RECORD, "w:xz", preset=9) as archive:
        for name in sorted(outputs):
            member = tarfile.TarInfo(name)
            content = outputs[name].encode()
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    with open(LIST, "w", encoding="utf-8") as file:
        for name in sorted(outputs):
            content = outputs[name].encode()
            print(hashlib.sha256(content).hexdigest()[:12], content.count(b"\n"), name, file=file)


def show(name, before, after):
    lines = list(difflib.unified_diff(before.split("\n"), after.split("\n"), "recorded", "now", n=1, lineterm=""))
    print(f"differs: {name}")
    print("\n".join("    " + line[:240] for line in lines[:24]))
    if len(lines) > 24:
        print(f"    and {len(lines) - 24} lines more")


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("stallctl")
    parser.add_argument("mode", nargs="?", choices=["compare", "record"], default="compare")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--keep", help="also write the outputs of now to this folder")
    arguments = parser.parse_args()
    if arguments.mode == "record" and arguments.quick:
        sys.exit("what is recorded is everything")
    random.seed(0)
    folder = tempfile.mkdtemp(prefix="stallwatch-freeze-")
    try:
        freeze = Freeze(os.path.abspath(arguments.stallctl), folder, arguments.quick)
        freeze.play()
    finally:
        shutil.rmtree(folder)
    outputs = {name: without_machine(text, folder) for name, text in freeze.outputs.items()}
    if arguments.keep:
        for name, text in outputs.items():
            path = os.path.join(arguments.keep, name.split("/", 1)[0], name.split("/", 1)[1].replace("/", "_") + ".txt")
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
    known = recorded()
    if arguments.mode == "record":
        record(outputs)
    if arguments.quick:
        known = {name: text for name, text in known.items() if not name.startswith("large")}
    differing = 0
    for name in sorted(known.keys() | outputs.keys()):
        before, after = known.get(name), outputs.get(name)
        if is_same(before, after):
            continue
        differing += 1
        if differing <= SHOWN_DIFFERENCES and known:
            show(name, before or "(nothing)", after or "(nothing)")
    print(f"freeze outputs={len(outputs)} differing={differing}")
    sys.exit(1 if differing and arguments.mode != "record" else 0)


main()

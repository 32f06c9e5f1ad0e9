"""The SQL of a store in a current ClickHouse, which knows more and forgives less than Debian's: see scripts/truth-clickhouse.

usage: truth_newer.py STALLCTL SCRATCH PYTHON [--stores N] [--seed N] [--sabotage]

PYTHON has the package chdb-core. Agents' stores are ingested into one file of SQLite and into the engine, in two goes and each
twice; then every question is asked of both, before and after their reports are regrouped and pruned."""

import argparse
import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
sys.path.insert(0, os.path.join(ROOT, "Tests", "Truth", "TotalsTruth"))

import fleet
import largest
from questions import questions

fleet.HAVE_DELAYS = True
RULES = "merge function \"work*\" into \"any work\"\n"


class World:
    def __init__(self, options):
        self.options, self.stallctl, self.faults, self.answers = options, options.stallctl, 0, 0
        self.folder = os.path.join(options.scratch, "newer")
        shutil.rmtree(self.folder, ignore_errors=True)
        os.makedirs(self.folder)
        self.central = os.path.join(self.folder, "central.sqlite")
        words = [options.python, os.path.join(os.path.dirname(os.path.abspath(__file__)), "embedded_server.py"),
                 os.path.join(self.folder, "engine")]
        self.engine = subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env={**os.environ, "PRINT_ERRORS": "1"})
        self.version, port = self.engine.stdout.readline().split()
        self.url = f"clickhouse://stall@127.0.0.1:{port}/stalls"
        print(f"ClickHouse {self.version}", flush=True)

    def run(self, store, *words):
        words = [self.stallctl, words[0], "--store", store, *words[1:]]
        return subprocess.run(words, capture_output=True, env={**os.environ, "TZ": "UTC"}, timeout=600, check=False)

    def count(self, table):
        database = sqlite3.connect(f"file:{self.central}?immutable=1", uri=True)
        return database.execute(f"select count(*) from {table}").fetchone()[0]

    def note(self, text):
        self.faults += 1
        print(f"differs: {text}", flush=True)

    def fill(self):
        stores = os.path.join(self.folder, "stores")
        os.makedirs(stores)
        template = os.path.join(self.folder, "template.sqlite")
        fleet.make_template(template, os.path.join(ROOT, "migrations"))
        made = fleet.make_fleet(self.options.seed, self.options.stores, stores)
        for store in made:
            store.write(template)
        paths = [store.path for store in made]
        half = len(paths) // 2
        for batch in (paths[:half], paths[half:], paths):
            lost = paths[:1] if self.options.sabotage else []
            self.both("ingest", *[path for path in batch if path not in lost], here=batch)
        print(f"ingested: {len(paths)} stores, {self.count('report')} reports", flush=True)

    def both(self, command, *words, here=None):
        """A command that changes both stores; what it says beside its numbers is compared by questions."""
        for store, operands in ((self.central, here or words), (self.url, words)):
            code = self.run(store, command, *operands)
            if code.returncode != 0:
                self.note(f"{command} of {store} ends with {code.returncode}: {code.stderr.decode()[:2000]}")
        self.answers += 1

    def answer(self, store, words, is_pruned):
        answer = self.run(store, *words)
        text = answer.stdout.decode("utf-8", "replace").replace(json.dumps(store)[1:-1], "STORE")
        if words[0] == "status":
            text = re.sub(r'"(bytes|schema_version)":\d+', "", text)
            if is_pruned:
                # A file also forgets what only the deleted reports used: docs/scale.md, "Limits".
                text = re.sub(r'"(run_count|stack_count|quarantined_count)":\d+|"losses":\{[^}]*\}', "", text)
        # The last digit of a quotient depends on the order of a sum.
        text = re.sub(r"\d+\.\d{9,}", lambda number: f"{float(number.group()):.10g}", text)
        return answer.returncode, text.splitlines(), answer.stderr.decode()

    def compare(self, occasion):
        asked = questions(self)
        for words in asked:
            is_pruned = "prune" in occasion or "repair" in occasion
            here, there = (self.answer(store, words, is_pruned) for store in (self.central, self.url))
            # Of reports that lasted equally long any may be the example.
            plain = [re.sub(r'"example":"[0-9a-f]{32}",', "", line) for line in here[1]]
            if here[0] != 0 or there[0] != 0 or plain != [
                    re.sub(r'"example":"[0-9a-f]{32}",', "", line) for line in there[1]]:
                lines = [(one, other) for one, other in zip(here[1], there[1]) if one != other]
                what = lines[0] if lines else f"{len(here[1])} and {len(there[1])} lines"
                self.note(f"{occasion}: {' '.join(words)}: {here[0]} and {there[0]}, {str(what)[:2000]} {there[2][:2000]}")
        self.answers += len(asked) + 1
        check = self.run(self.url, "check")
        if check.returncode != 0:
            self.note(f"{occasion}: check: {check.stdout.decode()}{check.stderr.decode()}")
        print(f"asked: {len(asked)} questions and check {occasion}", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("stallctl")
    parser.add_argument("scratch")
    parser.add_argument("python")
    parser.add_argument("--stores", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--sabotage", action="store_true")
    options = parser.parse_args()
    options.stallctl = os.path.abspath(options.stallctl)
    world = World(options)
    try:
        world.fill()
        world.compare("after ingest")
        rules = os.path.join(world.folder, "try.rules")
        with open(rules, "w", encoding="utf-8") as file:
            file.write(RULES)
        world.both("regroup", "--rules", rules)
        world.both("regroup")
        world.compare("after regroup")
        world.both("prune", "--older-than", middle(world))
        world.compare("after prune")
        world.both("check", "--repair")
        world.compare("after check --repair")
        world.answers += largest.compare(
            world, lambda store, words: world.answer(store, words, False), world.url.replace("/stalls", "/largest"))
    finally:
        world.engine.kill()
    print(f"truth clickhouse newer version={world.version} answers={world.answers} differing={world.faults}")
    sys.exit(1 if world.faults else 0)


def middle(world):
    """A day of which there are reports before and after, at the border of a partition."""
    database = sqlite3.connect(f"file:{world.central}?immutable=1", uri=True)
    first, last = database.execute("select min(start_us), max(start_us) from report").fetchone()
    day = (first + last) // 2 // 86_400_000_000
    return database.execute("select date(?, 'unixepoch')", (day * 86400,)).fetchone()[0]


main()

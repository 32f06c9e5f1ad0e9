"""A store on two shards against the same reports in one file of SQLite: see scripts/truth-clickhouse.

usage: truth_clickhouse.py STALLCTL SCRATCH [--stores N] [--reports N --maker STORE_BENCHMARK] [--central FILE] [--seed N] [--sabotage]

Agents' stores are those of Tests/Truth/TotalsTruth; with --reports, each tenth of them comes with a central store of a tenth of a
month's reports. They are ingested in ten batches, each three times, while shards are killed; then every question is asked of both."""

import argparse
import json
import os
import random
import re
import shutil
import sqlite3
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
sys.path.insert(0, os.path.join(ROOT, "Tests", "Truth", "TotalsTruth"))

import fleet
import largest
from batches import Batches
from cluster import Cluster
from costs import print_costs
from questions import questions

fleet.HAVE_DELAYS = True


class World:
    def __init__(self, options):
        self.stallctl, self.options = options.stallctl, options
        self.folder = options.scratch
        self.cluster = Cluster(
            ROOT, os.path.join(self.folder, "cluster"), options.database, is_new=not options.again)
        self.central = os.path.join(self.folder, "central.sqlite")
        self.random = random.Random(options.seed)
        self.faults = []

    def note(self, fault):
        self.faults.append(fault)
        print(f"differs: {fault}", flush=True)

    def run(self, store, *words):
        """One command; of a question the answer."""
        words = [self.stallctl, words[0], "--store", store, *words[1:]]
        return subprocess.run(words, capture_output=True, env=self.cluster.environment, check=False)

    # Writing

    def make_stores(self):
        stores = os.path.join(self.folder, "stores")
        shutil.rmtree(stores, ignore_errors=True)
        os.makedirs(stores)
        template = os.path.join(self.folder, "template.sqlite")
        if os.path.exists(template):
            os.remove(template)
        fleet.make_template(template, os.path.join(ROOT, "migrations"))
        made = fleet.make_fleet(self.options.seed, self.options.stores, stores)
        for store in made:
            store.write(template)
        return [store.path for store in made]

    def make_parts(self, count):
        """Central stores that together have so many reports: what is there from a run before stays."""
        folder = os.path.join(self.folder, f"parts-{self.options.reports}")
        os.makedirs(folder, exist_ok=True)
        paths = [os.path.join(folder, f"part-{number}.sqlite") for number in range(count)]
        for number, path in enumerate(paths):
            words = [self.options.maker, "central", path, self.options.reports // count, number, count]
            subprocess.run([str(word) for word in words], check=True)
        return paths

    def make_batches(self):
        """Ten of them: paths of stores."""
        if self.options.central:
            return [[self.central]]
        paths = self.make_stores()
        size = max(1, len(paths) // 10)
        batches = [paths[begin:begin + size] for begin in range(0, len(paths), size)]
        if self.options.reports:
            for batch, part in zip(batches, self.make_parts(len(batches))):
                batch.append(part)
        return batches

    def fill(self):
        if self.options.central:
            self.central = self.options.central
        batches = self.make_batches()
        if not self.options.central:
            if os.path.exists(self.central):
                os.remove(self.central)
            began = time.monotonic()
            code = self.run(self.central, "ingest", *[path for batch in batches for path in batch])
            if code.returncode != 0:
                raise SystemExit(code.stderr.decode())
            seconds = time.monotonic() - began
            print(f"SQLite: {self.count('report')} reports, {self.count('report') / seconds:.0f} a second; load {os.getloadavg()[0]:.1f}",
                  flush=True)
        if self.run(self.cluster.url, "migrate").returncode != 0:
            raise SystemExit("migrate fails")
        sent = Batches(self, waits_for_insert=self.options.reports > 0)
        wanted = 1 if self.options.central else 3
        for number, batch in enumerate(batches):
            sent.send(batch, wanted, is_killed=number % 2 == 0 and wanted > 1)
        if wanted > 1:
            # All at once: nothing is new.
            sent.send([path for batch in batches for path in batch], 1, is_killed=False)
        sent.tell()

    def count(self, table):
        database = sqlite3.connect(f"file:{self.central}?immutable=1", uri=True)
        return database.execute(f"select count(*) from {table}").fetchone()[0]

    def lose_a_report(self):
        """Sabotage: one report less on one shard."""
        report = self.cluster.ask("select hex(id) from report_local limit 1", shard=2)[0][0]
        self.cluster.ask(f"alter table report_local delete where id = unhex('{report}')", shard=2)
        while self.cluster.number("select count() from system.mutations where not is_done", shard=2):
            time.sleep(0.1)

    # Judging

    def compare_rows(self):
        """Numbers of rows and their sums, each once."""
        database = sqlite3.connect(f"file:{self.central}?immutable=1", uri=True)
        pairs = [
            ("reports", "select count(*), sum(duration_ns), sum(cpu_ns), sum(start_us % 1000003), sum(seq), "
             "ifnull(sum(delayed_ns), 0) from report",
             "select count(), sum(duration_ns), sum(cpu_ns), sum(start_us % 1000003), sum(seq), sum(delayed_ns) from report final"),
            ("exposure", "select count(*), ifnull(sum(watched_ns), 0), ifnull(sum(busy_ns), 0) from exposure",
             "select count(), sum(watched_ns), sum(busy_ns) from exposure final"),
            ("suppressions", "select count(*), ifnull(sum(stall_count), 0) from suppression",
             "select count(), sum(stall_count) from suppression final"),
            ("losses", "select count(*), ifnull(sum(report_count), 0) from loss",
             "select count(), sum(report_count) from loss final"),
            ("positions", "select count(*), sum(revision) from source", "select count(), sum(revision) from source final"),
            ("groups", "select count(*) from signature", "select count() from signature final"),
            ("stacks", "select count(*) from stack", "select count() from stack final"),
            ("roll-ups", "select sum(report_count), sum(total_ns) from rollup where day_count = 1",
             "select sum(report_count), sum(total_ns) from rollup where (day, generation) global in "
             "(select day, generation from rollup_day final where is_fresh = 1)"),
        ]
        for name, here, there in pairs:
            right = [str(number) for number in database.execute(here).fetchone()]
            found = self.cluster.ask(there)[0]
            if right != found:
                self.note(f"{name}: {right} in SQLite, {found} in the cluster")
        print(f"rows: {len(pairs)} tables compared", flush=True)
        check = self.run(self.cluster.url, "check")
        if check.returncode != 0:
            self.note(f"check: {check.stdout.decode()}{check.stderr.decode()}")
        return len(pairs) + 1

    def answer(self, store, words):
        began = time.monotonic()
        answer = self.run(store, *words)
        milliseconds = (time.monotonic() - began) * 1000
        text = answer.stdout.decode("utf-8", "replace").replace(json.dumps(store)[1:-1], "STORE")
        # Suggested commands quote a URL for the shell.
        text = text.replace("'STORE'", "STORE")
        if words[0] == "status":
            # By nature another one: what the store takes on disks, and the number of its own schema.
            text = re.sub(r'"(bytes|schema_version)":\d+', "", text)
        return (answer.returncode, text.splitlines(), answer.stderr.decode()), milliseconds

    def compare_answers(self):
        asked = questions(self)
        for words in asked:
            here, here_ms = self.answer(self.central, words)
            there, there_ms = self.answer(self.cluster.url, words)
            if here[0] != 0:
                self.note(f"{' '.join(words)}: SQLite refuses it: {here[2][:500]}")
            elif here[:2] != there[:2] and not self.differ_in_examples(here, there):
                lines = [(one, other) for one, other in zip(here[1], there[1]) if one != other]
                what = lines[0] if lines else f"{len(here[1])} and {len(there[1])} lines"
                self.note(f"{' '.join(words)}: {here[0]} and {there[0]}, {str(what)[:2000]} {there[2][:500]}")
            print(f"asked: {' '.join(words)}: {here_ms:.0f} ms SQLite, {there_ms:.0f} ms cluster", flush=True)
        return len(asked)

    def differ_in_examples(self, here, there):
        """Whether only the examples differ, reports that lasted as long: which of them is named is left open."""
        examples = []

        def without(line):
            found = re.search(r'"example":"([0-9a-f]{32})",', line)
            examples.append(found and found.group(1))
            return line.replace(found.group(0), "") if found else line

        if here[0] != there[0] or [without(line) for line in here[1]] != [without(line) for line in there[1]]:
            return False
        known = sorted({identifier for identifier in examples if identifier})
        database = sqlite3.connect(f"file:{self.central}?immutable=1", uri=True)
        list_of_ids = ", ".join(f"x'{identifier}'" for identifier in known)
        lengths = dict(database.execute(f"select lower(hex(id)), duration_ns from report where id in ({list_of_ids})"))
        middle = len(examples) // 2
        return all(lengths.get(one, one) == lengths.get(other, other)
                   for one, other in zip(examples[:middle], examples[middle:]))

    def compare_late_names(self):
        """An agent's store is ingested before its places have names, and again when they do."""
        central, url = os.path.join(self.folder, "late.sqlite"), self.cluster.url.replace(
            f"/{self.cluster.database}?", "/late?")
        for shard in (1, 2):
            self.cluster.ask("drop database if exists late", shard)
        for path in (central, central + "-agent"):
            if os.path.exists(path):
                os.remove(path)
        shutil.copy(os.path.join(ROOT, "sample-data", "demo.sqlite"), central + "-agent")
        agent = sqlite3.connect(central + "-agent", isolation_level=None)
        agent.execute("create temp table name as select * from location_frame")
        agent.execute("create temp table place as select id, detail from location")
        agent.execute("delete from location_frame")
        agent.execute("update location set detail = 0")
        for are_named in (False, True):
            if are_named:
                agent.execute("insert into location_frame select * from name")
                agent.execute("update source set revision = revision + 2")
                agent.execute("update location set revision = (select revision from source),"
                              " detail = (select detail from place where place.id = location.id)")
            for store in (central, url):
                if self.run(store, "ingest", central + "-agent").returncode != 0:
                    self.note("a store whose names come later is not ingested")
        answers = [["top", "--json"], ["list", "--json"], ["tree", "--json"]]
        for words in answers:
            if self.answer(central, words)[0][:2] != self.answer(url, words)[0][:2]:
                self.note(f"{words[0]} after names came later")
        print("late: names that come after their reports", flush=True)
        return len(answers)

    def compare_largest(self):
        for shard in (1, 2):
            self.cluster.ask("drop database if exists largest", shard)
        url = self.cluster.url.replace(f"/{self.cluster.database}?", "/largest?")
        return largest.compare(self, lambda store, words: self.answer(store, words)[0], url)

    def compare_partial(self):
        """One shard down: what is left is answered, and said to be a part."""
        self.cluster.kill(2)
        answer = self.run(self.cluster.url, "top", "--json")
        rows = [json.loads(line) for line in answer.stdout.decode().splitlines()]
        if not rows or answer.returncode != 3 or not all(row.get("partial") for row in rows):
            self.note(f"top with a shard down: {len(rows)} rows, exit code {answer.returncode}, not all labelled partial "
                      f"{answer.stderr.decode()[:500]}")
        if self.run(self.cluster.url, "ingest", os.path.join(ROOT, "sample-data", "demo.sqlite")).returncode == 0:
            self.note("ingest with a shard down said that all is well")
        self.cluster.start(2)
        print("partial: top with a shard down", flush=True)
        return 2


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("stallctl")
    parser.add_argument("scratch")
    parser.add_argument("--stores", type=int, default=200)
    parser.add_argument("--reports", type=int, default=0)
    parser.add_argument("--maker", help="the program StoreBenchmark, for --reports")
    parser.add_argument("--central", help="a central store whose reports are copied, in place of made ones")
    parser.add_argument("--database", default="stalls")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--sabotage", action="store_true")
    parser.add_argument("--again", action="store_true", help="ask again what the run before left")
    options = parser.parse_args()
    options.stallctl, options.scratch = os.path.abspath(options.stallctl), os.path.abspath(options.scratch)
    os.makedirs(options.scratch, exist_ok=True)
    world = World(options)
    try:
        if options.again:
            world.central = options.central or world.central
        else:
            world.fill()
        if options.sabotage:
            world.lose_a_report()
        answers = world.compare_rows() + world.compare_answers() + world.compare_late_names() + world.compare_largest()
        print_costs(world)
        answers += world.compare_partial()
    finally:
        if not options.again:
            world.cluster.tell("down")
    print(f"truth clickhouse answers={answers} differing={len(world.faults)}")
    sys.exit(1 if world.faults else 0)


main()

"""Holds what stallctl says of many stores against what is true of them: see scripts/truth-totals.

usage: truth_totals.py STALLCTL MIGRATIONS SCRATCH [--stores N] [--seed N] [--quick] [--forks] [--sabotage]

Nothing here knows the product: stores are written from docs/schema.md and migrations/, answers are computed from the
fleet that they were written from. Exits with 1 when a number differs, or a row of a deleted file is lost."""

import argparse
import copy
import csv
import io
import itertools
import json
import os
import random
import shutil
import sqlite3
import subprocess
import sys

import fleet
import lost as lost_rows
import truth as truths
from truth import Question, Truth

KEYS = ["signature", "family", "function", "cause", "loop", "version", "host", "app"]
# Where there are more, stallctl ranks from roll-ups, with quantiles within a bucket of their histograms.
EXACT_LIMIT = 5000
BUCKET = 1 / 64


fleet.NUMBERS_ARE_REVISIONS = fleet.HAVE_DELAYS = True


class Judge:
    """Compares numbers and counts them."""

    def __init__(self, is_quick):
        self.is_quick = is_quick
        self.numbers = self.differing = 0
        self.where = ""

    def number(self, name, said, right, tolerance=1e-9):
        self.numbers += 1
        if said is None or right is None or isinstance(right, (str, list, dict)):
            is_same = said == right
        else:
            is_same = abs(said - right) <= tolerance * max(1.0, abs(right))
        if not is_same:
            self.differing += 1
            if self.differing <= 40:
                print(f"differs: {self.where}: {name}: said {said!r}, right is {right!r}")


class Central:
    """A central store, and what stallctl says of it."""

    def __init__(self, stallctl, path):
        self.stallctl, self.path = stallctl, path

    def run(self, *words, codes=(0,)):
        result = subprocess.run([self.stallctl, *words], capture_output=True, text=True, check=False)
        if result.returncode not in codes:
            sys.exit(f"stallctl {' '.join(words)}: exit code {result.returncode}: {result.stderr}")
        return result.stdout

    def ask(self, command, *words):
        lines = self.run(command, "--store", self.path, "--json", *words).splitlines()
        return [json.loads(line) for line in lines]

    def table(self, command, *words):
        return list(csv.DictReader(io.StringIO(self.run(command, "--store", self.path, "--csv", *words))))

    def ingest(self, *paths):
        self.run("ingest", "--store", self.path, *paths)


def name_of(key, row):
    """What makes a group, as the truth knows it, from the row that stallctl says of it."""
    if key == "signature":
        return None if len(row["apps"]) > 1 else (row["apps"][0], *row["frames"])
    if key == "family":
        return (row["apps"][0], row["frames"][0])
    return row["frames"][0] if key == "function" else row["title"]


def judge_top(judge, central, truth, question, key, is_pruned):
    right = truths.hotspots(truth, question, key)
    said = central.ask("top", "--group", key, "--limit", "100000", *question.options())
    is_exact = not is_pruned and sum(row["count"] for row in right.values()) <= EXACT_LIMIT
    judge.number("groups", len(said), len(right))
    found = {name_of(key, row): row for row in said}
    for name, row in right.items():
        other = found.get(name)
        if other is None:
            judge.number(f"group {name}", None, row["count"])
            continue
        for field, value in row.items():
            tolerance = BUCKET + 1e-6 if field[0] == "p" and not is_exact else 1e-9
            judge.number(f"{name} {field}", other[field], value, tolerance)
    ranks = [row["own_ms"] for row in said]
    judge.number("order", ranks, sorted(ranks, reverse=True))
    return found, right


def judge_csv(judge, central, truth, question):
    right = truths.hotspots(truth, question, "signature")
    for row in central.table("top", "--limit", "100000", *question.options()):
        name = (row["apps"], *row["frames"].split(" <- "))
        for field in ("count", "total_ms", "max_ms", "watched_count", "watched_total_ms", "own_ms"):
            judge.number(f"csv {name} {field}", float(row[field]), right.get(name, {}).get(field))


def judge_orders(judge, central, truth, question):
    """Each order of the ranking, cut to a few groups."""
    right = truths.hotspots(truth, question, "signature")
    for order, field in (("count", "count"), ("max", "max_ms"), ("total", "own_ms"), ("rate", "rate_ms_per_hour")):
        rows = central.ask("top", "--by", order, "--limit", "7", *question.options())
        best = sorted((row[field] or 0 for row in right.values()), reverse=True)[:7]
        for index, (row, value) in enumerate(itertools.zip_longest(rows, best)):
            judge.number(f"by {order} #{index + 1}", (row or {}).get(field) or 0, value)


def judge_inclusive(judge, central, truth, app):
    right = truths.inclusive(truth, Question(app=app))
    said = central.ask("top", "--group", "inclusive", "--limit", "100000", "--app", app)
    found = {row["frames"][0]: row for row in said}
    for (_, name), (count, total, longest, own) in right.items():
        row = found.get(name, {})
        for field, value in (("count", count), ("total_ms", total), ("max_ms", longest), ("own_ms", own)):
            judge.number(f"inclusive {name} {field}", row.get(field), value)


def judge_tree(judge, central, truth, app):
    """The whole tree: each path, its sum, and none besides."""
    right = truths.tree(truth, Question(app=app))
    rows = central.ask("tree", "--invert", "--frames", "app", "--min-share", "0", "--app", app)
    paths = {}
    for row in rows:
        paths[row["node"]] = (*paths.get(row["parent"], (app,)), row["function"])
    judge.number("paths", sorted(paths.values()), sorted(right))
    for row in rows:
        count, total = right.get(paths[row["node"]], (None, None))
        judge.number(f"tree {paths[row['node']]} count", row["count"], count)
        judge.number(f"tree {paths[row['node']]} total_ms", row["total_ms"], total)


def judge_trend_ms(judge, central, truth):
    """The TREND column, where it is not of whole days."""
    reports = truth.select(Question())
    if not 0 < len(reports) <= EXACT_LIMIT:
        return
    first, last = (choose(report.start_us for report in reports) for choose in (min, max))
    groups = truths.grouped("signature", reports)
    for row in central.ask("top", "--limit", "100000"):
        members = groups.get(name_of("signature", row), [])
        right = truths.trend_ms(members, first, last)
        judge.number(f"{row['title']} trend parts", len(row["trend_ms"]), len(right))
        for part, (value, sum_ms) in enumerate(zip(row["trend_ms"], right)):
            judge.number(f"{row['title']} trend_ms {part}", value, sum_ms)


def judge_status(judge, central, truth, has_sources=True):
    said, right = central.ask("status")[0], truths.status(truth)
    loops = {row["loop"]: row for row in said["loops"]}
    judge.number("watched loops", sorted(loops), sorted(right["loops"]))
    for name, loop in right["loops"].items():
        for field, value in loop.items():
            judge.number(f"loop {name} {field}", loops.get(name, {}).get(field), value)
    for field, value in right["suppressed"].items():
        judge.number(f"suppressed {field}", said["suppressed"][field], value)
    names = ["report_count", "states", "verdicts", "first_seen", "last_seen", "losses"]
    for field in names + (["source_count"] if has_sources else []):
        judge.number(field, said[field], right[field])


def judge_trend(judge, central, truth, question):
    right = truths.trend(truth, question)
    said = central.ask("trend", "--by", "day", *question.options())
    judge.number("days", len(said), len(right))
    for row, (begin, count, total, longest) in zip(said, right):
        judge.number("day", row["begin"], begin)
        judge.number(f"{begin} count", row["count"], count)
        judge.number(f"{begin} total_ms", row["total_ms"], total)
        judge.number(f"{begin} max_ms", row["max_ms"], longest)


def judge_diff(judge, central, truth, names, sides, options=(), keys=("signature", "inclusive", "loop", "host")):
    """All groups together are the same stalls by whatever they are grouped."""
    right = truths.comparison(truth, sides)
    for key in keys:
        said = central.ask("diff", *names, "--limit", "100000", "--group", key, *options)[0]
        for field, value in right.items():
            judge.number(f"by {key}: {field}", said[field], value)


def judge_list(judge, central, truth, question, limit):
    newest = sorted(truth.select(question, None), key=lambda report: (report.start_us, report.uuid), reverse=True)
    said = central.ask("list", "--limit", str(limit), *question.options())
    table = central.table("list", "--limit", str(limit), *question.options())
    judge.number("listed", len(said), min(limit, len(newest)))
    for row, line, report in zip(said, table, newest):
        for field, value in (("id", report.uuid.hex()), ("start", truths.rfc3339(report.start_us)),
                             ("duration_ms", report.duration_ns / 1e6), ("state", fleet.STATES[report.state]),
                             ("verdict", fleet.VERDICTS[report.verdict])):
            judge.number(f"{report.uuid.hex()} {field}", row[field], value)
        judge.number("csv duration_ms", float(line["duration_ms"]), report.duration_ns / 1e6)


def questions(truth, draw):
    """What is asked: all, and by each option; times at the ends of days and within them, and within watched stretches."""
    reports = list(truth.reports.values())
    some = draw.choice(reports)
    day = fleet.FIRST_US + draw.randrange(5, 15) * fleet.DAY_US
    found = [Question(), Question(app="photos"), Question(app="mail", version="1.0"), Question(version="1.0"),
             Question(host=some.run.host), Question(loop="io"), Question(cause="lock"),
             Question(since=day, until=day + 9 * fleet.DAY_US), Question(since=day + fleet.DAY_US // 3),
             Question(app="photos", until=day + 12 * fleet.DAY_US + 12_345_678)]
    if truth.exposures:
        span = draw.choice(list(truth.exposures.values()))
        found.append(Question(until=span.start_us + span.watched_ns // 3000))
    return found


def judge_all(judge, where, central, truth, draw, is_pruned=False, has_sources=True, keys=KEYS):
    asked = questions(truth, draw)
    if judge.is_quick:
        asked = asked[:1] + draw.sample(asked[1:], 2)
    for number, question in enumerate(asked):
        judge.where = f"{where}, {' '.join(question.options()) or 'all'}"
        for key in keys if number < (1 if judge.is_quick else 4) else ["signature", draw.choice(KEYS)]:
            judge.where = f"{where}, {' '.join(question.options()) or 'all'}, by {key}"
            judge_top(judge, central, truth, question, key, is_pruned)
        judge.where = f"{where}, {' '.join(question.options()) or 'all'}"
        if truth.select(question):
            judge_csv(judge, central, truth, question)
            judge_orders(judge, central, truth, question)
            judge_trend(judge, central, truth, question)
    judge.where = where
    if not is_pruned:
        judge_status(judge, central, truth, has_sources)
        judge_list(judge, central, truth, Question(), 300)
        judge_list(judge, central, truth, Question(app="mail", loop="main"), 50)
        for app in sorted({report.run.app for report in truth.select(Question())}):
            judge_inclusive(judge, central, truth, app)
            judge_tree(judge, central, truth, app)
        judge_trend_ms(judge, central, truth)
    for names, sides, options in diffs(truth, draw):
        judge.where = f"{where}, diff {' '.join(names)}"
        if any(truth.select(side) for side in sides):
            judge_diff(judge, central, truth, names, sides, options)


def diffs(truth, draw):
    middle = fleet.FIRST_US + draw.randrange(10, 20) * fleet.DAY_US
    cuts = [middle]
    if truth.exposures:
        # Two parts of one watched stretch.
        span = draw.choice(list(truth.exposures.values()))
        cuts.append(span.start_us + span.watched_ns // 2000)
    yield ["1.0", "2.0"], [Question(app="photos", version="1.0"), Question(app="photos", version="2.0")], ["--app", "photos"]
    yield ["1.0", "2.0"], [Question(version="1.0"), Question(version="2.0")], []
    for cut in cuts:
        text = truths.rfc3339(cut)
        yield [f"..{text}", f"{text}.."], [Question(until=cut), Question(since=cut)], []


class Play:
    """The fleet's life: files come, come again, change, are copied, and the central store is pruned."""

    def __init__(self, options):
        self.options = options
        self.draw = random.Random(options.seed)
        self.folder = options.scratch
        shutil.rmtree(self.folder, ignore_errors=True)
        os.makedirs(os.path.join(self.folder, "stores"))
        self.template = os.path.join(self.folder, "template.sqlite")
        fleet.make_template(self.template, options.migrations)
        self.stores = fleet.make_fleet(options.seed, options.stores, os.path.join(self.folder, "stores"))
        for store in self.stores:
            store.write(self.template)

    def central(self, name):
        return Central(self.options.stallctl, os.path.join(self.folder, f"{name}.sqlite"))

    def paths(self, stores=None):
        return [store.path for store in stores or self.stores]

    def clone(self):
        """Some files lie in two places."""
        for store in self.draw.sample(self.stores, max(1, len(self.stores) // 20)):
            shutil.copyfile(store.path, store.path.replace("/store0", "/clone0"))

    def fork(self):
        """Some stores are copied, and both copies go on."""
        forks = []
        for store in self.draw.sample(self.stores, max(1, len(self.stores) // 25)):
            fork = copy.deepcopy(store)
            fork.path = os.path.join(os.path.dirname(store.path), "fork-" + os.path.basename(store.path))
            fork.random = random.Random(self.draw.random())
            # Each has something that the other has not: until then they are one.
            for way in (store, fork):
                way.add_report()
            forks.append(fork)
        self.stores += forks

    def go_on(self):
        for store in self.stores:
            if self.draw.random() < 0.5:
                store.go_on()
            store.write(self.template)

    def shuffled(self, paths):
        return self.draw.sample(paths, len(paths))


def play(options, judge):
    life = Play(options)
    everything = os.path.join(life.folder, "stores")
    first = life.central("first")
    life.clone()
    # Half of the files, then all, then all again: nothing counts twice.
    first.ingest(*life.shuffled(life.paths())[::2])
    first.ingest(everything)
    first.ingest(everything)
    truth = Truth(life.stores)
    judge_all(judge, "at first", first, truth, life.draw)
    # The apps continue; what changed is imported.
    if options.forks:
        life.fork()
    life.go_on()
    first.ingest(everything)
    truth = Truth(life.stores)
    if options.sabotage:
        sabotage(first.path)
    judge_all(judge, "after changes", first, truth, life.draw)
    # The same files in another order at once; and by way of three central stores.
    shuffled = life.central("shuffled")
    shuffled.ingest(*life.shuffled(life.paths()))
    judge_all(judge, "in another order", shuffled, truth, life.draw)
    parts = [life.central(f"part{number}") for number in range(3)]
    for number, part in enumerate(parts):
        part.ingest(*life.paths()[number::3], *life.paths()[number::5])
    merged = life.central("merged")
    merged.ingest(*(part.path for part in parts), parts[0].path)
    judge_all(judge, "by way of central stores", merged, truth, life.draw)
    # Few stores are ranked from their reports, many from roll-ups.
    few = life.stores[:max(3, len(life.stores) // 12)]
    small = life.central("small")
    small.ingest(*life.paths(few))
    judge_all(judge, "few stores", small, Truth(few), life.draw)
    # JSON lines have no watched time; imported together with the stores they change nothing.
    lines = os.path.join(life.folder, "lines.jsonl")
    with open(lines, "w", encoding="utf-8") as out:
        out.write(small.run("export", "--store", small.path, "--format", "jsonl"))
    alone = life.central("lines")
    alone.ingest(lines)
    judge_all(judge, "lines alone", alone, Truth(few, knows_watched=False), life.draw, has_sources=False)
    small.ingest(lines)
    alone.ingest(*life.paths(few))
    judge_all(judge, "lines after stores", small, Truth(few), life.draw, keys=KEYS[:1])
    judge_all(judge, "lines before stores", alone, Truth(few), life.draw, keys=KEYS[:1])
    # Lines without an origin are known by their ids, before their stores and after.
    bare = os.path.join(life.folder, "bare.jsonl")
    with open(lines, encoding="utf-8") as given, open(bare, "w", encoding="utf-8") as out:
        for line in given:
            row = json.loads(line)
            for name in ("store", "seq", "revision"):
                row.pop(name, None)
            out.write(json.dumps(row) + "\n")
    before = life.central("bare")
    before.ingest(bare)
    before.ingest(*life.paths(few))
    before.ingest(bare)
    judge_all(judge, "lines of no origin", before, Truth(few), life.draw, has_sources=False, keys=KEYS[:1])
    # Reports are pruned, their roll-ups stay.
    first.run("prune", "--store", first.path, "--older-than", truths.rfc3339(fleet.FIRST_US + 20 * fleet.DAY_US))
    first.ingest(everything)
    judge_pruned(judge, first, truth, life.draw)
    for central in (first, shuffled, merged, small, alone, before):
        judge.where = central.path
        # Notes follow, of copies for example.
        said = central.run("check", "--store", central.path, codes=(0, 1)).splitlines()[:1]
        judge.number("check", said, [f"{central.path}: no problems found"])
    return life


def judge_pruned(judge, central, truth, draw):
    for question in (Question(), Question(app="photos"), Question(loop="io"),
                     Question(since=fleet.FIRST_US + 3 * fleet.DAY_US, until=fleet.FIRST_US + 30 * fleet.DAY_US)):
        judge.where = f"pruned, {' '.join(question.options()) or 'all'}"
        for key in KEYS:
            if key != "host":
                judge_top(judge, central, truth, question, key, True)
        judge_orders(judge, central, truth, question)
        judge_trend(judge, central, truth, question)
    for names, sides, options in diffs(truth, draw):
        judge.where = f"pruned, diff {' '.join(names)}"
        if not sides[0].has_time:
            judge_diff(judge, central, truth, names, sides, options, ("signature", "loop"))


def sabotage(path):
    """Changes one row: the report that began last lasted a second longer."""
    database = sqlite3.connect(path)
    database.execute(
        "update report set duration_ns = duration_ns + 1000000000 where (source, seq) = "
        "(select source, seq from report order by start_us desc limit 1)")
    database.commit()
    database.close()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("stallctl")
    parser.add_argument("migrations")
    # Absolute: lost.py runs stallctl in folders of its own.
    parser.add_argument("scratch", type=os.path.abspath)
    parser.add_argument("--stores", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=15)
    parser.add_argument("--sabotage", action="store_true")
    parser.add_argument("--forks", action="store_true", help="stores of one identity that went separate ways, too")
    parser.add_argument("--quick", action="store_true", help="ask less: a minute")
    options = parser.parse_args()
    judge = Judge(options.quick)
    life = play(options, judge)
    removed, lost = lost_rows.play(life, options.seed, 4 if options.quick else 40, options.sabotage)
    print(f"truth totals numbers={judge.numbers} differing={judge.differing} removed={removed} lost={lost}")
    sys.exit(1 if judge.differing or lost else 0)


if __name__ == "__main__":
    main()

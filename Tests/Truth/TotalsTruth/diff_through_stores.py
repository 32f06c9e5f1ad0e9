#!/usr/bin/env python3
"""Gives pairs of `diff-truth sample` to stallctl as agents' stores: `diff` must decide as the code did that diff-truth calls.

usage: diff_through_stores.py STALLCTL MIGRATIONS PAIRS.jsonl [--sabotage]

Stores are written by TotalsTruth's writer, from docs/schema.md alone. One pair is one store: a run for each host and side,
of version A or B. It is compared as it is, and again after ingest. Ends with a line, and with 1 if anything differs:

    through stallctl diff pairs=N verdicts=N differing=N
"""

import itertools
import json
import os
import random
import subprocess
import sys
import tempfile

import fleet

START_US = fleet.FIRST_US


class PairStore(fleet.Store):
    """Both sides of a pair as one agent's store."""

    def __init__(self, pair, path):
        draw = random.Random(1)
        self.path, self.id = path, draw.randbytes(16)
        self.revision = self.seq = 0
        self.runs, self.reports, self.exposures = [], [], []
        self.losses, self.suppressions = {}, {}
        for side in ("a", "b"):
            for run in pair[side]:
                self.add(run, side.upper(), draw)

    def add(self, run, version, draw):
        made = fleet.Run(
            uuid=bytes.fromhex(run["run"]), app="photos", version=version, host=run["host"], pid=100, started_us=START_US,
            length_us=run["watched_ns"] // 1000 + 1, is_watched=True, loops=("main",))
        self.runs.append(made)
        self.exposures.append(fleet.Exposure(
            made, "main", START_US, run["watched_ns"], 0, 0, 0, 0, {}, self.next_revision()))
        for group, lengths in enumerate(run["stalls"]):
            for length in lengths:
                self.seq += 1
                self.reports.append(fleet.Report(
                    uuid=draw.randbytes(16), run=made, loop="main", start_us=START_US + self.seq, duration_ns=length, cpu_ns=0,
                    state=1, verdict=0, cause=None, confidence=1, wait=None, frames=("group%d()" % group,), is_cut=False,
                    seq=self.seq, revision=self.next_revision()))


def is_near(one, other):
    """Bounds of nothing are null; a stall's length is exact, hours are not quite."""
    if one is None or other is None:
        return one == other
    return abs(one - other) <= 1e-9 * max(1, abs(other))


def main():
    stallctl, migrations, pairs = sys.argv[1:4]
    is_sabotaged = "--sabotage" in sys.argv
    count = verdicts = differing = 0
    with tempfile.TemporaryDirectory() as folder:
        template = os.path.join(folder, "template.sqlite")
        fleet.make_template(template, migrations)
        for number, line in enumerate(open(pairs, encoding="utf-8")):
            pair = json.loads(line)
            path, central = (os.path.join(folder, "%d-%s.sqlite" % (number, kind)) for kind in ("agent", "central"))
            PairStore(pair, path).write(template)
            subprocess.run([stallctl, "ingest", "--store", central, path], check=True, stdout=subprocess.DEVNULL)
            count += 1
            for store in (path, central):
                said = subprocess.run(
                    [stallctl, "diff", "A", "B", "--json", "--store", store, "--fail-above", str(pair["limit"])],
                    capture_output=True, text=True, check=False)
                rows = [json.loads(row) for row in said.stdout.splitlines()]
                found = {row["frames"][0] if row["frames"] else "total": row for row in rows}
                if is_sabotaged:
                    found["total"]["significant"] = not found["total"]["significant"]
                right = {"group%d()" % group["group"]: group for group in pair["groups"]} | {"total": pair["total"]}
                wrong = [] if said.returncode == (2 if pair["exceeds"] else 0) else ["status %d" % said.returncode]
                for name in found.keys() | right.keys():
                    verdicts += 1
                    row, truth = found.get(name), right.get(name)
                    if row is None or truth is None or row["significant"] != truth["significant"] or not all(
                            is_near(row[key], truth.get(key)) for key in ("ratio_low", "ratio_high")):
                        wrong.append("%s: %s for %s" % (name, row, truth))
                differing += len(wrong)
                for text in itertools.islice(wrong, 3):
                    print("differs: %s, %s: %s %s" % (pair["case"], os.path.basename(store), text, said.stderr[-200:]))
            os.unlink(path)
            os.unlink(central)
    print("through stallctl diff pairs=%d verdicts=%d differing=%d" % (count, verdicts, differing))
    sys.exit(1 if differing or not count else 0)


main()

#!/usr/bin/env python3
"""Holds what is read of other programs' reports against what is in them.

    truth_formats.py PROGRAMS SCRATCH MADE_UP

The examples of sample-data/formats have their readings beside them (README.md there says by whom); of the formats in
made_up.py, MADE_UP reports each are written whose content is known. Then stallctl ingests a directory of all of them among
unrelated files, MADE_UP x 10 in all, and the stacks of that store as folded stacks (mixed.py). The symbols of dSYMs are held
against llvm-symbolizer's (dsym.py). SABOTAGE=1 leaves the innermost functions out.
The last line is the result: truth formats readers=N samples=N wrong=N crashed=N"""
import glob
import os
import re
import subprocess
import sys

import dsym
import made_up
import mixed

programs, scratch, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
sabotage = ["--sabotage"] if os.environ.get("SABOTAGE") == "1" else []
os.makedirs(scratch, exist_ok=True)
tool = os.path.join(programs, "format-truth")


def readings(paths):
    """The format and the reading of each file; None for those that the tool did not come to, because it crashed."""
    answers = {}
    for start in range(0, len(paths), 100):
        batch = paths[start : start + 100]
        run = subprocess.run([tool, *sabotage, *batch], stdout=subprocess.PIPE, timeout=600)
        parts = re.split(r"^==> (.*): (.*)\n", run.stdout.decode(), flags=re.M)[1:]
        done = {parts[i]: (parts[i + 1], parts[i + 2]) for i in range(0, len(parts), 3)}
        if run.returncode != 0 and done:
            done.pop(list(done)[-1])
        answers.update(done)
    return answers


# Each with the texts of its reports, in any order: those of a profile's threads end at once.
expected = {}
for path in sorted(glob.glob("sample-data/formats/*")):
    if not path.endswith((".reading", ".md")):
        with open(path + ".reading") as file:
            expected[path] = file.read()
for name in made_up.FORMATS:
    for seed in range(count):
        text, reports = getattr(made_up.made_up(seed), name)()
        path = os.path.join(scratch, f"{name}-{seed}")
        with open(path, "wb") as file:
            file.write(text if isinstance(text, bytes) else text.encode())
        reports = reports if isinstance(reports, list) else [reports]
        expected[path] = "".join(report.text() for report in reports)


def in_any_order(text):
    return sorted(re.split(r"^(?=\S)", text, flags=re.M))


found = readings(list(expected))
wrong, crashed = 0, 0
for path, reading in expected.items():
    if path not in found:
        crashed += 1
        print("crashed", path)
    elif in_any_order(found[path][1]) != in_any_order(reading):
        wrong += 1
        if wrong <= 3:
            print(f"wrong: {path}\n--- expected\n{reading}--- read\n{found[path][1]}")
# Of the examples one of each format: some have the same report in another form.
files = {}
for path, reading in expected.items():
    format = found.get(path, ("unknown", ""))[0]
    if not path.startswith("sample-data") or format not in [format for format, _ in files.values()]:
        files[path] = (format, reading)
stallctl = os.path.join(programs, "stallctl")
wrong += mixed.mixed(stallctl, scratch, files, 10 * count)
for store in [os.path.join(scratch, "mixed.sqlite"), "sample-data/demo.sqlite"]:
    wrong += mixed.folded(stallctl, scratch, store)
symbols_are_equal = dsym.compare(os.path.join(programs, "dsym-truth"), scratch, sabotage)
print("truth formats readers=%d samples=%d wrong=%d crashed=%d" % (
    len({format for format, _ in found.values()} - {"unknown"}), len(expected), wrong, crashed))
sys.exit(1 if wrong or crashed or not symbols_are_equal else 0)

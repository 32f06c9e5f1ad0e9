"""What `.timeLimit` and gdb say of the tests of HangTests: see scripts/truth-tests --beside.

usage: beside.py BUNDLE LIMITED

BUNDLE is the tests' program, LIMITED the same with `.timeLimit(.minutes(1))` for each test. SwiftPM starts it as is done here;
it is started without SwiftPM, which runs one at a time. PLANTS chooses tests by name."""

import os
import re
import statistics
import subprocess
import sys
import tempfile
import time

from plants import planted

BUNDLE, LIMITED = sys.argv[1:3]
TIMED = "Time limit was exceeded"


def start(program, names, output):
    """The tests in a process, and a group, of its own."""
    return subprocess.Popen(
        ["taskset", "-c", "0,1", program, "--testing-library", "swift-testing", "--filter",
         "HangTests.(%s)\\(" % "|".join(names)],
        stdout=output, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, start_new_session=True)


def end(process):
    """With what the tests have started, which may be in groups of their own."""
    subprocess.run(["pkill", "-KILL", "-s", str(process.pid)], check=False)
    process.wait()


def said(text, plant):
    """Whether a text has the test's name, and the line where it hangs."""
    name = re.search(r"\b%s\(" % plant.name, text) or "%d%s" % (len(plant.name), plant.name) in text
    file, line = plant.place
    return bool(name), bool(re.search(r"\b%s:%d\b" % (re.escape(os.path.basename(file)), line), text))


def limits(groups, seconds=80):
    """For each group of tests, all at the same time, in a process each: the issues of the time limit, and whether it ended."""
    running = []
    for names in groups:
        output = tempfile.TemporaryFile("w+")
        running.append((names, start(LIMITED, names, output), output))
    time.sleep(seconds)
    for names, process, output in running:
        has_ended = process.poll() is not None
        end(process)
        output.seek(0)
        yield names, [line for line in output.read().splitlines() if TIMED in line], has_ended


def gdb(plant):
    """Eight seconds after the start, as timeout(1) would call it: whether it names the test, the line, and how long it took."""
    with tempfile.TemporaryFile("w+") as output:
        process = start(BUNDLE, [plant.name], output)
        time.sleep(8)
        began = time.monotonic()
        done = subprocess.run(
            ["gdb", "-p", str(process.pid), "-batch", "-ex", "thread apply all backtrace"], capture_output=True, text=True,
            errors="replace", timeout=300, check=False)
        took = time.monotonic() - began
        end(process)
    return said("\n".join(line for line in done.stdout.splitlines() if line.startswith("#")), plant) + (took,)


def main():
    plants = planted()
    only = os.environ.get("PLANTS")
    if only:
        plants = {name: plant for name, plant in plants.items() if re.search(only, name)}
    results = {name: {} for name in plants}
    # Those that compute would take the processors from the others.
    busy = [[name] for name in plants if name.startswith("endless") and plants[name].kind == "blocked"]
    idle = [[name] for name in plants if [name] not in busy]
    for batch in [idle[:20], idle[20:]] + [[one] for one in busy]:
        for (name,), issues, has_ended in limits(batch):
            named, line = said("\n".join(issues), plants[name])
            results[name].update(limit=named, limit_line=line, ended=has_ended)
    for name, plant in plants.items():
        results[name]["gdb"], results[name]["gdb_line"], results[name]["seconds"] = gdb(plant)
        one = results[name]
        print("%-24s %-9s .timeLimit: issue=%d line=%d ended=%d  gdb: named=%d line=%d %.1f s" % (
            name, plant.kind, one["limit"], one["limit_line"], one["ended"], one["gdb"], one["gdb_line"], one["seconds"]),
            flush=True)
    for kind in ("blocked", "suspended"):
        ones = [results[name] for name, plant in plants.items() if plant.kind == kind]
        print("beside %s of=%d timelimit issues=%d lines=%d ended=%d gdb named=%d lines=%d" % (
            kind, len(ones), sum(one["limit"] for one in ones), sum(one["limit_line"] for one in ones),
            sum(one["ended"] for one in ones), sum(one["gdb"] for one in ones), sum(one["gdb_line"] for one in ones)))
    if len(plants) >= 40:
        names = list(plants)
        groups = [names[first::4] for first in range(4)]
        found = [len(issues) for group in groups for _, issues, _ in limits([group])]
        print("beside ten at once, two threads: timelimit issues=%s of=%s" % (
            ",".join(map(str, found)), ",".join(str(len(group)) for group in groups)))
    print("beside gdb seconds median=%.1f most=%.1f" % (
        statistics.median(one["seconds"] for one in results.values()), max(one["seconds"] for one in results.values())))


main()

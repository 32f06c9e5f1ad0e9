"""Tests that hang below `stallctl run -- swift test`: see scripts/truth-tests.

usage: hangs.py STALLCTL SWIFT SCRATCH

What is true is in the tests' sources: a line that ends with `hangs: blocked` is where the thread of the test above it is
blocked, one with `hangs: suspended` where its task awaits. The last line is the result."""

import json
import os
import re
import subprocess
import sys
import tempfile

from plants import HERE, planted

STALLCTL, SWIFT, SCRATCH = sys.argv[1:4]
SABOTAGE = os.environ.get("SABOTAGE") == "1"
LIMIT = os.environ.get("LIMIT", "4s")


def run(tests, seconds=180):
    """The reports of a run with these tests, and the tests that the stream itself has as started and not ended."""
    with tempfile.TemporaryDirectory() as folder:
        stream = folder + "/events"
        command = [STALLCTL, "run", "--test-timeout", LIMIT, "--kill-after", "0s", "--format", "json", "--"]
        test = [SWIFT, "test", "--skip-build", "--disable-xctest", "--package-path", HERE, "--scratch-path", SCRATCH]
        test += ["--filter", "HangTests.(%s)\\(" % "|".join(tests)]
        if SABOTAGE:
            # Its own stream is elsewhere than the one that stallctl reads.
            open(folder + "/other", "w").close()
            command = ["env", "STREAM=" + stream] + command
            test[0] = folder + "/swift"
            with open(test[0], "w", encoding="utf-8") as file:
                file.write('#!/bin/sh\nshift 5\nexec %s test --event-stream-output-path "$STREAM" "$@"\n' % SWIFT)
            os.chmod(test[0], 0o755)
        else:
            test += ["--event-stream-output-path", stream, "--event-stream-version", "0"]
        try:
            done = subprocess.run(command + test, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                                  env=dict(os.environ, BEGAN=folder + "/began"), errors="replace", timeout=seconds, check=False)
        except subprocess.TimeoutExpired as late:
            text = (late.stderr or b"").decode(errors="replace")
            done = subprocess.CompletedProcess([], -1, "", text)
        lines = [json.loads(line) for line in done.stderr.splitlines() if line.startswith('{"')]
        running = set()
        for line in open(stream, encoding="utf-8") if os.path.exists(stream) else []:
            event = json.loads(line)
            if event["kind"] != "event":
                continue
            name = re.match(r"HangTests\.(\w+)\(", event["payload"].get("testID", ""))
            if name and event["payload"]["kind"] == "testStarted":
                running.add(name[1])
            if name and event["payload"]["kind"] == "testEnded":
                running.discard(name[1])
        began = open(folder + "/began", encoding="utf-8").read().split() if os.path.exists(folder + "/began") else []
        return done, lines, running, set(began)


def judge(plant, lines):
    """Whether it was named, with the test's line; whether the line where it hangs was; what was said."""
    reports = [line for line in lines if line["schema"] == "stallctl.hung-test/1"
               and line["name"] == plant.name + "()"]
    if not reports:
        return False, False, "not named"
    report = reports[-1]
    named = os.path.realpath(report["file"]) == plant.file and report["line"] == plant.line
    found = report["threads"] if plant.kind == "blocked" else [
        task for task in report["tasks"] if task["state"] == "suspended"]
    if plant.kind == "suspended" and report["threads"]:
        return named, False, "a thread is said to have it"
    places = [(os.path.realpath(one["file"]), one["line"]) for one in found if one.get("file")]
    said = "; ".join("%s:%s %s %s" % (os.path.basename(one.get("file") or "?"), one.get("line"),
                                      one.get("waits_for") or one.get("awaits") or "computes",
                                      ",".join(one.get("held_by", []))) for one in found)
    return named, plant.place in places, said or "no place"


def healthy(count):
    """How many of so many runs of a suite that ends are accused, or differ from a run without."""
    test = [SWIFT, "test", "--skip-build", "--package-path", HERE, "--scratch-path", SCRATCH, "--filter", "HealthyTests"]
    alone = subprocess.run(test, capture_output=True, text=True, check=False)
    accused = 0
    for number in range(count):
        options = [["--parallel"], [], ["--no-parallel"]][number % 3]
        with_it = subprocess.run([STALLCTL, "run", "--test-timeout", "20s", "--kill-after", "5s", "--"] + test + options,
                                 capture_output=True, text=True, check=False)
        if with_it.returncode != alone.returncode or "stallctl" in with_it.stdout + with_it.stderr:
            accused += 1
            print("healthy run %d: %d\n%s" % (number, with_it.returncode, with_it.stderr[-2000:]), flush=True)
    return accused


def main():
    plants = planted()
    only = os.environ.get("PLANTS")
    if only:
        plants = {name: plant for name, plant in plants.items() if re.search(only, name)}
    count = int(os.environ.get("HEALTHY", "200"))
    results = {}
    for plant in plants.values():
        done, lines, _, _ = run([plant.name])
        results[plant.name] = judge(plant, lines) + (done.returncode,)
        named, place, said, status = results[plant.name]
        print("%-24s %-9s named=%d line=%d status=%d  %s" % (plant.name, plant.kind, named, place, status, said), flush=True)
    # Ten at once: when two blocked ones hold the pool, the others do not begin, and that is to be said of them.
    names = list(plants)
    together = right = 0
    for first in range(0, 4 if len(names) >= 40 else 0):
        group = names[first::4]
        _, lines, running, began = run(group)
        for name in sorted(running):
            named, place, said = judge(plants[name], lines)
            if name not in began:
                # Swift Testing has announced it, and no thread of the pool was free.
                place = any(line.get("waits_for_pool") for line in lines if line.get("name") == name + "()")
            elif plants[name].has_inner_task and name + ".inside" not in began:
                # The task that would be blocked has no thread either: the test waits for it.
                tasks = [task for line in lines if line.get("name") == name + "()" for task in line["tasks"]]
                place = any(one["state"] == "enqueued" for task in tasks for one in task["awaited"])
            together += 1
            right += named and place
            if not (named and place):
                print("ten at once: %s: named=%d line=%d %s" % (name, named, place, said), flush=True)
                results[name] = (results[name][0] and named, results[name][1] and place) + results[name][2:]
    print("ten at once: %d were announced and did not end, right=%d" % (together, right), flush=True)
    accused = healthy(count)
    blocked = [name for name, plant in plants.items() if plant.kind == "blocked"]
    suspended = [name for name, plant in plants.items() if plant.kind == "suspended"]
    named = sum(results[name][0] for name in plants)
    lines = sum(results[name][0] and results[name][1] for name in blocked)
    tasks = sum(results[name][0] and results[name][1] for name in suspended)
    print("truth tests named=%d of=%d line=%d of=%d suspended=%d of=%d accused=%d of=%d" % (
        named, len(plants), lines, len(blocked), tasks, len(suspended), accused, count))
    ended = all(results[name][3] == 124 for name in plants)
    sys.exit(0 if named == len(plants) and lines == len(blocked) and tasks == len(suspended) and accused == 0
             and ended else 1)


main()

"""Compares what `stallctl doctor` says in each environment with what was measured there: see scripts/environments.

usage: environments.py ROOTS SCRATCH STALLCTL TABLE [PLACE...]

TABLE is where the matrix of docs/install.md is written. The last line is the result."""

import json
import os
import sys
import uuid

from measure import GUARANTEES, Measurement, better
from places import NOT_TRIED, PLACES, Prepared

ATTEMPTS = 3
WORDS = {"works": "yes", "limited": "part", "fails": "no", "untried": "n/a"}
HEADINGS = {"blocked": "blocked", "running": "running", "undisturbed": "no EINTR", "causes": "causes", "holders": "holders",
            "durations": "durations", "event-loops": "loops", "tasks": "tasks", "queues": "queues", "stops": "stops",
            "kills": "kills", "false-alarms": "nothing else", "programs": "`run`", "tests": "tests"}


def doctor(prepared):
    """Its verdicts, and what else it says. Where it does not start, nothing works."""
    end = prepared.run_doctor()
    rows = [json.loads(line) for line in end.stdout.splitlines() if line.startswith("{")]
    verdicts = {row["subject"]: row["verdict"] for row in rows if row["subject"] in GUARANTEES}
    said = [f"{row['text']}{': ' + row['detail'] if row.get('detail') else ''}" for row in rows if row["verdict"] != "works"]
    if not verdicts:
        verdicts = dict.fromkeys(GUARANTEES, "fails")
        said += end.stderr.splitlines()[-1:]
    return verdicts, said


def compared(place):
    return place.only or GUARANTEES


def measure(place, roots, scratch, stallctl, token):
    prepared = Prepared(place, roots, scratch, token)
    elsewhere = Prepared(PLACES[0], roots, scratch + "/sabotage", token + "-s") if os.environ.get("SABOTAGE") == "1" else prepared
    try:
        said, remarks = doctor(elsewhere)
        seen, notes, is_harmed = None, [], False
        for number in range(ATTEMPTS):
            measurement = Measurement(prepared, stallctl, number)
            seen = better(seen, measurement.verdicts) if seen else measurement.verdicts
            notes, is_harmed = measurement.notes, is_harmed or measurement.is_harmed
            if all(seen[name] == "works" for name in compared(place)):
                break
            # What was not disturbed is so again; the one that is right has been found.
            if number and all(seen[name] == said.get(name) for name in compared(place)):
                break
    finally:
        prepared.remove()
        if elsewhere is not prepared:
            elsewhere.remove()
    if place.only:
        said, seen = ({name: verdicts.get(name) for name in place.only} for verdicts in (said, seen))
    return said, remarks, seen, list(dict.fromkeys(notes)), is_harmed


def table(rows):
    head = [HEADINGS[name] for name in GUARANTEES]
    lines = ["| | " + " | ".join(head) + " |", "|---" * (len(head) + 1) + "|"]
    for place, seen in rows:
        words = [WORDS[seen[name]] if seen and name in seen else "not tried" for name in GUARANTEES]
        lines.append(f"| {place.label} | " + " | ".join(words) + " |")
    for label, _ in NOT_TRIED:
        lines.append(f"| {label} | " + " | ".join(["not tried"] * len(GUARANTEES)) + " |")
    notes = [f"- {place.label}: {place.note}." for place, _ in rows if place.note]
    notes += [f"- {label}: {reason}." for label, reason in NOT_TRIED]
    return "\n".join(lines + [""] + notes) + "\n"


def agrees(said, remarks, seen, notes, is_harmed):
    return not is_harmed and all(said.get(name) == seen[name] for name in seen)


def report(place, said, remarks, seen, notes, is_harmed):
    print(f"{'agrees' if agrees(said, remarks, seen, notes, is_harmed) else 'DIFFERS'}: {place.key}: "
          + " ".join(f"{name}={verdict}" for name, verdict in seen.items() if verdict != "works" or place.only))
    for name in seen:
        if said.get(name) != seen[name]:
            print(f"    {name}: doctor says {said.get(name)}, measured {seen[name]}")
    if is_harmed:
        print("    the app was harmed")
    for text in remarks:
        print(f"    doctor: {text}")
    for text in notes:
        print(f"    measured: {text}")
    sys.stdout.flush()


def main():
    roots, scratch, stallctl, path = sys.argv[1:5]
    wanted = [place for place in PLACES if not sys.argv[5:] or place.key in sys.argv[5:]]
    token = uuid.uuid4().hex[:8]
    rows, agreeing, skipped = [], 0, 0
    # The results of the emulated machine, which runs this program as well.
    results = os.environ.get("RESULTS", "")
    ready = {}
    if results and os.path.exists(results):
        with open(results, encoding="utf-8") as file:
            ready = {key: values for key, *values in map(json.loads, file)}
    for place in wanted:
        if place.key in ready:
            measured = ready[place.key]
            report(place, *measured)
            agreeing += agrees(*measured)
            rows.append((place, measured[2]))
            continue
        reason = place.obstacle(roots)
        measured = None
        try:
            measured = reason or measure(place, roots, scratch, stallctl, token)
        except OSError as error:
            reason = str(error)
        if reason:
            skipped += 1
            rows.append((place, None))
            print(f"skipped: {place.key}: {reason}", flush=True)
            continue
        report(place, *measured)
        agreeing += agrees(*measured)
        rows.append((place, measured[2]))
        if os.environ.get("MACHINE") == "1":
            with open(results, "a", encoding="utf-8") as file:
                file.write(json.dumps([place.key, *measured]) + "\n")
    with open(path, "w", encoding="utf-8") as file:
        file.write(table(rows))
    count = len(wanted) - skipped
    print(f"environments {count} of={len(wanted)} agreeing={agreeing} skipped={skipped}")
    sys.exit(0 if agreeing == count and count > 0 else 1)


main()

"""Holds what reports say of stalls against what the sites noted themselves: see scripts/truth-sites.

usage: truth_sites.py BUILD=HITS,REPORTS ...

HITS is what site-truth printed, REPORTS the store's reports as JSON lines. A site is right when it is right in every build.
A site whose function may have the same instructions as another one is said on a line of its own and not counted: nothing in
the program tells the two apart. Builds whose names begin with "again" are the program of O once more, in other
circumstances: of those, of O and of stripped only the signatures are compared."""

import json
import os
import sys
from datetime import datetime

# A report begins at the loop's wake-up, a little before the site is reached: on an emulated machine tens of milliseconds.
USUAL_SLACK_US = 3_000
SLACK_US = int(os.environ.get("SITE_SLACK_MS", 3)) * 1000
FACTS = ("once", "function", "cause", "holder", "duration")


def microseconds(text):
    return round(datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp() * 1e6)


class Hit:
    def __init__(self, fields):
        self.began, self.ended, self.site = int(fields[0]), int(fields[1]), fields[2]
        self.functions, self.causes = fields[3].split("|"), fields[4].split("|")
        self.holder, self.duration = int(fields[5]), int(fields[6])
        self.caller = fields[7]
        self.is_starved = fields[9] == "starved"
        self.has_shared_name = len(fields) > 10 and fields[10] == "shared"


def read(hits_path, reports_path):
    hits, left_out, spoiled = [], [], []
    for line in open(hits_path, encoding="utf-8"):
        fields = line.rstrip("\n").split("\t")
        if fields[0] == "hit":
            hits.append(Hit(fields[1:]))
        elif fields[0] == "spoiled":
            spoiled.append((int(fields[1]) - SLACK_US, int(fields[2])))
        elif fields[0] == "refused":
            left_out.append(fields[1])
    reports = [json.loads(line) for line in open(reports_path, encoding="utf-8")]
    for report in reports:
        report["at"] = microseconds(report["start"])
    # Visits that were repeated because other programs had the CPU: any report of them is accepted.
    reports = [r for r in reports if not any(began <= r["at"] <= ended for began, ended in spoiled)]
    return hits, left_out, reports, len(spoiled)


def is_function(hit, report):
    frames = report["frames"]
    if not frames:
        return False
    if frames[0] in hit.functions:
        return True
    # Functions of one body: the report says so, and groups under the site's own caller.
    return bool(hit.caller) and "merged functions" in report["title"] and frames[0] == hit.caller


def judge(hit, reports):
    """What is wrong, by fact: a sentence each."""
    found = [r for r in reports if hit.began - SLACK_US <= r["at"] <= hit.ended]
    if len(found) != 1:
        wrong = {fact: f"no report of {hit.duration / 1000:.0f} ms" for fact in FACTS}
        if found:
            wrong = {"once": f"{len(found)} reports"}
        return wrong, found
    report, wrong = found[0], {}
    if report["verdict"] != "stalled" and not (hit.is_starved and report["verdict"] == "starved"):
        wrong["once"] = f"the verdict is {report['verdict']}"
    if not is_function(hit, report):
        wrong["function"] = f"{report['title']!r}, frames {report['frames']}"
    cause = report["cause"] or {"class": "nothing"}
    if cause["class"] not in hit.causes + (["starved"] if hit.is_starved else []):
        evidence = ", ".join(f"{e['name']} {e['value']}" for e in cause.get("evidence", []))
        wrong["cause"] = f"{cause['class']}, not {' or '.join(hit.causes)}: {evidence}"
    holder = cause.get("lock_holder") or {"thread": 0}
    if holder["thread"] != hit.holder:
        wrong["holder"] = f"{holder['thread']}, not {hit.holder}"
    # The loop's own part of the iteration belongs to it.
    if abs(report["duration_ms"] * 1000 - hit.duration) > max(5_000, hit.duration * 0.03) + SLACK_US - USUAL_SLACK_US:
        wrong["duration"] = f"{report['duration_ms']:.1f} ms, not {hit.duration / 1000:.1f}"
    return wrong, found


def note_names(names, hits, reports):
    """The signatures of each site. Only of reports that are ranked: a starved thread is not where its function would be."""
    for hit in hits:
        for report in reports:
            if hit.began - SLACK_US <= report["at"] <= hit.ended and report["verdict"] == "stalled" and report["frames"]:
                name = report["title"], report["frames"][0] if report["frames"][0] in hit.functions else None
                names.setdefault(hit.site, {}).setdefault(report["signature"], name)


def is_divided(titles):
    """A site that names two functions divides its time between one and what that calls: samples decide between the two.
    Not if one of them has two signatures."""
    functions = [function for _, function in titles.values()]
    return None not in functions and len(set(functions)) == len(functions)


def main():
    names = {}
    wrong_sites = {fact: set() for fact in FACTS}
    sites, builds, strays = {}, sys.argv[1:], 0
    for argument in builds:
        build, paths = argument.split("=", 1)
        hits, left_out, reports, spoiled = read(*paths.split(","))
        if build.startswith("again") or build in ("O", "stripped"):
            note_names(names, hits, reports)
        if build.startswith("again"):
            builds = [other for other in builds if other != argument]
            print(f"{build}: sites={len(hits)} repeated={spoiled}")
            continue
        explained = set()
        counts = dict.fromkeys(FACTS, 0)
        shared = [hit for hit in hits if hit.has_shared_name]
        for hit in shared:
            wrong, found = judge(hit, reports)
            explained.update(id(r) for r in found)
            words = "; ".join(f"{fact}: {text}" for fact, text in wrong.items())
            print(f"  {build}: {hit.site}: {words or 'its own name'} (not counted)")
        hits = [hit for hit in hits if not hit.has_shared_name]
        for hit in hits:
            sites.setdefault(hit.site, 0)
            sites[hit.site] += 1
            wrong, found = judge(hit, reports)
            explained.update(id(r) for r in found)
            for fact in FACTS:
                if fact in wrong:
                    wrong_sites[fact].add(hit.site)
                    print(f"  {build}: {hit.site}: {fact}: {wrong[fact]}")
                else:
                    counts[fact] += 1
        extra = [r for r in reports if id(r) not in explained]
        strays += len(extra)
        for report in extra:
            print(f"  {build}: a report of nothing planted: {report['title']} {report['duration_ms']:.0f} ms")
        for site in left_out:
            print(f"  {build}: {site} was left out: this machine does not allow it")
        print(f"{build}: sites={len(hits)} " + " ".join(f"{fact}={counts[fact]}" for fact in FACTS)
              + f" of_nothing={len(extra)} repeated={spoiled}")
    # A site that some build did not visit has not been shown to be right there.
    judged = [site for site, count in sites.items() if count == len(builds)]
    total = len(judged)
    right = {fact: sum(site not in wrong_sites[fact] for site in judged) for fact in FACTS}
    if strays:
        right["once"] -= min(strays, right["once"])
    changed = {site: titles for site, titles in names.items() if len(titles) > 1}
    for site, titles in changed.items():
        words = "either of two functions" if is_divided(titles) else "one program, several signatures"
        print(f"  {site}: {words}: " + ", ".join(f"{key} {title!r}" for key, (title, _) in titles.items()))
    changed = {site: titles for site, titles in changed.items() if not is_divided(titles)}
    print("truth sites " + " ".join(f"{fact}={right[fact]} of={total}" for fact in FACTS)
          + f" builds={len(builds)} names_changed={len(changed)}")
    bars = {"once": 1.0, "holder": 1.0, "function": 0.99, "cause": 0.99, "duration": 0.99}
    return 0 if total and not changed and all(right[fact] >= bars[fact] * total for fact in FACTS) else 1


sys.exit(main())

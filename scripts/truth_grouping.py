"""Holds the groups of reports against the sites that were hit: see scripts/truth-grouping.

usage: truth_grouping.py BUILD=HITS,REPORTS,PROGRAM ...

HITS is what grouping-victims printed, REPORTS the store's reports as JSON lines, in the order of the builds, PROGRAM
the build with its symbols. The first build is the one that was not optimized: it shows every call of the source."""

import collections
import json
import re
import subprocess
import sys
from datetime import datetime

SLACK_US = 2_000  # a report begins at the loop's wake-up, a little before the site is reached


def microseconds(text):
    return round(datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp() * 1e6)


def read(build, hits_path, reports_path):
    """The reports, each with the hit in whose time it began."""
    hits = []
    for line in open(hits_path, encoding="utf-8"):
        began, ended, site, caller, leaf = line.rstrip("\n").split("\t")
        hits.append((int(began), int(ended), site, caller, leaf))
    hits.sort()
    reports = sorted((json.loads(line) for line in open(reports_path, encoding="utf-8")), key=lambda r: r["start"])
    found, strays, index = [], 0, 0
    for report in reports:
        start = microseconds(report["start"])
        while index < len(hits) and hits[index][1] < start:
            index += 1
        if index < len(hits) and hits[index][0] - SLACK_US <= start:
            _, _, site, caller, leaf = hits[index]
            found.append({"build": build, "site": site, "caller": caller, "leaf": leaf, **report})
        else:
            strays += 1
    return hits, found, strays


def pairs(count):
    return count * (count - 1) // 2


def agreement(reports, truth, group):
    """Pairwise precision and recall: of two reports in one group, are they of one site, and the other way round?"""
    cells = collections.Counter((truth(r), r[group]) for r in reports)
    groups = collections.Counter(r[group] for r in reports)
    sites = collections.Counter(truth(r) for r in reports)
    both = sum(map(pairs, cells.values()))
    return both / max(1, sum(map(pairs, groups.values()))), both / max(1, sum(map(pairs, sites.values())))


def path(report):
    return " <- ".join(report["frames"]) or report["title"]


class Program:
    """What the optimizer made of functions, read from the program itself."""

    def __init__(self, path):
        self.path = path
        table = subprocess.run(["nm", "--defined-only", path], capture_output=True, text=True, check=True)
        self.symbols = {line.split()[-1] for line in table.stdout.splitlines()}

    def jumps(self, symbol):
        """Whether the function leaves by jumps into others, so that it is not on the stack below them."""
        code = subprocess.run(
            ["objdump", "-d", "--no-show-raw-insn", f"--disassemble={symbol}", self.path],
            capture_output=True, text=True, check=True).stdout
        targets = re.findall(r"\bjmp\s+[0-9a-f]+ <([^>+]+)(\+0x[0-9a-f]+)?>", code)
        return any(target != symbol for target, _ in targets) or re.search(r"\bjmp\s+\*", code) is not None


class Reasons:
    """Why a report is not in its site's group: what the build's program has of the functions that are missing."""

    def __init__(self, programs, reports):
        self.programs = {build: Program(path) for build, path in programs.items()}
        self.known = {}
        # The symbols of every function, as the build that was not optimized shows them.
        self.symbols = collections.defaultdict(set)
        self.first = next(iter(programs))
        for report in reports:
            if report["build"] != self.first:
                continue
            for frame in (f for s in report["samples"] for f in s["stack"]):
                if frame["function"] and frame["raw_name"]:
                    self.symbols[bare(frame["function"])].add(frame["raw_name"])

    def why(self, report, usual):
        stack = {bare(f["function"]) for s in report["samples"] for f in s["stack"] if f["function"]}
        expected, found = usual["frames"], report["frames"]
        missing = [f for f in expected if f not in found and bare(f) not in stack]
        if report["without_app_frame"]:
            return "no function of the app was on its stacks"
        if missing:
            return self.fate(missing[0], report["build"])
        if any(f not in found for f in expected):
            return "helpers: another function held more of this stall's time"
        other = {bare(f["function"]) for s in usual["samples"] for f in s["stack"] if f["function"]}
        extra = [f for f in found if f not in expected and bare(f) not in other]
        if extra:
            return self.fate(extra[0], usual["build"])
        return "not explained"

    def fate(self, function, build):
        key = (function, build)
        if key not in self.known:
            symbols, program = self.symbols[bare(function)], self.programs[build]
            left = symbols & program.symbols
            if build == self.first or not symbols:
                self.known[key] = f"not explained: {function}"
            elif not left:
                self.known[key] = f"inlined: the program has no {function} of its own"
            elif any(program.jumps(symbol) for symbol in left):
                self.known[key] = f"tail call: {function} jumps to what it calls last"
            else:
                self.known[key] = f"inlined or specialized here: {function} is in the program, and makes no jump"
        return self.known[key]


def bare(function):
    """A function's name without what differs from build to build."""
    function = re.sub(r"\b(specialized|static|merged|partial apply for|protocol witness for) ", "", function)
    return re.sub(r" in conformance .*", "", function)


def misses(reports, key, group, reasons):
    """The reports that are not in the group that most reports of their site are in, counted by what they have in common."""
    by_site = collections.defaultdict(list)
    for report in reports:
        by_site[key(report)].append(report)
    found = collections.Counter()
    for site, members in by_site.items():
        usual, _ = collections.Counter(r[group] for r in members).most_common(1)[0]
        example = next(r for r in members if r[group] == usual)
        for report in members:
            if report[group] != usual:
                name = site if isinstance(site, str) else " from ".join(site)
                found[(name, report["build"], path(example), path(report), reasons.why(report, example))] += 1
    return found


def show(title, found):
    print(f"{title}: {sum(found.values())}")
    by_reason = collections.defaultdict(list)
    for (site, build, expected, got, why), count in sorted(found.items()):
        by_reason[why].append((count, site, build, expected, got))
    for why, cases in sorted(by_reason.items(), key=lambda item: -sum(c[0] for c in item[1])):
        print(f"  {sum(c[0] for c in cases)} {why}")
        for count, site, build, expected, got in cases[:3]:
            print(f"      {count} of {site} ({build}): {got}, not {expected}")
        if len(cases) > 3:
            print(f"      and {len(cases) - 3} more sites and callers like these")


def main():
    reports, programs = [], {}
    for argument in sys.argv[1:]:
        build, paths = argument.split("=", 1)
        hits_path, reports_path, programs[build] = paths.split(",")
        hits, found, strays = read(build, hits_path, reports_path)
        without = sum(not any(s["stack"] and not s["late"] for s in r["samples"]) for r in found)
        found = [r for r in found if any(s["stack"] and not s["late"] for s in r["samples"])]
        seen = len({(r["site"], r["caller"], r["leaf"]) for r in found})
        print(f"{build}: {len(hits)} hits, {seen} of them reported with a stack, {without} without, "
              f"{strays} reports of nothing planted")
        reports += found

    reasons = Reasons(programs, reports)
    precision, recall = agreement(reports, lambda r: r["site"], "family")
    shared = collections.defaultdict(set)
    for report in reports:
        shared[report["family"]].add(report["site"])
    for family, sites in sorted(shared.items()):
        if len(sites) > 1:
            print(f"one family for several sites: {', '.join(sorted(sites))}: "
                  + next(path(r) for r in reports if r["family"] == family))
    show("reports outside of their site's family", misses(reports, lambda r: r["site"], "family", reasons))
    usual = {}
    for site in {r["site"] for r in reports}:
        for build in {r["build"] for r in reports}:
            families = collections.Counter(r["family"] for r in reports if (r["site"], r["build"]) == (site, build))
            if families:
                usual.setdefault(site, set()).add(families.most_common(1)[0][0])
    site_count = len({r["site"] for r in reports})
    agreeing = sum(len(families) == 1 for families in usual.values())
    print(f"sites whose family is the same in all builds: {agreeing} of {len(usual)}")
    # What the source says: a function and its next two callers, which is what the build shows that was not optimized.
    # Where the way to a site is longer than three functions, several of the planted callers are one signature.
    first = next(iter(programs))
    shown = collections.defaultdict(collections.Counter)
    for report in reports:
        if report["build"] == first:
            shown[report["site"], report["caller"]][report["signature"]] += 1
    source = {key: counts.most_common(1)[0][0] for key, counts in shown.items()}
    reports = [r for r in reports if (r["site"], r["caller"]) in source]
    truth = lambda r: source[r["site"], r["caller"]]
    example = {truth(r): (r["site"], r["caller"]) for r in reports}
    signatures = agreement(reports, truth, "signature")
    show("reports outside of the signature that the source gives them",
         misses(reports, lambda r: example[truth(r)], "signature", reasons))
    for build in programs:
        equal = sum(r["signature"] == truth(r) for r in reports if r["build"] == build)
        count = sum(r["build"] == build for r in reports)
        print(f"signatures of {build}: {equal} of {count} as the source gives them")
    print(f"signatures: precision={signatures[0]:.3f} recall={signatures[1]:.3f}")
    print(f"truth grouping precision={precision:.3f} recall={recall:.3f} "
          f"groups={len(shared)} sites={site_count}")
    return 0 if precision >= 0.98 and recall >= 0.98 else 1


sys.exit(main())

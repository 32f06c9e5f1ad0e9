"""Holds the groups of reports against the sites that were hit: see scripts/truth-grouping.

usage: truth_grouping.py BUILD=HITS,REPORTS ...

HITS is what grouping-victims printed, REPORTS the store's reports as JSON lines, in the order of the builds."""

import collections
import json
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


def reason(report, usual):
    """Why a report is not in its site's group, as far as its frames tell."""
    frames, expected = report["frames"], usual["frames"]
    if report["without_app_frame"]:
        return "no function of the app was on its stacks"
    if frames and frames[0] in expected[1:]:
        return "the compiler inlined the function into its caller, or jumped from it"
    if expected and expected[0] in frames[1:]:
        return "a helper that the function calls accounts for it"
    if frames[:1] == expected[:1]:
        return "the callers differ: inlined, or jumped from"
    return "named after another function: inlined, or merged with one of the same code"


def misses(reports, key, group):
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
                found[(name, report["build"], path(example), path(report), reason(report, example))] += 1
    return found


def show(title, found):
    print(f"{title}: {sum(found.values())}")
    for (site, build, expected, got, why), count in sorted(found.items()):
        print(f"  {site} ({build}, {count} times): {why}")
        print(f"      expected {expected}")
        print(f"      got      {got}")


def main():
    reports = []
    for argument in sys.argv[1:]:
        build, paths = argument.split("=", 1)
        hits, found, strays = read(build, *paths.split(","))
        seen = len({(r["site"], r["caller"], r["leaf"]) for r in found})
        print(f"{build}: {len(hits)} hits, {seen} of them reported, {strays} reports of nothing planted")
        reports += found

    precision, recall = agreement(reports, lambda r: r["site"], "family")
    shared = collections.defaultdict(set)
    for report in reports:
        shared[report["family"]].add(report["site"])
    for family, sites in sorted(shared.items()):
        if len(sites) > 1:
            print(f"one family for several sites: {', '.join(sorted(sites))}: "
                  + next(path(r) for r in reports if r["family"] == family))
    show("reports outside of their site's family", misses(reports, lambda r: r["site"], "family"))
    usual = {}
    for site in {r["site"] for r in reports}:
        for build in {r["build"] for r in reports}:
            families = collections.Counter(r["family"] for r in reports if (r["site"], r["build"]) == (site, build))
            if families:
                usual.setdefault(site, set()).add(families.most_common(1)[0][0])
    agreeing = sum(len(families) == 1 for families in usual.values())
    print(f"sites whose family is the same in all builds: {agreeing} of {len(usual)}")
    signatures = agreement(reports, lambda r: (r["site"], r["caller"]), "signature")
    show("reports outside of the signature of their site and caller",
         misses(reports, lambda r: (r["site"], r["caller"]), "signature"))
    print(f"signatures of site and caller: precision={signatures[0]:.3f} recall={signatures[1]:.3f}")
    print(f"truth grouping precision={precision:.3f} recall={recall:.3f} "
          f"groups={len(shared)} sites={len({r['site'] for r in reports})}")
    return 0 if precision >= 0.98 and recall >= 0.98 else 1


sys.exit(main())

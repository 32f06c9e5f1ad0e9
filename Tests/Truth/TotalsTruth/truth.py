"""What a central store must say, computed from the fleet itself: plain sums over plain lists."""

import collections
import math

from fleet import CAUSES, DAY_US, LOSSES, STATES, SUPPRESSIONS, VERDICTS


class Truth:
    """All that a fleet's stores hold, each fact once."""

    def __init__(self, stores, knows_watched=True):
        self.reports, self.exposures = {}, {}
        self.losses, self.suppressions = {}, {}
        # Copies that diverged are separate stores.
        self.stores = stores
        for store in stores:
            for report in store.reports:
                known = self.reports.get(report.uuid)
                # Copies that both continued with an open stall: the one that recorded most of it.
                if known is None or (report.state != 0, report.duration_ns) > (known.state != 0, known.duration_ns):
                    self.reports[report.uuid] = report
            if not knows_watched:
                continue
            for span in store.exposures:
                self.exposures[span.run.uuid, span.loop, span.start_us] = span
            # Copies of a store describe one process: the one with the largest counts wins.
            for key, loss in store.losses.items():
                self.losses[key] = max(self.losses.get(key, loss), loss, key=lambda entry: entry[1])
            for key, held in store.suppressions.items():
                self.suppressions[key] = max(self.suppressions.get(key, held), held, key=lambda entry: entry[1:3])
        watched = {(run, loop) for run, loop, _ in self.exposures}
        for report in self.reports.values():
            report.watched = (report.run.uuid, report.loop) in watched

    def select(self, question, verdicts=("stalled",)):
        return [report for report in self.reports.values()
                if (verdicts is None or VERDICTS[report.verdict] in verdicts) and question.allows(report)]

    def watched_ns(self, question, name=lambda span: None):
        """The watched time of the loops that are asked about, by a name; stretches are cut at the ends of the time."""
        sums = collections.Counter()
        for span in self.exposures.values():
            if question.allows_loop(span.run, span.loop):
                part = question.part(span)
                if part > 0:
                    sums[name(span)] += part
        return sums


class Question:
    """What is asked about: the options of a command, and which facts they select."""

    def __init__(self, app=None, version=None, host=None, loop=None, cause=None, since=None, until=None):
        self.app, self.version, self.host, self.loop, self.cause = app, version, host, loop, cause
        self.since, self.until = since, until

    def allows_loop(self, run, loop):
        return (self.app in (None, run.app) and self.version in (None, run.version)
                and self.host in (None, run.host) and self.loop in (None, loop))

    def allows(self, report):
        return (self.allows_loop(report.run, report.loop)
                and (self.cause is None or report.cause is not None and CAUSES[report.cause] == self.cause)
                and (self.since is None or report.start_us >= self.since)
                and (self.until is None or report.start_us < self.until))

    def part(self, span):
        begin, end = span.start_us, span.start_us + span.watched_ns // 1000
        first = begin if self.since is None else max(begin, self.since)
        last = end if self.until is None else min(end, self.until)
        return span.watched_ns if (first, last) == (begin, end) else max(0, last - first) * 1000

    @property
    def has_time(self):
        return self.since is not None or self.until is not None

    def options(self):
        out = []
        for name in ("app", "version", "host", "loop", "cause"):
            if getattr(self, name) is not None:
                out += [f"--{name}", getattr(self, name)]
        for name in ("since", "until"):
            if getattr(self, name) is not None:
                out += [f"--{name}", rfc3339(getattr(self, name))]
        return out


def rfc3339(time_us):
    import datetime
    moment = datetime.datetime.fromtimestamp(time_us // 1_000_000, datetime.timezone.utc)
    return moment.strftime("%Y-%m-%dT%H:%M:%S") + f".{time_us % 1_000_000:06}Z"


def quantile(part, ordered):
    return ordered[max(0, math.ceil(part * len(ordered) - 1e-9) - 1)]


def group_key(key, report):
    """Groups of functions are the program's: a C function is known by its name and the file it is in."""
    functions = {"signature": (report.run.app, *report.frames), "family": (report.run.app, report.frames[0]),
                 "function": report.frames[0]}
    facts = {"cause": "unknown cause" if report.cause is None else CAUSES[report.cause], "loop": report.loop,
             "version": f"{report.run.app} {report.run.version}", "host": report.run.host, "app": report.run.app}
    return functions[key] if key in functions else facts[key]


def grouped(key, reports):
    groups = collections.defaultdict(list)
    for report in reports:
        groups[group_key(key, report)].append(report)
    if key != "signature":
        return groups
    # A stack that was cut counts in the group of whole stacks that it is the beginning of: the one that lost the most.
    whole = {name for name, members in groups.items() if not all(report.is_cut for report in members)}
    lost = {name: sum(report.duration_ns for report in members) for name, members in groups.items()}
    targets = {}
    for name in groups:
        if name in whole:
            continue
        fits = [other for other in whole if other[:len(name)] == name]
        if not fits:
            fits = [other for other in groups if other not in whole and len(other) > len(name) and other[:len(name)] == name]
        if fits:
            targets[name] = max(fits, key=lambda other: lost[other])
    for name in sorted(targets, key=len, reverse=True):
        groups[targets[name]] = groups[targets[name]] + groups.pop(name)
    return groups


def title(name, reports, cause):
    """`sleep in work1 <- caller2`. The word is the cause's; without causes, what stalls of whole stacks waited for with the
    most time."""
    whole = [report for report in reports if not report.is_cut and (report.run.app, *report.frames) == name]
    heard = whole or [report for report in reports if (report.run.app, *report.frames) == name]
    lost = collections.Counter()
    for report in heard:
        lost[report.wait] += report.duration_ns
    most = max(lost.values())
    waits = [wait for wait, total in lost.items() if total == most] if cause is None else [cause]
    ending = "" if whole else " <- …"
    return min((f"{wait} in " if wait not in (None, "cpu", "unknown") else "") + " <- ".join(name[1:3]) + ending
               for wait in waits)


def hotspots(truth, question, key):
    """The groups, by what makes them."""
    watched_all = truth.watched_ns(question)[None]
    names = {"loop": lambda span: span.loop, "version": lambda span: f"{span.run.app} {span.run.version}",
             "host": lambda span: span.run.host, "app": lambda span: span.run.app}
    watched = truth.watched_ns(question, names[key]) if key in names else None
    reports = truth.select(question)
    total = sum(report.duration_ns for report in reports)
    out = {}
    for name, members in grouped(key, reports).items():
        ordered = sorted(report.duration_ns for report in members)
        rated = [report.duration_ns for report in members if report.watched]
        causes = collections.Counter()
        for report in members:
            if report.cause is not None:
                causes[report.cause] += report.duration_ns
        hours = (watched[name] if watched is not None else watched_all) / 3.6e12
        out[name] = {
            "count": len(members), "total_ms": sum(ordered) / 1e6, "share": sum(ordered) / total,
            "p50_ms": quantile(0.5, ordered) / 1e6, "p95_ms": quantile(0.95, ordered) / 1e6,
            "p99_ms": quantile(0.99, ordered) / 1e6, "max_ms": ordered[-1] / 1e6,
            "first_seen": rfc3339(min(report.start_us for report in members)),
            "last_seen": rfc3339(max(report.start_us for report in members)),
            "apps": sorted({report.run.app for report in members}),
            "versions": sorted({report.run.version for report in members}),
            "cause": CAUSES[min(causes, key=lambda cause: (-causes[cause], cause))] if causes else None,
            "watched_count": len(rated), "watched_total_ms": sum(rated) / 1e6,
            "own_ms": sum(report.own_ns for report in members) / 1e6,
            "rate_ms_per_hour": sum(rated) / 1e6 / hours if hours > 0 else None,
        }
        if key == "signature":
            out[name]["title"] = title(name, members, out[name]["cause"])
    return out


def inclusive(truth, question):
    """Each function of an app with the stalls that have it anywhere on their stacks, each once: by app and name."""
    members = collections.defaultdict(list)
    for report in truth.select(question):
        for function in set(report.frames):
            members[report.run.app, function].append(report)
    return {name: (len(parts), sum(part.duration_ns for part in parts) / 1e6,
                   max(part.duration_ns for part in parts) / 1e6, sum(part.own_ns for part in parts) / 1e6)
            for name, parts in members.items()}


def tree(truth, question):
    """Calls from the outermost function on: each path with the stalls that came along it."""
    paths = collections.defaultdict(list)
    for report in truth.select(question):
        functions = tuple(reversed(report.frames))
        for depth in range(len(functions)):
            paths[(report.run.app, *functions[:depth + 1])].append(report.duration_ns)
    return {path: (len(parts), sum(parts) / 1e6) for path, parts in paths.items()}


TREND_PARTS = 8


def trend_ms(reports, first_us, last_us):
    """The time lost in each of eight equal parts of the time from the first stall to the last, which is in the last part."""
    span = max(last_us - first_us + 1, TREND_PARTS)
    bounds = [first_us + span * part // TREND_PARTS for part in range(TREND_PARTS + 1)]
    sums = [0] * TREND_PARTS
    for report in reports:
        part = max(part for part in range(TREND_PARTS) if bounds[part] <= report.start_us)
        sums[part] += report.duration_ns
    return [total / 1e6 for total in sums]


def status(truth):
    reports = list(truth.reports.values())
    loops = collections.defaultdict(collections.Counter)
    lengths = collections.defaultdict(collections.Counter)
    for span in truth.exposures.values():
        loop = loops[span.loop]
        for name, value in (("watched_ms", span.watched_ns / 1e6), ("busy_ms", span.busy_ns / 1e6),
                            ("ready_delay_ms", span.ready_ns / 1e6), ("micro_stall_count", span.micro_count),
                            ("micro_stall_ms", span.micro_ns / 1e6), ("iterations", sum(span.counts.values()))):
            loop[name] += value
        lengths[span.loop].update(span.counts)
    for report in reports:
        if VERDICTS[report.verdict] == "stalled" and report.loop in loops:
            loops[report.loop]["lost" if report.watched else "unwatched_lost_ms"] += report.duration_ns / 1e6
    for name, loop in loops.items():
        loop["rate_ms_per_hour"] = loop.pop("lost", 0) / loop["watched_ms"] * 3.6e6
        loop["unwatched_lost_ms"] += 0
        loop["iteration_p99_ms"] = iteration_quantile(lengths[name], 0.99)
    held = truth.suppressions.items()
    losses = collections.Counter()
    for (_, reason), (_, count, _) in truth.losses.items():
        losses[LOSSES[reason]] += count
    return {
        "report_count": len(reports), "source_count": len(truth.stores),
        "run_count": None,
        "states": dict(collections.Counter(STATES[report.state] for report in reports)),
        "verdicts": dict(collections.Counter(VERDICTS[report.verdict] for report in reports)),
        "first_seen": rfc3339(min(report.start_us for report in reports)),
        "last_seen": rfc3339(max(report.start_us for report in reports)),
        "losses": dict(losses), "loops": loops,
        "suppressed": {
            "count": sum(entry[1] for _, entry in held), "total_ms": sum(entry[2] for _, entry in held) / 1e6,
            "place_count": len({key[2] for key, _ in held}),
            "reasons": dict(sum((collections.Counter({SUPPRESSIONS[key[3]]: entry[1]}) for key, entry in held),
                                collections.Counter()))},
    }


def iteration_quantile(counts, part):
    """The upper bound of the bucket that the quantile is in."""
    wanted, seen = max(1, math.ceil(sum(counts.values()) * part)), 0
    for bucket in sorted(counts):
        seen += counts[bucket]
        if seen >= wanted:
            bucket += 1
            return (bucket if bucket < 8 else (8 + bucket % 8) << (bucket // 8 - 1)) / 1e3
    return None


def trend(truth, question):
    """Each day (UTC) from the first stall to the last one."""
    days = collections.defaultdict(list)
    for report in truth.select(question):
        days[report.start_us // DAY_US].append(report.duration_ns)
    return [(rfc3339(day * DAY_US), len(days[day]), sum(days[day]) / 1e6, max(days[day], default=0) / 1e6)
            for day in range(min(days), max(days) + 1)] if days else []


def comparison(truth, sides):
    """All together, and by group: what each side lost, of watched loops where both sides have watched time."""
    watched = [truth.watched_ns(side)[None] for side in sides]
    reports = [truth.select(side) for side in sides]
    are_watched = all(watched)
    compared = [[report for report in side if report.watched] if are_watched else side for side in reports]
    row = {}
    for letter, side, part, hours in zip("ab", reports, compared, watched):
        row[f"count_{letter}"] = len(side)
        row[f"total_ms_{letter}"] = sum(report.duration_ns for report in side) / 1e6
        row[f"compared_count_{letter}"] = len(part)
        row[f"compared_total_ms_{letter}"] = sum(report.duration_ns for report in part) / 1e6
        row[f"rate_ms_per_hour_{letter}"] = row[f"compared_total_ms_{letter}"] / (hours / 3.6e12) if are_watched else None
    if row["compared_total_ms_a"]:
        row["ratio"] = row["compared_total_ms_b"] / row["compared_total_ms_a"]
        if are_watched:
            row["ratio"] /= watched[1] / watched[0]
    return row

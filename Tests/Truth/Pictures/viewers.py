#!/usr/bin/env python3
"""Holds what `stallctl export` writes for viewers against the reports of the store, with decoders of its own.

usage: viewers.py FOLDER [STORE ...]       $STALLCTL names the program; without a store it makes two

SABOTAGE=1 changes one number of what was decided: then it must say failed. The last line is the result:
viewers checks=N failed=N"""

import collections
import gzip
import json
import math
import os
import re
import shutil
import subprocess
import sys

import lines

STALLCTL = os.environ["STALLCTL"]
SABOTAGE = os.environ.get("SABOTAGE") == "1"


class Checks:
    def __init__(self):
        self.count, self.failed = 0, 0

    def expect(self, condition, text):
        self.count += 1
        if not condition:
            self.failed += 1
            print("FAILED", text, flush=True)


def export(store, form, path=None):
    command = [STALLCTL, "export", "--store", store, "--format", form] + (["-o", path] if path else [])
    done = subprocess.run(command, capture_output=True)
    assert done.returncode == 0, (form, done.stderr)
    return done.stdout


class Truth:
    """What the reports themselves say, from `export --format jsonl` and `top --json`."""

    def __init__(self, store):
        self.reports = [json.loads(line) for line in export(store, "jsonl").decode().splitlines()]
        self.stalls = [r for r in self.reports if r["verdict"] == "stalled"]
        self.total_ns = sum(round(r["duration_ms"] * 1e6) for r in self.stalls)
        self.flat = collections.Counter()
        self.flow_count = 0
        for report in self.stalls:
            duration = round(report["duration_ms"] * 1e6)
            seen = [s for s in report["samples"] if not s["late"] and s["stack"]]
            weights = [max(round(s["weight_ms"] * 1e6), 1) for s in seen]
            for sample, weight in zip(seen, weights):
                self.flat[title(sample["stack"][0])] += duration * weight / sum(weights)
            if not seen:
                self.flat["[no stack]"] += duration
            cause = report["cause"]
            if cause and cause["class"] == "lock" and cause["lock_holder"]:
                self.flow_count += 1
        top = subprocess.run([STALLCTL, "top", "--store", store, "--json", "--limit", "100000"], capture_output=True, text=True).stdout
        self.groups = [json.loads(line) for line in top.splitlines()]
        self.top_ms = sum(group["total_ms"] for group in self.groups)
        self.top_count = sum(group["count"] for group in self.groups)

    def is_same_flat(self, flat, tolerance_ns):
        names = set(flat) | set(self.flat)
        return all(abs(flat.get(name, 0) - self.flat.get(name, 0)) <= tolerance_ns for name in names)


def title(frame):
    if frame["function"] is not None:
        return frame["function"]
    image = (frame["image"] or "").split("/")[-1] or frame["image"] or "unknown"
    return f"{image}+{frame['offset']}"


# The wire format of protocol buffers.

def fields(data):
    position = 0

    def varint():
        nonlocal position
        shift = value = 0
        while True:
            byte = data[position]
            position += 1
            value |= (byte & 0x7f) << shift
            shift += 7
            if byte < 0x80:
                return value
    while position < len(data):
        key = varint()
        if key & 7 == 0:
            yield key >> 3, varint()
        elif key & 7 == 2:
            size = varint()
            yield key >> 3, data[position:position + size]
            position += size
        else:
            raise ValueError(f"wire type {key & 7}")


def signed(value):
    return value - (1 << 64) if value >= 1 << 63 else value


def packed(data):
    values, value, shift = [], 0, 0
    for byte in data:
        value |= (byte & 0x7f) << shift
        shift += 7
        if byte < 0x80:
            values.append(value)
            value = shift = 0
    return values


def check_pprof(checks, store, truth, folder):
    path = os.path.join(folder, "stalls.pb.gz")
    export(store, "pprof", path)
    strings, samples, locations, functions, mappings, types = [], [], {}, {}, {}, []
    scalars = {}
    for number, value in fields(gzip.open(path).read()):
        if number == 6:
            strings.append(value.decode())
        elif number == 2:
            samples.append(list(fields(value)))
        elif number == 4:
            entry = list(fields(value))
            locations[dict(entry)[1]] = entry
        elif number == 5:
            entry = dict(fields(value))
            functions[entry[1]] = entry
        elif number == 3:
            entry = dict(fields(value))
            mappings[entry[1]] = entry
        elif number == 1:
            types.append(dict(fields(value)))
        else:
            scalars[number] = value
    checks.expect(strings[0] == "" and len(set(strings)) == len(strings), "pprof: the string table begins with nothing and has no doubles")
    named = [(strings[t[1]], strings[t[2]]) for t in types]
    checks.expect(named == [("stalls", "count"), ("duration", "nanoseconds")], f"pprof: sample types {named}")
    checks.expect(strings[scalars[14]] == "duration", "pprof: the default type is the duration")
    stalls = duration = 0
    flat = collections.Counter()
    is_known, has_labels = True, True
    for sample in samples:
        ids = packed(dict(sample)[1])
        values = packed(dict(sample)[2])
        stalls += values[0]
        duration += signed(values[1])
        is_known = is_known and all(id in locations and id > 0 for id in ids)
        function = dict(fields([v for n, v in locations[ids[0]] if n == 4][0]))[1]
        flat[strings[functions[function].get(2, 0)]] += values[1]
        keys = [strings[dict(fields(v))[1]] for n, v in sample if n == 3]
        has_labels = has_labels and len(set(keys)) == len(keys) and {"app", "version", "loop"} <= set(keys)
    duration += 1 if SABOTAGE else 0
    checks.expect(is_known, "pprof: a sample names only locations that there are")
    checks.expect(has_labels, "pprof: each sample has app, version and loop, each key once")
    checks.expect(stalls == len(truth.stalls) == truth.top_count, f"pprof: {stalls} stalls, the store has {len(truth.stalls)}")
    checks.expect(duration == truth.total_ns, f"pprof: {duration} ns, the store has {truth.total_ns}")
    checks.expect(truth.is_same_flat(flat, len(truth.stalls) * 10), "pprof: the time of each innermost function")
    checks.expect(all(dict(fields(v)).get(1) in functions for entry in locations.values() for n, v in entry if n == 4),
                  "pprof: a location names only functions that there are")
    checks.expect(all(dict(e).get(2, 0) == 0 or dict(e)[2] in mappings for e in locations.values()), "pprof: a location names only mappings that there are")
    if shutil.which("go"):
        environment = dict(os.environ, HOME=folder, PPROF_TMPDIR=folder)
        for index, want in (("duration", truth.top_ms), ("stalls", truth.top_count)):
            done = subprocess.run(["go", "tool", "pprof", "-top", "-nodecount=5", "-unit=ms", f"-sample_index={index}", path], capture_output=True,
                                  text=True, env=environment)
            found = re.search(r"of ([\d.]+)(ms)? total", done.stdout)
            checks.expect(done.returncode == 0 and found and abs(float(found[1]) - want) < 0.02,
                          f"go tool pprof: {index} is {found and found[1]}, top says {want} {done.stderr[-300:]}")
    else:
        print("go is missing: go tool pprof was not asked", file=sys.stderr)


SPEEDSCOPE_SCHEMA = {
    "type": "object", "required": ["$schema", "shared", "profiles"],
    "properties": {
        "$schema": {"const": "https://www.speedscope.app/file-format-schema.json"}, "name": {"type": "string"}, "exporter": {"type": "string"},
        "activeProfileIndex": {"type": "number", "minimum": 0},
        "shared": {"type": "object", "required": ["frames"], "properties": {"frames": {"type": "array", "items": {
            "type": "object", "required": ["name"], "properties": {
                "name": {"type": "string"}, "file": {"type": "string"}, "line": {"type": "number"}, "col": {"type": "number"}}}}}},
        "profiles": {"type": "array", "minItems": 1, "items": {
            "type": "object", "required": ["type", "name", "unit", "startValue", "endValue", "samples", "weights"], "properties": {
                "type": {"const": "sampled"}, "unit": {"enum": ["none", "nanoseconds", "microseconds", "milliseconds", "seconds", "bytes"]},
                "name": {"type": "string"}, "startValue": {"type": "number"}, "endValue": {"type": "number"},
                "samples": {"type": "array", "items": {"type": "array", "items": {"type": "integer", "minimum": 0}}},
                "weights": {"type": "array", "items": {"type": "number"}}}}}}}


def fits(value, schema):
    """As much of JSON Schema as the schema above needs."""
    kinds = {"object": dict, "array": list, "string": str, "number": (int, float), "integer": int}
    if "const" in schema and value != schema["const"] or "enum" in schema and value not in schema["enum"]:
        return False
    if "type" in schema and (not isinstance(value, kinds[schema["type"]]) or isinstance(value, bool)):
        return False
    if "minimum" in schema and value < schema["minimum"]:
        return False
    if isinstance(value, dict):
        return set(schema.get("required", [])) <= set(value) and all(
            fits(value[key], sub) for key, sub in schema.get("properties", {}).items() if key in value)
    if isinstance(value, list):
        return len(value) >= schema.get("minItems", 0) and all(fits(item, schema.get("items", {})) for item in value)
    return True


def check_speedscope(checks, store, truth, _):
    document = json.loads(export(store, "speedscope"))
    checks.expect(fits(document, SPEEDSCOPE_SCHEMA), "speedscope: fits the schema")
    frames, flat, total, is_whole = document["shared"]["frames"], collections.Counter(), 0, True
    for profile in document["profiles"]:
        is_whole = is_whole and len(profile["samples"]) == len(profile["weights"]) and math.isclose(
            profile["endValue"], sum(profile["weights"]), rel_tol=1e-9)
        for sample, weight in zip(profile["samples"], profile["weights"]):
            is_whole = is_whole and all(index < len(frames) for index in sample)
            flat[frames[sample[-1]]["name"]] += weight * 1e6
            total += round(weight * 1e6)
    checks.expect(is_whole, "speedscope: as many weights as samples, indices in range, ends are sums")
    checks.expect(total == truth.total_ns, f"speedscope: {total} ns, the store has {truth.total_ns}")
    checks.expect(truth.is_same_flat(flat, len(truth.stalls) * 10), "speedscope: the time of each innermost function")
    loops = {f"{r['app']} {r['loop']}" for r in truth.stalls}
    checks.expect(len(document["profiles"]) == min(len(loops), 64), "speedscope: a profile a loop")


def check_chrome(checks, store, truth, _):
    events = json.loads(export(store, "chrome-trace"))["traceEvents"]
    slices = collections.defaultdict(list)
    for event in events:
        if event["ph"] == "X":
            slices[event["pid"], event["tid"]].append((round(event["ts"] * 1000), round(event["dur"] * 1000), event))
    stalls = [entry for track in slices.values() for entry in track if entry[2]["cat"] == "stall"]
    checks.expect(len(stalls) == len(truth.stalls), "chrome trace: a slice a stall")
    total = sum(entry[1] for entry in stalls)
    checks.expect(total == truth.total_ns, f"chrome trace: {total} ns of stalls, the store has {truth.total_ns}")
    checks.expect({e[2]["args"]["id"] for e in stalls} == {r["id"] for r in truth.stalls}, "chrome trace: the stalls' ids")
    nests, flat = True, collections.Counter()
    for track in slices.values():
        open_slices = []
        for begin, length, event in sorted(track, key=lambda e: (e[0], -e[1])):  # stable: parents come first in the file
            while open_slices and open_slices[-1][1] <= begin:
                open_slices.pop()
            if open_slices:
                nests = nests and begin + length <= open_slices[-1][1]
                if open_slices[0][2] == "stall" and len(open_slices) > 1:
                    flat[open_slices[-1][3]] -= length
            if open_slices and open_slices[0][2] == "stall":
                flat[event["name"]] += length
            open_slices.append((begin, begin + length, event["cat"], event["name"]))
    checks.expect(nests, "chrome trace: slices of a track nest")
    want = {name: time for name, time in truth.flat.items() if name != "[no stack]"}
    names = set(want) | {n for n, t in flat.items() if t}
    checks.expect(all(abs(flat.get(n, 0) - want.get(n, 0)) <= len(truth.stalls) * 10 for n in names), "chrome trace: the time of each innermost function")
    starts = [e for e in events if e["ph"] == "s"]
    ends = [e for e in events if e["ph"] == "f"]
    checks.expect(len(starts) == len(ends) == truth.flow_count, f"chrome trace: {len(starts)} arrows, {truth.flow_count} stalls with a known holder")
    checks.expect({e["id"] for e in starts} == {e["id"] for e in ends} and len({e["id"] for e in starts}) == len(starts), "chrome trace: arrows in pairs")
    tracks = {(e["pid"], e["tid"]): e["args"]["name"] for e in events if e["ph"] == "M" and e["name"] == "thread_name"}
    checks.expect(all(tracks[e["pid"], e["tid"]].endswith(": lock holder") for e in ends) and all(
        not tracks[e["pid"], e["tid"]].endswith(": lock holder") for e in starts), "chrome trace: arrows lead from the waiter to the holder")
    checks.expect(set(slices) <= set(tracks), "chrome trace: each track has a name")


def check_perf(checks, store, truth, _):
    text = export(store, "perf-script").decode()
    header = re.compile(r"(\S+)\s+(\d+)/(\d+)\s+\[\d+\]\s+(\d+\.\d{6}):\s+(\d+) stall:")
    total, flat, is_read = 0, collections.Counter(), True
    for block in text.split("\n\n"):
        if not block:
            continue
        first, *rest = block.split("\n")
        found = header.fullmatch(first)
        leaf = re.fullmatch(r"\t([0-9a-f]+) (.*) \((\S+)\)", rest[0]) if rest else None
        is_read = is_read and bool(found) and bool(leaf) and all(re.fullmatch(r"\t[0-9a-f]+ .* \(\S+\)", line) for line in rest)
        if found and leaf:
            total += int(found[5])
            flat[leaf[2]] += int(found[5])
    checks.expect(is_read, "perf script: every line has the form that stackcollapse-perf reads")
    without = round(truth.flat.get("[no stack]", 0))
    checks.expect(total == truth.total_ns - without, f"perf script: {total} ns, the store has {truth.total_ns - without} with stacks")
    plain = all(name.isprintable() for name in truth.flat)
    checks.expect(not plain or all(abs(flat.get(n, 0) - t) <= len(truth.stalls) * 10 for n, t in truth.flat.items() if n != "[no stack]"),
                  "perf script: the time of each innermost function")


# What samply's fxprof-processed-profile writes, with the names that version 66 has for them.
FIREFOX_KEYS = {
    "": {"counters", "libs", "meta", "pages", "profilerOverhead", "shared", "threads"},
    "shared": {"frameTable", "funcTable", "nativeSymbols", "resourceTable", "sources", "stackTable", "stringArray"},
    "frameTable": {"address", "category", "column", "func", "inlineDepth", "innerWindowID", "length", "line", "nativeSymbol", "subcategory"},
    "funcTable": {"columnNumber", "isJS", "length", "lineNumber", "name", "relevantForJS", "resource", "source"},
    "nativeSymbols": {"address", "functionSize", "length", "libIndex", "name"},
    "resourceTable": {"host", "length", "lib", "name", "type"},
    "sources": {"filename", "id", "length", "sourceMapURL", "startColumn", "startLine"},
    "stackTable": {"frame", "length", "prefixOffset"},
    "thread": {"isMainThread", "markers", "name", "pausedRanges", "pid", "processName", "processShutdownTime", "processStartupTime", "processType",
               "registerTime", "samples", "showMarkersInTimeline", "tid", "unregisterTime"},
    "markers": {"category", "data", "endTime", "length", "name", "phase", "startTime"},
    "samples": {"length", "stack", "time", "weight", "weightType"},
    "meta": {"categories", "debug", "extensions", "interval", "markerSchema", "pausedRanges", "preprocessedProfileVersion", "processType", "product",
             "sampleUnits", "sourceCodeIsNotOnSearchfox", "startTime", "symbolicated", "usesOnlyOneStackType", "version"},
    "lib": {"arch", "breakpadId", "codeId", "debugName", "debugPath", "name", "path"},
}


def check_firefox(checks, store, truth, _):
    profile = json.loads(export(store, "firefox"))
    shared = profile["shared"]
    parts = {"": profile, "shared": shared, "meta": profile["meta"], **{k: shared[k] for k in FIREFOX_KEYS if k in shared}}
    for name, part in parts.items():
        checks.expect(FIREFOX_KEYS[name] <= set(part), f"firefox: {name or 'profile'} lacks {FIREFOX_KEYS[name] - set(part)}")
    checks.expect(profile["meta"]["preprocessedProfileVersion"] == 66, "firefox: version 66")
    checks.expect(all(FIREFOX_KEYS["lib"] == set(lib) for lib in profile["libs"]), "firefox: keys of libraries")
    threads = profile["threads"]
    checks.expect(all(FIREFOX_KEYS["thread"] <= set(t) and FIREFOX_KEYS["samples"] == set(t["samples"]) and FIREFOX_KEYS["markers"] == set(t["markers"])
                      for t in threads), "firefox: keys of threads")

    def is_table(table):
        return all(len(column) == table["length"] for column in table.values() if isinstance(column, list))
    tables = [shared[k] for k in shared if isinstance(shared[k], dict)] + [t[k] for t in threads for k in ("samples", "markers")]
    checks.expect(all(map(is_table, tables)), "firefox: columns are as long as their tables")
    strings, frames, functions, stacks = shared["stringArray"], shared["frameTable"], shared["funcTable"], shared["stackTable"]
    checks.expect(all(0 <= offset <= index for index, offset in enumerate(stacks["prefixOffset"])), "firefox: a caller comes before what it calls")
    in_range = [(stacks["frame"], frames["length"]), (frames["func"], functions["length"]), (functions["name"], len(strings)),
                (frames["category"], len(profile["meta"]["categories"])), (shared["resourceTable"]["lib"], len(profile["libs"])),
                ([s for s in functions["source"] if s is not None], shared["sources"]["length"]), (shared["sources"]["filename"], len(strings)),
                ([r for r in functions["resource"] if r != -1], shared["resourceTable"]["length"])]
    in_range += [([s for s in t["samples"]["stack"] if s is not None], stacks["length"]) for t in threads]
    in_range += [(t["markers"]["name"], len(strings)) for t in threads]
    checks.expect(all(0 <= value < limit for column, limit in in_range for value in column), "firefox: indices are in range")
    checks.expect(all(t["samples"]["time"] == sorted(t["samples"]["time"]) for t in threads), "firefox: samples in order of time")
    flat, total = collections.Counter(), 0
    for thread in threads:
        for stack, weight in zip(thread["samples"]["stack"], thread["samples"]["weight"]):
            flat[strings[functions["name"][frames["func"][stacks["frame"][stack]]]]] += weight * 1e6
    marked = sum(round((e - s) * 1e6) for t in threads for s, e in zip(t["markers"]["startTime"], t["markers"]["endTime"]))
    checks.expect(abs(marked - truth.total_ns) <= len(truth.stalls) * 300, f"firefox: {marked} ns of markers, the store has {truth.total_ns}")
    truth_flat = {n: t for n, t in truth.flat.items() if n != "[no stack]"}
    checks.expect(all(abs(flat.get(n, 0) - t) <= len(truth.stalls) * 10 for n, t in truth_flat.items()), "firefox: the time of each innermost function")


def check_store(checks, store, folder):
    truth = Truth(store)
    for check in (check_pprof, check_speedscope, check_chrome, check_perf, check_firefox):
        check(checks, store, truth, folder)


def check_round_trip(checks, store, truth, folder):
    """Our own reader takes in what we write, and says the same of it."""
    path, copy = os.path.join(folder, "round.jsonl"), os.path.join(folder, "round.sqlite")
    export(store, "jsonl", path)
    for name in (copy, copy + "-lock"):
        if os.path.exists(name):
            os.remove(name)
    done = subprocess.run([STALLCTL, "ingest", "--store", copy, path], capture_output=True, text=True)
    checks.expect(done.returncode == 0, f"round trip: {done.stderr}")
    wrote, read = ({line for line in export(s, "jsonl").splitlines()} for s in (store, copy))
    checks.expect(wrote == read and len(read) == len(truth.reports), f"round trip: {len(wrote ^ read)} lines differ")
    again = Truth(copy)
    checks.expect((again.total_ns, again.top_count, again.flat) == (truth.total_ns, truth.top_count, truth.flat), "round trip: the same times")


def check_all(checks, stores, folder):
    for store in stores:
        check_store(checks, store, folder)
        check_round_trip(checks, store, Truth(store), folder)
    check_store(checks, lines.hostile_store(STALLCTL, folder), folder)
    check_store(checks, lines.broken_store(STALLCTL, folder), folder)


def main():
    folder, *stores = sys.argv[1:]
    os.makedirs(folder, exist_ok=True)
    checks = Checks()
    check_all(checks, stores or [lines.random_store(STALLCTL, folder, 5)], folder)
    print(f"viewers checks={checks.count} failed={checks.failed}")
    sys.exit(1 if checks.failed else 0)


if __name__ == "__main__":
    main()

# Compares the sampler's stacks with gdb's on programs that stall on purpose, and prints a matrix: victims by builds.
#
#     python3 scripts/truth_stacks.py      (run by scripts/truth-stacks, which builds the victims)
#
# Each victim in each build is looked at by a gdb of its own (truth_stack_in_gdb.py). Every miss is printed with both stacks.
# A victim that is not done by its deadline is killed together with its gdb, and each of its stacks is a miss.
#
# Environment: TRUTH_BUILDS (name=path, space separated), TRUTH_STOPS (stops of each running victim), TRUTH_DEADLINE
# (seconds for one victim in one build), TRUTH_JOBS (how many at a time), TRUTH_ONLY (a regular expression of scenarios).

import concurrent.futures
import json
import os
import re
import signal
import subprocess
import sys

BUILDS = [build.split("=", 1) for build in os.environ["TRUTH_BUILDS"].split()]
STOPS = int(os.environ.get("TRUTH_STOPS", "6"))
DEADLINE = int(os.environ.get("TRUTH_DEADLINE", "60"))
JOBS = int(os.environ.get("TRUTH_JOBS", "2"))
ONLY = re.compile(os.environ.get("TRUTH_ONLY", "."))
COUNTS = ("total", "equal", "caller", "gdb_lost", "no_frames")


def look(path, scenario):
    """The counts and notes of one scenario in one build."""
    expected = STOPS if scenario.startswith("cpu-") else 1
    gdb = subprocess.Popen(
        ["gdb", "-nx", "-batch", "-x", os.path.join(os.path.dirname(__file__), "truth_stack_in_gdb.py")],
        env=dict(os.environ, TRUTH_PROGRAM=path, TRUTH_SCENARIO=scenario, TRUTH_STOPS=str(STOPS)),
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True)
    why = "gdb ended early"
    try:
        output, _ = gdb.communicate(timeout=DEADLINE)
    except subprocess.TimeoutExpired:
        os.killpg(gdb.pid, signal.SIGKILL)
        output, why = "", f"not done within {DEADLINE} s"
        gdb.communicate()
    for line in output.splitlines():
        if line.startswith("RESULT "):
            result = json.loads(line.removeprefix("RESULT "))
            result["total"] = max(result["total"], expected)  # a stack that did not come is a miss
            return result
    return dict.fromkeys(COUNTS, 0) | {"total": expected, "notes": [why] + output.splitlines()[-3:]}


def cell(result):
    return f"{result['equal']}/{result['total']}".rjust(12)


def main():
    listed = subprocess.run([BUILDS[0][1]], stdout=subprocess.PIPE, text=True).stdout.split()
    scenarios = [scenario for scenario in listed if ONLY.search(scenario)]
    totals, missed = {name: dict.fromkeys(COUNTS, 0) for name, _ in BUILDS}, []
    print(f"{'':20}" + "".join(f"{name:>12}" for name, _ in BUILDS))
    with concurrent.futures.ThreadPoolExecutor(JOBS) as pool:
        looks = {(scenario, name): pool.submit(look, path, scenario) for scenario in scenarios for name, path in BUILDS}
        for scenario in scenarios:
            results = {name: looks[scenario, name].result() for name, _ in BUILDS}
            print(f"{scenario:20}" + "".join(map(cell, results.values())))
            for name, result in results.items():
                for count in COUNTS:
                    totals[name][count] += result[count]
                if result["equal"] < result["total"]:
                    missed.append(f"{scenario} ({name})")
                for note in result["notes"]:
                    print(f"    {name}: {note}")
            sys.stdout.flush()
    print(f"{'all':20}" + "".join(map(cell, totals.values())))
    total = {count: sum(t[count] for t in totals.values()) for count in COUNTS}
    print(f"stops where gdb was lost, taken again: {total['gdb_lost']}; words that gdb took for frames: {total['no_frames']}")
    print(f"missed: {', '.join(missed) or 'none'}")
    print(f"truth stacks equal={total['equal']} of={total['total']} app_caller={total['caller']} of={total['total']}")


main()

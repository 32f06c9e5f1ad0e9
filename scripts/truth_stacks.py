# Compares the sampler's stacks with gdb's, frame by frame, on programs that stall on purpose.
#
#     gdb -nx -batch -x scripts/truth_stacks.py      (run by scripts/truth-stacks, which builds the victims)
#
# A blocked victim prints its stack and stays blocked; gdb then looks at the same wait. A running one is stopped by gdb
# at the first instruction of its SIGPROF handler; what gdb sees outside of the signal frame is what the handler copies.
# Inlined and tail-called frames, which gdb shows and a return address does not, are left out. Where gdb itself is lost
# (an address outside of code; the instruction behind `pop %rbp` of a function without unwind tables, where it still
# believes in the frame that is gone), the victim is stopped again; the count of those stops is printed.
#
# Environment: TRUTH_BUILDS (name=path, space separated), TRUTH_STOPS (stops of each running victim), TRUTH_ONLY (a
# regular expression of scenarios), TRUTH_VERBOSE.

import os
import re
import subprocess
import sys

import gdb

BUILDS = [build.split("=", 1) for build in os.environ["TRUTH_BUILDS"].split()]
STOPS = int(os.environ.get("TRUTH_STOPS", "12"))
ONLY = re.compile(os.environ.get("TRUTH_ONLY", "."))
VERBOSE = bool(os.environ.get("TRUTH_VERBOSE"))

for setting in (
    "pagination off", "confirm off", "debuginfod enabled off", "backtrace limit 10000", "backtrace past-main on",
    "print thread-events off", "auto-load no", "suppress-cli-notifications on",
):
    gdb.execute("set " + setting, to_string=True)
gdb.execute("handle all nostop noprint pass", to_string=True)


class Comparison:
    """The counts of one scenario in one build."""

    def __init__(self):
        self.total = self.equal = self.caller = self.gdb_lost = 0
        self.notes = []


def gdb_addresses(tid):
    """The program counters of the physical frames of a thread; those outside the signal frame when gdb stands in our handler."""
    for thread in gdb.selected_inferior().threads():
        if tid in thread.ptid[1:]:
            thread.switch()
    addresses, frame = [], gdb.newest_frame()
    while frame is not None:
        if frame.type() not in (gdb.INLINE_FRAME, gdb.TAILCALL_FRAME):
            addresses.append((frame.pc(), frame.type() == gdb.SIGTRAMP_FRAME))
        try:
            frame = frame.older()
        except gdb.error as error:
            print("gdb:", error)
            break
    return addresses


def mapped_ranges(pid, is_wanted):
    """The mappings of a process whose line in /proc/PID/maps is wanted."""
    ranges = []
    with open(f"/proc/{pid}/maps") as maps:
        for line in maps:
            if is_wanted(line.split(maxsplit=5)):
                ranges.append(tuple(int(end, 16) for end in line.split()[0].split("-")))
    return ranges


def parse_stack(line):
    """'STACK method truncated address:kind:guessed ...' -> (physical addresses, async addresses, is truncated)."""
    fields = line.split()
    if fields[0] != "STACK":
        return None
    entries = [entry.split(":") for entry in fields[3:]]
    physical = [int(address, 16) for address, kind, _ in entries if kind != "2"]
    return physical, [int(a, 16) for a, kind, _ in entries if kind == "2"], fields[2] == "1"


def gdb_is_lost(addresses, code):
    """Whether gdb's stack cannot be the truth: see above. The selected thread stands in the handler."""
    if any(not any(low <= pc < high for low, high in code) for pc in addresses):
        return True
    frame = gdb.newest_frame()
    while frame.pc() != addresses[0]:
        frame = frame.older()
    memory = gdb.selected_inferior().read_memory
    before, at = bytes(memory(addresses[0] - 1, 2))
    top = int.from_bytes(bytes(memory(int(frame.read_register("rsp")) & (2**64 - 1), 8)), "little")
    return before == 0x5D and at in (0xC3, 0xE9, 0xEB) and top != addresses[1]


def compare(result, truth, line, ranges):
    result.total += 1
    stack = parse_stack(line)
    if stack is None:
        result.notes.append(line.strip())
        return
    ours, suspended, truncated = stack
    application = [pc for pc in truth if any(low <= pc < high for low, high in ranges)]
    equal = ours == truth and not truncated
    result.equal += equal
    result.caller += bool(application) and application[0] in ours
    if not equal:
        at = next((i for i, (a, b) in enumerate(zip(ours, truth)) if a != b), min(len(ours), len(truth)))
        result.notes.append(f"frame {at} of {len(truth)} (ours {len(ours)}{', truncated' if truncated else ''})")
        if VERBOSE:
            print("ours ", " ".join(f"{pc:x}" for pc in ours))
            print("truth", " ".join(f"{pc:x}" for pc in truth))


def ask(process):
    process.stdin.write("\n")
    process.stdin.flush()


def check_async(result, line):
    """The functions that await asyncLeaf follow the physical frames, as far as symbols are left to tell."""
    stack = parse_stack(line)
    names = [gdb.execute(f"info symbol {pc}", to_string=True) for pc in (stack[1] if stack else [])]
    if any("No symbol" not in name and ".so" not in name for name in names):
        order = [wanted for name in names for wanted in ("asyncMid", "asyncTop") if wanted in name]
        if order != ["asyncMid", "asyncTop"]:
            result.notes.append(f"async callers: {order}")
    elif not names:
        result.notes.append("async callers: none")


def look_at_blocked(process, pid, tid, ranges, result, is_async):
    ask(process)
    line = process.stdout.readline()
    gdb.execute(f"attach {pid}", to_string=True)
    truth = [pc for pc, _ in gdb_addresses(tid)]
    if is_async:
        check_async(result, line)
    gdb.execute("detach", to_string=True)
    compare(result, truth, line, ranges)


def look_at_running(process, pid, tid, handler, ranges, result):
    gdb.execute(f"attach {pid}", to_string=True)
    gdb.execute(f"break *{handler}", to_string=True)
    code = mapped_ranges(pid, lambda fields: "x" in fields[1])
    truths = []
    while sum(truth is not None for truth in truths) < STOPS:
        ask(process)
        gdb.execute("continue", to_string=True)
        addresses = gdb_addresses(tid)
        signal = next((i for i, (_, is_signal) in enumerate(addresses) if is_signal), -1)
        truth = [pc for pc, _ in addresses[signal + 1:]]
        truths.append(None if gdb_is_lost(truth, code) else truth)
    result.gdb_lost += sum(truth is None for truth in truths)
    gdb.execute("delete", to_string=True)
    gdb.execute("detach", to_string=True)
    for truth in truths:
        line = process.stdout.readline()
        if truth is not None:
            compare(result, truth, line, ranges)


def run(path, scenario):
    result = Comparison()
    process = subprocess.Popen(
        [path, scenario], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        ready = process.stdout.readline().split()
        if not ready or ready[0] != "READY":
            result.total, result.notes = 1, ["did not start: " + " ".join(ready)]
            return result
        pid, tid, handler = (int(field) for field in ready[1:4])
        own = os.path.realpath(path)  # the executable and its plug-in
        ranges = mapped_ranges(pid, lambda fields: len(fields) == 6 and fields[5].startswith(own))
        if scenario.startswith("cpu-"):
            look_at_running(process, pid, tid, handler, ranges, result)
        else:
            look_at_blocked(process, pid, tid, ranges, result, scenario.startswith("async"))
    except gdb.error as error:
        result.total += 1
        result.notes.append(f"gdb: {error}")
    finally:
        process.kill()
        process.wait()
    return result


scenarios = subprocess.run([BUILDS[0][1]], stdout=subprocess.PIPE, text=True).stdout.split()
scenarios = [scenario for scenario in scenarios if ONLY.search(scenario)]
total = Comparison()
print(f"{'':20}" + "".join(f"{name:>14}" for name, _ in BUILDS))
for scenario in scenarios:
    cells, notes = [], []
    for name, path in BUILDS:
        result = run(path, scenario)
        cells.append(f"{result.equal}/{result.total}")
        notes += [f"    {name}: {note}" for note in result.notes]
        total.total += result.total
        total.equal += result.equal
        total.caller += result.caller
        total.gdb_lost += result.gdb_lost
    print(f"{scenario:20}" + "".join(f"{cell:>14}" for cell in cells))
    for note in notes:
        print(note)
    sys.stdout.flush()
print(f"stops where gdb was lost, taken again: {total.gdb_lost}")
print(f"truth stacks equal={total.equal} of={total.total} app_caller={total.caller} of={total.total}")
sys.stdout.flush()

# Compares the stacks of one stalling program with gdb's, frame by frame, and prints the counts as one line of JSON.
#
#     gdb -nx -batch -x scripts/truth_stack_in_gdb.py      (run by scripts/truth_stacks.py, once for each victim and build)
#
# A blocked victim prints its stack and stays blocked; gdb then looks at the same wait. A running one is stopped by gdb
# at the first instruction of its SIGPROF handler; what gdb sees outside of the signal frame is what the handler copies.
# Inlined and tail-called frames, which gdb shows and a return address does not, are left out. Where gdb itself is lost
# (an address outside of code; the instruction behind `pop %rbp` of a function without unwind tables, where it still
# believes in the frame that is gone), the victim is stopped again; the count of those stops is printed. In a blocked
# victim that happens at the same place each time: there the words that gdb took for frames, though they lie outside of all
# code, are left out, and counted.
#
# Environment: TRUTH_PROGRAM, TRUTH_SCENARIO, TRUTH_STOPS (stops of a running victim).

import json
import os
import subprocess

import gdb

PROGRAM, SCENARIO = os.environ["TRUTH_PROGRAM"], os.environ["TRUTH_SCENARIO"]
STOPS = int(os.environ["TRUTH_STOPS"])

for setting in (
    "pagination off", "confirm off", "debuginfod enabled off", "backtrace limit 10000", "backtrace past-main on",
    "print thread-events off", "auto-load no", "suppress-cli-notifications on",
):
    gdb.execute("set " + setting, to_string=True)
gdb.execute("handle all nostop noprint pass", to_string=True)


class Comparison:
    """The counts of one scenario in one build."""

    def __init__(self):
        self.total = self.equal = self.caller = self.gdb_lost = self.no_frames = 0
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


def code_of(pid):
    return mapped_ranges(pid, lambda fields: "x" in fields[1])


def is_in(ranges, pc):
    return any(low <= pc < high for low, high in ranges)


def gdb_is_lost(addresses, code):
    """Whether gdb's stack cannot be the truth: see above. The selected thread stands in the handler."""
    if not all(is_in(code, pc) for pc in addresses):
        return True
    frame = gdb.newest_frame()
    while frame.pc() != addresses[0]:
        frame = frame.older()
    memory = gdb.selected_inferior().read_memory
    before, at = bytes(memory(addresses[0] - 1, 2))
    top = int.from_bytes(bytes(memory(int(frame.read_register("rsp")) & (2**64 - 1), 8)), "little")
    return before == 0x5D and at in (0xC3, 0xE9, 0xEB) and top != addresses[1]


def describe(pid, pc):
    """An address as a place in its image."""
    with open(f"/proc/{pid}/maps") as maps:
        for line in maps:
            fields = line.split(maxsplit=5)
            low, high = (int(end, 16) for end in fields[0].split("-"))
            if low <= pc < high:
                return f"{pc:x} {os.path.basename(fields[5].strip()) if len(fields) > 5 else ''}+{pc - low + int(fields[2], 16):x}"
    return f"{pc:x}"


def compare(result, pid, truth, line, ranges):
    result.total += 1
    stack = parse_stack(line)
    if stack is None:
        result.notes.append("no stack: " + (line.strip() or "the victim ended"))
        return
    ours, suspended, truncated = stack
    application = [pc for pc in truth if is_in(ranges, pc)]
    equal = ours == truth and not truncated
    result.equal += equal
    result.caller += bool(application) and application[0] in ours
    if not equal:
        at = next((i for i, (a, b) in enumerate(zip(ours, truth)) if a != b), min(len(ours), len(truth)))
        result.notes.append(f"differs at frame {at}{', ours is truncated' if truncated else ''}")
        for name, stack in (("ours", ours), ("gdb", truth)):
            result.notes += [f"{name:4} #{i:<3} {describe(pid, pc)}" for i, pc in enumerate(stack) if i < at + 40]


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
    seen = [pc for pc, _ in gdb_addresses(tid)]
    code = code_of(pid)
    truth = [pc for pc in seen if is_in(code, pc)]
    result.no_frames += len(seen) - len(truth)
    if is_async:
        check_async(result, line)
    compare(result, pid, truth, line, ranges)
    gdb.execute("detach", to_string=True)


def look_at_running(process, pid, tid, handler, ranges, result):
    gdb.execute(f"attach {pid}", to_string=True)
    gdb.execute(f"break *{handler}", to_string=True)
    code = code_of(pid)
    truths = []
    while sum(truth is not None for truth in truths) < STOPS:
        ask(process)
        gdb.execute("continue", to_string=True)
        addresses = gdb_addresses(tid)
        handler_end = next((i for i, (_, is_signal) in enumerate(addresses) if is_signal), -1)
        truth = [pc for pc, _ in addresses[handler_end + 1:]]
        truths.append(None if gdb_is_lost(truth, code) else truth)
    result.gdb_lost += sum(truth is None for truth in truths)
    gdb.execute("delete", to_string=True)
    gdb.execute("detach", to_string=True)
    for truth in truths:
        line = process.stdout.readline()
        if truth is not None:
            compare(result, pid, truth, line, ranges)


def run():
    result = Comparison()
    process = subprocess.Popen(
        [PROGRAM, SCENARIO], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        ready = process.stdout.readline().split()
        if not ready or ready[0] != "READY":
            raise gdb.error("did not start: " + " ".join(ready))
        pid, tid, handler = (int(field) for field in ready[1:4])
        own = os.path.realpath(PROGRAM)  # the executable and its plug-in
        ranges = mapped_ranges(pid, lambda fields: len(fields) == 6 and fields[5].startswith(own))
        if SCENARIO.startswith("cpu-"):
            look_at_running(process, pid, tid, handler, ranges, result)
        else:
            look_at_blocked(process, pid, tid, ranges, result, SCENARIO.startswith("async"))
    except (gdb.error, OSError) as error:
        result.notes.append(str(error))
    finally:
        process.kill()
        process.wait()
    return result


print("RESULT " + json.dumps(vars(run())))

"""Compares two servers that are both up: one that is watched and one that is not. scripts/nio-cost runs it.

usage: nio_cost.py cpu PROGRAM FOLDER WAY PORT RUNS SECONDS           SECONDS of load for each server of a run
       nio_cost.py instructions PROGRAM FOLDER WAY PORT RUNS COUNT     COUNT requests to each server of a run, by callgrind

A run is a pair of fresh processes. They are asked in turns, in the order alone, watched, watched, alone: what drifts while
four slices last adds to both. A run's ratio is the median of its turns' ratios; the runs' ratios give the result and its 95 %
interval, because two processes of one program differ by more than two slices of one process do. WAY=alone compares two servers
without an agent: what the method itself cannot tell apart.

CPU (0) is the CPU that servers and client share: which thread wakes which on another one changes the cost of a request by more
than a watched loop does; CPU=all leaves them where they are. Of `cpu`, CONNECTIONS (16) is wrk's, REQUESTS (2,000) a slice's."""

import glob
import math
import os
import re
import socket
import statistics
import subprocess
import sys
import time

# Student's t, two-sided 95 %, by degrees of freedom; beyond the table the normal distribution's is close enough.
T95 = [0, 12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26, 2.23, 2.20, 2.18, 2.16, 2.14, 2.13, 2.12, 2.11, 2.10, 2.09, 2.09]
REQUEST = b"GET /plain HTTP/1.1\r\nHost: x\r\n\r\n"
# wrk has no number of requests, and its main thread sleeps for the given time: the one thread that asks ends the program.
WRK_SCRIPT = """local count = 0
function response(status)
    if status ~= 200 then print("status " .. status); os.exit(1) end
    count = count + 1
    if count == %d then os.exit(0) end
end
"""


class Server:
    """A server process, ready to be asked."""

    running = []

    def __init__(self, program, folder, way, name, port, wrapper=()):
        self.name, self.port = name, port
        self.log_path = os.path.join(folder, name + ".log")
        for path in glob.glob(os.path.join(folder, name + ".sqlite*")):
            os.remove(path)
        # Under Valgrind a server is some hundred times slower: with thresholds as much longer the watchdog polls as often a
        # request as it does otherwise, and calls nothing a stall that is none.
        environment = dict(os.environ, TRUTH_PORT=str(port), SLOWNESS="100" if wrapper else "1")
        with open(self.log_path, "wb") as log:
            self.process = subprocess.Popen(
                [*wrapper, program, "serve", way, "1000000000r", os.path.join(folder, name + ".sqlite")],
                env=environment, stdout=log, stderr=log)
        self.pid = self.process.pid
        Server.running.append(self)
        for _ in range(1200):
            if self.is_serving():
                return
            if self.process.poll() is not None:
                break
            time.sleep(0.1)
        sys.exit(f"{name} does not serve:\n{self.log()}")

    def log(self):
        with open(self.log_path, encoding="utf-8", errors="replace") as log:
            return log.read()

    def is_serving(self):
        if "serving" not in self.log():
            return False
        try:
            socket.create_connection(("127.0.0.1", self.port), 1).close()
            return True
        except OSError:
            return False

    def cpu_us(self):
        """CPU time of all its threads, also of those that have ended (clock_getcpuclockid)."""
        return time.clock_gettime((~self.pid << 3) | 2) * 1e6

    def stop(self):
        Server.running.remove(self)
        self.process.kill()
        self.process.wait()
        return self.log().count("stall:")


def ask(server, count):
    """So many requests, one after another on one connection."""
    with socket.create_connection(("127.0.0.1", server.port)) as connection:
        for _ in range(count):
            connection.sendall(REQUEST)
            answer = b""
            while not answer.endswith(b"hello"):
                part = connection.recv(4096)
                if not part:
                    sys.exit(f"{server.name} has closed the connection")
                answer += part


# The agent's functions in a server: the door and other C, and Swift's of the modules Stall...
OWN = re.compile(r"^(door_|stall_|leave_thread|epoll_p?wait2?$|p?poll$|p?select$|\$s\d+Stall)")
# What they only pass on: the work itself.
PASSED_ON = re.compile(r"^(swift_job_run|dispatch_async_f|epoll_p?wait2?)\b")


def own_instructions(path):
    """Instructions of the agent's own functions in a dump of callgrind, with those of the functions that they call."""
    names = {}

    def name(text):
        """`(7) name` gives a number its name, `(7)` refers to it."""
        number, _, given = text.strip().partition(" ")
        if given:
            names[number] = given.split("'")[0]
        return names.get(number, "")

    own = is_call = counted = False
    place = callee_place = callee = ""
    total = 0
    with open(path, encoding="utf-8", errors="replace") as dump:
        for line in dump:
            if line[0].isdigit() or line[0] in "+-*":
                if own and (not is_call or not counted):
                    total += int(line.split()[1]) if len(line.split()) > 1 else 0
                is_call = False
                continue
            key, _, value = line.partition("=")
            if key == "ob":
                place = name("o" + value)
            elif key == "fn":
                function = name(value)
                own = bool(OWN.match(function)) and place.endswith("/stripped")
                callee_place = place
            elif key == "cob":
                callee_place = name("o" + value)
            elif key == "cfn":
                callee = name(value)
            elif key == "calls":
                is_call = True
                # What they call of their own is counted there.
                counted = (bool(OWN.match(callee)) and callee_place.endswith("/stripped")) or bool(PASSED_ON.match(callee))
                callee_place = place
    return total


def start_pair(program, folder, way, port, run, wrapper=lambda name: ()):
    """A server without an agent and a watched one. They start in turns: memory is not the same for the second."""
    made = {}
    for which in ([0, 1], [1, 0])[run % 2]:
        kind, name = (("alone", "alone"), (way, "watched"))[which]
        made[which] = Server(program, folder, kind, name, port + 10 * which, wrapper(name))
    return [made[0], made[1]]


def in_turns(servers, measure, is_enough):
    """Measures both in the order ABBA until it is enough: for each turn the means of the two."""
    turns = []
    while not turns or not is_enough(len(turns)):
        first = len(turns) % 2
        found = [0.0, 0.0]
        for which in [first, 1 - first, 1 - first, first]:
            found[which] += measure(servers[which]) / 2
        turns.append(found)
    return turns


def interval(ratios):
    """The geometric mean of the runs' ratios and its 95 % interval."""
    logs = [math.log(ratio) for ratio in ratios]
    mean = statistics.fmean(logs)
    if len(logs) < 2:
        return math.exp(mean), 0.0, math.inf
    t = T95[len(logs) - 1] if len(logs) <= len(T95) else 1.96
    half = t * statistics.stdev(logs) / math.sqrt(len(logs))
    return math.exp(mean), math.exp(mean - half), math.exp(mean + half)


class Result:
    """What the runs have shown."""

    def __init__(self, unit):
        self.unit, self.alone, self.watched, self.ratios, self.stalls, self.turns = unit, [], [], [], 0, 0
        self.cpu = os.environ.get("CPU", "0")

    def add(self, turns, stalls):
        self.alone.append(statistics.median(alone for alone, _ in turns))
        self.watched.append(statistics.median(watched for _, watched in turns))
        self.ratios.append(statistics.median(watched / alone for alone, watched in turns))
        self.turns += len(turns)
        self.stalls += stalls
        print(f"run {len(self.ratios)}: alone {self.alone[-1]:.3f} watched {self.watched[-1]:.3f} {self.unit} a request, "
              f"ratio {self.ratios[-1]:.4f}, median of {len(turns)} turns", flush=True)

    @property
    def medians(self):
        return statistics.median(self.alone), statistics.median(self.watched)

    def statistics(self):
        paired, low, high = interval(self.ratios)
        return f"paired={paired:.4f} low={low:.4f} high={high:.4f} turns={self.turns} stalls={self.stalls} cpu={self.cpu}"


def cpu(program, folder, way, port, runs, seconds):
    """CPU time of a request under wrk."""
    requests = int(os.environ.get("REQUESTS", "2000"))
    script = os.path.join(folder, "count.lua")
    with open(script, "w", encoding="utf-8") as file:
        file.write(WRK_SCRIPT % requests)

    def measure(server):
        before = server.cpu_us()
        subprocess.run(
            ["wrk", "-t1", "-c" + os.environ.get("CONNECTIONS", "16"), "-d600s", "-s", script,
             f"http://127.0.0.1:{server.port}/plain"], stdout=subprocess.DEVNULL, check=True)
        return (server.cpu_us() - before) / requests

    result = Result("us")
    for run in range(runs):
        servers = start_pair(program, folder, way, port, run)
        for server in servers:
            measure(server)
        end = time.monotonic() + 2 * seconds
        turns = in_turns(servers, measure, lambda _: time.monotonic() >= end)
        result.add(turns, sum(server.stop() for server in servers))
    alone, watched = result.medians
    print(f"nio cpu runs={runs} alone_us={alone:.3f} {way}_us={watched:.3f} ratio={watched / alone:.4f} "
          f"{result.statistics()} requests={requests}")


def instructions(program, folder, way, port, runs, count):
    """Instructions of a request, counted by callgrind, which runs one thread of a process at a time."""
    slice_count = 500

    def wrapper(name):
        for path in glob.glob(os.path.join(folder, name + ".callgrind*")):
            os.remove(path)
        return ["valgrind", "--tool=callgrind", "--fair-sched=yes",
                "--callgrind-out-file=" + os.path.join(folder, name + ".callgrind")]

    def dumped(server):
        """Instructions since the last dump."""
        subprocess.run(["callgrind_control", "--dump", str(server.pid)], capture_output=True, check=True)
        found = glob.glob(os.path.join(folder, server.name + ".callgrind.*"))
        newest = max(found, key=lambda path: int(path.rsplit(".", 1)[1]))
        with open(newest, encoding="utf-8", errors="replace") as dump:
            totals = [line for line in dump if line.startswith("totals:")]
        return newest, int(totals[-1].split()[1])

    own = []

    def measure(server):
        dumped(server)
        ask(server, slice_count)
        dump, count = dumped(server)
        if server.name == "watched":
            own.append(own_instructions(dump) / slice_count)
        return count / slice_count

    result = Result("instructions")
    for run in range(runs):
        servers = start_pair(program, folder, way, port, run, wrapper)
        for server in servers:
            ask(server, 200)
        turns = in_turns(servers, measure, lambda turns: turns * 2 * slice_count >= count)
        result.add(turns, sum(server.stop() for server in servers))
    alone, watched = result.medians
    print(f"alone: {alone:.0f} instructions a request")
    print(f"{way}: {watched:.0f} instructions a request")
    mean = statistics.fmean(own)
    print(f"nio instructions requests={count} ratio={watched / alone:.4f} runs={runs} {result.statistics()} own={mean:.0f} "
          f"own_ratio={1 + mean / alone:.4f}")


def main():
    what, program, folder, way, port, runs, length = sys.argv[1:]
    only = os.environ.get("CPU", "0")
    if only != "all":
        os.sched_setaffinity(0, {int(only)})
    measured = {"cpu": cpu, "instructions": instructions}[what]
    try:
        measured(program, folder, way, int(port), int(runs), int(length))
    finally:
        for server in list(Server.running):
            server.stop()


main()

"""Unmodified programs below `stallctl run`, with planted stalls: see scripts/truth-programs.

usage: programs.py STALLCTL FOLDER-OF-BUILT-LOOPS

What is true is the kernel's trace of the program's main thread (referee.py). Where it cannot be had, it is the plants' own
log: the client's for servers, the program's for the others, which also says which function is the right one. The last line
is the result."""

import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

import referee

HERE = os.path.dirname(os.path.abspath(__file__))
THRESHOLD = 0.25
# A stall of this length has to be reported. Between it and the threshold the agent may see a shorter one than the kernel.
CERTAIN = 0.29
# One function of each site of a server.
FUNCTIONS = {"sleep": ["clock_nanosleep"]}
NODE = ["--perf-basic-prof", "--interpreted-frames-native-stack", "--no-logfile-per-isolate", "--logfile=+"]


class Program:
    """One that plants its stalls itself."""

    def __init__(self, name, command):
        self.name, self.command = name, command

    def run(self, start, folder, plants, idle):
        process = start(self.command + [str(plants), str(idle)], cwd=folder, stdout=subprocess.PIPE, text=True)
        lines = [line.split() for line in process.stdout]
        if process.wait() != 0:
            raise SystemExit(f"{self.name}: status {process.returncode}")
        return [(site, float(begin), float(end), float(end) - float(begin)) for site, begin, end in lines]


class Server:
    """One that stalls on request. Between the plants come healthy requests."""

    def __init__(self, name):
        self.name = name

    def run(self, start, folder, plants, idle):
        self.port = free_port()
        server = start(self.command(folder), cwd=folder, stdout=subprocess.DEVNULL)
        try:
            self.wait()
            log, end = [], time.monotonic() + idle
            while time.monotonic() < end:
                self.ask(self.healthy())
                time.sleep(0.005)
            for _ in range(plants):
                end = time.monotonic() + random.uniform(0.3, 0.5)
                while time.monotonic() < end:
                    self.ask(self.healthy())
                begin, seconds = time.monotonic(), random.choice((0.3, 0.4, 0.5, 0.6))
                self.ask(self.stall(seconds))
                # The client sees it end later than it does, when it gets a CPU.
                log.append(("sleep", begin, time.monotonic(), seconds))
            self.ask(self.slow())
            time.sleep(0.3)
            return log
        finally:
            server.send_signal(signal.SIGTERM)
            server.wait()

    def wait(self):
        for _ in range(200):
            try:
                return self.ask(self.healthy())
            except OSError:
                time.sleep(0.05)
        raise SystemExit(f"{self.name} does not answer")

    def ask(self, text):
        with socket.create_connection(("127.0.0.1", self.port)) as connection:
            connection.sendall(text.encode())
            return connection.recv(1 << 16)


class Redis(Server):
    def command(self, folder):
        return [shutil.which("redis-server"), "--port", str(self.port), "--save", "", "--enable-debug-command", "yes",
                "--dir", folder]

    def healthy(self):
        return "SET a b\r\n"

    def stall(self, seconds):
        return f"DEBUG SLEEP {seconds:.3f}\r\n"

    def slow(self):
        """A client that waits is no stall."""
        return "BLPOP none 1\r\n"


class Nginx(Server):
    def command(self, folder):
        times = {f"/stall{n}": f"echo_blocking_sleep 0.{n}; echo ok;" for n in (30, 40, 50, 60)}
        places = "".join(f"location {path} {{ {text} }}\n" for path, text in times.items())
        with open(os.path.join(folder, "nginx.conf"), "w", encoding="utf-8") as file:
            file.write(f"""load_module /usr/lib/nginx/modules/ngx_http_echo_module.so;
                daemon off; master_process off; pid {folder}/nginx.pid; error_log {folder}/error.log;
                events {{ }}
                http {{ access_log off; server {{ listen 127.0.0.1:{self.port};
                    location /slow {{ echo_sleep 1; echo ok; }}
                    location / {{ echo ok; }}
                    {places} }} }}""")
        return [shutil.which("nginx", path=os.environ["PATH"] + ":/usr/sbin"), "-c", os.path.join(folder, "nginx.conf")]

    def healthy(self):
        return "GET / HTTP/1.0\r\n\r\n"

    def stall(self, seconds):
        return f"GET /stall{round(100 * seconds)} HTTP/1.0\r\n\r\n"

    def slow(self):
        """An answer that takes a second, from a loop that is not blocked."""
        return "GET /slow HTTP/1.0\r\n\r\n"


def free_port():
    with socket.socket() as made:
        made.bind(("127.0.0.1", 0))
        return made.getsockname()[1]


def programs(folder):
    found = [Program("python3 asyncio", [shutil.which("python3", path="/usr/bin"), os.path.join(HERE, "asyncio_loop.py")])]
    for name in ("glib", "qt", "swift"):
        loop = os.path.join(folder, name + "_loop")
        if os.path.exists(loop):
            found.append(Program(name, [loop]))
    if shutil.which("node"):
        found.append(Program("node", [shutil.which("node"), *NODE, os.path.join(HERE, "node_loop.js")]))
    if shutil.which("redis-server"):
        found.append(Redis("redis-server"))
    if os.path.exists("/usr/lib/nginx/modules/ngx_http_echo_module.so"):
        found.append(Nginx("nginx"))
    return found


def shared(one, other):
    return min(one["end"], other["end"]) - max(one["begin"], other["begin"])


def judge(stalls, log, reports):
    """What is missed and false, how many reports name a function of their site, and of how many that is known.

    A stall has `own`, the time in which its thread did not queue for a CPU: one that only queued is not the program's."""
    missed, right, found, taken = [], 0, 0, set()
    for stall in stalls:
        length = stall["end"] - stall["begin"]
        best = max(range(len(reports)), key=lambda index: shared(stall, reports[index]), default=None)
        if best is None or best in taken or shared(stall, reports[best]) < 0.8 * length:
            if stall["own"] >= CERTAIN:
                missed.append(stall)
            continue
        taken.add(best)
        site = next((site for site, begin, end, _ in log if begin < stall["end"] and end > stall["begin"]), None)
        if site is None or stall["own"] < CERTAIN:
            continue
        found += 1
        functions = reports[best]["functions"]
        if any(name in function for name in FUNCTIONS.get(site, [site]) for function in functions):
            right += 1
        else:
            print("  function:", site, "not in", sorted(functions)[:12])
    false = [report for index, report in enumerate(reports) if index not in taken and report["verdict"] == "stalled"]
    return missed, false, right, found


def read(stallctl, store, offset):
    text = subprocess.run([stallctl, "export", "--format", "jsonl", "--store", store], stdout=subprocess.PIPE, check=True,
                          text=True).stdout
    reports = []
    for line in text.splitlines():
        row = json.loads(line)
        begin = time_of(row["start"]) - offset
        functions = {frame["function"] for sample in row["samples"] for frame in sample["stack"] if frame["function"]}
        images = {frame["image"] for sample in row["samples"] for frame in sample["stack"] if frame.get("image")}
        reports.append({"begin": begin, "end": begin + row["duration_ms"] / 1000, "verdict": row["verdict"],
                        "process": row["pid"], "functions": functions | images})
    return reports


def stalls_of(trace, log, reports):
    """The kernel's, else those of the plants' log."""
    if trace:
        # A program that has no report: the process whose main thread waited most.
        process = reports[0]["process"] if reports else max(
            trace.threads, key=lambda number: len(trace.threads[number].waits), default=0)
        return [{"begin": begin, "end": end, "own": end - begin - queued}
                for begin, end, queued in trace.spans(process, 0.9 * THRESHOLD)]
    return [{"begin": begin, "end": end, "own": seconds} for _, begin, end, seconds in log]


def time_of(text):
    import datetime
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


def play(program, stallctl, plants, idle, is_watched):
    """Returns what its stalls are, its plants, and its reports."""
    folder = tempfile.mkdtemp()
    store = os.path.join(folder, "stalls.sqlite")
    wrap = [stallctl, "run", "--app", program.name, "--store", store, "--"] if is_watched else []
    # Each plant is to be a report, however many there are at one location.
    settings = os.path.join(folder, "settings.json")
    with open(settings, "w", encoding="utf-8") as file:
        json.dump({"limits": {"per_place": 100000, "per_hour": 100000}}, file)
    os.environ["STALLWATCH_SETTINGS"] = settings
    trace = referee.Referee() if referee.is_possible() else None

    def start(command, **options):
        return (trace.start if trace else subprocess.Popen)(wrap + command, **options)

    try:
        log = program.run(start, folder, plants, idle)
    finally:
        lost = trace.finish() if trace else 0
    if lost:
        print(f"{program.name}: the kernel lost {lost} events")
    offset = time.time() - time.monotonic()
    reports = read(stallctl, store, offset) if os.path.exists(store) else []
    shutil.rmtree(folder)
    return stalls_of(trace, log, reports), log, reports


def main():
    stallctl, folder = map(os.path.abspath, sys.argv[1:])
    plants, idle = int(os.environ.get("PLANTS", "50")), float(os.environ.get("IDLE", "5"))
    only, is_sabotaged = os.environ.get("ONLY"), os.environ.get("SABOTAGE") == "1"
    print("judged by", "the kernel's trace" if referee.is_possible() else "the plants' own log")
    os.environ["QT_QPA_PLATFORM"] = "offscreen"
    totals = dict.fromkeys(("programs", "missed", "of", "false", "reports", "function", "found"), 0)
    chosen = [program for program in programs(folder) if not only or only in program.name]
    for place, program in enumerate(chosen):
        stalls, log, reports = play(program, stallctl, plants, idle, is_watched=not (is_sabotaged and place == 0))
        missed, false, right, found = judge(stalls, log, reports)
        certain = [stall for stall in stalls if stall["own"] >= CERTAIN]
        print(f"{program.name}: missed {len(missed)} of {len(certain)} ({len(log)} planted), false {len(false)} of "
              f"{len(reports)} reports, function {right} of {found}", flush=True)
        for stall in missed[:5]:
            print(f"  missed: {stall['end'] - stall['begin']:.3f} s, {stall['own']:.3f} s of them not queued for a CPU")
        for report in false[:5]:
            print(f"  false: {report['end'] - report['begin']:.3f} s in", sorted(report["functions"])[:6])
        for key, value in (("programs", 1), ("missed", len(missed)), ("of", len(certain)), ("false", len(false)),
                           ("reports", len(reports)), ("function", right), ("found", found)):
            totals[key] += value
    print("truth programs programs={programs} missed={missed} of={of} false={false} of={reports} function={function} "
          "of={found}".format(**totals))
    sys.exit(totals["missed"] > 0.02 * totals["of"] or totals["false"] > 0 or totals["programs"] == 0)


main()

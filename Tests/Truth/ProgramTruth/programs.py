"""Unmodified programs below `stallctl run`, with planted stalls: see scripts/truth-programs.

usage: programs.py STALLCTL FOLDER-OF-BUILT-LOOPS

What is true is the kernel's trace of the thread that runs the program's loop (referee.py). Where it cannot be had, it is the
plants' own log: the client's for servers, the program's for the others, which also says which function is the right one. The
last line is the result."""

import fcntl
import glob
import json
import os
import random
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time

import referee

HERE = os.path.dirname(os.path.abspath(__file__))
THRESHOLD = 0.25
# A stall of this length has to be reported. Between it and the threshold the agent may see a shorter one than the kernel.
CERTAIN = 0.29
# One function of each site of a server.
FUNCTIONS = {"sleep": ["clock_nanosleep"], "log": ["write"]}
POSTGRES = max(glob.glob("/usr/lib/postgresql/*/bin"), default="")
NODE = ["--perf-basic-prof", "--interpreted-frames-native-stack", "--no-logfile-per-isolate", "--logfile=+"]


class Program:
    """One that plants its stalls itself."""

    loop = None  # how the name of the thread that runs the loop begins; else it is the main thread

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

    loop = None

    def __init__(self, name):
        self.name = name

    def run(self, start, folder, plants, idle):
        self.port = free_port()
        server = start(self.command(folder), cwd=folder, stdout=subprocess.DEVNULL, **self.options())
        try:
            self.wait()
            time.sleep(float(os.environ.get("REST", "0")))
            log, end = [], time.monotonic() + idle
            while time.monotonic() < end:
                self.ask(self.healthy())
                time.sleep(0.005)
            for _ in range(plants):
                end = time.monotonic() + random.uniform(0.3, 0.5)
                while time.monotonic() < end:
                    self.ask(self.healthy())
                begin, seconds = time.monotonic(), random.choice((0.3, 0.4, 0.5, 0.6))
                site = self.plant(seconds)
                # The client sees it end later than it does, when it gets a CPU.
                log.append((site, begin, time.monotonic(), seconds))
            self.rest()
            time.sleep(0.3)
            return log
        finally:
            server.send_signal(signal.SIGTERM)
            server.wait()

    def options(self):
        """How else it is started."""
        return {}

    def plant(self, seconds):
        """Stalls it; returns the site."""
        self.ask(self.stall(seconds))
        return "sleep"

    def rest(self):
        """What takes long, and is no stall."""
        self.ask(self.slow())

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


class NIO(Server):
    """A server in Swift, whose loop is on a thread of its own."""

    loop = "NIO-ELT-"

    def __init__(self, name, path):
        super().__init__(name)
        self.path = path

    def command(self, folder):
        return [self.path, str(self.port)]

    def healthy(self):
        return "hello\n"

    def plant(self, seconds):
        request, site = random.choice((("sleep", "plantedSleep"), ("spin", "plantedSpin")))
        self.ask(f"{request} {seconds:.3f}\n")
        return site

    def slow(self):
        return "slow 1\n"


class Postgres(Server):
    """The postmaster, which logs what it does for each connection. While the log is not read its pipe fills, and the
    postmaster waits for room, with all of its clients."""

    def command(self, folder):
        data = os.path.join(folder, "data")
        os.chmod(folder, 0o777)
        subprocess.run([POSTGRES + "/initdb", "-D", data, "-N", "-A", "trust"], stdout=subprocess.DEVNULL, check=True,
                       cwd="/", **self.user())
        return [POSTGRES + "/postgres", "-D", data, "-p", str(self.port), "-k", folder,
                "-c", "listen_addresses=127.0.0.1", "-c", "log_min_messages=debug2", "-c", "log_line_prefix=" + 200 * "-"]

    def user(self):
        """It does not run as root."""
        return {"user": "postgres", "group": "postgres", "extra_groups": []} if os.geteuid() == 0 else {}

    def options(self):
        self.log, end = os.pipe()
        fcntl.fcntl(end, fcntl.F_SETPIPE_SZ, 4096)
        self.may_read = threading.Event()
        self.may_read.set()
        threading.Thread(target=self.read_log, daemon=True).start()
        return {"stderr": end, **self.user()}

    def read_log(self):
        while os.read(self.log, 4096):
            self.may_read.wait()

    def ask(self, text):
        """Asks for TLS, which a child of the postmaster refuses."""
        with socket.create_connection(("127.0.0.1", self.port)) as connection:
            connection.sendall(struct.pack("!ii", 8, 80877103))
            return connection.recv(1)

    def healthy(self):
        return ""

    def plant(self, seconds):
        # Not in the handler of SIGCHLD, which interrupts the wait: docs/programs.md.
        time.sleep(0.2)
        self.may_read.clear()
        end = time.monotonic() + seconds
        clients = []
        while time.monotonic() < end:
            if len(clients) < 40:
                clients.append(socket.create_connection(("127.0.0.1", self.port)))
            time.sleep(0.005)
        self.may_read.set()
        for client in clients:
            client.close()
        self.ask("")
        return "log"

    def rest(self):
        """A client that says nothing for a second."""
        with socket.create_connection(("127.0.0.1", self.port)):
            time.sleep(1)


def free_port():
    with socket.socket() as made:
        made.bind(("127.0.0.1", 0))
        return made.getsockname()[1]


def programs(folder):
    found = [Program("python3 asyncio", [shutil.which("python3", path="/usr/bin"), os.path.join(HERE, "asyncio_loop.py")])]
    for name in ("glib", "qt", "foundation"):
        loop = os.path.join(folder, name + "_loop")
        if os.path.exists(loop):
            found.append(Program(name, [loop]))
    if shutil.which("node"):
        found.append(Program("node", [shutil.which("node"), *NODE, os.path.join(HERE, "node_loop.js")]))
    if shutil.which("redis-server"):
        found.append(Redis("redis-server"))
    if os.path.exists("/usr/lib/nginx/modules/ngx_http_echo_module.so"):
        found.append(Nginx("nginx"))
    server = os.path.join(folder, "NIOServer")
    if os.path.exists(server):
        found.append(NIO("swift-nio", server))
    if POSTGRES:
        found.append(Postgres("postgres"))
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
        # A program that has no report: the process whose loop waited most.
        process = reports[0]["process"] if reports else max(
            trace.loops, key=lambda number: len(trace.loops[number].waits), default=0)
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
    trace = referee.Referee(program.loop) if referee.is_possible() else None
    began = time.monotonic()

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
    stalls = stalls_of(trace, log, reports)
    for stall in stalls:
        stall["after"] = stall["begin"] - began
    return stalls, log, reports


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
            print(f"  missed: {stall['end'] - stall['begin']:.3f} s, {stall['own']:.3f} s of them not queued for a CPU, "
                  f"{stall['after']:.1f} s after the start")
        for report in false[:5]:
            print(f"  false: {report['end'] - report['begin']:.3f} s in", sorted(report["functions"])[:6])
        for key, value in (("programs", 1), ("missed", len(missed)), ("of", len(certain)), ("false", len(false)),
                           ("reports", len(reports)), ("function", right), ("found", found)):
            totals[key] += value
    print("truth programs programs={programs} missed={missed} of={of} false={false} of={reports} function={function} "
          "of={found}".format(**totals))
    sys.exit(totals["missed"] > 0.02 * totals["of"] or totals["false"] > 0 or totals["programs"] == 0)


if __name__ == "__main__":
    main()

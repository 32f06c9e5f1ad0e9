"""Unmodified programs below `stallctl run`, with planted stalls: see scripts/truth-programs.

usage: programs.py STALLCTL GLIB-LOOP

What is true is the plant's own log: the client's for servers, the program's for the others. The last line is the
result."""

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

HERE = os.path.dirname(os.path.abspath(__file__))
THRESHOLD = 0.25
# One function of each site; Node's own functions have no names here.
FUNCTIONS = {
    "sleep": ["clock_nanosleep"], "compute": ["PKCS5_PBKDF2_HMAC"], "pipe": ["read"],
    "command": ["wait4", "waitpid", "poll", "epoll_pwait", "SyncProcessRunner"],
    "spin": ["node::", "v8::", "Builtins_", "clock_gettime", "uv_hrtime"],
    "wait": ["pthread_cond_timedwait", "futex"],
}


class Program:
    """One that plants its stalls itself."""

    def __init__(self, name, command):
        self.name, self.command = name, command

    def run(self, wrap, folder, plants, idle):
        out = subprocess.run(wrap + self.command + [str(plants), str(idle)], cwd=folder, stdout=subprocess.PIPE,
                             check=True, text=True)
        lines = [line.split() for line in out.stdout.splitlines()]
        return [(site, float(begin), float(end), float(end) - float(begin)) for site, begin, end in lines]


class Server:
    """One that stalls on request. Between the plants come healthy requests."""

    def __init__(self, name):
        self.name = name

    def run(self, wrap, folder, plants, idle):
        self.port = free_port()
        server = subprocess.Popen(wrap + self.start(folder), cwd=folder, stdout=subprocess.DEVNULL)
        try:
            self.wait()
            time.sleep(idle)
            log = []
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
    def start(self, folder):
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
    def start(self, folder):
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


def programs(glib_loop):
    found = [Program("python3 asyncio", [shutil.which("python3", path="/usr/bin"), os.path.join(HERE, "asyncio_loop.py")])]
    if glib_loop:
        found.append(Program("glib", [glib_loop]))
    if shutil.which("node"):
        found.append(Program("node", [shutil.which("node"), os.path.join(HERE, "node_loop.js")]))
    if shutil.which("redis-server"):
        found.append(Redis("redis-server"))
    if os.path.exists("/usr/lib/nginx/modules/ngx_http_echo_module.so"):
        found.append(Nginx("nginx"))
    return found


def names(site):
    return FUNCTIONS.get(site, [site])


def judge(log, reports, offset, has_sites):
    """Missed plants, false reports, and reports with a function of their site: the site itself, if the program's own
    functions have names."""
    missed, right, taken = [], 0, set()
    for site, begin, end, seconds in log:
        best = None
        for index, report in enumerate(reports):
            shared = min(end, report["end"]) - max(begin, report["begin"])
            if index not in taken and shared > 0.8 * seconds:
                best = index
        if best is None:
            missed.append((site, seconds))
            continue
        taken.add(best)
        found = reports[best]["functions"]
        if site in found if has_sites else any(name in function for name in names(site) for function in found):
            right += 1
        else:
            print("  function:", site, "not in", sorted(found)[:12])
    false = [report for index, report in enumerate(reports)
             if index not in taken and report["verdict"] == "stalled"
             and not any(min(end, report["end"]) > max(begin, report["begin"]) for _, begin, end, _ in log)]
    return missed, false, right


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
                        "functions": functions | images})
    return reports


def time_of(text):
    import datetime
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


def main():
    stallctl, glib_loop = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else ""
    plants, idle = int(os.environ.get("PLANTS", "50")), float(os.environ.get("IDLE", "5"))
    only = os.environ.get("ONLY")
    totals = dict.fromkeys(("programs", "missed", "of", "false", "reports", "function", "found"), 0)
    chosen = [program for program in programs(glib_loop) if not only or only in program.name]
    for place, program in enumerate(chosen):
        folder = tempfile.mkdtemp()
        store = os.path.join(folder, "stalls.sqlite")
        wrap = [stallctl, "run", "--app", program.name, "--store", store, "--"]
        if os.environ.get("SABOTAGE") == "1" and place == 0:
            wrap = wrap[:0]
        # Each plant is to be a report, however many there are at one location.
        settings = os.path.join(folder, "settings.json")
        with open(settings, "w", encoding="utf-8") as file:
            json.dump({"limits": {"per_place": 100000, "per_hour": 100000}}, file)
        os.environ["STALLWATCH_SETTINGS"] = settings
        log = program.run(wrap, folder, plants, idle)
        offset = time.time() - time.monotonic()
        reports = read(stallctl, store, offset) if os.path.exists(store) else []
        missed, false, right = judge(log, reports, offset, program.name.startswith("python"))
        print(f"{program.name}: missed {len(missed)} of {len(log)}, false {len(false)} of {len(reports)} reports, "
              f"function {right} of {len(log) - len(missed)}", flush=True)
        for site, seconds in missed[:5]:
            print(f"  missed: {site}, {seconds:.3f} s")
        for report in false[:5]:
            print(f"  false: {report['end'] - report['begin']:.3f} s in", sorted(report["functions"])[:6])
        for key, value in (("programs", 1), ("missed", len(missed)), ("of", len(log)), ("false", len(false)),
                           ("reports", len(reports)), ("function", right), ("found", len(log) - len(missed))):
            totals[key] += value
        shutil.rmtree(folder)
    print("truth programs programs={programs} missed={missed} of={of} false={false} of={reports} function={function} "
          "of={found}".format(**totals))
    sys.exit(totals["missed"] > 0.02 * totals["of"] or totals["false"] > 0 or totals["programs"] == 0)


main()

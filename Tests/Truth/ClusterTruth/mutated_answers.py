"""Every command reads a cluster whose answers are changed on their way: numbers become the largest, texts are cut, rows are
missing, come twice or have other columns. None may crash, hang or take all memory: a wrong number is the server's, a
message is right.

usage: mutated_answers.py STALLCTL ADDRESS [--rounds N] [--seed N] [--sabotage]

ADDRESS is a store of scripts/clickhouse-cluster, with its password in STALLCTL_CLICKHOUSE_PASSWORD.
See scripts/truth-clickhouse. Last line: truth clickhouse mutated runs=N refused=N crashed=N hung=N"""

import argparse
import http.client
import http.server
import random
import resource
import socketserver
import subprocess
import sys
import threading
import urllib.parse

NUMBERS = [b"0", b"-1", b"1", b"255", b"256", b"65536", b"2147483647", b"-2147483648", b"2147483648",
           b"9223372036854775807", b"-9223372036854775808", b"18446744073709551615", b"1" + b"0" * 40, b"", b"nan", b"\\N"]
LISTS = [b"[]", b"[0]", b"[9223372036854775807,9223372036854775807]", b"[-1]", b"[65535,65535]", b"[1,", b"[" + b"1," * 5000 + b"1]"]
TEXTS = [b"", b"\\", b"\\0\\n\\t", b"\xff\xfe", b"'; drop table report", b"\x1b[2J", b"x" * 100_000, b"\\N"]


class Proxy(socketserver.ThreadingMixIn, http.server.HTTPServer):
    daemon_threads = True
    allow_reuse_address = True


class Mutation:
    """What happens to the answers of one run."""

    def __init__(self):
        self.lock = threading.Lock()
        self.start(None, 0)

    def start(self, target, seed):
        self.target, self.count, self.random = target, 0, random.Random(seed)

    def change(self, body):
        with self.lock:
            number, self.count = self.count, self.count + 1
            if self.target is None or number != self.target or not body:
                return body
            rows = body.split(b"\n")[:-1]
            for _ in range(self.random.choice([1, 1, 2, 5])):
                self.change_row(rows)
            return b"".join(row + b"\n" for row in rows)

    def change_row(self, rows):
        place = self.random.randrange(len(rows))
        kind = self.random.random()
        if kind < 0.08:
            rows.insert(place, rows[place])
        elif kind < 0.12:
            rows[place:] = [rows[place][:len(rows[place]) // 2]]
        elif kind < 0.16:
            rows[place] += b"\t0"
        elif kind < 0.2 and len(rows) > 1:
            del rows[place]
        else:
            fields = rows[place].split(b"\t")
            column = self.random.randrange(len(fields))
            old = fields[column]
            values = LISTS if old.startswith(b"[") else NUMBERS if old.lstrip(b"-").isdigit() else TEXTS
            fields[column] = self.random.choice(values)
            rows[place] = b"\t".join(fields)


def serve(host, port, upstream, mutation):
    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self):
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            connection = http.client.HTTPConnection(host, upstream)
            connection.request("POST", self.path, body, {"Authorization": self.headers.get("Authorization", "")})
            answer = connection.getresponse()
            text = answer.read()
            if answer.status == 200:
                text = mutation.change(text)
            self.send_response(answer.status)
            for name, value in answer.getheaders():
                if name.lower().startswith("x-clickhouse"):
                    self.send_header(name, value)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, *_):
            pass

    server = Proxy((host, port), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server.server_address[1]


def commands(run):
    import json
    listed = [json.loads(line) for line in run("list", "--json", "--limit", "5").stdout.splitlines()]
    group = json.loads(run("top", "--json", "--limit", "1").stdout.splitlines()[0])["signature"]
    versions = sorted({report["version"] for report in listed})
    return [
        ["top"], ["top", "--by", "p95"], ["top", "--group", "version"], ["top", "--group", "host"], ["top", "--group", "inclusive"],
        ["top", "--group", "family"], ["top", "--host", listed[0]["host"]], ["top", "--since", "2020-01-01", "--until", "2030-01-01T03:00:00Z"],
        ["diff", versions[0], versions[-1]], ["trend"], ["trend", group], ["trend", "--by", "hour"], ["list"], ["list", group],
        ["list", "--sort", "lasted"], ["show", listed[0]["id"]], ["why", listed[0]["id"]], ["tree"], ["status"], ["report"],
        ["export", "--format", "csv"], ["export", "--format", "jsonl"], ["export", "--format", "folded"], ["check"],
    ]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("stallctl")
    parser.add_argument("address")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--sabotage", action="store_true", help="the program is one that crashes on a negative number")
    options = parser.parse_args()
    mutation = Mutation()
    place = urllib.parse.urlparse(options.address)
    port = serve("127.0.0.1", 0, place.port, mutation)
    serve("127.0.0.2", port, place.port, mutation)
    store = options.address.replace(f":{place.port}/", f":{port}/")

    def run(*words, timeout=60):
        command = [options.stallctl, words[0], "--store", store, *words[1:]]
        return subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=timeout, check=False,
                              preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (16 << 30, 16 << 30)))

    source = random.Random(options.seed)
    runs = refused = crashed = hung = 0
    for words in commands(run):
        mutation.start(None, 0)
        clean = run(*words)
        count = mutation.count
        if clean.returncode != 0:
            sys.exit(f"{' '.join(words)} fails before anything is changed: {clean.stderr}")
        for _ in range(options.rounds):
            target, seed = source.randrange(count), source.randrange(1 << 30)
            mutation.start(target, seed)
            runs += 1
            try:
                answer = run(*words)
            except subprocess.TimeoutExpired:
                hung += 1
                print(f"hung: {' '.join(words)}, answer {target}, seed {seed}", flush=True)
                continue
            if options.sabotage and "-1" in answer.stderr:
                answer.returncode = -4
            refused += answer.returncode > 0
            if answer.returncode < 0 or answer.returncode >= 128 or "Fatal error" in answer.stderr:
                crashed += 1
                places = [line for line in answer.stderr.splitlines() if "Fatal error" in line or " in " in line]
                print(f"crashed: {' '.join(words)}, answer {target}, seed {seed}", *places[:6], sep="\n    ", flush=True)
    print(f"truth clickhouse mutated runs={runs} refused={refused} crashed={crashed} hung={hung}")
    sys.exit(1 if crashed or hung else 0)


main()

"""A proxy that does to batches what networks and bad proxies do: says 200 and drops, sends twice, late, out of order, cut short, and
loses answers. It also has the one fault that nothing can survive, for SABOTAGE=1."""

import base64
import gzip
import hashlib
import http.client
import http.server
import json
import random
import ssl
import threading
import time
import urllib.parse

MODES = {"pass": 52, "drop": 10, "twice": 10, "late": 10, "lost answer": 8, "cut": 5, "hold": 5}


class Proxy(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256

    def __init__(self, target, authority, seed, is_sabotaged):
        super().__init__(("127.0.0.1", 0), Handler)
        self.target, self.random, self.lock = urllib.parse.urlsplit(target), random.Random(seed), threading.Lock()
        self.context = ssl.create_default_context(cafile=authority) if authority else None
        self.kept, self.counts, self.is_kind = [], {}, False
        self.sabotages_left = 1 if is_sabotaged else 0
        # The store that lost a batch: an older attempt that comes late would heal it.
        self.sabotaged_path = None
        # Stores of which a batch may be under way somewhere.
        self.passed = set()
        self.statuses = {}
        threading.Thread(target=self.serve_forever, daemon=True).start()
        threading.Thread(target=self.replay, daemon=True).start()

    def handle_error(self, request, client_address):
        """A pusher that was killed."""

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_address[1]}"

    def forward(self, method, path, body, fields):
        kind = http.client.HTTPSConnection if self.context else http.client.HTTPConnection
        extra = {"context": self.context} if self.context else {}
        connection = kind(self.target.hostname, self.target.port, timeout=30, **extra)
        try:
            connection.request(method, path, body, fields)
            answer = connection.getresponse()
            return answer.status, dict(answer.headers), answer.read()
        finally:
            connection.close()

    def mode(self):
        with self.lock:
            if self.is_kind:
                return "pass"
            mode = self.random.choices(list(MODES), MODES.values())[0]
            self.counts[mode] = self.counts.get(mode, 0) + 1
            return mode

    def keep(self, *request):
        with self.lock:
            if request[1] == self.sabotaged_path:
                return
            self.kept.append(request)
            if len(self.kept) > 400:
                self.kept.pop(self.random.randrange(len(self.kept)))

    def replay(self):
        """Old batches again, in any order."""
        while True:
            time.sleep(0.05)
            with self.lock:
                if not self.kept or self.is_kind:
                    continue
                request = self.random.choice(self.kept)
            try:
                status, _, _ = self.forward(*request)
                with self.lock:
                    self.counts["replayed"] = self.counts.get("replayed", 0) + 1
                    self.statuses[status] = self.statuses.get(status, 0) + 1
            except (OSError, http.client.HTTPException):
                pass


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def answer(self, status, fields, body):
        self.send_response(status)
        for name in ("Content-Type", "Retry-After", "content-type", "retry-after"):
            if name in fields:
                self.send_header(name, fields[name])
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        self.pass_on(b"")

    def do_POST(self):
        self.pass_on(self.body())

    def body(self):
        if "chunked" not in self.headers.get("Transfer-Encoding", ""):
            return self.rfile.read(int(self.headers.get("Content-Length", 0)))
        body = b""
        while size := int(self.rfile.readline().split(b";")[0], 16):
            body += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return body

    def pass_on(self, body):
        proxy, name = self.server, self.command
        fields = {key: value for key, value in self.headers.items()
                  if key.lower() not in ("host", "connection", "content-length", "transfer-encoding", "expect")}
        try:
            if name == "GET":
                return self.answer(*proxy.forward(name, self.path, None, fields))
            with proxy.lock:
                is_sabotaged = (
                    proxy.sabotages_left > 0 and self.path not in proxy.passed and b"stallctl.report/" in gzip.decompress(body))
                proxy.sabotages_left -= is_sabotaged
                if not is_sabotaged:
                    proxy.passed.add(self.path)
            if is_sabotaged:
                # Acknowledged, and not stored: the collector is told that the batch has no lines.
                body = gzip.compress(b"")
                digest = base64.b64encode(hashlib.sha256(body).digest()).decode()
                fields = {key: value for key, value in fields.items() if key.lower() not in ("content-digest", "content-encoding")}
                fields |= {"Content-Encoding": "gzip", "Content-Digest": f"sha-256=:{digest}:"}
                status, back, text = proxy.forward(name, self.path, body, fields)
                with proxy.lock:
                    if status == 200:
                        print("sabotaged:", self.path, self.headers.get("Stallwatch-From"), flush=True)
                        proxy.sabotaged_path = self.path
                        proxy.kept = [request for request in proxy.kept if request[1] != self.path]
                    else:
                        proxy.sabotages_left += 1
                return self.answer(status, back, text)
            request = (name, self.path, body, fields)
            mode = proxy.mode()
            if mode == "drop":
                through = int(self.headers.get("Stallwatch-Through", 0))
                text = json.dumps({"through": through, "added": 1, "changed": 0, "unknown": 0}).encode()
                return self.answer(200, {"Content-Type": "application/json"}, text)
            if mode == "cut":
                status, back, text = proxy.forward(name, self.path, body[:len(body) // 2], fields)
                return self.answer(503, {"Retry-After": "1"}, b"{}")
            if mode == "hold":
                proxy.keep(*request)
                return self.answer(503, {"Retry-After": "1"}, b"{}")
            if mode in ("late", "twice"):
                proxy.keep(*request)
            if mode == "twice":
                proxy.forward(*request)
            answer = proxy.forward(*request)
            if mode == "lost answer":
                self.close_connection = True
                self.connection.close()
                return None
            return self.answer(*answer)
        except (OSError, http.client.HTTPException, ssl.SSLError):
            try:
                self.answer(502, {}, b"{}")
            except OSError:
                pass

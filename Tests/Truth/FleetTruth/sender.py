"""A sender that knows the protocol from docs/fleet.md alone: good when it pushes a store, and hostile when it is told to."""

import base64
import gzip
import hashlib
import http.client
import json
import socket
import ssl
import subprocess
import time
import urllib.parse


class Sender:
    def __init__(self, url, token, authority=None, timeout=30):
        self.url, self.token, self.timeout = urllib.parse.urlsplit(url), token, timeout
        self.context = ssl.create_default_context(cafile=authority) if self.url.scheme == "https" else None
        self.connection = None
        self.statuses = set()

    def connect(self):
        if self.url.scheme == "https":
            return http.client.HTTPSConnection(self.url.hostname, self.url.port, timeout=self.timeout, context=self.context)
        return http.client.HTTPConnection(self.url.hostname, self.url.port, timeout=self.timeout)

    def ask(self, method, path, body=b"", fields=None, keeps=True):
        """The status, the fields and the object of the answer."""
        if self.connection is None or not keeps:
            self.connection = self.connect()
        try:
            self.connection.request(method, path, body, {"Authorization": f"Bearer {self.token}", **(fields or {})})
            answer = self.connection.getresponse()
            text = answer.read()
        except (OSError, http.client.HTTPException):
            self.connection.close()
            self.connection = None
            raise
        self.statuses.add(answer.status)
        try:
            return answer.status, answer.headers, json.loads(text)
        except ValueError:
            return answer.status, answer.headers, {}

    def position(self, store):
        return self.ask("GET", f"/v1/stores/{store}")

    def push(self, store, first, through, lines, body=None, **fields):
        body = gzip.compress(b"".join(lines), 5, mtime=0) if body is None else body
        return self.ask("POST", f"/v1/stores/{store}/lines", body, head(body, first, through) | fields)

    def push_store(self, stallctl, path, lines_per_batch=400, change=None):
        """All that is new of a store; False when the collector cannot take it now."""
        lines = export(stallctl, path)
        store = next(row["store"] for row, _ in lines if row.get("store"))
        if change:
            lines = [change(row, line) for row, line in lines]
        try:
            status, _, answer = self.position(store)
            if status != 200:
                return False
            through = answer["through"]
            # Rows that have no revision come each time: they are taken once.
            rest = [line for row, line in lines if "revision" not in row]
            fresh = sorted(
                ((row["revision"], line) for row, line in lines if row.get("revision", 0) > through),
                key=lambda pair: pair[0])
            while fresh or rest:
                part, end = fresh[:lines_per_batch], lines_per_batch
                while end < len(fresh) and fresh[end][0] == part[-1][0]:
                    part.append(fresh[end])
                    end += 1
                last = part[-1][0] if part else through
                status, _, answer = self.push(store, through + 1, last, rest + [line for _, line in part])
                if status == 409 and answer["through"] < through:
                    return False  # somebody said that it was stored, and it was not
                if status != 200:
                    return False
                through, fresh, rest = max(through, last), fresh[end:], []
            return self.position(store)[2].get("through", -1) >= through
        except (OSError, http.client.HTTPException):
            return False


def export(stallctl, path):
    output = subprocess.run(
        [stallctl, "export", "--store", path, "--format", "jsonl", "--rows", "all"], capture_output=True, check=True).stdout
    return [(json.loads(line), line) for line in output.splitlines(keepends=True)]


def head(body, first, through):
    digest = base64.b64encode(hashlib.sha256(body).digest()).decode()
    return {
        "Content-Type": "application/x-ndjson", "Content-Encoding": "gzip", "Stallwatch-Schema": "1",
        "Stallwatch-From": str(first), "Stallwatch-Through": str(through), "Content-Digest": f"sha-256=:{digest}:"}


def older(row, line):
    """What a sender of an older version writes: without the members that came later, or that nobody reads."""
    for name in ("signature", "title", "frames", "agent_ms", "skipped_threads", "timeline"):
        if row.get("agent_ms") in (0, None) or name != "agent_ms":
            if row.get("skipped_threads") in (0, None) or name != "skipped_threads":
                row.pop(name, None)
    return row, json.dumps(row).encode() + b"\n"


def newer(row, line):
    """What a sender of a newer version writes: members and kinds of lines that nobody knows yet."""
    row["from_the_future"] = {"deep": [1, {"er": None}]}
    strange = json.dumps({"schema": "stallctl.dream/3", "store": row.get("store"), "what": "x"}).encode() + b"\n"
    return row, json.dumps(row).encode() + b"\n" + strange


def hostile_requests(sender, other_token, read_token, store, lines):
    """What must be refused, with the documented status: yields the name, the status, and what is right."""
    body = gzip.compress(b"".join(lines))
    good = head(body, 1, 10)
    path = f"/v1/stores/{store}/lines"

    def ask(fields=None, body=body, path=path, method="POST", token=sender.token):
        fields = {name: value for name, value in {**good, **(fields or {})}.items() if value is not None}
        if body is not None and (fields.get("Content-Digest") == good["Content-Digest"]) and fields.pop("own", True):
            fields["Content-Digest"] = head(body, 1, 1)["Content-Digest"]
        try:
            return sender.ask(method, path, body, {"Authorization": f"Bearer {token}", **fields}, keeps=False)[0]
        except (OSError, http.client.HTTPException) as error:
            return f"{type(error).__name__}"
    yield "no token", ask({"Authorization": ""}), 401
    yield "wrong token", ask(token="swc_" + "0" * 64), 401
    yield "read token", ask(token=read_token), 403
    yield "other app's token", ask(token=other_token), 403
    yield "oversized", ask(body=b"x" * (17 << 20)), 413
    yield "said to be oversized", ask({"Content-Length": str(1 << 40)}, body=b""), 413
    yield "bomb", ask(body=gzip.compress(bytes(200 << 20))), 413
    yield "bomb of bombs", ask(body=gzip.compress(gzip.compress(bytes(70 << 20)))), 422
    yield "truncated", ask(body=body[:-9]), 400
    yield "garbage", ask(body=b"not gzip"), 400
    yield "two members", ask(body=body + body), 400
    yield "wrong digest", ask({"Content-Digest": head(b"", 1, 1)["Content-Digest"]}), 400
    yield "no digest", ask({"Content-Digest": None, "own": False}), 400
    yield "brotli", ask({"Content-Encoding": "br"}), 415
    yield "text", ask({"Content-Type": "text/plain"}), 415
    yield "schema of tomorrow", ask({"Stallwatch-Schema": "2"}), 415
    yield "numbers out of range", ask({"Stallwatch-From": "9223372036854775808"}), 400
    yield "numbers reversed", ask({"Stallwatch-From": "12"}), 400
    yield "largest number", ask({"Stallwatch-Through": "9223372036854775807"}), 422
    yield "another store's lines", ask(path=f"/v1/stores/{'0' * 31}1/lines"), 422
    yield "gap", ask({"Stallwatch-From": "4000000000", "Stallwatch-Through": "4000000001"}), 409
    yield "no JSON", ask(body=gzip.compress(b"{]\n")), 422
    yield "NUL", ask(body=gzip.compress(b"\0\0\n")), 422
    for name, strange in {
        "up": f"/v1/stores/../stores/{store}/lines", "encoded up": f"/v1/stores/%2e%2e/{store}/lines",
        "encoded slash": f"/v1/stores/{store}%2flines", "upper case": f"/v1/stores/{store.upper()}x/lines",
        "dashes": f"/v1/stores/{store[:8]}-{store[8:]}/lines", "two slashes": f"//v1/stores/{store}/lines",
        "behind": f"/v1/stores/{store}/lines/", "file": "/v1/stores/central.sqlite/lines",
    }.items():
        yield f"path: {name}", ask(path=strange), 404
    yield "PUT", ask(method="PUT"), 405
    yield "GET of lines", ask(method="GET", body=None), 405


def slow_loris(address, head, drip, seconds):
    """Sends a head, then a little now and then: how long the collector listened, and what it said."""
    start, said = time.monotonic(), b""
    with socket.create_connection(address, timeout=10) as connection:
        try:
            connection.sendall(head)
            while time.monotonic() - start < seconds:
                connection.settimeout(0.5)
                try:
                    part = connection.recv(4096)
                    said += part
                    if not part:
                        return time.monotonic() - start, said
                except TimeoutError:
                    pass
                connection.settimeout(10)
                connection.sendall(drip)
        except OSError:
            return time.monotonic() - start, said
    return float("inf"), said


def curl(url, token, authority, body, first, through, protocol):
    """A push by curl: the status, the version of HTTP, and the object of the answer."""
    fields = head(body, first, through) | {"Authorization": f"Bearer {token}"}
    words = [word for name, value in fields.items() for word in ("-H", f"{name}: {value}")]
    done = subprocess.run(
        ["curl", "-sS", protocol, "--cacert", authority, "--data-binary", "@-", "-w", "\n%{http_code} %{http_version}", *words, url],
        input=body, capture_output=True, timeout=60)
    text, _, facts = done.stdout.decode(errors="replace").rpartition("\n")
    status, _, version = facts.partition(" ")
    try:
        return int(status or 0), version, json.loads(text)
    except ValueError:
        return int(status or 0), version, {"error": text + done.stderr.decode(errors="replace")}

"""Reaching a cluster: TLS, passwords, rights, and servers that are none or fail half-way. See scripts/truth-clickhouse.

usage: truth_reach.py STALLCTL SCRATCH [--sabotage]

What can be answered has to be answered as SQLite answers; everything else has to end with a documented code and one line that
says what is wrong, in time, and without a number or the password in it."""

import argparse
import os
import re
import shutil
import subprocess
import sys
import time

import played
from cluster import Cluster

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
DEMO = os.path.join(ROOT, "sample-data", "demo.sqlite")
READING = [["top"], ["list"], ["show", "latest"], ["trend"], ["status"]]
USERS = """<yandex><users><outsider>
    <password></password><networks><ip>127.0.0.0/8</ip></networks><profile>default</profile><quota>default</quota>
    <allow_databases><database>other</database></allow_databases>
</outsider></users></yandex>
"""


class World:
    def __init__(self, options):
        self.stallctl, self.options, self.faults, self.cases = options.stallctl, options, 0, 0
        self.folder = os.path.join(options.scratch, "reach")
        shutil.rmtree(self.folder, ignore_errors=True)
        os.makedirs(self.folder)
        directory = os.path.join(options.scratch, "cluster")
        for shard in ("shard1", "shard2"):
            os.makedirs(os.path.join(directory, shard, "users.d"), exist_ok=True)
            with open(os.path.join(directory, shard, "users.d", "reach.xml"), "w", encoding="utf-8") as file:
                file.write(USERS)
        subprocess.run([os.path.join(ROOT, "scripts", "clickhouse-cluster"), "down", directory], check=True)
        self.cluster = Cluster(ROOT, directory, "reach", is_new=False)
        self.cluster.database = "default"
        for shard in (1, 2):
            for database in ("reach", "alone"):
                self.cluster.ask(f"drop database if exists {database}", shard)
        self.tls = self.cluster.tell("tls-url").replace("/stalls?", "/reach?")
        self.port = int(self.cluster.url.split(":")[2].split("/")[0])
        self.https = self.port + 3
        self.authority = os.path.join(directory, "tls", "ca.pem")
        self.key = os.path.join(directory, "tls", "ca.key")
        # What is right.
        self.central = os.path.join(self.folder, "central.sqlite")
        self.run(self.central, ["ingest", DEMO])
        self.right = {words[0]: self.told(self.central, words) for words in READING}

    def run(self, store, words, environment=None):
        return subprocess.run(
            [self.stallctl, words[0], "--store", store, *words[1:]], capture_output=True, check=False, timeout=120,
            env={**self.cluster.environment, **(environment or {})})

    def told(self, store, words):
        """The answer without what differs by nature: the name of the store, its bytes and its schema."""
        text = self.run(store, [*words, "--json"]).stdout.decode()
        return re.sub(r'"(bytes|schema_version)":\d+|"store":"[^"]*"', "", text)

    def note(self, text):
        self.faults += 1
        print(f"wrong: {text}", flush=True)

    def works(self, name, url, commands=None):
        """It answers what SQLite does."""
        for words in commands or READING:
            self.cases += 1
            code = self.run(url, [*words, "--json"])
            if code.returncode != 0 or self.told(url, words) != self.right[words[0]]:
                self.note(f"{name}: {words[0]} ends with {code.returncode} {code.stderr.decode()} or another answer than SQLite's")
        print(f"works: {name}", flush=True)

    def fails(self, name, url, expected, commands=None, seconds=30, code=1, environment=None):
        """It says so, in one line, in time, and says nothing else."""
        for words in commands or [["top"], ["list"], ["ingest", DEMO]]:
            self.cases += 1
            began = time.monotonic()
            try:
                answer = self.run(url, words, environment)
            except subprocess.TimeoutExpired:
                self.note(f"{name}: {words[0]} hangs")
                continue
            took, said = time.monotonic() - began, answer.stderr.decode()
            lines = said.splitlines()
            if answer.returncode != code or answer.stdout or len(lines) != 1 or not lines[0].startswith("stallctl: ") \
                    or not any(words in said for words in expected.split("|")) or took > seconds \
                    or self.cluster.password in said or not lines[0].isprintable():
                self.note(f"{name}: {words[0]} ends with {answer.returncode} after {took:.1f} s, expected {expected!r}: {said!r} "
                          f"{answer.stdout[:200]!r}")
            elif words[0] != "list":
                print(f"fails: {name}: {words[0]}: {lines[0]} ({took:.1f} s)", flush=True)

    def at(self, port, options=""):
        return f"clickhouse://stall@127.0.0.1:{port}/reach?cluster=stalls{options}"

    # TLS and who is who

    def certificate(self, name, alternative, days=10, authority=None):
        """A certificate and its key, signed by the cluster's authority or by another."""
        path = os.path.join(self.folder, name)
        ca, key = authority or (self.authority, self.key)

        def openssl(*words):
            subprocess.run(["openssl", *words], check=True, capture_output=True)
        with open(path + ".ext", "w", encoding="utf-8") as file:
            file.write(f"subjectAltName={alternative}\n")
        openssl("req", "-newkey", "rsa:2048", "-nodes", "-subj", f"/CN={name}", "-keyout", path + ".key", "-out", path + ".csr")
        openssl("x509", "-req", "-days", str(days), "-in", path + ".csr", "-CA", ca, "-CAkey", key,
                "-CAserial", path + ".srl", "-CAcreateserial", "-extfile", path + ".ext", "-out", path + ".pem")
        return path + ".pem", path + ".key"

    def try_tls(self):
        code = self.run(self.tls, ["ingest", DEMO])
        self.cases += 1
        if code.returncode != 0:
            self.note(f"ingest over TLS: {code.stderr.decode()}")
        self.works("TLS with the authority's file", self.tls)
        trust = f"&tls=1&ca-file={self.authority}"
        self.fails("TLS without the authority", self.at(self.https, "&tls=1"), "certificate")
        self.fails("TLS with another authority's file", self.at(self.https, f"&tls=1&ca-file={self.other_authority()[0]}"),
                   "certificate")
        self.fails("an authority's file that is not there", self.at(self.https, "&tls=1&ca-file=/missing.pem"), "/missing.pem")
        self.fails("an authority's file that is none", self.at(self.https, f"&tls=1&ca-file={DEMO}"), "certificate file|ca-file")
        self.fails("TLS to a port without", self.at(self.port, trust), "SSL|TLS")
        # The real server takes its time to notice.
        self.fails("no TLS to a port with", self.at(self.https), "no answer|reset|Empty reply", seconds=100)
        addresses = "IP:127.0.0.1,IP:127.0.0.2"
        for name, certificate, expected in [
                ("right", self.certificate("right", addresses), None),
                ("of another host", self.certificate("other-host", "IP:10.9.9.9,DNS:elsewhere"), "127.0.0.1"),
                ("expired", self.certificate("expired", addresses, days=-1), "expired"),
                ("of another authority", self.certificate("stranger", addresses, authority=self.other_authority()), "certificate")]:
            server = played.Played(played.forwarding(self.port), certificate)
            if expected:
                self.fails(f"a certificate {name}", self.at(server.port, trust), expected)
            else:
                self.works(f"a certificate that is {name}, played", self.at(server.port, trust))
            server.close()

    def other_authority(self):
        path = os.path.join(self.folder, "other-authority")
        if not os.path.exists(path + ".pem"):
            subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "10", "-subj", "/CN=other", "-keyout",
                            path + ".key", "-out", path + ".pem"], check=True, capture_output=True)
        return path + ".pem", path + ".key"

    def try_users(self):
        none = {"STALLCTL_CLICKHOUSE_PASSWORD": ""}
        path = os.path.join(self.folder, "password")
        with open(path, "w", encoding="utf-8") as file:
            file.write(self.cluster.password + "\n")
        self.works("a password from a file", self.at(self.port, f"&password-file={path}"))
        reader = self.at(self.port).replace("stall@", "reader@")
        self.works("a user who may only read", reader)
        other = os.path.join(ROOT, "sample-data", "stores", "agent-version-16.sqlite")
        self.fails("a user who may only read", reader, "the user may only read", [["ingest", other], ["regroup"], ["check", "--repair"]])
        self.fails("no password", self.at(self.port), "assword", environment=none)
        self.fails("a wrong password", self.at(self.port), "assword", environment={"STALLCTL_CLICKHOUSE_PASSWORD": "no"})
        self.fails("a password's file that is not there", self.at(self.port, "&password-file=/missing"), "/missing")
        self.fails("an unknown user", self.at(self.port).replace("stall@", "nobody@"), "nobody")
        self.fails("a user without the database", self.at(self.port).replace("stall@", "outsider@"), "reach|denied", environment=none)
        self.fails("a password in the address", self.at(self.port).replace("stall@", "stall:secret@"), "visible")
        self.fails("a cluster of another name", self.at(self.port).replace("=stalls", "=none"), "cluster stalls|no cluster")
        self.fails("no cluster's name, of tables of one", self.at(self.port).replace("?cluster=stalls", ""), "cluster stalls")
        alone = self.at(self.port).replace("/reach?cluster=stalls", "/alone")
        if self.run(alone, ["ingest", DEMO]).returncode != 0:
            self.note("ingest into one server")
        self.works("one server", alone)
        self.fails("a cluster's name, of tables of one server", alone + "?cluster=stalls", "one server")
        self.fails("a database that is not there", self.at(self.port).replace("/reach", "/missing"), "migrate", [["top"], ["list"]])
        self.fails("the port of another protocol", self.at(self.port + 1), "clickhouse-client")
        self.fails("a port without a server", self.at(9), "connect")
        self.fails("a host that there is not", "clickhouse://stall@no-such-host.invalid/reach", "resolve")

    # Servers that are none, and answers that break off

    def try_servers(self):
        html = played.answer(b"200 OK", b"<!DOCTYPE html>\n<html>\n<title>Welcome to nginx!</title>", b"Server: nginx\r\n")
        short = "&timeout=2"
        for name, talk, options, expected in [
                ("a web server", played.saying(html), "", "no ClickHouse answers there"),
                ("a server that says yes to everything", played.saying(played.answer(b"200 OK", b"")), "", "no ClickHouse answers"),
                ("one that does not find it", played.saying(played.answer(b"404 Not Found", b"<html>\nnone")), "", "404"),
                ("one that wants a login", played.saying(played.answer(b"401 Unauthorized", b"log in")), "", "401"),
                ("one that is elsewhere", played.saying(played.answer(b"302 Found", b"", b"Location: http://127.0.0.1/\r\n")), "", "302"),
                ("a proxy whose server is away", played.saying(played.answer(b"503 Service Unavailable", b"")), "", "503"),
                ("one that escapes", played.saying(played.answer(b"500 No", b"\x1b[31mred\x07\nmore", played.NAME)), "", "500"),
                ("garbage", played.saying(bytes(range(256)) * 40), "", "HTTP"),
                ("garbage of a ClickHouse", played.saying(played.answer(b"200 OK", bytes(range(256)), played.NAME)), "", "not an answer"),
                ("endless heads", played.saying(b"HTTP/1.1 200 OK\r\n" + b"X-A: b\r\n" * 2_000_000), short, "no answer|Too large|header"),
                ("one that never answers", played.silent, short, "within 2 s"),
                ("one that answers a byte at a time", played.trickling, short, "within 2 s"),
                ("one that answers 2 GB", played.flooding(2 << 30, True), "", "longer|exceeded"),
                ("one that answers 2 GB in chunks", played.flooding(2 << 30, False), "", "longer"),
                ("one that hangs up", played.resetting, "", "no answer")]:
            server = played.Played(talk)
            self.fails(name, self.at(server.port, options), expected, seconds=100 if "2 GB" in name else 30)
            server.close()
        for name, spoil, expected in [
                ("answers cut within their length", played.cut_by_length, "no answer"),
                ("answers cut between chunks", played.cut_in_chunks, "no answer"),
                ("answers cut that do not say how long they are", played.cut_without_length, "does not say where it ends"),
                ("answers that end with an exception", played.failing_at_the_end(played.OLD), "241: Memory limit"),
                ("answers that end with an exception as of later versions", played.failing_at_the_end(played.NEW), "241|__exception__")]:
            server = played.Played(played.spoiling(self.port, spoil))
            self.fails(name, self.at(server.port), expected)
            server.close()
        # What passes is asked again.
        server = played.Played(played.spoiling(self.port, played.without_answer, every=3))
        self.works("a network that loses every third answer", self.at(server.port))
        server.close()

    def try_shard_down(self):
        self.cluster.kill(2)
        page = os.path.join(self.folder, "page.html")
        for words, text in [(["top", "--json"], '"partial":["127.0.0.2:'), (["report", "-o", page], None)]:
            self.cases += 1
            code = self.run(self.at(self.port), words)
            said = code.stdout.decode() if text else open(page, encoding="utf-8").read()
            if code.returncode != 3 or (text or "A partial answer: no reports of 127.0.0.2:") not in said:
                self.note(f"{words[0]} with a shard down ends with {code.returncode}: {code.stderr.decode()}")
        print("works: top and report with a shard down, labelled", flush=True)
        self.fails("a shard that is down, for a user who may only read", self.at(self.port).replace("stall@", "reader@"),
                   "error 279", [["top"], ["list"]])
        self.fails("a shard that is down, to write", self.at(self.port), "127.0.0.2|connect", [["ingest", DEMO]])
        self.cluster.start(2)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("stallctl")
    parser.add_argument("scratch")
    parser.add_argument("--sabotage", action="store_true")
    options = parser.parse_args()
    options.stallctl, options.scratch = os.path.abspath(options.stallctl), os.path.abspath(options.scratch)
    if options.sabotage:
        played.half = lambda body: body
        played.cut_without_length = lambda connection, body: connection.sendall(played.answer(b"200 OK", body, played.NAME))
    world = World(options)
    try:
        world.try_tls()
        world.try_users()
        world.try_servers()
        world.try_shard_down()
        # None of it changed anything.
        world.works("the cluster afterwards", world.at(world.port))
        world.cases += 1
        if world.run(world.at(world.port), ["check"]).returncode != 0:
            world.note("check")
    finally:
        world.cluster.tell("down")
    print(f"truth clickhouse reach cases={world.cases} wrong={world.faults}")
    sys.exit(1 if world.faults else 0)


main()

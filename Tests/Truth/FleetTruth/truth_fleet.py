"""Fifty pushers and a collector that is killed all the time: does what they hold arrive, once? See scripts/truth-fleet.

usage: truth_fleet.py STALLCTL COLLECTOR MIGRATIONS SCRATCH [--pushers N] [--kills N] [--reports N] [--seed N] [--sabotage]

Stores are those of Tests/Truth/TotalsTruth. What the collector has is compared row for row with an ingest of the same files."""

import argparse
import gzip
import json
import os
import random
import shutil
import subprocess
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "TotalsTruth"))

import compare
import fleet
import sender as senders
from collector import Collector, make_certificates
from proxy import Proxy

fleet.NUMBERS_ARE_REVISIONS = fleet.HAVE_DELAYS = True
DECADES_AGO, DECADES_AHEAD = 40 * 365 * fleet.DAY_US, 60 * 365 * fleet.DAY_US


class Pusher:
    """A host: an app that goes on, and a job that pushes its store, which is killed now and then."""

    def __init__(self, world, number, store):
        self.world, self.number, self.store = world, number, store
        self.random = random.Random(world.seed * 1000 + number)
        self.pushes = self.killed = 0
        self.kind = ["direct", "proxy", "python", "proxy"][number % 4]
        if number % 10 == 7:
            self.kind = "older"
        if number % 10 == 8:
            self.kind = "newer"
        if not world.has_push and self.kind == "direct":
            self.kind = "python"
        self.lock = threading.Lock()

    def go_on(self):
        """New rows, in a file that takes the old one's place at once."""
        self.store.go_on()
        path, self.store.path = self.store.path, self.store.path + "-new"
        self.store.write(self.world.template)
        os.replace(self.store.path, path)
        self.store.path = path

    def push(self, is_last=False):
        """Whether all of the store arrived, as far as the pusher can tell."""
        world, self.pushes = self.world, self.pushes + 1
        token = world.tokens[self.store.app]
        through_proxy = self.kind in ("proxy", "older") and not is_last
        url = world.proxy.url if through_proxy else world.collector.url
        authority = None if through_proxy else world.authority
        if self.kind in ("python", "older", "newer") or not world.has_push:
            change = {"older": senders.older, "newer": senders.newer}.get(self.kind)
            one = senders.Sender(url, token, authority)
            size = self.random.choice([3, 40, 400])
            return one.push_store(world.stallctl, self.store.path, size, change) and not through_proxy
        words = [world.stallctl, "push", url, "--token-file", world.token_files[self.store.app], *world.store_words(self.store.path)]
        if authority:
            words += [*world.authority_words]
        process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=world.push_log)
        words += ["--wait", "60" if is_last else "4"]
        # A host restarts in the middle of it.
        patience = None if is_last else self.random.choice([0.05, 0.3, 2, 20])
        try:
            return process.wait(120 if patience is None else patience) == 0 and not through_proxy
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            self.killed += 1
            return False

    def run(self, done):
        while not done.is_set():
            try:
                self.push()
                if self.random.random() < 0.3 and self.store.revision < self.world.revision_limit:
                    self.go_on()
            except Exception as error:  # pylint: disable=broad-except
                self.world.note(f"pusher {self.number}: {error!r}")
            done.wait(self.random.uniform(0, 0.5))


class World:
    def __init__(self, options):
        self.stallctl, self.program, self.seed = options.stallctl, options.collector, options.seed
        self.folder, self.faults = options.scratch, []
        shutil.rmtree(self.folder, ignore_errors=True)
        os.makedirs(os.path.join(self.folder, "stores"))
        self.push_log = open(os.path.join(self.folder, "push.log"), "wb")
        help_text = subprocess.run([self.stallctl, "push", "--help"], capture_output=True, text=True)
        self.has_push = help_text.returncode == 0
        self.template = os.path.join(self.folder, "template.sqlite")
        fleet.make_template(self.template, options.migrations)
        self.revision_limit = 10**9
        self.authority, certificate, key = make_certificates(self.folder, "fleet")
        self.other_authority, _, _ = make_certificates(self.folder, "stranger")
        self.authority_words = ["--ca-file", self.authority]
        self.certificate, self.key = certificate, key
        self.collector = Collector(self.program, os.path.join(self.folder, "collector"), certificate, key,
                                   ["--stallctl", self.stallctl, "--request-time", "30"])
        self.tokens, self.token_files = {}, {}
        for app in fleet.APPS:
            self.set_token(app, self.collector.token("write", app))
        self.read_token = self.collector.token("read", "*")
        self.photos_reader = self.collector.token("read", "photos")
        self.proxy = Proxy(self.collector.url, self.authority, self.seed, options.sabotage)

    def store_words(self, path):
        return [path]

    def note(self, fault):
        self.faults.append(fault)
        if len(self.faults) <= 20:
            print("fault:", fault, flush=True)

    def set_token(self, app, text):
        self.tokens[app] = text
        path = os.path.join(self.folder, f"{app}.token")
        with open(path + "-new", "w", encoding="utf-8") as file:
            file.write(text + "\n")
        os.chmod(path + "-new", 0o600)
        os.replace(path + "-new", path)
        self.token_files[app] = path

    def rotate_token(self, app):
        old = self.tokens[app]
        self.set_token(app, self.collector.token("write", app))
        self.collector.remove_token(old)

    def make_stores(self, count, reports):
        stores, ordinary = [], fleet.FIRST_US
        for number in range(count):
            # Clocks that are wrong by decades.
            fleet.FIRST_US = ordinary + {3: -DECADES_AGO, 4: DECADES_AHEAD}.get(number % 25, 0)
            app = list(fleet.APPS)[number % len(fleet.APPS)]
            path = os.path.join(self.folder, "stores", f"store{number:03}.sqlite")
            store = fleet.Store(random.Random(self.seed * 7 + number), f"host{number % 20}", app, path)
            while len(store.reports) < reports // count:
                store.add_report()
            store.write(self.template)
            stores.append(store)
        fleet.FIRST_US = ordinary
        return stores

    # The parts of the play

    def refuses(self):
        """Hostile requests: nothing of them is stored, and each has its documented status."""
        # Of a store that nobody has pushed yet: a position that is not 0 shows that something was stored.
        path = os.path.join(self.folder, "stores", "store000.sqlite")
        rows = senders.export(self.stallctl, path)
        store, lines = rows[0][0]["store"], [line for _, line in rows]
        sender = senders.Sender(self.collector.url, self.tokens["photos"], self.authority)
        count = 0
        for name, status, right in senders.hostile_requests(sender, self.tokens["mail"], self.read_token, store, lines):
            count += 1
            if status != right:
                self.note(f"refusal: {name}: {status}, and {right} is right")
        status, _, answer = sender.position(store)
        if answer.get("through") != 0:
            self.note(f"refused requests left a position: {answer}")
        print(f"refused: {count} hostile requests", flush=True)

    def refuses_wrong_certificates(self):
        try:
            senders.Sender(self.collector.url, self.tokens["photos"], self.other_authority).position("0" * 32)
            self.note("a wrong certificate was accepted by Python")
        except OSError:
            pass
        if self.has_push:
            words = [self.stallctl, "push", self.collector.url, "--token-file", self.token_files["photos"], "--ca-file",
                     self.other_authority, *self.store_words(os.path.join(self.folder, "stores", "store000.sqlite"))]
            try:
                code = subprocess.run(words, stdout=self.push_log, stderr=self.push_log, timeout=20).returncode
            except subprocess.TimeoutExpired:
                code = "still trying"
            if code == 0:
                self.note("a wrong certificate was accepted by stallctl push")
        print("refused: a certificate of another authority", flush=True)

    def closes_slow_connections(self):
        slow = Collector(self.program, os.path.join(self.folder, "slow"), options=["--request-time", "2"])
        token = slow.token("write", "photos")
        slow.start()
        slow.wait_until_up()
        line = f"POST /v1/stores/{'0' * 32}/lines HTTP/1.1\r\nHost: x\r\n"
        fields = {**senders.head(b"x" * 1000, 1, 10), "Authorization": f"Bearer {token}", "Content-Length": "1000"}
        whole = line + "".join(f"{name}: {value}\r\n" for name, value in fields.items()) + "\r\n"
        for part, head, drip, answer in [("head", line, b"X-A: b\r\n", b""), ("body", whole, b"x", b"HTTP/1.1 408")]:
            seconds, said = senders.slow_loris(("localhost", slow.port), head.encode(), drip, 20)
            if seconds > 10 or not said.startswith(answer):
                self.note(f"a {part} that trickles in was listened to for {seconds:.1f} s, and answered {said[:100]}")
            print(f"closed: a {part} that trickles in, after {seconds:.1f} s", flush=True)
        slow.stop()

    def takes_other_versions(self):
        """Lines that a program of before wrote, over each version of HTTP; then what a program to come may send."""
        side = Collector(self.program, os.path.join(self.folder, "side"), self.certificate, self.key)
        token = side.token("write", "demo")
        side.start()
        side.wait_until_up()
        with gzip.open(os.path.join(HERE, "older-lines.jsonl.gz")) as file:
            lines = file.read().splitlines(keepends=True)
        rows = [json.loads(line) for line in lines]
        url = f"{side.url}/v1/stores/{rows[0]['store']}/lines"
        through, versions = max(row["revision"] for row in rows), []
        strange = [part for row, line in zip(rows, lines) for part in senders.newer(row, line)[1].splitlines(keepends=True)]
        for protocol, sent, added, unknown in [
                ("--http1.1", lines, len(lines), 0), ("--http2", lines, 0, 0), ("--http2-prior-knowledge", strange, 0, len(lines))]:
            status, version, answer = senders.curl(
                url, token, self.authority, gzip.compress(b"".join(sent)), 1, through, protocol)
            versions.append(version)
            if status != 200 or answer.get("added") != added or answer.get("unknown") != unknown:
                self.note(f"{protocol}: {status} {answer}")
        if versions != ["1.1", "2", "2"]:
            self.note(f"versions of HTTP: {versions}")
        if side.stop() != 0:
            self.note("the collector of older lines did not stop")
        path, local = os.path.join(self.folder, "older.jsonl"), os.path.join(self.folder, "older.sqlite")
        with open(path, "wb") as file:
            file.write(b"".join(lines))
        subprocess.run([self.stallctl, "ingest", "--store", local, path], check=True, stdout=subprocess.DEVNULL)
        if senders.export(self.stallctl, local) != senders.export(self.stallctl, side.store):
            self.note("lines of an older program are not what an ingest makes of them")
        print(f"taken: {len(lines)} lines of an older program, {len(strange) - len(lines)} unknown ones, over HTTP {', '.join(versions)}",
              flush=True)

    def survives_a_full_disk(self, stores):
        """A disk of its own that has no room: 503 and nothing half stored; with room, everything."""
        folder = os.path.join(self.folder, "small")
        os.makedirs(folder)
        if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=32m", "none", folder], capture_output=True).returncode != 0:
            print("skipped: a disk without room, which this machine does not let us mount", flush=True)
            return
        small = Collector(self.program, folder)
        sender = senders.Sender(small.url, small.token("write", "*"))
        small.start()
        small.wait_until_up()
        sender.position("0" * 32)
        ballast = os.path.join(folder, "ballast")
        with open(ballast, "wb", buffering=0) as file:
            try:
                while file.write(bytes(64 << 10)) == 64 << 10:
                    pass
            except OSError:
                pass
            file.truncate(file.tell() - (600 << 10))
        def push():
            return sum(sender.push_store(self.stallctl, store.path, 100) for store in stores)
        before = push()
        os.unlink(ballast)
        after = push()
        if 503 not in sender.statuses or sender.statuses - {200, 503} or before == len(stores) or after != len(stores):
            self.note(f"a disk without room: {before}, then {after} of {len(stores)} stores; answers {sender.statuses}")
        if small.stop() != 0:
            self.note("the collector on a small disk did not stop")
        local = os.path.join(self.folder, "small.sqlite")
        subprocess.run([self.stallctl, "ingest", "--store", local, *(store.path for store in stores)], check=True,
                       stdout=subprocess.DEVNULL)
        result = compare.Comparison(self.stallctl, small.store, local)
        if result.lost or result.double or result.differing or result.exposure_ns:
            self.note(f"a disk without room: lost {result.lost}, double {result.double}, differing {result.differing}")
        # Its log and databases may still be open here.
        subprocess.run(["umount", "-l", folder], check=True)
        print(f"filled: a disk; {before} of {len(stores)} stores, and all of them once there was room", flush=True)

    def answers_readers(self):
        """Readers are told what stallctl says."""
        sender = senders.Sender(self.collector.url, self.read_token, self.authority, timeout=120)
        said = subprocess.run([self.stallctl, "top", "--store", self.collector.store, "--json", "--app", "photos"],
                              capture_output=True, check=True, env={**os.environ, "TZ": "UTC"}).stdout
        connection = sender.connect()
        for path, right in (("/v1/top?app=photos", said), ("/?app=photos", None), ("/v1/trend?since=2025-01-01&until=2026-01-01", None), ("/v1/status", None),
                            ("/v1/diff?a=1.0&b=2.0&app=photos", None)):
            connection.request("GET", path, headers={"Authorization": f"Bearer {self.read_token}"})
            answer = connection.getresponse()
            text = answer.read()
            if answer.status != 200 or (right is not None and text != right):
                self.note(f"{path} was answered {answer.status}, {len(text)} bytes: {text[:200]}")
        connection.request("GET", "/v1/top", headers={"Authorization": f"Bearer {self.photos_reader}"})
        if b'"mail"' in connection.getresponse().read():
            self.note("a reader of photos was told of mail")
        print("answered: readers, as stallctl says it", flush=True)


def main():
    parser = argparse.ArgumentParser()
    for name in ("stallctl", "collector", "migrations", "scratch"):
        parser.add_argument(name)
    parser.add_argument("--pushers", type=int, default=50)
    parser.add_argument("--kills", type=int, default=300)
    parser.add_argument("--reports", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--sabotage", action="store_true")
    options = parser.parse_args()
    options.stallctl, options.collector = os.path.abspath(options.stallctl), os.path.abspath(options.collector)
    options.scratch = os.path.abspath(options.scratch)
    world = World(options)
    print(f"stallctl push is {'used' if world.has_push else 'missing: Python sends alone'}", flush=True)
    stores = world.make_stores(options.pushers, options.reports)
    world.collector.start()
    world.collector.wait_until_up()
    world.refuses()
    world.refuses_wrong_certificates()
    world.closes_slow_connections()
    world.takes_other_versions()
    world.survives_a_full_disk(stores[:10])
    pushers = [Pusher(world, number, store) for number, store in enumerate(stores)]
    done = threading.Event()
    threads = [threading.Thread(target=pusher.run, args=(done,)) for pusher in pushers]
    for thread in threads:
        thread.start()
    full_disks, stop = [], threading.Event()
    for part in range(3):
        times = options.kills // 3 + (options.kills % 3 if part == 2 else 0)
        world.collector.kill_again_and_again(times, world.seed + part, stop, full_disks)
        world.rotate_token(list(fleet.APPS)[part % 2])
        print(f"killed: {world.collector.kills} times; token replaced", flush=True)
    done.set()
    for thread in threads:
        thread.join()
    # The network is well again; each host pushes until all has arrived.
    world.proxy.is_kind = True
    for pusher in pushers:
        for _ in range(20):
            if pusher.push(is_last=True):
                break
            time.sleep(0.5)
        else:
            world.note(f"pusher {pusher.number} ({pusher.kind}) could not push all")
    world.answers_readers()
    code = world.collector.stop()
    if code != 0:
        world.note(f"the collector stopped with {code}")
    local = os.path.join(world.folder, "local.sqlite")
    subprocess.run([world.stallctl, "ingest", "--store", local, *(store.path for store in stores)], check=True,
                   stdout=subprocess.DEVNULL)
    check = subprocess.run([world.stallctl, "check", "--store", world.collector.store], capture_output=True, text=True)
    if check.returncode != 0:
        world.note(f"stallctl check: {check.stdout[-500:]}{check.stderr[-500:]}")
    result = compare.Comparison(world.stallctl, world.collector.store, local)
    counts = ", ".join(f"{name} {count}" for name, count in sorted(world.proxy.counts.items()))
    print(f"the proxy: {counts}; replayed batches were answered {world.proxy.statuses}")
    print(f"pushes {sum(pusher.pushes for pusher in pushers)}, killed {sum(pusher.killed for pusher in pushers)}; collector killed"
          f" {world.collector.kills}, disk full {len(full_disks)}; {result.hours:.1f} watched hours; faults {len(world.faults)}")
    print(f"truth fleet reports={result.reports} lost={result.lost} double={result.double} differing_rows={result.differing}"
          f" exposure_difference={result.exposure_ns}")
    sys.exit(1 if result.lost or result.double or result.differing or result.exposure_ns or world.faults else 0)


if __name__ == "__main__":
    main()

"""Fifty pushers and a collector that is killed all the time: does what they hold arrive, once? See scripts/truth-fleet.

usage: truth_fleet.py STALLCTL COLLECTOR MIGRATIONS SCRATCH [--pushers N] [--kills N] [--reports N] [--seed N] [--sabotage]

Stores are those of Tests/Truth/TotalsTruth. What the collector has is compared row for row with an ingest of the same files."""

import argparse
import os
import random
import shutil
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "TotalsTruth"))

import compare
import fleet
import sender as senders
from collector import Collector, make_certificates
from proxy import Proxy

fleet.NUMBERS_ARE_REVISIONS = True
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
        slow.token("write", "photos")
        slow.start()
        slow.wait_until_up()
        seconds = senders.slow_loris(("localhost", slow.port), None, 2, True)
        if seconds > 10:
            self.note(f"a head that trickles in was listened to for {seconds:.1f} s")
        slow.stop()
        print(f"closed: a head that trickles in, after {seconds:.1f} s", flush=True)

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

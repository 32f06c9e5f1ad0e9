"""What one collector takes in a second, and what a report costs its sender and its collector in CPU time.

usage: throughput.py STALLCTL COLLECTOR MIGRATIONS SCRATCH [--reports N] [--batch N]

Batches are made beforehand, so that the machine is the collector's. The last line:
throughput reports=N per_second=N collector_us_per_report=N sender_us_per_report=N"""

import argparse
import gzip
import os
import random
import resource
import shutil
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "TotalsTruth"))

import fleet
import sender as senders
from collector import Collector

fleet.NUMBERS_ARE_REVISIONS = True


def cpu_seconds(pid):
    with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def make_stores(folder, migrations, reports):
    template, stores = os.path.join(folder, "template.sqlite"), []
    fleet.make_template(template, migrations)
    for number in range(max(1, reports // 1000)):
        path = os.path.join(folder, f"store{number:03}.sqlite")
        store = fleet.Store(random.Random(number), f"host{number % 20}", "photos", path)
        while len(store.reports) < 1000:
            store.add_report()
        store.write(template)
        stores.append(path)
    return stores


def make_batches(stallctl, path, size):
    """(store, from, through, body, reports) of each batch."""
    lines = senders.export(stallctl, path)
    store = next(row["store"] for row, _ in lines if row.get("store"))
    rest = b"".join(line for row, line in lines if "revision" not in row)
    numbered = sorted(((row["revision"], row["schema"], line) for row, line in lines if "revision" in row), key=lambda row: row[0])
    batches, through, start = [], 0, 0
    while start < len(numbered):
        end = min(start + size, len(numbered))
        while end < len(numbered) and numbered[end][0] == numbered[end - 1][0]:
            end += 1
        part = numbered[start:end]
        body = gzip.compress((rest if start == 0 else b"") + b"".join(row[2] for row in part), 6)
        batches.append((store, through + 1, part[-1][0], body, sum(row[1].startswith("stallctl.report/") for row in part)))
        through, start = part[-1][0], end
    return batches


def main():
    parser = argparse.ArgumentParser()
    for name in ("stallctl", "collector", "migrations", "scratch"):
        parser.add_argument(name)
    parser.add_argument("--reports", type=int, default=40_000)
    parser.add_argument("--batch", type=int, default=1000)
    options = parser.parse_args()
    folder = os.path.abspath(options.scratch)
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    stores = make_stores(folder, options.migrations, options.reports)
    work = [make_batches(options.stallctl, path, options.batch) for path in stores]
    reports, sent = sum(batch[4] for store in work for batch in store), sum(len(batch[3]) for store in work for batch in store)
    collector = Collector(os.path.abspath(options.collector), os.path.join(folder, "collector"))
    token = collector.token("write", "photos")
    collector.start()
    collector.wait_until_up()
    lock, faults = threading.Lock(), []

    def send():
        one = senders.Sender(collector.url, token, timeout=120)
        while True:
            with lock:
                if not work:
                    return
                batches = work.pop()
            for store, first, through, body, _ in batches:
                status, _, answer = one.push(store, first, through, None, body)
                if status != 200:
                    faults.append((status, answer))
    before, start = cpu_seconds(collector.process.pid), time.monotonic()
    threads = [threading.Thread(target=send) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    seconds, cpu = time.monotonic() - start, cpu_seconds(collector.process.pid) - before
    collector.stop()
    if faults:
        sys.exit(f"not taken: {faults[:3]}")
    # A sender by itself: everything of some stores, to a collector that has none of it.
    other = Collector(os.path.abspath(options.collector), os.path.join(folder, "other"))
    with open(os.path.join(folder, "token"), "w", encoding="utf-8") as file:
        file.write(other.token("write", "photos") + "\n")
    other.start()
    other.wait_until_up()
    some = stores[:10]
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([options.stallctl, "push", other.url, "--token-file", file.name, *some], check=True, stdout=subprocess.DEVNULL)
    usage_after = resource.getrusage(resource.RUSAGE_CHILDREN)
    sender_seconds = usage_after.ru_utime + usage_after.ru_stime - usage.ru_utime - usage.ru_stime
    other.stop()
    load = os.getloadavg()[0]
    print(f"{sent / reports:.0f} bytes a report as sent, {len(os.sched_getaffinity(0))} cores, load {load:.1f}; {seconds:.1f} s, of"
          f" which {cpu:.1f} s of CPU are the collector's")
    print(f"throughput reports={reports} per_second={reports / seconds:.0f} collector_us_per_report={cpu / reports * 1e6:.0f}"
          f" sender_us_per_report={sender_seconds / (1000 * len(some)) * 1e6:.0f}")


if __name__ == "__main__":
    main()

"""What one collector takes in a second, and what a report costs its sender and its collector in CPU time.

usage: throughput.py STALLCTL COLLECTOR MIGRATIONS SCRATCH [--reports N] [--batch N] [--senders N] [--lines FILE] [--store URL]

Reports are made up, with one short stack each, or copies of the lines in a file, whose processes and ids are others in each copy.
Batches are made beforehand, so that the machine is the collector's. The last line, without sender_us_per_report for --lines:
throughput reports=N per_second=N collector_us_per_report=N sender_us_per_report=N"""

import argparse
import gzip
import json
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


def copies_of(path, reports):
    """The lines of as many stores as it takes: each is the file's, under identities of its own."""
    with gzip.open(path) if path.endswith(".gz") else open(path, "rb") as file:
        rows = [json.loads(line) for line in file]
    for number in range(max(1, reports // len(rows))):
        draw = random.Random(number)
        store, runs, lines = draw.randbytes(16).hex(), {}, []
        for row in rows:
            row = {**row, "store": store, "id": draw.randbytes(16).hex(), "host": f"host{number % 20}"}
            known = runs.setdefault(row["run"]["id"], draw.randbytes(16).hex())
            row["run"] = {**row["run"], "id": known}
            lines.append((row, json.dumps(row, separators=(",", ":"), ensure_ascii=False).encode() + b"\n"))
        yield lines


def make_batches(lines, size):
    """(store, from, through, body, reports, bytes unpacked) of each batch."""
    store = next(row["store"] for row, _ in lines if row.get("store"))
    rest = b"".join(line for row, line in lines if "revision" not in row)
    numbered = sorted(((row["revision"], row["schema"], line) for row, line in lines if "revision" in row), key=lambda row: row[0])
    batches, through, start = [], 0, 0
    while start < len(numbered):
        end = min(start + size, len(numbered))
        while end < len(numbered) and numbered[end][0] == numbered[end - 1][0]:
            end += 1
        part = numbered[start:end]
        text = (rest if start == 0 else b"") + b"".join(row[2] for row in part)
        count = sum(row[1].startswith("stallctl.report/") for row in part)
        batches.append((store, through + 1, part[-1][0], gzip.compress(text, 6), count, len(text)))
        through, start = part[-1][0], end
    return batches


def sender_seconds(options, folder, stores):
    """CPU time of `stallctl push` of stores, to a collector that has none of them."""
    collector = Collector(options.collector, os.path.join(folder, "other"))
    token = os.path.join(folder, "token")
    with open(token, "w", encoding="utf-8") as file:
        file.write(collector.token("write", "*") + "\n")
    collector.start()
    collector.wait_until_up()
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([options.stallctl, "push", collector.url, "--token-file", token, *stores], check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    collector.stop()
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main():
    parser = argparse.ArgumentParser()
    for name in ("stallctl", "collector", "migrations", "scratch"):
        parser.add_argument(name, type=os.path.abspath)
    parser.add_argument("--reports", type=int, default=40_000)
    parser.add_argument("--batch", type=int, default=1000)
    parser.add_argument("--senders", type=int, default=4)
    parser.add_argument("--lines")
    parser.add_argument("--store", help="the collector's central store: clickhouse://..., with no reports yet")
    options = parser.parse_args()
    folder = options.scratch
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    if options.lines:
        stores, work = [], [make_batches(lines, options.batch) for lines in copies_of(options.lines, options.reports)]
    else:
        stores = make_stores(folder, options.migrations, options.reports)
        work = [make_batches(senders.export(options.stallctl, path), options.batch) for path in stores]
    reports, sent, unpacked = (
        sum(number(batch) for store in work for batch in store)
        for number in (lambda batch: batch[4], lambda batch: len(batch[3]), lambda batch: batch[5]))
    batches = sum(len(store) for store in work)
    beside = ["--own-store", os.path.join(folder, "own.sqlite")] if options.store else []
    collector = Collector(
        options.collector, os.path.join(folder, "collector"), options=["--rate", "100000", *beside], store=options.store)
    token = collector.token("write", "*")
    collector.start()
    collector.wait_until_up()
    lock, faults, load = threading.Lock(), [], os.getloadavg()[0]

    def send():
        one = senders.Sender(collector.url, token, timeout=120)
        while True:
            with lock:
                if not work:
                    return
                batches = work.pop()
            for store, first, through, body, _, _ in batches:
                status, _, answer = one.push(store, first, through, None, body)
                if status != 200:
                    faults.append((status, answer))
    before, start = cpu_seconds(collector.process.pid), time.monotonic()
    threads = [threading.Thread(target=send) for _ in range(options.senders)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    seconds, cpu = time.monotonic() - start, cpu_seconds(collector.process.pid) - before
    collector.stop()
    if faults:
        sys.exit(f"not taken: {faults[:3]}")
    some = [] if options.store else stores[:10]
    sender = f" sender_us_per_report={sender_seconds(options, folder, some) / (1000 * len(some)) * 1e6:.0f}" if some else ""
    print(f"{batches} batches by {options.senders} senders, {unpacked / reports:.0f} bytes a report, {sent / reports:.0f} as sent;"
          f" {len(os.sched_getaffinity(0))} cores, load {load:.1f}; {seconds:.1f} s, of which {cpu:.1f} s of CPU are the collector's")
    print(f"throughput reports={reports} per_second={reports / seconds:.0f} collector_us_per_report={cpu / reports * 1e6:.0f}{sender}")


if __name__ == "__main__":
    main()

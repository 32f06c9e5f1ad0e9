"""One source of the largest numbers that ingest takes: their sums are beyond 64 bits, in SQLite as in a cluster."""

import os
import shutil
import sqlite3

LONGEST = 320_000_000_000_000_000
QUESTIONS = [words + ["--json"] for words in (
    ["top"], ["top", "--group", "host"], ["top", "--group", "cause"], ["top", "--by", "p95"], ["trend"], ["trend", "--by", "hour"],
    ["tree"], ["list"], ["status"], ["diff", "..2030-01-01", "2030-01-01.."])] + [["export", "--format", "csv"]]


def make(path, demo):
    """The store at `demo` with forty times its reports, each of ten years, and as many stretches of watched time."""
    shutil.copy(demo, path)
    store = sqlite3.connect(path)
    columns = [name for _, name, *_ in store.execute("pragma table_info (report)")]
    store.execute(f"update report set duration_ns = {LONGEST}, cpu_ns = {LONGEST}, checksum = null")
    for report in store.execute("select * from report").fetchall():
        row = dict(zip(columns, report))
        for _ in range(39):
            row["seq"] += 1000
            row["id"] = row["id"][:13] + row["seq"].to_bytes(3, "big")
            store.execute(f"insert into report ({', '.join(columns)}) values ({', '.join('?' * len(row))})", list(row.values()))
    columns = [name for _, name, *_ in store.execute("pragma table_info (exposure)")]
    new = {"revision": "revision - n"}
    # One bucket with 2^47 iterations: of all together there are more than a count may say.
    lengths = "x'0980808080808020'"
    store.execute(f"update exposure set busy_ns = {LONGEST}, ready_delay_ns = {LONGEST}, micro_stall_ns = {LONGEST},"
                  f" micro_stall_count = 1000000000000, iteration_count = {1 << 53}, lengths = {lengths}")
    store.execute(f"""
        with recursive copy (n) as (select 1 union all select n + 1 from copy where n < 39)
        insert into exposure ({', '.join(columns)})
        select {', '.join(new.get(name, name) for name in columns)} from exposure, copy""")
    store.commit()
    store.close()


def compare(world, answer, url):
    """Ingests it into a file and into the store at a URL, and asks both by `answer`, of a store and words."""
    central, agent = (os.path.join(world.folder, name) for name in ("largest.sqlite", "largest-agent.sqlite"))
    for path in (central, agent):
        if os.path.exists(path):
            os.remove(path)
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
    make(agent, os.path.join(root, "sample-data", "demo.sqlite"))
    for store in (central, url):
        done = world.run(store, "ingest", agent)
        if done.returncode != 0:
            world.note(f"largest: ingest of {store} ends with {done.returncode}: {done.stderr.decode()[:500]}")
    for words in QUESTIONS:
        here, there = answer(central, words), answer(url, words)
        if here[0] != 0 or here[:2] != there[:2]:
            lines = [(one, other) for one, other in zip(here[1], there[1]) if one != other]
            world.note(f"largest: {' '.join(words)}: {here[0]} and {there[0]}, {str(lines[:1])[:2000]} {there[2][:500]}")
    check = world.run(url, "check")
    if check.returncode != 0:
        world.note(f"largest: check: {check.stdout.decode()}{check.stderr.decode()}")
    print("largest: a source whose sums are beyond 64 bits", flush=True)
    return len(QUESTIONS) + 1

"""A directory of 10,000 files in all formats and none, as `stallctl ingest` takes it; and folded stacks, there and back.

Called by truth_formats.py with what each file has in it."""
import json
import os
import random
import re
import resource
import shutil
import subprocess

UNRELATED = [
    lambda n: f"# notes {n}\n\nThe app hangs; see thread 0.\n" * 20,
    lambda n: "".join(f"2026-11-{n % 28 + 1:02} 10:00:{s:02} INFO request {s} took 12 ms\n" for s in range(60)),
    lambda n: "time,host,count\n" + "".join(f"{n + i},web-{i},{i}\n" for i in range(50)),
    lambda n: json.dumps({"name": f"package-{n}", "version": "1.0", "threads": 4, "frames": [1, 2]}, indent=2),
    lambda n: "struct Point { var x = %d; var y = 2 }\nfor (i = 0; i < 3; i++) { run(); }\n" % n,
    lambda n: random.Random(n).randbytes(3000),
    lambda n: "",
]
SUFFIXES = ["", ".txt", ".log", ".json", ".crash", ".dat"]


def ingest(stallctl, store, *arguments):
    """The summary, and what it took: seconds of CPU and the most memory, in MB."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    run = subprocess.run([stallctl, "ingest", "--store", store, "--json", *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    if run.returncode not in (0, 1) or not run.stdout:
        raise SystemExit(f"ingest ended with {run.returncode}: {run.stderr.decode()[-500:]}")
    return json.loads(run.stdout), cpu, after.ru_maxrss / 1024


def mixed(stallctl, scratch, contents, count):
    """How many formats have another number of files or reports than they should.

    `contents` has the format and the reading of each file."""
    directory, store = os.path.join(scratch, "mixed"), os.path.join(scratch, "mixed.sqlite")
    shutil.rmtree(directory, ignore_errors=True)
    for name in os.listdir(scratch):
        if name.startswith("mixed.sqlite"):
            os.remove(os.path.join(scratch, name))
    chance, expected, files = random.Random(46), {}, 0
    for path, (format, reading) in contents.items():
        place = os.path.join(directory, f"{files % 97}")
        os.makedirs(place, exist_ok=True)
        shutil.copy(path, os.path.join(place, f"{files}{chance.choice(SUFFIXES)}"))
        files += 1
        found = expected.setdefault(format, [0, set()])
        found[0] += 1
        # The same report twice is one.
        found[1] |= set(re.findall(r"^(?:stalled|sampled) .*\n(?:  .*\n)*", reading, flags=re.M))
    for number in range(files, max(count, files)):
        text = chance.choice(UNRELATED)(number)
        with open(os.path.join(directory, f"{number % 97}", f"{number}{chance.choice(SUFFIXES)}"), "wb") as file:
            file.write(text if isinstance(text, bytes) else text.encode())
    # A file that was just written may not be whole: the next run takes it.
    for place, _, names in os.walk(directory):
        for name in names:
            os.utime(os.path.join(place, name), (1_700_000_000, 1_700_000_000))
    summary, cpu, memory = ingest(stallctl, store, "--as", "stall", directory)
    expected = {format: [files, len(reports)] for format, (files, reports) in expected.items()}
    found = {row["format"]: [row["files"], row["added"]] for row in summary["formats"]}
    wrong = sum(1 for format in expected.keys() | found.keys() if expected.get(format) != found.get(format))
    for format in sorted(expected.keys() | found.keys()):
        if expected.get(format) != found.get(format):
            print(f"wrong: {format}: files and reports {expected.get(format)} expected, {found.get(format)} found")
    again, _, _ = ingest(stallctl, store, "--as", "stall", directory)
    print(
        f"mixed files={max(count, files)} formats={len(found)} reports={summary['added']} again={again['added']} wrong={wrong} "
        f"cpu_s={cpu:.1f} memory_mb={memory:.0f}"
    )
    return wrong + again["added"]


def folded(stallctl, scratch, store):
    """How many stacks of a store have another weight after they were exported as folded stacks and ingested."""
    def lines(store):
        text = subprocess.run(
            [stallctl, "export", "--format", "folded", "--store", store], stdout=subprocess.PIPE, check=True).stdout.decode()
        return dict(line.rsplit(" ", 1) for line in text.splitlines())

    there, central = os.path.join(scratch, "there.folded"), os.path.join(scratch, "folded.sqlite")
    for name in os.listdir(scratch):
        if name.startswith("folded.sqlite"):
            os.remove(os.path.join(scratch, name))
    first = lines(store)
    with open(there, "w") as file:
        file.writelines(f"{stack} {weight}\n" for stack, weight in first.items())
    ingest(stallctl, central, "--as", "stall", "--sample-interval", "1ms", "--app", "back", there)
    # The app and the loop are frames now, behind the new app and its loop.
    back = {}
    for stack, weight in lines(central).items():
        back[stack.split(";", 2)[2]] = weight
    wrong = sum(1 for stack in first.keys() | back.keys() if first.get(stack) != back.get(stack))
    for stack in sorted(stack for stack in first.keys() | back.keys() if first.get(stack) != back.get(stack))[:3]:
        print(f"wrong: {stack[-200:]}: {first.get(stack)} expected, {back.get(stack)} found")
    print(f"folded stacks={len(first)} ms={sum(map(int, first.values()))} back_ms={sum(map(int, back.values()))} wrong={wrong}")
    return wrong

#!/usr/bin/env python3
"""files.py DIRECTORY MEGABYTES: files to measure the readers of other programs' reports with.

perf script and folded stacks have 3,000 distinct stacks of 8 threads; the formats of made_up.py have reports of which no two
are equal, for an eighth of the size; of the others, the examples of sample-data/formats are repeated. distinct/ has the files
whose reports are distinct, repeated/ the others."""
import os
import random
import sys

sys.path.insert(0, "Tests/Truth/Formats")
import made_up
from write_pprof import Profile, msg, num, packed

directory, size = sys.argv[1], int(sys.argv[2]) * 1_000_000
for name in ["distinct", "repeated"]:
    os.makedirs(os.path.join(directory, name), exist_ok=True)
chance = random.Random(46)
NAMES = [
    "std::chrono::steady_clock::now", "$s4Demo7DecoderC6decodeyyF", "Photos.ThumbnailStore.decode(_: Data) -> Image", "__GI___poll",
    "malloc", "_int_malloc", "swift_retain", "specialized Array.append(_:)", "std::vector<int, std::allocator<int> >::push_back",
    "do_syscall_64", "main", "_start",
] + [f"Photos.Module{n % 20}.function{n}(value: Int, other: String)" for n in range(400)]
BINARIES = ["/usr/lib/x86_64-linux-gnu/libc.so.6", "/usr/bin/photos", "/usr/lib/swift/linux/libswiftCore.so", "[kernel.kallsyms]"]


def stack():
    frames = []
    for _ in range(chance.randint(5, 45)):
        n = chance.randrange(len(NAMES))
        frames.append((0x7F0000000000 + n * 4096, NAMES[n], n % 4096, BINARIES[n % 4]))
    return frames


def fill(path, size, parts):
    left = size
    with open(os.path.join(directory, path), "wb") as file:
        for part in parts:
            left -= file.write(part)
            if left <= 0:
                return


STACKS = [stack() for _ in range(3000)]


def perf():
    time = 1641.9
    while True:
        time += 0.00012
        frames = STACKS[min(int(chance.expovariate(1 / 300)), 2999)]
        yield (
            f"photos  4711/{4711 + chance.randrange(8)} [{chance.randrange(8):03}] {time:.6f}:   10101010 cpu-clock: \n"
            + "".join("\t%16x %s+0x%x (%s)\n" % frame for frame in frames) + "\n"
        ).encode()


def folded():
    while True:
        names = ";".join(frame[1] for frame in reversed(chance.choice(STACKS)))
        yield f"photos-4711/{4711 + chance.randrange(8)};{names} {chance.randrange(1, 900)}\n".encode()


def pprof():
    """A profile with as many samples as a quarter of an hour of one CPU."""
    profile = Profile()
    yield profile.type(1, "samples", "count") + profile.type(1, "cpu", "nanoseconds")
    for number, path in enumerate(BINARIES):
        yield profile.mapping(number + 1, 0x7F0000000000, 0x7F1000000000, 0, path, f"{number:040x}")
    for number, name in enumerate(NAMES):
        yield profile.function(number + 1, name)
        yield profile.location(number + 1, number % 4 + 1, 0x7F0000000000 + number * 4096, (number + 1, number % 4096))
    yield profile.table()
    for _ in range(100_000):
        yield msg(2, packed(1, [(frame[0] >> 12 & 0xFFF) + 1 for frame in chance.choice(STACKS)]) + packed(2, [1, 10_000_000]))


def reports(name):
    for seed in range(10_000_000):
        text, _ = getattr(made_up.made_up(seed), name)()
        yield text if isinstance(text, bytes) else (text + "\n").encode()


fill("distinct/perf-script", size, perf())
fill("distinct/folded", size, folded())
for name in made_up.FORMATS:
    # A profile is a file; of two kernels' times, the later one would be a boot.
    if name not in ["perf", "pprof", "kernel"]:
        fill(f"distinct/{name}", size // 8, reports(name))
fill("distinct/pprof", size, pprof())
REPEATED = [
    "kernel-hung-task.txt", "kscrash-deadlock.json", "sentry-lines.jsonl", "sample-player.txt", "spindump-hang.txt", "eu-stack-plain.txt",
    "swift-backtrace-two.txt", "swift-backtrace-many.json", "profile-recorder.raw",
]
for name in REPEATED:
    with open(os.path.join("sample-data/formats", name), "rb") as file:
        text = file.read()
    fill(f"repeated/{name}", size // 8, (text + b"\n" for _ in iter(int, 1)))

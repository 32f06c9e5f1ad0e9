"""Holds what is read of dSYMs against what llvm-symbolizer reads of them.

Programs in C++ (inlining, templates, namespaces, lambdas, several units that share a header) and in embedded Swift are
built for arm64 and x86_64, in DWARF 4 and 5, optimized and not; dsymutil makes a dSYM of each. Every instruction (every
byte on x86_64) is looked up by both: the functions of all inlined calls, their files and lines must be equal.

Two rules for what differs, whose places are counted in a line of their own:
- Code of no line, line 0, has a file in llvm-symbolizer's answer and none in ours: it is compared without that file.
- A function whose address has several names in the symbol table (Swift's removed methods) has any of them."""
import glob
import os
import random
import shutil
import subprocess

# dsymutil before 16 cannot copy DWARF 5.
VERSIONS = ["", "-19", "-18", "-17", "-16"]
SWIFT = os.environ.get("SWIFT_TOOLCHAIN") or os.path.dirname(os.path.dirname(
    os.path.realpath(shutil.which("swiftc") or "/opt/swift/usr/bin/swiftc")))

HEADER = """
namespace shop {
template <class T> inline __attribute__((always_inline)) T twice(T x) {
    T y = x * 3;
    return y + 1;
}
template <class T, int N> struct Shelf {
    T items[N];
    inline T first(int k) const { return twice(items[k % N]); }
    __attribute__((noinline)) T sum(int k) const {
        T s = 0;
        for (int i = 0; i < k; i++)
            s += first(i) ^ k;
        return s;
    }
};
struct Cart {
    int n;
    static int made;
    int total(int k);
    inline int half(int x) const { return twice(x) / 2 + n; }
};
}
"""


def unit(seed, number):
    """A unit with functions that call and inline each other."""
    rng = random.Random(f"{seed}/{number}")
    lines = ['#include "shop.h"', f"extern int outside{(number + 1) % 4}(int);"]
    if number == 0:
        lines += ["int shop::Cart::made;", "__attribute__((noinline)) int shop::Cart::total(int k) {",
                  "    int s = made;", "    for (int i = 0; i < k; i++)", "        s += half(i) * n;", "    return s;", "}"]
    names = []
    for index in range(14):
        inline = rng.choice(["static inline __attribute__((always_inline)) ", "static __attribute__((noinline)) ", ""])
        space = rng.choice(["shop", f"unit{number}", ""])
        name = f"step{number}_{index}"
        body = []
        for _ in range(rng.randint(2, 6)):
            callee = rng.choice(names) + "(a)" if names and rng.random() < 0.6 else f"shop::twice(a + {rng.randint(1, 9)})"
            body.append(rng.choice([
                f"    a += {callee};",
                f"    if (a % {rng.randint(2, 9)} == 0)\n        a ^= {callee};",
                f"    for (int i = 0; i < a; i++) {{\n        a += i * {callee};\n    }}",
                f"    a += [&](int x) {{\n        return x * {callee};\n    }}(a);",
                f"    a += outside{(number + 1) % 4}(a);",
                f"    a += shop::Cart{{a}}.half({callee});",
                f"    a += shop::Shelf<long, {rng.randint(2, 3)}>{{}}.sum({callee});",
            ]))
        if space:
            lines.append(f"namespace {space} {{")
        lines += [f"{inline}int {name}(int a) {{"] + body + ["    return a;", "}"]
        if space:
            lines.append("}")
        names.append(f"{space}::{name}" if space else name)
    lines += [f"int outside{number}(int a) {{", "    return " + " + ".join(f"{name}(a)" for name in names) + ";", "}"]
    return "\n".join(lines) + "\n"


MAIN = "extern int outside0(int);\nint main(int c, char **) { return outside0(c); }\n"

SWIFT_SOURCE = """
public struct Cart<Item> {
    var items: [Item]
    var n: Int
    @inline(__always) func half(_ x: Int) -> Int { twice(x) / 2 &+ n }
    @inline(never) public func total(_ k: Int) -> Int {
        var s = 0
        for i in 0..<k {
            s &+= half(i) &* items.count
        }
        return s
    }
}
@inline(__always) func twice(_ x: Int) -> Int {
    x &* 3 &+ 1
}
@inline(never) func walk(_ a: [Int]) -> Int { a.reduce(0) { $0 &+ twice($1) } }
public func shown(_ k: Int) -> Int {
    let c = Cart(items: [k, k &+ 1, twice(k)], n: k)
    return c.total(k) &+ walk(c.items.map { x in c.half(x) })
}
"""


def found(name):
    """A tool of LLVM that is installed under one of its names."""
    for version in VERSIONS:
        path = shutil.which(name + version)
        if path and (name != "dsymutil" or not has_old_version(path)):
            return path
    return None


def has_old_version(path):
    words = subprocess.run([path, "--version"], stdout=subprocess.PIPE, text=True).stdout.split("LLVM version ")
    return len(words) > 1 and int(words[1].split(".")[0]) < 16


def run(*command):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True).stdout


class Tools:
    def __init__(self):
        self.dsymutil = found("dsymutil")
        self.clang = os.path.join(SWIFT, "bin", "clang")
        self.swiftc = os.path.join(SWIFT, "bin", "swiftc")
        self.lipo, self.symbolizer = found("llvm-lipo"), found("llvm-symbolizer")
        self.dwarfdump, self.objdump = found("llvm-dwarfdump"), found("llvm-objdump")
        self.nm = found("llvm-nm")
        # The toolchain's own linker is without the formats of Apple.
        linkers = (shutil.which("ld64.lld" + version) for version in VERSIONS[1:] + VERSIONS[:1])
        self.linker = next((path for path in linkers if path and not os.path.realpath(path).startswith(SWIFT)), None)

    def missing(self):
        return next((name for name, path in vars(self).items() if not path or not os.path.exists(path)), None)


def build(tools, scratch, arch, dwarf, option, seed):
    """A dSYM of C++ units, the binary beside it."""
    folder = os.path.join(scratch, f"{arch}-{dwarf}{option}")
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    sources = {"shop.h": HEADER, "main.cpp": MAIN, **{f"unit{n}.cpp": unit(seed, n) for n in range(4)}}
    objects = []
    for name, text in sources.items():
        with open(os.path.join(folder, name), "w") as file:
            file.write(text)
        if name.endswith(".cpp"):
            objects.append(os.path.join(folder, name + ".o"))
            run(tools.clang, "-target", f"{arch}-apple-macos11", option, f"-gdwarf-{dwarf}", "-std=c++17", "-fno-exceptions",
                "-c", os.path.join(folder, name), "-o", objects[-1])
    return link(tools, folder, arch, "macos", "11", objects)


def build_swift(tools, scratch, dwarf, option):
    folder = os.path.join(scratch, f"swift-{dwarf}{option}")
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    source, made = os.path.join(folder, "shop.swift"), os.path.join(folder, "shop.o")
    with open(source, "w") as file:
        file.write(SWIFT_SOURCE)
    run(tools.swiftc, "-target", "arm64-apple-ios18", "-enable-experimental-feature", "Embedded", "-wmo",
        "-parse-as-library", "-module-name", "Shop", option, "-g", f"-dwarf-version={dwarf}", "-c", source, "-o", made)
    return link(tools, folder, "arm64", "ios", "18", [made], "-dylib")


def link(tools, folder, arch, platform, version, objects, *options):
    app = os.path.join(folder, "App")
    run(tools.linker, "-arch", arch, "-platform_version", platform, version, version, "-undefined", "dynamic_lookup",
        *options, "-o", app, *objects)
    run(tools.dsymutil, app, "-o", app + ".dSYM")
    return app


def symbols_file(app):
    return glob.glob(app + ".dSYM/Contents/Resources/DWARF/*")[0]


def addresses(tools, file, step):
    """The address of __TEXT and those of the code."""
    load = 0x100000000
    text = next(line.split() for line in run(tools.objdump, "-h", file).splitlines() if " __text " in line)
    size, start = int(text[2], 16), int(text[3], 16)
    return (load if start >= load else 0), range(start, start + size, step)


def addresses_of_names(tools, file):
    lines = [line.split() for line in run(tools.nm, file).splitlines()]
    return {fields[2].removeprefix("_"): int(fields[0], 16) for fields in lines if len(fields) == 3 and fields[1] in "tT"}


def oracle(tools, file, places):
    """The frames of each place: function, file, line."""
    answer = subprocess.run(
        [tools.symbolizer, "--inlines", "--no-demangle", "--functions=linkage", "--obj=" + file],
        input="".join("0x%x\n" % place for place in places), stdout=subprocess.PIPE, text=True, check=True).stdout
    stacks = []
    for block in answer.split("\n\n")[: len(places)]:
        lines = block.split("\n")
        stacks.append([(lines[i], *lines[i + 1].rsplit(":", 2)[:2]) for i in range(0, len(lines) - 1, 2)])
    return stacks


def read(tool, sabotage, file, uuid, offsets):
    answer = subprocess.run(
        [tool, *sabotage, file, uuid], input="".join("%x\n" % offset for offset in offsets),
        stdout=subprocess.PIPE, text=True, check=True).stdout
    return [[tuple(line.split("\t")) for line in block.split("\n")] for block in answer.split("\n\n")[: len(offsets)]]


def compare(tool, scratch, sabotage):
    """Prints the result; whether it is as it has to be."""
    tools = Tools()
    missing = tools.missing()
    if missing:
        print(f"dsym skipped: {missing} missing")
        return True
    scratch = os.path.join(os.path.abspath(scratch), "dsym")
    jobs = []  # the file with the answers, the file that is read, and the step
    for dwarf in (4, 5):
        for option in ("-O2", "-O0"):
            apps = {arch: build(tools, scratch, arch, dwarf, option, f"{dwarf}{option}") for arch in ("arm64", "x86_64")}
            fat = os.path.join(scratch, f"fat-{dwarf}{option}")
            wide = ["-fat64"] if dwarf == 5 else []
            subprocess.run([tools.lipo, "-create", *wide, "-output", fat, *map(symbols_file, apps.values())],
                           check=True, stderr=subprocess.PIPE)
            for arch, app in apps.items():
                step = 4 if arch == "arm64" else 1
                jobs += [(symbols_file(app), symbols_file(app), step), (symbols_file(app), fat, step * 5)]
                # Names without a dSYM: from the symbols of the binary.
                alone = app + "-alone"
                shutil.copy(app, alone)
                jobs.append((alone, alone, step * 3))
            app = build_swift(tools, scratch, dwarf, option.replace("-O2", "-O").replace("-O0", "-Onone"))
            jobs.append((symbols_file(app), symbols_file(app), 4))
    several = equal = count = zero_equal = zero_count = inlined = files = 0
    for expected_file, file, step in jobs:
        load, places = addresses(tools, expected_file, step)
        uuid = run(tools.dwarfdump, "--uuid", expected_file).split()[1]
        expected = oracle(tools, expected_file, places)
        found = read(tool, sabotage, file, uuid, [place - load for place in places])
        starts = addresses_of_names(tools, expected_file)
        if len(found) != len(expected):
            print(f"dsym: {file} has {len(found)} answers to {len(expected)}")
        files += 1
        for place, theirs, ours in zip(places, expected, found):
            is_zero = any(line == "0" and name != "??" for _, name, line in theirs)
            theirs = [(name, "??" if line == "0" else path, line) for name, path, line in theirs]
            inlined += len(theirs) - 1
            if ours != theirs and ours[:-1] == theirs[:-1] and ours[-1][1:] == theirs[-1][1:] \
                    and starts.get(ours[-1][0]) == starts.get(theirs[-1][0], 0):
                several += 1
                continue
            if is_zero:
                zero_count += 1
                zero_equal += ours == theirs
            else:
                count += 1
                equal += ours == theirs
            if ours != theirs and (count - equal) + (zero_count - zero_equal) <= 3:
                print(f"dsym unequal: {file} 0x{place:x}\n  llvm {theirs}\n  ours {ours}")
    print(f"dsym files={files} inlined calls={inlined}; of no line: equal={zero_equal} of={zero_count}; of several names: {several}")
    print(f"dsym equal={equal} of={count}")
    return equal == count >= 10000 and zero_equal == zero_count

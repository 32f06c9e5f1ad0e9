# The commands of the README. Every one works on a fresh clone.

SWIFT ?= swift
comma := ,
# These play whole programs in real time: they want the machine for themselves.
ALONE = CrashTests|DoctorCommandTests|CauseTruthTests|DemoTests|AgentProcessTests|EndingTests|StallTruthTests|TaskTruthTests|WatchTargetTests|WatchedWaitsTests|RefusedCaptureTests|RunCommandTests|ForbidBlockingRunTests|SiteTruthTests|HostSafetyTests|HangTruthTests|TestRunTests
# Tests, and what shows all of stallctl, are built with the package's trait Fleet; a change of traits compiles everything again.
FLEET = $(SWIFT) build --traits Fleet
SOURCES = Package.swift Sources Tests Examples Benchmarks

.PHONY: all help setup build collector fleet fleet-demo bench-fleet truth-fleet truth-clickhouse truth-clickhouse-reach truth-clickhouse-mutated truth-clickhouse-newer truth-clickhouse-install bench-clickhouse demo test conformance mutants truth host-safety host-safety-blocking host-safety-sanitizers system-calls truth-stacks truth-stalls truth-tasks truth-simulation truth-grouping truth-cause truth-blocking truth-sites truth-totals truth-diff truth-formats truth-pictures truth-nio truth-programs truth-tests same-programs programs-cost preload stress-stacks check-arm64 truth-arm64 environments bench bench-peers bench-timers faults hostile fuzz c-example c-loops outside-app host-cost freeze bench-calls bench-targets bench-formats man walkthrough gates package install deb rpm dist truth-install docs truth-client format lint clean

all: build

# What people use. The others are here, each with what it does above it.
help:
	@echo 'make demo      an app stalls in five ways; its store is ranked'
	@echo 'make test      every test'
	@echo 'make build     everything, in release'
	@echo 'make truth     the reports against what is known to be true, by every tool; hours'
	@echo 'make bench     every benchmark; wants a quiet machine'
	@echo 'make gates     what a change has to pass beside the tests'
	@echo 'make format    the sources as swift format has them; make lint only looks'
	@echo 'make docs      the documentation of the API'
	@echo 'make deb       the Debian packages, in .build/deb'
	@echo 'make install   the command and the library: PREFIX, DESTDIR'

setup:
	@scripts/setup

build: setup
	$(SWIFT) build -c release

demo: setup
	@scripts/demo

test: setup
	$(FLEET) --build-tests
	@scripts/test --skip-build --skip '$(ALONE)'
	@scripts/test --skip-build --no-parallel --filter '$(ALONE)'

# Every scenario of the golden table, on our run loop and on the real CFRunLoop.
conformance: setup
	$(SWIFT) run -c release conformance

# Breaks the run loop and the detector in each way that Tests/Truth/Mutants has a patch for, in a copy, and runs its tests: do they notice?
mutants: setup
	@scripts/mutants $(MUTANTS)

truth: truth-stacks truth-simulation truth-stalls truth-tasks truth-cause truth-grouping truth-sites truth-totals truth-diff truth-formats

# Made-up versions, equal and slower, through the comparison of `diff`: how often noise is called significant, and what is noticed.
# PAIRS (1000) of each case, 15 minutes of CPU. SABOTAGE=1 judges by the rule of before. scripts/truth-diff --short: a minute.
truth-diff: setup
	@scripts/truth-diff

# Other programs' reports: the examples with their readings, and MADE_UP (1,000) reports of each of eight formats whose content is
# known; two minutes; dSYMs that it builds against llvm-symbolizer. SABOTAGE=1 must show wrong.
truth-formats: setup
	@scripts/truth-formats

# Hummingbird and gRPC servers under wrk with PLANTS=200 planted blocks; with SABOTAGE=1 the waits of one loop are not observed.
# Needs wrk; builds Hummingbird and gRPC. scripts/nio-cost measures what watching costs such a server.
truth-nio: setup
	@scripts/truth-nio

# stall-collector and the stallctl that answers its readers, in .build/collector/release: the only build that fetches a server.
collector: setup
	$(SWIFT) build -c release --traits Collector --scratch-path .build/collector --product stall-collector
	$(SWIFT) build -c release --traits Collector --scratch-path .build/collector --product stallctl

# The stallctl of clusters, in .build/fleet/release. In a folder of its own: the other release programs are built without the trait.
fleet: setup
	$(FLEET) -c release --scratch-path .build/fleet --product stallctl

# A collector on loopback, two hosts that push to it, and a page for the browser, until Ctrl-C. PORT (4319).
fleet-demo: collector
	@scripts/fleet-demo

# What one collector takes in a second, and what a report costs it and its sender: REPORTS (40000) made-up ones, then the demo's.
bench-fleet: collector
	@scripts/bench-fleet

# Fifty pushers, and a collector that is killed -9 KILLS times (300) among full disks, wrong clocks and a proxy that drops, repeats
# and cuts; what arrived against an ingest of the same files. A quarter of an hour. SABOTAGE=1 must show a lost batch.
# scripts/truth-fleet --short takes a minute, and is skipped where the collector is not built.
truth-fleet: collector
	@scripts/truth-fleet

# Two shards of ClickHouse on loopback against SQLite with the same reports; scripts/truth-clickhouse says what each PART is: compare
# (the default; two minutes, with REPORTS=10000000 an hour), reach, mutated, newer, install. SABOTAGE=1 must show.
# scripts/clickhouse-cluster fetches Debian's server.
truth-clickhouse: $(if $(filter install,$(PART)),deb,fleet)
	@scripts/truth-clickhouse $(PART)

# The names of its parts before they were parts.
truth-clickhouse-reach truth-clickhouse-mutated truth-clickhouse-newer truth-clickhouse-install:
	@$(MAKE) --no-print-directory truth-clickhouse PART=$(@:truth-clickhouse-%=%)

# What two shards take in a second and answer, beside SQLite: REPORTS ("1000000 10000000") of each size, and what a collector takes
# into both. A quarter of an hour and 5 GB in .build/bench-clickhouse. Wants a quiet machine.
bench-clickhouse: collector
	@scripts/bench-clickhouse $(REPORTS)

# The objects that `stallctl run` loads into programs, beside the stallctl of `make build`.
preload: setup
	$(SWIFT) build -c release --product stallctl
	$(SWIFT) build -c release --target StallPreload
	@scripts/build-preload "$$($(SWIFT) build -c release --show-bin-path)"

# Unmodified programs below `stallctl run`, with PLANTS (50) planted stalls each, judged by the kernel's trace if run as root; ten
# minutes. SABOTAGE=1 must show missed.
# scripts/setup-truth installs the programs.
truth-programs: preload
	@scripts/truth-programs

# Forty tests that never end below `stallctl run -- swift test`, each alone and ten at once, and HEALTHY=200 runs of tests that
# end; a quarter of an hour. SABOTAGE=1 must show none named. scripts/truth-tests --short: a minute.
truth-tests: setup
	$(SWIFT) build -c release --product stallctl
	@scripts/truth-tests

# Programs that fork, close, confine and kill themselves, with and without the preloaded object: nothing may differ.
same-programs: preload
	@scripts/same-programs

# What `stallctl run` adds to the CPU time of redis-server and nginx under load; RUNS (10) of each in turns; five minutes on a quiet
# machine. Last line: programs cost programs=N runs=N ratio=N.NNN
programs-cost: preload
	@scripts/programs-cost

# Which system calls the agent makes by phase, as strace sees them, against the table in docs/in-your-process.md; and the agent
# under a filter that kills at any other. SABOTAGE=1 takes one that it needs from the filter, and it must fail. strace is
# installed by scripts/setup-truth.
system-calls: setup
	@scripts/system-calls

# Stacks of stalling programs, built in five ways, against gdb's at the same instant: STOPS of each running one, and none
# of them may take longer than TRUTH_DEADLINE seconds (60).
truth-stacks: setup
	@scripts/truth-stacks $(or $(STOPS),6)

# Is every stall found, and nothing else called one? Victims that measure themselves, for SECONDS a part: hogs, SIGSTOP,
# debuggers, freezers, quotas, clocks that jump, forks. The error bars hold on a machine that has nothing else to do.
truth-stalls: setup
	$(SWIFT) build -c release --product stall-truth
	@$$($(SWIFT) build -c release --show-bin-path)/stall-truth --seconds $(or $(SECONDS),60)

# Is every stall of a task's job found on threads that come and go, and nothing else called one? PLANTS (1200) in some minutes.
# SABOTAGE=1 leaves reports out, and must fail.
truth-tasks: setup
	$(SWIFT) build -c release --product task-truth
	@$$($(SWIFT) build -c release --show-bin-path)/task-truth --plants $(or $(PLANTS),1200)

# Is every stall of a loop found, whatever keeps its thread and the watchdog from a CPU? HOURS (60) of made-up time, some
# three million busy spans, in a minute. SABOTAGE=1 leaves reports out, and must fail.
truth-simulation: setup
	$(SWIFT) build -c release --scratch-path .build/simulation -Xswiftc -DSTALL_SIMULATION --product simulation-truth
	@.build/simulation/release/simulation-truth --hours $(or $(HOURS),60)

# Groups of reports against the stall sites that a program was given, built in four ways.
truth-grouping: setup
	@scripts/truth-grouping

# Stalls at sites of every nature, in four builds, against what the sites noted themselves: function, cause, holder, duration, and
# one report each. SABOTAGE=1 hides functions that take mutexes, and the last line shows it.
truth-sites: setup
	@scripts/truth-sites

# Each of 135 calls that may block, on six kinds of watched threads, and a million calls that do not: what is reported where the
# app forbids blocking? A minute. SABOTAGE=1 must fail.
truth-blocking: setup
	@scripts/truth-blocking

# Planted stalls of known cause against what the agent says of them: ROUNDS of each, then as a user without rights.
truth-cause: setup
	@scripts/truth-cause $(or $(ROUNDS),14)

# Each number that stallctl says of STORES stores of a made-up fleet against what is true of it, computed in Python from
# docs/schema.md: copies, forks, changes, orders, lines, central stores of central stores, prunes. SABOTAGE=1 must differ.
truth-totals: setup
	$(SWIFT) build -c release --product stallctl
	@scripts/truth-totals --forks --stores $(or $(STORES),1000)

# Pages of `stallctl report` in headless Chromium and the exports for viewers, against the reports: widths of every row of
# STORES stores, interactions, hostile names, no request, the policy. SABOTAGE=1 must fail. scripts/setup-pictures installs Chromium.
truth-pictures: setup
	@scripts/setup-pictures
	$(SWIFT) build -c release --product stallctl
	@scripts/truth-pictures

# The agent's C, built for arm64, unwinds real stacks under qemu-user. SABOTAGE=1 gives it another stack. scripts/setup-truth.
check-arm64:
	@scripts/check-arm64

# The demo and the stall sites on Debian's arm64 kernel in an emulated machine, built there by Debian's Swift. Some minutes, as root;
# scripts/setup-arm64 makes the machine. SABOTAGE=1 must fail.
truth-arm64:
	@scripts/truth-arm64

# What works in two dozen environments, from Debian 11 to a seccomp filter, measured, and whether `stallctl doctor` says the same
# there: the matrix of docs/install.md (WRITE=1 puts it there). As root; half an hour, and it says what it skips. SABOTAGE=1 must fail.
environments:
	@scripts/environments $(PLACES)

# Captures of threads that live dangerously: SECONDS at 1,000 a second, then 10 s where the signals are the program's own.
stress-stacks: setup
	@scripts/stress-stacks $(or $(SECONDS),300)

# Every benchmark: the run loop against CFRunLoop, Dispatch, a minimal C loop, libuv, GLib and SwiftNIO; what it costs to be
# watched; what a capture costs, beside libunwind and libdw; the store and ingest, beside SQLite alone; whether anything grows.
# One table at the end, .build/bench/results.jsonl; fails when an operation allocates too much.
bench: setup
	@scripts/bench

# Only libuv, GLib and SwiftNIO. Needs their headers: Benchmarks/Peers/setup.
bench-peers:
	$(SWIFT) run -c release --package-path Benchmarks/Peers PeersBenchmark

# Timers beside a heap in C, libuv, Dispatch and CFRunLoop: instructions, and CPU time in turns, of this tree and of one before.
# Needs valgrind and libuv1-dev.
bench-timers: setup
	@scripts/bench-timers

# kill -9 at ROUNDS random points of agents and ingests and in every disk operation, full disks, every disk operation failing
# once, locked stores, 8 to 24 descriptors: is anything lost? With SABOTAGE=1 writers acknowledge reports too early.
# Small disks are mounted in a namespace of our own; where that is not allowed, that part says so and is skipped.
faults: setup
	$(SWIFT) build -c release --product StoreFaults
	@$$(unshare -rm true 2>/dev/null && echo unshare -rm) \
	    $$($(SWIFT) build -c release --show-bin-path)/StoreFaults rounds $(or $(ROUNDS),500)

# An app that does to itself what apps do, and to the agent what must not hurt: for SECONDS, a play after the other, each a process
# with known stalls. What the machine does not allow is said and skipped. With SABOTAGE=1 an old fault is put back.
host-safety: setup
	@scripts/host-safety $(or $(SECONDS),600)

# The same plays, and some of their own, in a program where blocking is forbidden (StallBlocking), and under other allocators
# (apt-get install libjemalloc2 libtcmalloc-minimal4). SABOTAGE=1 must show blind calls.
host-safety-blocking: setup
	@scripts/host-safety $(or $(SECONDS),600) --blocking

# The same for SECONDS under each of the sanitizers.
host-safety-sanitizers: setup
	@scripts/host-safety-sanitizers $(or $(SECONDS),60)

# Crafted and broken stores and lines among good ones, against stallctl and the agent: does anything crash, hang, or ruin the
# central store? Every reading command reads each of them too. An hour. SABOTAGE=1 must show poisoned, and crashed=1.
hostile: setup
	@scripts/hostile

# At least EXECUTIONS (1,000,000) each of mutated stores, lines, ELF images with DWARF, .eh_frame tables, and reports of each
# format of other programs. Takes hours.
fuzz: setup
	@scripts/hostile fuzz

# What watching costs, target by target: idle, busy, and per mark. Takes a minute and a half; part of make bench.
bench-targets: setup
	$(SWIFT) run -c release TargetCosts

# What StallBlocking costs each call: not linked, nothing forbidden, forbidden elsewhere, forbidden here. A few minutes.
bench-calls: setup
	@scripts/bench-calls $(ROUNDS)

# How fast other programs' reports are read and ingested, format by format. Two minutes; part of make bench.
bench-formats: setup
	@scripts/bench-formats

# The C example, built with clang against the library as docs/c-api.md says, and run.
c-example: setup
	@scripts/c-example

# The examples of GLib's, libuv's and Qt's loops in C and C++, built and run; each stalls once. Without headers one is skipped.
c-loops: setup
	@scripts/c-loops

# An app in a package of its own that uses all of the agent's API: does it compile, run and report? Some minutes the first time.
outside-app: setup
	@scripts/outside-app

# What an app pays for the agent: clean release builds with it, without, and with swift-argument-parser instead; bytes, descriptors,
# memory, start and stop; a table by module. Some minutes; wants a quiet machine.
host-cost: setup
	@scripts/host-cost

# What every command prints of some forty stores that never change, against Tests/Truth/Freeze. Review what differs, then
# scripts/freeze record.
freeze: setup
	$(SWIFT) build -c release --product stallctl
	@scripts/freeze

# A man page for each command, in .build/man: man -l .build/man/stallctl-top.1
man: setup
	$(FLEET) --product stallctl
	@scripts/man .build/man

# What the README and docs/commands.md show of the commands, run again.
walkthrough: setup
	$(FLEET) --product stallctl
	@scripts/walkthrough

# What a change has to pass beside the tests: the modules' imports, the public interface, the format, what the documentation
# shows of the commands, and the packages under Benchmarks, Examples and Tests, which build on their own.
gates: setup
	@scripts/gates

# stallctl and the agent as a shared object, with the Swift runtime inside: what is installed. Some minutes from nothing.
package: setup
	@scripts/package-build

# Installs what `make package` built: PREFIX (/usr/local), DESTDIR. PARTS=stallctl or PARTS=library for one of the two.
install:
	@scripts/install $(PARTS)

# Debian packages in .build/deb, looked over by lintian where that is installed. Its one exception: stallwatch has no public
# address; DEBEMAIL="name <address>" is the maintainer of packages that are published.
deb: package
	@scripts/package-deb
	@! command -v lintian >/dev/null || lintian --fail-on error,warning --tag-display-limit 0 $(if $(DEBEMAIL),,--suppress-tags bogus-mail-host$(comma)bogus-mail-host-in-debian-changelog) .build/deb/*_$$(scripts/version | sed 's/-/~/')_*.deb

# The same files in a tarball, for other distributions: .build/stallwatch-VERSION-MACHINE.tar.xz, to be unpacked in / or copied.
dist: package
	@scripts/dist

# RPM packages of the same programs in .build/rpm. Needs rpmbuild; Debian has it in the package rpm.
rpm: package
	@scripts/package-rpm

# The packages in a Debian without Swift: installed, used, upgraded, purged. As root; needs debootstrap. SABOTAGE=1 must fail.
truth-install: deb
	@scripts/truth-install

# An app that says `from:` to a clone that carries the tag of this version: resolves, builds, runs.
truth-client: setup
	@scripts/truth-client

# The documentation of StallAgent and StallRunLoop, in .build/docs; fails at a warning.
docs: setup
	@scripts/docs

format:
	$(SWIFT) format --in-place --parallel --recursive --configuration .swift-format $(SOURCES)

lint:
	$(SWIFT) format lint --strict --parallel --recursive --configuration .swift-format $(SOURCES)

clean:
	rm -rf .build

# The commands of the README. Every one works on a fresh clone.

SWIFT ?= swift
# These play whole programs in real time: they want the machine for themselves.
ALONE = DemoTests|AgentProcessTests|WatchTargetTests
SOURCES = Package.swift Sources Tests Examples Benchmarks

.PHONY: all setup build demo test conformance truth truth-stacks truth-cause stress-stacks bench bench-peers faults c-example format lint clean

all: build

setup:
	@scripts/setup

build: setup
	$(SWIFT) build -c release

demo: setup
	@scripts/demo

test: setup
	$(SWIFT) build --build-tests
	@scripts/test --skip-build --skip '$(ALONE)'
	@scripts/test --skip-build --no-parallel --filter '$(ALONE)'

# Every scenario of the golden table, on our run loop and on the real CFRunLoop.
conformance: setup
	$(SWIFT) run -c release conformance

truth: truth-stacks truth-cause

# Stacks of stalling programs, built in five ways, against gdb's at the same instant.
truth-stacks: setup
	@scripts/truth-stacks

# Planted stalls of known cause against what the agent says of them: ROUNDS of each, then as a user without rights.
truth-cause: setup
	@scripts/truth-cause $(or $(ROUNDS),12)

# Captures of threads that live dangerously: SECONDS at 1,000 a second.
stress-stacks: setup
	@scripts/stress-stacks $(or $(SECONDS),300)

# The run loop against CFRunLoop, Dispatch and a minimal C loop; fails when an operation allocates more than it may.
bench: setup
	$(SWIFT) run -c release LoopBenchmark
	$(SWIFT) run -c release LoopBenchmark --endurance
	$(SWIFT) run -c release DetectorBenchmark

# Against libuv, GLib and SwiftNIO. Needs their headers: Benchmarks/Peers/setup.
bench-peers:
	$(SWIFT) run -c release --package-path Benchmarks/Peers PeersBenchmark

# kill -9 at random points of agents and ingests, and every disk operation failing once: is anything lost?
faults: setup
	$(SWIFT) run -c release StoreFaults rounds $(or $(ROUNDS),500)

# The C example, built with clang against the library as docs/c-api.md says, and run.
c-example: setup
	@scripts/c-example

format:
	$(SWIFT) format --in-place --parallel --recursive --configuration .swift-format $(SOURCES)

lint:
	$(SWIFT) format lint --strict --parallel --recursive --configuration .swift-format $(SOURCES)

clean:
	rm -rf .build

# The commands of the README. Every one works on a fresh clone.

SWIFT ?= swift
SOURCES = Package.swift Sources Tests Examples

.PHONY: all setup build demo test format lint clean

all: build

setup:
	@scripts/setup

build: setup
	$(SWIFT) build -c release

demo: setup
	@scripts/demo

test: setup
	$(SWIFT) build --build-tests
	$(SWIFT) test --skip-build

format:
	$(SWIFT) format --in-place --parallel --recursive --configuration .swift-format $(SOURCES)

lint:
	$(SWIFT) format lint --strict --parallel --recursive --configuration .swift-format $(SOURCES)

clean:
	rm -rf .build

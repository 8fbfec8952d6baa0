# Everything a newcomer runs. `make help` says what each target does; `make test` is all that CI runs.

SHELL := /bin/bash
.DEFAULT_GOAL := help
CARGO ?= cargo
PYTHON ?= python3

# How many times as many random cases as CI `make test-full` runs (an hour or two), how many traversals of the oracle's own
# checks, and how long `make soak` goes on.
FULL_TIMES ?= 20
FULL_CASES ?= 100000
SOAK_HOURS ?= 4
FUZZ_SECONDS ?= 60
# What is served, and how: make serve ARGS="--load modern.json"
ARGS ?=
BENCH_ARGS ?=
PEERS_ARGS ?=

.PHONY: help
help: ## Say what each target does
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sort | awk -F ':.*## ' '{ printf "  make %-12s %s\n", $$1, $$2 }'

.PHONY: tools
tools: ## Check for (and, as root on Debian, install) what the other targets need
	@.ci/tools

.PHONY: test-tools
test-tools: ## The same, and what the official clients and suites of `make test` need
	@.ci/tools clients

.PHONY: demo
demo: tools ## Build, load a sample graph, run traversals and transactions, print them
	$(CARGO) build --release --package mangrove-demo
	@$(PYTHON) demo/fetch.py target/demo || true
	@$(CARGO) run --quiet --release --package mangrove-demo -- target/demo

.PHONY: test
test: test-tools ## Everything CI runs: format, lints, tests, documentation, the official clients
	@.ci/test

.PHONY: test-full
test-full: test-tools ## `make test` with many more random cases, and Miri where it is installed
	@.ci/miri
	@MANGROVE_TEST_FULL=1 MANGROVE_SUITES=all MANGROVE_TIMES=$(FULL_TIMES) ORACLE_CASES=$(FULL_CASES) PROPTEST_CASES=4096 .ci/test

.PHONY: soak
soak: tools ## Hostile clients and long runs, then random traversals, transactions and inputs, checked, for SOAK_HOURS hours
	@.ci/soak $(SOAK_HOURS)

.PHONY: fuzz
fuzz: ## Show every decoder mutated inputs, for FUZZ_SECONDS each
	@fuzz/run.sh $(FUZZ_SECONDS)

.PHONY: miri
miri: ## The store's unsafe code under Miri, where Rust's nightly toolchain has it
	@.ci/miri required

.PHONY: conformance
conformance: test-tools ## The official clients, and TinkerPop's feature files, against a server
	$(CARGO) build --workspace --bin mangrove
	@conformance/drivers/run.sh "$${CARGO_TARGET_DIR:-target}/debug/mangrove"
	@conformance/tinkerpop/run.sh "$${CARGO_TARGET_DIR:-target}/debug/mangrove" all

.PHONY: dist
dist: tools ## Make the release archive, target/dist/mangrove-….tar.gz
	@packaging/dist.sh

.PHONY: lint
lint: tools ## Format check and lints
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets --quiet -- -D warnings

.PHONY: serve
serve: tools ## Serve a graph on 127.0.0.1:8182 (ARGS="--load FILE …")
	$(CARGO) run --release --package mangrove-cli -- serve $(ARGS)

.PHONY: bench
bench: tools ## Measure beside the limits of this machine (BENCH_ARGS="--suite …")
	$(CARGO) run --release --package mangrove-bench --features sqlite -- $(BENCH_ARGS)

.PHONY: bench-peers
bench-peers: tools ## Measure beside Ladybug and TinkerGraph, fetched for it (PEERS_ARGS="--vertices 20000 …")
	@bench/peers/run.sh $(PEERS_ARGS)

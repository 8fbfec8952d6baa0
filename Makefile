# The commands of the project. `make help` lists the targets; `make test` is all that CI runs.

SHELL := /bin/bash
.DEFAULT_GOAL := help
CARGO ?= cargo
PYTHON ?= python3

# `make test-full`: the factor for random cases, compared with CI (an hour or two), and the number of traversals in the oracle's
# own checks. `make soak`: the hours. `make fuzz`: the seconds for each target.
FULL_TIMES ?= 20
FULL_CASES ?= 100000
SOAK_HOURS ?= 4
FUZZ_SECONDS ?= 60
# The arguments of `mangrove serve`: make serve ARGS="--load modern.json"
ARGS ?=
BENCH_ARGS ?=
PEERS_ARGS ?=
ALGORITHMS_ARGS ?=
PYTHON_ARGS ?=

.PHONY: help
help: ## List the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sort | awk -F ':.*## ' '{ printf "  make %-12s %s\n", $$1, $$2 }'

.PHONY: tools
tools: ## Check for the tools that other targets need (and, as root on Debian, install them)
	@.ci/tools

.PHONY: test-tools
test-tools: ## Check for the tools of `make test`, those of the official clients and suites included
	@.ci/tools clients

.PHONY: demo
demo: tools ## Build, load a sample graph, run traversals and transactions, kill a server that has a standby
	$(CARGO) build --release --package mangrove-cli
	@$(PYTHON) demo/fetch.py target/demo || true
	@$${CARGO_TARGET_DIR:-target}/release/mangrove demo target/demo
	@demo/standby.sh $${CARGO_TARGET_DIR:-target}/release/mangrove

.PHONY: test
test: test-tools ## Run all tests of CI: format, lints, tests, documentation, the official clients
	@.ci/test

.PHONY: test-full
test-full: test-tools ## Run `make test` with many more random cases, and Miri if it is installed
	@.ci/miri
	@MANGROVE_TEST_FULL=1 MANGROVE_SUITES=all MANGROVE_TIMES=$(FULL_TIMES) ORACLE_CASES=$(FULL_CASES) PROPTEST_CASES=4096 .ci/test

.PHONY: soak
soak: tools ## Run hostile clients and long runs once, then random tests with new seeds for SOAK_HOURS hours
	@.ci/soak $(SOAK_HOURS)

.PHONY: fuzz
fuzz: ## Show mutated inputs to every decoder, for FUZZ_SECONDS each
	@fuzz/run.sh $(FUZZ_SECONDS)

.PHONY: miri
miri: ## Run the tests of unsafe code under Miri (needs Rust's nightly toolchain with Miri)
	@.ci/miri required

.PHONY: conformance
conformance: test-tools ## Run the official clients and TinkerPop's feature files against a server
	$(CARGO) build --workspace --bin mangrove
	@conformance/drivers/run.sh "$${CARGO_TARGET_DIR:-target}/debug/mangrove"
	@conformance/tinkerpop/run.sh "$${CARGO_TARGET_DIR:-target}/debug/mangrove" all

.PHONY: dist
dist: tools ## Make the release archive, target/dist/mangrove-….tar.gz
	@packaging/dist.sh

.PHONY: wheel
wheel: tools ## Make the Python package, target/wheels/mangrove_graph-….whl
	@bindings/python/wheel.sh

.PHONY: lint
lint: tools ## Check the format, and run the lints
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets --quiet -- -D warnings

.PHONY: serve
serve: tools ## Serve a graph on 127.0.0.1:8182 (ARGS="--load FILE …")
	$(CARGO) run --release --package mangrove-cli -- serve $(ARGS)

.PHONY: bench
bench: tools ## Run the benchmarks beside the limits of this machine (BENCH_ARGS="--suite …")
	$(CARGO) run --release --package mangrove-bench --features sqlite -- $(BENCH_ARGS)

.PHONY: bench-peers
bench-peers: tools ## Fetch Ladybug and TinkerGraph, and measure beside them (PEERS_ARGS="--vertices 20000 …")
	@bench/peers/run.sh $(PEERS_ARGS)

.PHONY: bench-python
bench-python: tools ## Make the Python package, and measure it beside Ladybug and DuckDB, which are fetched (PYTHON_ARGS="--rounds 5 …")
	@bench/python/run.sh $(PYTHON_ARGS)

.PHONY: bench-algorithms
bench-algorithms: tools ## Fetch NetworkX, igraph, Kuzu and Ladybug, and measure graph algorithms beside them (ALGORITHMS_ARGS="--graph FILE …")
	@bench/peers/run.sh --algorithms $(ALGORITHMS_ARGS)

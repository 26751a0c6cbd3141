# Every target sets up what it needs: `make test` on a fresh machine is enough.
VENV   := .venv
PY     := $(VENV)/bin/python
STAMP  := $(VENV)/.installed
PYTHON ?= python3

.DEFAULT_GOAL := help
.PHONY: help setup lock demo tour compiled lint types generate check-generated test test-compiled test-fast test-soak test-e2e model-test mutants mutants-sample mistakes judged \
	model model-long equivalence vectors docs bench bench-compiled bench-core bench-hub bench-hostile bench-spark clean

help: ## show the targets
	@grep -E '^[a-z][a-z-]*:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 18

setup: $(STAMP) ## create .venv and install everything

$(STAMP): pyproject.toml requirements-dev.lock
	$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "hubauth needs Python 3.11 or newer; set PYTHON=/path/to/python3.11")'
	@echo "installing what hubauth is built and checked with into $(VENV): some minutes, once"
	$(PYTHON) -m venv $(VENV)
	$(PY) -m pip install --quiet --require-hashes --requirement requirements-dev.lock
	$(PY) -m pip install --quiet --no-deps --no-build-isolation --editable .
	@touch $@

lock: setup ## pin and hash the development dependencies anew
	$(PY) -m pip install --quiet uv
	$(VENV)/bin/uv pip compile pyproject.toml --extra dev --universal --python-version 3.11 --generate-hashes \
		--no-emit-index-url --no-header --no-annotate --quiet --output-file requirements-dev.lock

demo: setup ## real hubs, recorded; their traces judged on Spark; a broken hub caught
	rm -rf build/demo && mkdir -p build
	$(VENV)/bin/hubauth demo --out build/demo

tour: setup ## one step after the other of a pure tree of hubs, with the rules that decided
	$(PY) docs/examples/tour.py

compiled: setup ## compile the package anew, after its sources have changed
	$(PY) -m compiling.build

lint: setup ## ruff
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .

types: setup ## mypy --strict
	$(VENV)/bin/mypy

generate: setup ## rewrite the generated files of spec/
	$(PY) -m tools.generate

check-generated: setup ## fail if a generated file is stale
	$(PY) -m tools.generate --check

test: setup ## all checks that CI needs, and what each of them counted
	$(PY) -m tools.everything

test-compiled: compiled ## the tests that plant no mistakes, on what is compiled
	HUBAUTH_COMPILED=1 $(PY) -m pytest -n 2 -m 'not e2e'

test-soak: setup ## hours: tests whose processes are stopped at random, many kills, a large tree that fails
	$(PY) -m tools.soak
	HUBAUTH_PLAIN_ALL=1 HUBAUTH_PLAIN_FAULTS=200 $(PY) -m pytest -q tests/shell/plain
	HUBAUTH_KILLS=1000 $(PY) -m pytest -q tests/shell/test_crash.py
	HUBAUTH_TREE_DEVICES=20000 HUBAUTH_TREE_FAULTS=300 $(PY) -m pytest -q tests/shell/test_lock_outs.py

test-e2e: setup ## what needs node or a browser (Debian: nodejs, chromium)
	$(PY) -m pytest -q -m e2e tests

test-fast: setup ## the inner loop: unit tests only
	$(PY) -m pytest -n 2 -q -x -m 'not slow' tests/core tests/network tests/wire

model-test: setup ## Hypothesis state machines and CrossHair contracts (HYPOTHESIS_PROFILE=dev|ci|long)
	HYPOTHESIS_PROFILE=$${HYPOTHESIS_PROFILE:-ci} $(PY) -m pytest -q model_tests

model: setup ## TLC: the bounded models for CI, and every broken variant that must be refuted
	$(PY) -m tools.tlc ci

model-long: setup ## TLC: all models
	$(PY) -m tools.tlc long

equivalence: setup ## the core and the TLA+ models: equal graphs, and behaviours of each replayed by the other
	$(PY) -m tools.equivalence

vectors: setup ## rewrite spec/vectors from the tests that assert them
	$(PY) -m tools.vectors

docs: setup ## the site, into build/site
	NO_MKDOCS_2_WARNING=1 $(PY) -m mkdocs build --strict

mutants: setup ## every mutant of the core's decisions, each of which a test must kill; rewrites spec/mutants.md
	$(PY) -m tools.mutants --all

mistakes: setup ## plant every mistake of model_tests/mistakes in a copy and see which layers find it
	$(PY) -m tools.mistakes

judged: setup ## for every rule a mistake, and the random or exhaustive check that finds it; rewrites model_tests/judged.json
	$(PY) -m tools.judged

mutants-sample: setup ## a fixed sample of them, for CI
	$(PY) -m tools.mutants

bench: setup ## every benchmark, small, and one page of ratios: goal and reached
	$(PY) -m tests.bench.core
	$(PY) -m tests.bench.compiled
	$(PY) -m tests.bench.hub --seconds 1 --rounds 1 --connections 16
	$(PY) -m tests.bench.hostile
	$(PY) -m tests.bench.spark 200000
	$(PY) -m tests.bench.page

bench-compiled: setup ## a step, a replay and a hub: interpreted, and compiled
	$(PY) -m tests.bench.compiled

bench-core: setup ## cost of a step at 1,000 and at 1,000,000 devices
	$(PY) -m tests.bench.core

bench-hub: setup ## a real hub over TCP beside a raw echo server
	$(PY) -m tests.bench.hub

bench-hostile: setup ## an honest client beside hostile ones of each kind, and the memory they hold
	$(PY) -m tests.bench.hostile

bench-spark: setup ## replay on one process, on Spark over many hubs, and over one hot hub by checkpoints
	$(PY) -m tests.bench.spark

clean: ## remove everything that make created
	rm -rf $(VENV) build reference/hubauth/_compiled .pytest_cache .mypy_cache .ruff_cache .hypothesis

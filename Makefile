# make demo and make test do everything on a machine with Python 3.11+, Java 17+ and make.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready

.DEFAULT_GOAL := help
.PHONY: help setup demo test test-fast test-trino lint format bench bench-collect bench-lookup bench-plan bench-attach bench-discover bench-estimate bench-status bench-cold fuzz fuzz-prune fuzz-orphans docs lock java clean

help: ## show these commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-13s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(READY) ## create .venv with the pinned dependencies

$(READY): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
	  echo "error: Rookery needs Python 3.11 or newer, and '$(PYTHON)' is not" >&2; \
	  echo "hint: install one and say make PYTHON=python3.11 $(MAKECMDGOALS)" >&2; exit 2; }
	@echo "setting up $(VENV) (once)" >&2
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@

java: $(READY)
	@found=$$($(BIN)/rookery doctor --only java) || { echo "$$found" >&2; exit 2; }

demo: java ## the product's main job on the embedded default, from nothing
	@$(BIN)/python examples/demo.py

# Two at a time: each of them starts a JVM, which wants memory more than cores.
WORKERS ?= 2

# A JVM of the tests starts at half the cost with an archive of its classes.
SPARK_HOME_OF_TESTS := build/tests/spark/classes.jsa

$(SPARK_HOME_OF_TESTS): $(READY) tests/spark_home.py
	@$(BIN)/python -m tests.spark_home

test: java $(SPARK_HOME_OF_TESTS) ## every test
	$(BIN)/pytest -n $(WORKERS) --dist loadfile

test-fast: $(READY) ## the tests that need no JVM
	$(BIN)/pytest -n $(WORKERS) --dist loadfile -m "not spark"

test-trino: java ## the tests against a live Trino: Java 24+, and 600 MB once in build/trino
	@$(BIN)/python -m tests.trino.install
	$(BIN)/pytest tests/trino

lint: $(READY) ## format check, lint, types, direction of imports, links of the docs
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/mkdocs build --quiet --strict

format: $(READY) ## format and fix what can be fixed
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: $(READY) ## measure against the peers; tables and JSON in benchmarks/results
	$(BIN)/python -m benchmarks

bench-collect: java ## the same for statistics on Spark: minutes, and gigabytes in build/bench
	$(BIN)/python -m benchmarks collect

bench-lookup: java ## the same for lookups and counts through indexes: gigabytes in build/bench
	$(BIN)/python -m benchmarks lookup

bench-plan: java ## the same for planning over 50,000 and 500,000 files
	$(BIN)/python -m benchmarks plan

bench-attach: java ## the same for plain Spark queries of an attached session
	$(BIN)/python -m benchmarks attach

bench-discover: java ## the same for keys and references, found in states
	$(BIN)/python -m benchmarks discover

bench-estimate: java ## how far estimates of generated filters are from what is true
	$(BIN)/python -m benchmarks estimate

bench-status: $(READY) ## the same for the status of 1,000 tables, and of one with 50,000 files; no JVM
	$(BIN)/python -m benchmarks status

bench-cold: java ## processor time and memory of commands from a cold process; a JVM makes the table, once
	$(BIN)/python -m benchmarks cold

fuzz: $(READY) ## ten minutes of mutated files, memory limited
	$(BIN)/python -m tests.fuzz --seconds 600

fuzz-prune: java ## an hour of random tables, predicates and queries, against Spark's own answers
	$(BIN)/python -m tests.differential --tables 300 --predicates 20000 --queries 2000

fuzz-orphans: $(READY) ## orphans removed from 500 random lakes that make it hard, some twenty minutes; no JVM
	$(BIN)/python -m tests.safety.orphan_lakes --lakes 500

docs: $(READY) ## write the generated pages and build the site into build/site
	$(BIN)/python tools/generate_docs.py
	$(BIN)/mkdocs build --quiet --strict

lock: $(READY) ## compile requirements.lock anew
	$(BIN)/uv pip compile pyproject.toml --all-extras --group dev --universal --python-version 3.11 \
	  --generate-hashes --no-emit-index-url --upgrade --quiet \
	  --custom-compile-command "make lock" --output-file requirements.lock

clean: ## remove everything that make created
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis

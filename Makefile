# The one runner: people and CI call the same verbs. Needs make, Python 3.11 or later and Java 17 or later.
.DEFAULT_GOAL := help
SHELL := /bin/sh
.DELETE_ON_ERROR:

VENV := .venv
PY := $(VENV)/bin/python
STAMP := $(VENV)/.stamp
ARGS ?=

# Event times mean the same on every machine.
export TZ := UTC

# Give PYTHON=… to choose; otherwise the first of these that runs and is new enough.
PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1 && { echo $$p; break; }; done)

.PHONY: help setup java demo test test-long lint bench docs

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

setup: $(STAMP) java ## make .venv with everything needed (done once, again when pyproject.toml changes)

$(STAMP): pyproject.toml
	@if [ -z "$(PYTHON)" ]; then \
		echo "Python 3.11 or later is needed; found: $$(python3 --version 2>/dev/null || echo none)."; \
		echo "Install it, or name one: make setup PYTHON=/path/to/python3.12"; exit 1; fi
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
		echo "Python 3.11 or later is needed; $(PYTHON) is: $$($(PYTHON) --version 2>&1)."; exit 1; }
	@$(PYTHON) -c 'import venv, ensurepip' 2>/dev/null || { \
		echo "$(PYTHON) cannot make virtual environments: its venv or ensurepip module is missing."; \
		echo "On Debian and Ubuntu: apt install python3-venv"; exit 1; }
	@test -x $(PY) && $(PY) -m pip --version >/dev/null 2>&1 || $(PYTHON) -m venv --clear $(VENV)
	@echo "Installing into $(VENV) (a few minutes the first time: Spark is 400 MB) ..."
	@$(PY) -m pip install --quiet --disable-pip-version-check -e '.[lab,test,dev]'
	@touch $@

# Where Spark looks: $JAVA_HOME/bin/java if JAVA_HOME is set, else java on the PATH.
java:
	@java="$${JAVA_HOME:+$$JAVA_HOME/bin/}java"; \
	version=$$("$$java" -version 2>&1 | sed -n 's/.* version "\([0-9]*\).*/\1/p' | head -n 1); \
	if [ -z "$$version" ]; then found="no Java runs as $$java"; \
	elif [ "$$version" -lt 17 ]; then found="$$java is Java $$version"; \
	else exit 0; fi; \
	echo "Java 17 or later is needed: $$found."; \
	echo "It is looked for in JAVA_HOME/bin (JAVA_HOME is now '$${JAVA_HOME:-not set}'), else on the PATH."; exit 1

demo: setup ## fraud in generated calls, live; then a load arrives, static and adaptive
	@$(PY) -m anabranch.cli demo $(ARGS)

test: setup ## unit tests, then those that need Spark
	$(PY) -m pytest -n logical -m "not spark and not cluster and not long" $(ARGS)
	$(PY) -m pytest -m "(spark or cluster) and not long" $(ARGS)

test-long: setup ## everything, with thousands of drawn cases and many crashes
	ANABRANCH_LONG=1 $(PY) -m pytest $(ARGS)

lint: setup ## ruff and mypy
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(PY) -m mypy

bench: setup ## Spark, DuckDB and Anabranch side by side, for example ARGS="interval_join --quick"
	$(PY) -m bench $(ARGS)

docs: setup ## run every example in the README and the guides
	$(PY) -m pytest tests/docs $(ARGS)

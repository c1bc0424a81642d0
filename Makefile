# `make reproduce` and `make test` do everything from nothing; the other targets are parts of them.
# Paths are relative, so that a checkout under a name with spaces works.
SHELL := /bin/sh
BIN := .venv/bin
PY := $(BIN)/python
unexport PYTHONPATH PYTHONHOME PIP_USER PIP_TARGET PIP_PREFIX
export PYTHONNOUSERSITE := 1
ARGS ?=

.PHONY: setup test papers quick scan mutants warmed check reproduce notebooks docs browser wheels bench bench-rust cluster-demo house clean constraints help

help:
	@echo 'make reproduce  every scenario, figure and claim, into figures/'
	@echo 'make test       the test suite (ARGS=... is passed on to pytest)'
	@echo 'make papers     the slow tests of the papers: every claim, that it can turn, and every figure'
	@echo 'make quick      the tests without the slow ones, before a commit: about a minute and a half'
	@echo 'make scan       pairs of laws, traces and networks drawn at random: a sample (SCAN=full: all, which takes hours)'
	@echo 'make mutants    small mutations of the package, each of which its tests must notice (ARGS="-j 2")'
	@echo 'make warmed     whether anything is compiled after fluidcc warm, which compiles all: two minutes'
	@echo 'make check      ruff, mypy, import-linter, doctests'
	@echo 'make notebooks  execute notebooks/*.ipynb (ARGS=--overwrite keeps the outputs)'
	@echo 'make docs       the documentation, into docs/_build/html'
	@echo 'make browser    the explorer and a notebook in JupyterLab, in a real browser (needs Chromium)'
	@echo 'make wheels     wheel and sdist, installed and run on every Python that is here'
	@echo 'make bench      the speed table against JiTCDDE (needs a C compiler)'
	@echo 'make bench-rust solve_dde against two crates of Rust (needs cargo)'
	@echo 'make house      size and structure of the package, beside what is wanted (ARGS=--limits: and fail above what may be)'
	@echo 'make cluster-demo  a sweep on a Dask scheduler and two worker processes of this machine'
	@echo 'make setup      .venv only (PYTHON=... chooses the interpreter); make clean removes it'

setup:
	@PYTHON='$(PYTHON)' tools/setup.sh

# What follows has a target of its own, which CI runs too.
test: setup
	$(PY) -m pytest -n 2 --dist loadgroup -m "not papers and not scan and not browser" $(ARGS)

papers: setup
	$(PY) -m pytest -n 2 --dist loadgroup -m papers tests/papers $(ARGS)

# A day's sample; `make scan SCAN=full` runs every case.
scan: setup
	$(PY) -m pytest -n 2 -m scan tests/scan $(ARGS)

# Marked slow is what takes longest: the rest takes a quarter of the time.
quick: setup
	$(PY) -m pytest -n 2 --dist loadgroup -m "not slow and not scan" $(ARGS)

mutants: setup
	$(PY) tools/mutants.py $(ARGS)

warmed: setup
	$(PY) tools/warmed.py $(ARGS)

check: setup
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(PY) -m mypy
	$(BIN)/lint-imports --no-cache
	$(PY) -m pytest -q -p no:cacheprovider --doctest-modules fluidcc

reproduce: setup
	$(BIN)/fluidcc reproduce $(ARGS)

notebooks: setup
	$(PY) -m pytest --nbmake --nbmake-timeout=1200 -W ignore notebooks $(ARGS)
	$(PY) tools/tidy_notebooks.py

docs:
	@PYTHON='$(PYTHON)' tools/setup.sh test dev notebook all docs
	$(PY) -m sphinx -b html -W --keep-going docs docs/_build/html $(ARGS)

browser:
	@PYTHON='$(PYTHON)' tools/setup.sh test dev notebook all docs browser
	$(PY) -m pytest -m browser $$(grep -rl --include='*.py' mark.browser tests) $(ARGS)

wheels: setup
	tools/wheels.sh

bench:
	@PYTHON='$(PYTHON)' tools/setup.sh test dev notebook all bench
	$(PY) -m benchmarks $(ARGS)

bench-rust:
	cargo build --release --manifest-path benchmarks/rust/Cargo.toml
	$(MAKE) bench ARGS=delay

cluster-demo: setup
	DASK_CONFIG=$$($(PY) -m fluidcc dask-config) $(PY) tools/cluster_demo.py

house: setup
	$(PY) tools/house.py $(ARGS)

# The pins, anew: after a change of dependencies in pyproject.toml.
constraints: setup
	$(PY) -m uv pip compile --universal --no-header --no-annotate --upgrade --python-version 3.11 \
		--all-extras --quiet --output-file constraints.txt pyproject.toml

clean:
	rm -rf .venv .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# Start with `make train` and `make test`; each installs what it needs first.
PYTHON ?= python3
BIN := .venv/bin
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt
RUN ?= runs/first-$(shell date +%Y%m%d-%H%M%S)

.PHONY: setup train test test-slow test-hostile bench bench-gpu bench-solve check check-results results pages format docs clean

setup: .venv/dev

# Dependencies of training only.
.venv/ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(INSTALL) -e '.[train]'
	touch $@

.venv/dev: .venv/ready
	$(INSTALL) -e '.[dev]'
	touch $@

train: .venv/ready
	$(BIN)/mrn train FetchReach --epochs 4 --cycles 8 --run-dir $(RUN)

# One process per core with one thread each: idle threads of larger pools would spin.
test: setup
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest --numprocesses auto --dist worksteal

test-slow: setup
	$(BIN)/python -m pytest -m slow -o faulthandler_timeout=0

# Kills, damaged files, links and modules of strangers. Takes at most 30 minutes on two cores;
# HOSTILE_SEED repeats a run.
test-hostile: export HOSTILE_SEED ?= $(shell date +%s)
test-hostile: setup
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest tests/reliability/hostile -m '' -n auto --dist worksteal

# Speed, written to benchmarks/results; `make pages` updates the tables of the documentation.
bench: setup
	$(INSTALL) -e '.[bench]'
	$(BIN)/python -m benchmarks

# What to report from a GPU. Takes about 30 minutes.
bench-gpu: setup
	$(BIN)/python -m benchmarks.gpu

# Minutes and steps until FetchPush is solved. Takes about 35 minutes.
bench-solve: setup
	$(INSTALL) -e '.[bench]'
	$(BIN)/python -m benchmarks.solve

check: setup
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

# Compare tables, figures, suites and generated sections of pages with the published runs.
check-results: setup
	$(BIN)/python -m scripts.check_results

# Redraw the figures and tables of results/, then update the pages.
results: setup
	$(BIN)/python -m scripts.draw_results

# Update the generated sections of docs/ and results/.
pages: setup
	$(BIN)/python -m scripts.pages

format: setup
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

# The documentation as a website, in site/.
docs: setup
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

clean:
	rm -rf .venv build dist site .pytest_cache .mypy_cache .ruff_cache .hypothesis

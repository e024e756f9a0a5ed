# `make` lists the targets. What each one installs, and where: docs/development.md.
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
MAKEFLAGS += --no-print-directory
# Where it is set, every process compiles every module that it imports anew: half the time of a plan or a small up.
unexport PYTHONDONTWRITEBYTECODE

PYTHON ?= python3
PREPARE = @$(PYTHON) -E -s tools/prepare
VENV = .venv/bin
# Ends quickly instead of asking, where nobody can answer; and says where a skip would hide a test.
PYTEST = $(VENV)/python -m pytest $(if $(CI),-p tools.fail_on_skip)
ARGS ?=
# A worker more than there are cores, as some tests wait; each has whole files, since the tests of a file follow each
# other. Some tests alone need none.
WORKERS = $(shell $(PYTHON) -c 'import os; print(min(8, (os.cpu_count() or 1) + 1))')
SPREAD = $(if $(ARGS),,-n $(WORKERS) --dist loadfile --no-loadscope-reorder)

.PHONY: help
help: ## list the targets
	@echo 'make TARGET - each sets up what it needs, says so first, and does nothing twice:'
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  \1|\2/p' $(MAKEFILE_LIST) | awk -F '|' '{ printf "%-12s %s\n", $$1, $$2 }'

.PHONY: demo test test-fast slurm-matrix sim lint format bench bench-life
demo: ## live a cluster's life on this machine, in an AWS in a box
	$(PREPARE) venv debian pulumi
	@$(VENV)/python tools/demo $(ARGS)

test: ## run every test, with real Slurm, the real Pulumi engine and a browser (ARGS='-k name' for some)
	$(PREPARE) venv debian pulumi browser
	$(PYTEST) $(SPREAD) $(ARGS)

test-fast: ## run the tests that need neither Slurm nor the engine nor a browser
	$(PREPARE) venv
	$(PYTEST) $(SPREAD) -m 'not slurm and not pulumi and not browser' $(ARGS)

slurm-matrix: ## load every environment, and live a life, in each release of Slurm that can be had (root; 1.3 GB, once)
	$(PREPARE) venv debian pulumi slurm-roots
	@PYTHONPATH=tests $(VENV)/python -m tools.slurm_matrix
	$(PYTEST) -m slurm tests/life/test_slurm_matrix.py tests/life/test_releases_life.py $(ARGS)

sim: ## live N clusters in memory, from seed FIRST on, and see whether the simulator finds what is broken on purpose
	$(PREPARE) venv
	@cd tests && ../$(VENV)/python -m sim $(or $(N),1000) $(or $(FIRST),1)
	@cd tests && ../$(VENV)/python -m sim.mutations $(or $(MUTATIONS),20)

lint: ## check style, types, shell scripts, the lock files
	$(PREPARE) venv shellcheck
	$(VENV)/ruff check --no-cache . # the order of imports depends on other files, the cache does not
	$(VENV)/ruff format --check .
	$(VENV)/mypy
	$(VENV)/mypy --config-file pyproject.toml tools/prepare
	$(VENV)/python tools/tree.py shell | xargs shellcheck
	$(VENV)/python tools/lock.py check
	$(VENV)/python tools/tree.py check

format: ## let ruff rewrite what it can
	$(PREPARE) venv
	$(VENV)/ruff check --fix .
	$(VENV)/ruff format .

bench: ## measure commands and agent beside AWS ParallelCluster's, in one run, as ratios
	$(PREPARE) venv parallelcluster
	$(VENV)/python benchmarks/commands.py $(ARGS)
	$(VENV)/python benchmarks/scale.py
	$(VENV)/python benchmarks $(ARGS)

bench-life: ## measure a life in the box: boots, jobs on cold nodes, a spot notice (root; some minutes)
	$(PREPARE) venv debian pulumi
	$(VENV)/python benchmarks/life.py $(ARGS)

.PHONY: setup venv debian pulumi browser
setup: ## install all that demo and test need
	$(PREPARE) venv debian pulumi browser

venv: ## .venv from requirements.lock
	$(PREPARE) venv

debian: ## Slurm, munge, sshd, cloud-init, shellcheck, tmux from Debian
	$(PREPARE) debian

pulumi: ## find the Pulumi CLI, or build it once
	$(PREPARE) pulumi

browser: ## chromium from Debian, in which the tests open pages
	$(PREPARE) browser

.PHONY: lock regold wheel clean
lock: ## write requirements.lock anew after a change of dependencies (UPGRADE=1: newest versions)
	$(PREPARE) lock $(if $(UPGRADE),--upgrade)

regold: ## rewrite the golden files; review the difference like code
	$(PREPARE) venv
	$(PYTEST) -m 'not slurm and not pulumi and not browser' --regold $(ARGS)
	@git status --short tests

wheel: ## build dist/corral-*.whl
	$(PREPARE) venv
	$(VENV)/python -m hatchling build --target wheel --directory dist

clean: ## remove what was made in the checkout; what is kept for all checkouts stays in the cache
	rm -rf .venv dist build .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

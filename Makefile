# `make` lists the targets. docs/development.md says what each one installs, and where.
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
MAKEFLAGS += --no-print-directory
# If it is set, every process compiles each module that it imports: half the time of a plan or a small up.
unexport PYTHONDONTWRITEBYTECODE

PYTHON ?= python3
PREPARE = @$(PYTHON) -E -s tools/prepare
VENV = .venv/bin
# In CI, a skipped test fails the run.
PYTEST = $(VENV)/python -m pytest $(if $(CI),-p tools.fail_on_skip)
ARGS ?=
# Two workers more than cores, because many tests wait. Each worker gets whole files, because the tests of a file share
# state. With ARGS, one process is enough.
WORKERS = $(shell $(PYTHON) -c 'import os; print(min(8, (os.cpu_count() or 1) + 2))')
SPREAD = $(if $(ARGS),,-n $(WORKERS) --dist loadfile --no-loadscope-reorder)

.PHONY: help
help: ## list the targets
	@echo 'make TARGET - each target lists what it will install, and installs it once:'
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  \1|\2/p' $(MAKEFILE_LIST) | awk -F '|' '{ printf "%-12s %s\n", $$1, $$2 }'

.PHONY: demo test test-all test-fast slurm-matrix containers sim mutations official vm-life vm-faults provider-update lint format bench bench-life bench-watching
demo: ## run a cluster from plan to teardown on this machine, in the box
	$(PREPARE) venv debian pulumi
	@$(VENV)/python tools/demo $(ARGS)

test: ## test every promise of README.md with real Slurm, the real Pulumi engine and a browser (some: ARGS='-k name')
	$(PREPARE) venv debian pulumi browser containers
	$(PYTEST) $(SPREAD) -m 'not long and not slurm_matrix and not container_sources' $(ARGS)

test-all: ## run every test, also long runs, kills at every step, faults and properties
	$(PREPARE) venv debian pulumi browser containers
	$(PYTEST) $(SPREAD) $(ARGS)

test-fast: ## run the tests of `make test` that need no Slurm, no Pulumi engine and no browser
	$(PREPARE) venv
	$(PYTEST) $(SPREAD) -m 'not long and not slurm and not pulumi and not browser' $(ARGS)

slurm-matrix: ## load every environment, and run a cluster, with each Slurm release of Debian (root; 1.3 GB, once)
	$(PREPARE) venv debian pulumi slurm-roots
	@PYTHONPATH=tests $(VENV)/python -m tools.slurm_matrix
	$(PYTEST) -m slurm tests/slurmctld/test_slurm_matrix.py tests/slurmctld/test_own_programs.py \
		tests/slurmctld/test_preemption.py tests/life/test_releases_life.py $(ARGS)

containers: ## run jobs in containers, with the real enroot and Pyxis (their sources: once, from GitHub)
	$(PREPARE) venv debian pulumi containers
	$(PYTEST) -m container_sources tests/render/test_ecr_pull.py tests/life/test_container_jobs.py \
		tests/life/test_five_people.py $(ARGS)

sim: ## simulate N clusters from seed FIRST, then check that the simulator catches mutations (MUTATIONS=20)
	$(PREPARE) venv
	@cd tests && ../$(VENV)/python -m sim $(or $(N),1000) $(or $(FIRST),1)
	@cd tests && ../$(VENV)/python -m sim.mutations $(or $(MUTATIONS),20)

mutations: ## break promises and weaken security one by one, and show which test fails (some: ARGS='03 security')
	$(PREPARE) venv debian pulumi browser
	@$(VENV)/python -m tools.mutations $(ARGS)

official: ## live the shipped environments through AWS's own provider, compare, and write docs/official-run.md (some: ARGS='dev')
	$(PREPARE) venv debian pulumi official-provider
	@$(VENV)/python -m tools.official_run $(ARGS)

vm-life: ## run a cluster on virtual machines, and write docs/vm-life.md (root, 4 GiB of memory, 1 GB once)
	$(PREPARE) venv debian pulumi virtual-machines
	@$(VENV)/python -m tools.vm_life $(ARGS)

vm-faults: ## break a cluster of virtual machines, fault by fault, and write docs/vm-faults.md (some: ARGS='disk-node')
	$(PREPARE) venv debian pulumi virtual-machines
	@$(VENV)/python -m tools.vm_faults $(ARGS)

provider-update: ## show what a newer provider changes for our types (VERSION=V: 15 minutes of Go; ARGS='NEW.json')
	$(PREPARE) venv
	@PYTHONPATH=tools/prepare $(VENV)/python -m tools.provider_update $(VERSION) $(ARGS)

lint: ## check style, types, unused code, shell scripts, the lock files
	$(PREPARE) venv shellcheck
	$(VENV)/ruff check --no-cache . # the order of imports depends on other files, the cache does not
	$(VENV)/ruff format --check .
	$(VENV)/mypy
	$(VENV)/mypy --config-file pyproject.toml tools/prepare
	$(VENV)/mypy tools/demo
	MYPYPATH=modules:tools/prepare $(VENV)/mypy benchmarks
	$(VENV)/mypy tools/lock.py tools/tree.py tools/catalog_data.py tools/fail_on_skip.py tools/service_reference.py
	MYPYPATH=modules:tests $(VENV)/mypy --follow-imports=silent $(addprefix -p tools.,docs mutations official_run slurm_head slurm_matrix vm_faults vm_life)
	MYPYPATH=modules:tools/prepare $(VENV)/mypy --follow-imports=silent -p tools.provider_update
	$(VENV)/vulture modules/corral stacks tools/vulture_whitelist.py # the product alone: code that only tests call belongs to them
	$(VENV)/vulture modules/corral stacks tests tools benchmarks examples
	$(VENV)/python tools/tree.py shell | xargs shellcheck
	$(VENV)/python tools/lock.py check
	$(VENV)/python tools/tree.py check

format: ## fix and format with ruff
	$(PREPARE) venv
	$(VENV)/ruff check --fix .
	$(VENV)/ruff format .

bench: ## compare commands and agent with AWS ParallelCluster's in one run, as ratios
	$(PREPARE) venv parallelcluster
	$(VENV)/python benchmarks/commands.py $(ARGS)
	$(VENV)/python benchmarks/scale.py
	$(VENV)/python benchmarks $(ARGS)

bench-life: ## measure a cluster in the box: boots, jobs on cold nodes, a spot notice (root; some minutes)
	$(PREPARE) venv debian pulumi
	$(VENV)/python benchmarks/box_run.py $(ARGS)

bench-watching: ## measure what a real Prometheus needs for the metrics of 1,000 nodes (12 minutes)
	$(PREPARE) venv debian
	$(VENV)/python benchmarks/watching.py $(ARGS)

.PHONY: setup venv debian pulumi browser official-provider
setup: ## install everything that demo and test need
	$(PREPARE) venv debian pulumi browser

venv: ## install .venv from requirements.lock
	$(PREPARE) venv

debian: ## install Slurm, munge, Prometheus, sshd, cloud-init, shellcheck and tmux from Debian
	$(PREPARE) debian

pulumi: ## find the Pulumi CLI, or build it once
	$(PREPARE) pulumi

browser: ## install chromium from Debian, for the tests of pages
	$(PREPARE) browser

official-provider: ## find AWS's own provider for Pulumi, or build it once
	$(PREPARE) official-provider

.PHONY: lock regold docs wheel clean
lock: ## update requirements.lock after a change of dependencies (UPGRADE=1: newest versions)
	$(PREPARE) lock $(if $(UPGRADE),--upgrade)

regold: ## rewrite the golden files; review the diff like code
	$(PREPARE) venv
	$(PYTEST) -m 'not slurm and not pulumi and not browser' --regold $(ARGS)
	@git status --short tests

docs: ## rewrite the generated parts of docs/; review the diff like code
	$(PREPARE) venv
	@PYTHONPATH=tests $(VENV)/python -m tools.docs

wheel: ## build dist/corral-*.whl
	$(PREPARE) venv
	$(VENV)/python -m hatchling build --target wheel --directory dist

clean: ## remove what was built in the checkout; the cache for all checkouts stays
	rm -rf .venv dist build .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

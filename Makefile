# Ntier: where is the bottleneck, how sure are we, and where does it go when we add a server?
# `make` alone prints the help. Variables are given as NAME=value; they become the options of `ntier` with the same name.

.DEFAULT_GOAL := help
SHELL := bash
.SHELLFLAGS := -euo pipefail -c

VENV   := .venv/bin
NTIER  := $(VENV)/ntier
REPORT := $(VENV)/ntier-analysis
RESULTS ?= results
STORE  ?= $(RESULTS)/store
TERRAFORM ?= $(or $(shell command -v terraform),$(shell command -v tofu))
export TERRAFORM
export PROXYSQL_BINARY # a program of this machine, for MIDDLEWARE=proxysql where no package of it can be reached

# NAME=value -> --name 'value', for those that were given
option  = $(if $($(1)),--$(2) '$(subst ','\'',$($(1)))')
OPTIONS = $(call option,TOPO,topo) $(call option,USERS,users) $(call option,MIX,mix) $(call option,PHASES,phases) \
          $(call option,REPS,reps) $(call option,MIDDLEWARE,middleware) $(call option,TARGET,target) $(call option,HOSTS,hosts) \
          $(call option,SCALE,scale) $(call option,SEARCH,search) $(call option,SEED,seed) $(call option,NAME,name) \
          $(call option,DATA,data) $(call option,PRECISION,precision) --results '$(RESULTS)' $(if $(JSON),--json)

.PHONY: help
help: ## this page
	@echo 'Ntier finds the bottleneck of a multi-tier system by experiment.'
	@echo
	@echo '  make sweep TOPO=1/1/1/1M                   the main job, from a bare machine to a report'
	@echo '  make sweep TOPO=1/1/1/1M USERS=1000:13000:1000 PHASES=standard'
	@echo
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
	@echo
	@echo 'Variables: TOPO USERS MIX PHASES REPS MIDDLEWARE TARGET HOSTS SCALE SEARCH PRECISION SEED NAME DATA SPEC RESULTS (make plan shows what they mean).'

# ---- set-up -------------------------------------------------------------------------------------------------------

.PHONY: setup venv doctor purge lock
setup: ## installs all that the others need; does nothing and takes seconds when all is there
	@$(if $(filter hosts,$(TARGET)),setup/bootstrap.sh,setup/setup.sh $(call option,DATA,data) $(call option,TOPO,topo) $(call option,MIDDLEWARE,middleware))

venv:
	@setup/bootstrap.sh

doctor: venv ## what this machine has and lacks, with the command that mends it
	@$(NTIER) doctor $(if $(JSON),--json)

purge: ## removes what set-up and sweeps made on this machine, results excepted; lists it first (YES=1: does not ask)
	@setup/purge.sh $(if $(YES),--yes)

lock: ## resolves requirements.in into requirements.txt
	@setup/lock.sh

# ---- experiments --------------------------------------------------------------------------------------------------

.PHONY: plan sweep campaign up deploy status down smoke
plan: venv ## what a sweep (SPEC=file.yaml: a campaign) would do (nodes, trials, time, disk, memory); touches nothing
	@$(NTIER) plan $(OPTIONS) $(call option,SPEC,spec)

sweep: setup ## up, deploy, all trials, collect, ingest, report; goes on with a sweep that was interrupted
	@$(NTIER) sweep $(OPTIONS)

campaign: venv ## SPEC=file.yaml: several sweeps (topologies x mixes x middlewares) as one resumable ledger
	@$(if $(SPEC),,echo 'error: SPEC is missing; for example: make campaign SPEC=workloads/campaigns/smoke.yaml' >&2; exit 2)
	@$(NTIER) plan --spec '$(subst ','\'',$(SPEC))' --setup | while read -r images; do setup/setup.sh $$images </dev/null; done
	@$(NTIER) campaign --spec '$(subst ','\'',$(SPEC))' --results '$(RESULTS)' $(if $(JSON),--json)

up: setup ## provisions the nodes
	@$(NTIER) up $(OPTIONS)

deploy: setup ## installs, configures, starts and verifies the system on them
	@$(NTIER) deploy $(OPTIONS)

status: venv ## what runs, and how far the sweeps and campaigns are
	@$(NTIER) status $(call option,TARGET,target) --results '$(RESULTS)' $(if $(JSON),--json)

down: venv ## destroys the nodes (TARGET=hosts: stops the services, the machines stay)
	@$(NTIER) down $(call option,TARGET,target)

SMOKE := --topo 1/1/1/1M --users 1000,3000 --phases smoke --name smoke --results '$(RESULTS)'
smoke: setup ## the experiment of the continuous integration: a small topology, two loads, short phases, the full path
	@$(NTIER) sweep $(SMOKE)

# ---- after measuring ----------------------------------------------------------------------------------------------

.PHONY: ingest report map notebooks
ingest: venv ## raw results -> store
	@$(REPORT) ingest --raw '$(RESULTS)/raw' --store '$(STORE)' $(SWEEP)

report: venv ## store -> report of each sweep (or SWEEP=...)
	@$(REPORT) report --store '$(STORE)' --out '$(RESULTS)/reports' $(SWEEP)

map: venv ## store -> bottleneck maps, surfaces, ratios and costs over topologies (MIX=, PRICES=file.json, SLO=ms, JOIN=1)
	@$(REPORT) map --store '$(STORE)' --out '$(RESULTS)/map' $(call option,MIX,mix) $(call option,PRICES,prices) $(call option,SLO,slo-ms) $(if $(JOIN),--join-names) $(SWEEP)

notebooks: venv ## executes all notebooks on the store
	@$(VENV)/python notebooks/run.py --store '$(STORE)' --out '$(RESULTS)/notebooks'

# ---- tests --------------------------------------------------------------------------------------------------------

.PHONY: test test-fast test-nodes test-faults lint bench
test: setup test-fast test-nodes ## all tests, the smoke experiment included

test-fast: lint ## the tests that need no nodes
	$(VENV)/python setup/build.py
	for module in modules/topology targets/local targets/hosts; do \
	  $(TERRAFORM) -chdir=terraform/$$module init -input=false >/dev/null && $(TERRAFORM) -chdir=terraform/$$module test; done
	mvn -B -q verify
	$(VENV)/pytest -m 'not nodes' -n 2 --dist loadfile analysis/tests notebooks/tests # two cores: half the time
	$(VENV)/pytest -m 'not nodes' $(wildcard harness/tests ansible/tests setup/tests workloads/tests rubbos-app/tests middleware/*/tests)

test-nodes: setup ## the experiments on real nodes
	$(VENV)/pytest -m 'nodes and not faults'

test-faults: setup ## faults, every middleware and bare machines on real nodes; some hours
	$(VENV)/pytest -m faults

lint: venv
	$(VENV)/ruff check .
	$(VENV)/ruff format --check .
	$(VENV)/lint-imports
	$(VENV)/lint-imports --config analysis/pyproject.toml

bench: venv ## the side-by-side benchmarks
	$(VENV)/python analysis/bench/density.py
	$(VENV)/python analysis/bench/capacity_search.py --runs 200

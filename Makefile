# Ntier: where is the bottleneck, how sure are we, and where does it go when we add a server?
# `make` alone prints the help. Variables are given as NAME=value; they become the options of `ntier` with the same name.

.DEFAULT_GOAL := help
.NOTPARALLEL: # goals build on each other and measure: MAKEFLAGS=-j4 of a shell is not meant for them
SHELL := bash
.SHELLFLAGS := -euo pipefail -c

VENV   := .venv/bin
NTIER  := $(VENV)/ntier
REPORT := $(VENV)/ntier-analysis

# ---- variables ----------------------------------------------------------------------------------------------------

EXPERIMENT := SYSTEM TOPO USERS ABOVE FACTOR MIX PHASES REPS MIDDLEWARE TARGET HOSTS MACHINES BUDGET SCALE SEARCH PRECISION MINUTES SEED NAME DATA CLIENTS TRACE VARIANT SET
PLACE      := RESULTS JSON
# What each goal takes on its command line. Those of EVERYWHERE are also taken from the shell's environment.
takes_plan      := $(EXPERIMENT) ATTEMPTS SPEC $(PLACE)
takes_sweep     := $(EXPERIMENT) ATTEMPTS METRICS $(PLACE)
takes_up        := $(EXPERIMENT) $(PLACE)
takes_deploy    := $(EXPERIMENT) $(PLACE)
takes_setup     := $(EXPERIMENT)
takes_campaign  := SPEC MACHINES BUDGET METRICS $(PLACE)
takes_study     := NAME SPEC METRICS $(PLACE)
takes_smoke     := ATTEMPTS $(PLACE)
takes_status    := TARGET $(PLACE)
takes_doctor    := TARGET MACHINES JSON
takes_down      := TARGET
takes_images    := $(EXPERIMENT) REMOVE $(PLACE)
takes_leftovers := TARGET REMOVE JSON
takes_purge     := YES
takes_ndb       := IDLE
takes_ingest    := SWEEP STORE RESULTS
takes_report    := SWEEP STORE FORCE $(PLACE)
takes_map       := SWEEP STORE MIX PRICES SLO JOIN RESULTS
takes_notebooks := STORE RESULTS FORCE
EVERYWHERE := TERRAFORM PROXYSQL_BINARY NTIER_NDB_PACKAGES NTIER_PYTHON NTIER_STATE NTIER_AWAKE NTIER_POOL_SIZE NTIER_DEBIAN_MIRROR NTIER_SECURITY_MIRROR NTIER_CONTROLLER NTIER_PROVIDERS

# A shell's NAME or TARGET is none of ours: an assignment here outdoes the environment, and the command line outdoes it.
OURS := $(sort $(foreach takes,$(filter takes_%,$(.VARIABLES)),$($(takes))))
$(foreach name,$(OURS),$(eval $(name) :=))
RESULTS := results
STORE = $(RESULTS)/store

quoted = '$(subst ','\'',$(1))'
given := $(foreach name,$(.VARIABLES),$(if $(filter command line,$(origin $(name))),$(name)))
goals := $(or $(MAKECMDGOALS),$(.DEFAULT_GOAL))
taken := $(sort $(foreach goal,$(goals),$(takes_$(goal))))
strange := $(firstword $(filter-out $(taken) $(EVERYWHERE) MAKEFLAGS,$(given)))
ifneq ($(strange),)
  nearest = $(shell python3 -c 'import difflib, sys; print(*difflib.get_close_matches(sys.argv[1].upper(), sys.argv[2:], 1))' \
              $(call quoted,$(strange)) $(taken) 2>/dev/null)
  $(error $(strange) is not a variable of `make $(goals)`$(if $(nearest), (did you mean $(nearest)?)); it takes $(or $(taken),none))
endif
twice := $(shell tr '\0' '\n' 2>/dev/null </proc/$$PPID/cmdline | sed -n 's/^\([A-Z_]*\)=.*/\1/p' | sort | uniq -d)
ifneq ($(twice),)
  $(error $(twice) is there twice, and make would keep the last one only; several settings: SET='web_max_workers=60 app_pool_size=4')
endif

wrong := $(firstword $(foreach name,YES REMOVE JSON FORCE IDLE JOIN,$(if $(filter-out 1,$($(name))),$(name))))
ifneq ($(wrong),)
  $(error $(wrong)=$($(wrong)) is neither yes nor no: $(wrong)=1 is yes, and without it the answer is no)
endif
# Without TOPO set-up makes what every sweep needs, for which only these count.
WHOLE_SETUP := DATA MIDDLEWARE TARGET
dropped := $(if $(filter setup,$(goals)),$(if $(TOPO),,$(firstword $(filter-out $(WHOLE_SETUP),$(filter $(EXPERIMENT),$(given))))))
ifneq ($(dropped),)
  $(error $(dropped) says something about one sweep: `make setup` takes it with TOPO=... only, and without it $(WHOLE_SETUP))
endif

export TERRAFORM PROXYSQL_BINARY # which program; a proxysql of this machine, where no package of it can be reached
export NTIER_NDB_PACKAGES # MySQL's packages with NDB, instead of a build

# NAME=value -> --name 'value', for those that were given
option  = $(if $($(1)),--$(2) $(call quoted,$($(1))))
lower   = $(shell echo $(1) | tr A-Z a-z)
OPTIONS = $(foreach name,$(filter-out SET VARIANT,$(EXPERIMENT)),$(call option,$(name),$(call lower,$(name)))) \
          $(foreach setting,$(SET),--set $(call quoted,$(setting))) \
          $(foreach choice,$(VARIANT),--variant $(call quoted,$(choice))) --results $(call quoted,$(RESULTS)) $(if $(JSON),--json)

# A request is checked before anything is installed for it; then the images that it names are made, if they lack.
prepare = images=$$($(NTIER) $(1) --needs); [[ -z $$images ]] || setup/setup.sh --images "$$images" </dev/null >&2

.PHONY: help
help: ## this page
	@echo 'Ntier finds the bottleneck of a multi-tier system by experiment.'
	@echo
	@echo '  make sweep TOPO=1/1/1/1M                   the main job, from a bare machine to a report'
	@echo '  make sweep TOPO=1/1/1/1M USERS=1000:13000:1000 PHASES=standard'
	@echo
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
	@echo
	@echo 'Variables of sweep: $(takes_sweep)'
	@echo '(plan takes the same without METRICS, or of a campaign SPEC=file.yaml with MACHINES and BUDGET)'
	@echo "($(NTIER) sweep --help says what they mean). Several soft resources: SET='web_max_workers=60 app_pool_size=4'"

# ---- set-up -------------------------------------------------------------------------------------------------------

.PHONY: setup venv doctor purge lock providers ndb
setup: venv ## installs what the other goals need (TOPO=...: only what this sweep needs); takes seconds when all is there
	@$(if $(TOPO),$(call prepare,up $(OPTIONS)),$(if $(TARGET),$(VENV)/python -m ntier_harness.targets $(call quoted,$(TARGET));) \
	  $(if $(filter-out local,$(TARGET)),,setup/setup.sh $(call option,DATA,data) $(call option,MIDDLEWARE,middleware)))

venv:
	@setup/bootstrap.sh >&2

doctor: venv ## what this machine has and lacks, with the command that mends it
	@$(NTIER) doctor $(call option,TARGET,target) $(call option,MACHINES,machines) $(if $(JSON),--json)

purge: ## removes what set-up and sweeps made on this machine, results excepted; lists it first (YES=1: does not ask)
	@setup/purge.sh $(if $(YES),--yes)

providers: ## builds Terraform's providers from source, where their registry cannot be reached (needs Go, minutes)
	@setup/providers.sh

ndb: ## builds MySQL Cluster's programs, once, for TOPO=...C (45 minutes; goes on where it stopped; IDLE=1: only idle CPU)
	@setup/ndb.sh $(if $(IDLE),--idle)

lock: ## resolves requirements.in into requirements.txt
	@setup/lock.sh

# ---- experiments --------------------------------------------------------------------------------------------------

.PHONY: plan sweep campaign study studies up deploy status down images leftovers smoke
plan: venv ## what a sweep (SPEC=file.yaml: a campaign) would do (nodes, trials, time, disk, memory); touches nothing
	@$(NTIER) plan $(OPTIONS) $(call option,ATTEMPTS,attempts) $(call option,SPEC,spec)

sweep: venv ## all steps from nodes to a report; goes on with a sweep that was interrupted
	@$(call prepare,sweep $(OPTIONS) $(call option,ATTEMPTS,attempts) $(call option,METRICS,metrics))
	@$(NTIER) sweep $(OPTIONS) $(call option,ATTEMPTS,attempts) $(call option,METRICS,metrics)

campaign: venv ## SPEC=file.yaml: runs several sweeps (topologies x mixes x middlewares) as one; goes on where it stopped
	@$(if $(SPEC),,echo 'error: SPEC is missing; for example: make campaign SPEC=workloads/campaigns/smoke.yaml' >&2; exit 2)
	@$(call prepare,campaign $(call option,SPEC,spec) $(call option,METRICS,metrics) $(OPTIONS))
	@$(NTIER) campaign $(call option,SPEC,spec) $(call option,METRICS,metrics) $(OPTIONS)

study: venv ## NAME=two-phase-commit: runs what is missing of a study (SPEC=file.yaml: of one of its campaigns), then makes its page anew
	@studies/study.sh $(call quoted,$(NAME)) $(call quoted,$(RESULTS)) $(call quoted,$(SPEC)) $(call option,METRICS,metrics) $(if $(JSON),--json)

studies: venv ## makes the pages of all studies anew from their committed data
	@for page in studies/*/page.py; do $(VENV)/python "$$page"; done

up: venv ## provisions the nodes
	@$(call prepare,up $(OPTIONS))
	@$(NTIER) up $(OPTIONS)

deploy: venv ## installs, configures, starts and verifies the system on them
	@$(call prepare,deploy $(OPTIONS))
	@$(NTIER) deploy $(OPTIONS)

status: venv ## what runs, and how far the sweeps and campaigns are
	@$(NTIER) status $(call option,TARGET,target) --results $(call quoted,$(RESULTS)) $(if $(JSON),--json)

down: venv ## destroys the nodes (TARGET=hosts: undoes what it made on the machines, which stay)
	@$(NTIER) down $(call option,TARGET,target)

images: venv ## snapshots with the roles of a topology, so that rented machines start sooner (REMOVE=1: removes them)
	@$(NTIER) images $(if $(REMOVE),--remove) $(OPTIONS)

leftovers: venv ## what crashed runs left in the account that rents machines (REMOVE=1: removes it)
	@$(NTIER) leftovers $(call option,TARGET,target) $(if $(REMOVE),--remove) $(if $(JSON),--json)

SMOKE = --topo 1/1/1/1M --scale 0.1 --users 1000,3000 --phases smoke --name smoke $(OPTIONS) $(call option,ATTEMPTS,attempts)
smoke: venv ## the experiment of the continuous integration: a small topology, two loads, short phases, the full path
	@$(call prepare,sweep $(SMOKE))
	@$(NTIER) sweep $(SMOKE)

# ---- after measuring ----------------------------------------------------------------------------------------------

.PHONY: ingest report map notebooks
SWEEPS = $(foreach sweep,$(SWEEP),$(call quoted,$(sweep)))
ingest: venv ## raw results -> store
	@$(REPORT) ingest --raw $(call quoted,$(RESULTS)/raw) --store $(call quoted,$(STORE)) $(SWEEPS)

report: venv ## store -> report of each sweep (or SWEEP=...), unless it is up to date (FORCE=1: anyway)
	@$(REPORT) report --store $(call quoted,$(STORE)) --out $(call quoted,$(RESULTS)/reports) $(if $(FORCE),--force) $(if $(JSON),--json) $(SWEEPS)

map: venv ## store -> bottleneck maps, surfaces, ratios and costs over topologies (MIX=, PRICES=file.json, SLO=ms, JOIN=1)
	@$(REPORT) map --store $(call quoted,$(STORE)) --out $(call quoted,$(RESULTS)/map) $(call option,MIX,mix) $(call option,PRICES,prices) $(call option,SLO,slo-ms) $(if $(JOIN),--join-names) $(SWEEPS)

notebooks: venv ## executes all notebooks on the store and writes them as HTML, unless they are up to date (FORCE=1: anyway)
	@$(VENV)/python notebooks/run.py --store $(call quoted,$(STORE)) --out $(call quoted,$(RESULTS)/notebooks) $(if $(FORCE),--force)

.PHONY: site
site: venv ## the documentation as a site: build/site/index.html
	@NO_MKDOCS_2_WARNING=1 $(VENV)/python -m mkdocs build --strict --quiet

# ---- tests --------------------------------------------------------------------------------------------------------

.PHONY: test test-bases test-images test-without test-alone test-fast test-whole test-long test-tools test-nodes test-faults lint bench
# Whole programs run three or four at a time on two cores, since half of them wait; first those that wait. More threads
# than processes only get into each other's way.
WITH_NODES := $(wildcard harness/tests ansible/tests setup/tests systems/*/tests rubbos-app/tests middleware/*/tests)
# $(call without_nodes, and more,PROCESSES)
without_nodes = OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 ARROW_DEFAULT_MEMORY_POOL=system $(VENV)/pytest -m 'not nodes and not alone$(1)' -n $(2) --dist worksteal --durations=20 workloads/tests $(WITH_NODES) notebooks/tests studies/tests analysis/tests
on_nodes = $(VENV)/pytest -m 'nodes and not faults$(1)' --durations=20 $(WITH_NODES)
test-images test-nodes: MIDDLEWARE := shardingsphere,haproxy# those of which the tests need images

test: with-terraform venv ## the tests of every landing, the smoke experiment included
	@setup/setup.sh --controller >&2
	@$(VENV)/python setup/all_tests.py

# The parts of `make test`, in setup/all_tests.py's order
test-bases:
	setup/setup.sh --images node-trixie,node-sid

test-images: setup
	$(call on_nodes, and not alone)

test-without: lint
	$(call without_nodes, and not long,3)

test-alone:
	$(VENV)/pytest -m 'alone and not faults' --durations=20 workloads/tests $(WITH_NODES)

test-fast: lint ## the tests of a change: no nodes, no whole programs
	$(call without_nodes, and not long and not whole,2)

test-whole: test-tools ## reports, notebooks, browser, JMeter, Maven, Terraform, the site, every door with bad input; no nodes
	$(call without_nodes, and not long and whole,4)
	$(VENV)/pytest -m 'alone and not nodes' workloads/tests systems/two-phase-commit/tests

test-long: test-tools ## statistics of simulations and whole matrices, which few changes can break; no nodes
	$(call without_nodes, and long,4)

.PHONY: with-terraform
with-terraform: # which set-up does not bring
	@program=$${TERRAFORM:-$$(command -v terraform || command -v tofu || true)}; command -v "$${program:-none}" >/dev/null || \
	  { echo "error: terraform: $${program:-neither terraform nor tofu} cannot be run here; install one from its makers, or give TERRAFORM=/its/path" >&2; exit 2; }

test-tools: with-terraform venv
	setup/test_programs.sh
	$(VENV)/python setup/build.py
	terraform=$${TERRAFORM:-$$(command -v terraform || command -v tofu)}; for module in modules/topology modules/first_boot targets/local targets/hosts; do \
	  $$terraform -chdir=terraform/$$module init -input=false >/dev/null; $$terraform -chdir=terraform/$$module test; done
	mvn -B -q verify

test-nodes: setup ## the experiments on real nodes
	$(call on_nodes,)

test-faults: setup ## faults, every middleware, other systems and bare machines on real nodes; some hours
	$(VENV)/pytest -m faults $(WITH_NODES)

lint: venv
	$(VENV)/ruff check .
	$(VENV)/ruff format --check .
	$(VENV)/lint-imports
	$(VENV)/lint-imports --config analysis/pyproject.toml

bench: venv ## the side-by-side benchmarks
	$(VENV)/python analysis/bench/density.py
	$(VENV)/python analysis/bench/capacity_search.py --runs 200

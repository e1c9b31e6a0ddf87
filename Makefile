# `make` generates the notebooks and executes those that changed, `make test` runs the checks, `make help` lists the rest.
# FRAMEWORKS narrows all of it: make FRAMEWORKS=pytorch

PYTHON     ?= python3
# Frameworks and tests that cannot run on this machine are left out, with a message.
JDK        := $(shell command -v mvn >/dev/null && javac -version 2>&1 | awk '$$1 == "javac" && int($$2) >= 17')
CHROMIUM   := $(or $(shell command -v chromium chromium-browser google-chrome),$(wildcard ~/.cache/ms-playwright/chromium*) $(wildcard ~/Library/Caches/ms-playwright/chromium*))
X86_LINUX  := $(filter Linux-x86_64,$(shell uname -s)-$(shell uname -m))
ALL        := $(sort $(basename $(notdir $(wildcard requirements/*.lock))))
FRAMEWORKS ?= $(filter-out $(if $(JDK),,djl) $(if $(X86_LINUX),,mxnet),$(ALL))
LANGUAGES  ?= $(sort $(patsubst text.%.md,%,$(notdir $(wildcard lessons/*/text.*.md))))
# Empty means all.
LESSONS    ?=
# Processes at a time: one per core, at most 8, since each may take a gigabyte of memory.
JOBS       ?= $(shell n=$$(getconf _NPROCESSORS_ONLN); echo $$((n < 8 ? n : 8)))
# Seconds for a page, in case a kernel hangs. On a slow, busy machine, JAX takes minutes.
TIMEOUT    ?= 1200
# ALWAYS=1 also executes pages that have not changed.
ALWAYS     ?=
# For tests: DEVICE=gpu executes the notebooks on a GPU, SHUFFLE=SEED takes a random order,
# RELEASE=1 adds the tests that only `make test-all` runs, VERBOSE=-v prints a line per test.
DEVICE     ?= cpu
SHUFFLE    ?=
RELEASE    ?=
VERBOSE    ?=
# For `make book`: the folder of D2L's pages; RECORD=1 stores the results for the docs.
BOOK       ?=
RECORD     ?=
# For `make dist`: the release's tag, "v" and the version: v1.2.3.
TAG        ?=

# Without Python's compiled files, each process would spend most of its start on compiling a framework.
unexport PYTHONDONTWRITEBYTECODE

BIN   := .venv/bin
# Never uninstall: a narrower FRAMEWORKS reuses .venv, a wider one adds to it.
INSTALLED := $(sort $(filter $(ALL),$(subst -, ,$(notdir $(wildcard .venv/.ready-*))) $(shell cat .venv/.installed 2>/dev/null)))
WANTED = $(sort $(INSTALLED) $(FRAMEWORKS))
NEW    = $(filter-out $(INSTALLED),$(WANTED))
LOCKS  = $(WANTED:%=requirements/%.lock)
# The stamp, a file, has the installed frameworks in its name and lists the installed packages.
EMPTY :=
READY  = .venv/.ready-$(subst $(EMPTY) ,-,$(WANTED))
INCOMPLETE = $(shell test -s $(READY) && cd .venv && xargs ls -d < $(notdir $(READY)) >/dev/null 2>&1 || echo incomplete)
CHOICE = $(addprefix --framework ,$(FRAMEWORKS)) $(addprefix --language ,$(LANGUAGES)) $(addprefix --lesson ,$(LESSONS))
PYTHON_FRAMEWORKS  = $(filter-out djl,$(FRAMEWORKS))
JAVA   = $(if $(filter djl,$(FRAMEWORKS)),.venv/.java)
# The shim is also compared with an older d2l, which needs a separate folder.
OLDER  = .venv/d2l-0.17/.ready

.DEFAULT_GOAL := notebooks
.PHONY: notebooks test test-all test-code test-shim test-notebooks test-site test-elsewhere test-growth test-lowest mutants bench bench-notebooks bench-shim book report agreement conformance font lint format lab kernel site dist published env lock clean help

notebooks: left-out $(READY) $(JAVA)  ## generate the notebooks and execute those that changed (the default); ALWAYS=1: all
	@$(BIN)/python -m tools.project.documents
	@$(BIN)/python -m tools $(CHOICE) --jobs $(JOBS) --timeout $(TIMEOUT) $(if $(ALWAYS),--always)

# Three checks run at a time. The longest start first, so that none runs by itself at the end.
SLOW    = jax mlx tensorflow mxnet
ORDERED = $(filter $(FRAMEWORKS),$(SLOW)) $(filter-out $(SLOW),$(FRAMEWORKS))
CHECKS  = $(if $(filter cpu,$(DEVICE)),test-code test-site $(ORDERED:%=test-notebooks-%) $(ORDERED:%=test-shim-%) lint,test-notebooks)
RUN     = $(BIN)/python -m tools.checks --jobs $(JOBS)

# Build first what several checks need, or two of them would build it at the same time.
test: left-out $(READY) $(OLDER) $(JAVA)  ## the checks that every change must pass; DEVICE=gpu: the notebooks, on a GPU
	@$(RUN) $(CHECKS)

test-all: export RELEASE = 1
test-all: left-out $(READY) $(OLDER) $(JAVA)  ## the checks that every release must pass: also other services, toy lessons, oldest versions, more inputs
	@$(MAKE) --no-print-directory .venv/.elsewhere || true  # test-elsewhere tries again and reports it
	@$(RUN) test-lowest test-elsewhere $(CHECKS) test-growth

PYTEST = $(BIN)/python -m pytest -n $(JOBS) $(VERBOSE) $(if $(RELEASE),-m "") $(if $(SHUFFLE),--random-order-bucket=parent --random-order-seed=$(SHUFFLE))
# Each check writes a report for CI, unless the checkout is read-only.
WRITABLE = $(shell test -w . && echo yes)
# JAX compiles each operation for each shape, which takes most of its time. The checks share what
# has been compiled; `make` does not use it.
ifneq ($(WRITABLE),)
USES_JAX_CACHE = test-shim $(PYTHON_FRAMEWORKS:%=test-shim-%) test-notebooks mutants
$(USES_JAX_CACHE): export JAX_COMPILATION_CACHE_DIR = $(CURDIR)/build/jax
$(USES_JAX_CACHE): export JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS = 0
$(USES_JAX_CACHE): export JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES = -1
endif
# In `make test`, compiling takes longer than running: skip optimizations.
ifeq ($(RELEASE),)
test-shim-jax: export JAX_DISABLE_MOST_OPTIMIZATIONS = 1
endif
report = $(if $(WRITABLE),--junit-xml build/reports/$(1).xml)

test-code: $(READY) $(OLDER) $(JAVA)  ## the tests of the tools and of what all frameworks share
	@$(PYTEST) $(call report,code) tests/tools tests/lessons tests/shim --ignore tests/shim/each --frameworks "$(FRAMEWORKS)"

.PHONY: $(FRAMEWORKS:%=test-shim-%)
test-shim: $(READY) $(OLDER) $(JAVA)  ## the tests of the shim, framework by framework
	@$(MAKE) --no-print-directory --keep-going $(ORDERED:%=test-shim-%)

# Run one thread per process, and one process per core.
$(PYTHON_FRAMEWORKS:%=test-shim-%): test-shim-%: $(READY) $(OLDER)
	@echo "$*:"
	@OMP_NUM_THREADS=1 $(PYTEST) $(call report,shim-$*) tests/shim/each --framework $*

test-shim-djl: $(JAVA)
	@echo "djl:"
	@$(MVN:-q=) test

# PAGES may name lessons that a framework does not have: `ls` skips them. With DEVICE=gpu, $$names are the frameworks that see a GPU.
PAGES = $(foreach language,$(LANGUAGES),$(if $(LESSONS),$(LESSONS:%=notebooks/$(language)/$$each/%.ipynb),notebooks/$(language)/$$each))
test-notebooks: $(READY) $(JAVA)  ## nbval: execute every notebook again, compare its outputs, and test the lessons' claims
	@names="$(FRAMEWORKS)"; \
	if test $(DEVICE) = gpu; then names=$$($(BIN)/python -m tools.run.devices $$names) || exit 1; echo "On a GPU: $$names"; fi; \
	pages=$$(for each in $$names; do ls -d $(PAGES) 2>/dev/null; done); \
	test -n "$$pages" || { echo "There is no such notebook." >&2; exit 1; }; \
	$(PYTEST) --nbval --nbval-cell-timeout $(TIMEOUT) --nbval-kernel-startup-timeout $(TIMEOUT) --device $(DEVICE) \
	  $(if $(filter cpu,$(DEVICE)),--claims) $(call report,$(or $(REPORT),notebooks)) $$pages

.PHONY: $(FRAMEWORKS:%=test-notebooks-%)
$(FRAMEWORKS:%=test-notebooks-%): test-notebooks-%:
	@$(MAKE) --no-print-directory test-notebooks FRAMEWORKS=$* REPORT=notebooks-$*

test-site: $(READY)  ## the web site and the slides, in a real browser
	@$(BIN)/python -m tools.site
	@$(PYTEST) $(call report,site) tests/site $(wildcard lessons/*/live/claims.py)

test-elsewhere: .venv/.elsewhere $(JAVA)  ## the notebooks in imitations of Colab, Kaggle and Binder
	@$(PYTEST) --dist load $(call report,elsewhere) tests/elsewhere --frameworks "$(FRAMEWORKS)"

test-growth: $(READY) $(JAVA)  ## add toy lessons to copies of the project, and make and test them
	@$(PYTEST) $(call report,growth) tests/growth --frameworks "$(FRAMEWORKS)"

.venv/.elsewhere: $(READY) tests/elsewhere/colab.txt tests/elsewhere/services.py environment.yml
	@$(BIN)/python -m tests.elsewhere && touch $@

# Each framework gets a separate environment. Upstream's d2l is left out, since it needs newer versions; the
# Chinese notebooks too, since Matplotlib before 3.11 spaces lines of Chinese differently. pandas 3 needs a newer NumPy.
test-lowest: $(READY)  ## the shim's tests and the notebooks, on the oldest versions that the bounds allow
	@failed=; for framework in $(PYTHON_FRAMEWORKS); do \
	  old=.venv/lowest-$$framework; mkdir -p build/reports; \
	  install="$(BIN)/uv pip install --quiet --python $$old/bin/python"; \
	  $(BIN)/uv venv --quiet --clear --python $(BIN)/python $$old && \
	  $$install --resolution lowest-direct -e ".[$$framework]" && $$install --group dev "pandas<3" && \
	  $(BIN)/uv pip freeze --python $$old/bin/python > build/reports/lowest-$$framework.txt && \
	  $$old/bin/python -m pytest -n $(JOBS) $(VERBOSE) $(call report,lowest-shim-$$framework) tests/shim/each --framework $$framework --without-upstream && \
	  $$old/bin/python -m pytest -n $(JOBS) $(VERBOSE) $(call report,lowest-notebooks-$$framework) --nbval notebooks/en/$$framework \
	  || failed="$$failed $$framework"; \
	done; test -z "$$failed" || { echo "failed on the oldest versions:$$failed" >&2; exit 1; }

mutants: $(READY) $(OLDER) $(JAVA)  ## seed faults, one at a time, and check that each one is noticed (half an hour)
	@$(BIN)/python -m tests.mutants --jobs $(JOBS) $(FRAMEWORKS:%=--framework %)

bench:  ## measure speed, compared with other packages in the same run
	@$(MAKE) --no-print-directory --keep-going bench-notebooks bench-shim

bench-notebooks: $(READY) $(JAVA)  ## the time of the notebook regression, compared with plain nbval and bare programs
	@$(BIN)/python -m tools.bench.regression $(FRAMEWORKS) --jobs $(JOBS)

bench-shim: $(READY)  ## the time of the shim's import and attention, compared with upstream's d2l and the framework
	@$(BIN)/python -m tools.bench.imports $(PYTHON_FRAMEWORKS)
	@$(BIN)/python -m tools.bench.attention $(PYTHON_FRAMEWORKS)
	@$(BIN)/python -m tools.bench.attention $(PYTHON_FRAMEWORKS) --masks window linear --lengths 1024 4096 16384
	@$(BIN)/python -m tools.bench.generation $(PYTHON_FRAMEWORKS)

book: $(READY)  ## run D2L's own pages on the shim and on upstream's d2l, and compare; BOOK=folder: a copy of D2L's repository
	@$(BIN)/python -m tools.book $(PYTHON_FRAMEWORKS:%=--framework %) --jobs $(JOBS) $(if $(RECORD),--record) "$(BOOK)"

report: $(READY)  ## merge the reports of several machines in REPORTS, a folder, and sum them up
	@$(BIN)/python -m tools.project.summary $(REPORTS)

agreement: $(READY) $(JAVA)  ## compare all frameworks with the reference, and update the tables in docs/*/agreement.md
	@test "$(sort $(FRAMEWORKS))" = "$(ALL)" || { echo "The table needs every framework: $(ALL)" >&2; exit 1; }
	$(BIN)/python -m tests.shim.agreement

conformance: $(READY)  ## ask every installed implementation of attention the cases of the conformance suite; DOCS=docs: update the tables
	@$(BIN)/python -m d2l_compat.conformance $(if $(DOCS),--write-docs $(DOCS))

font: $(READY)  ## make the font for Chinese text in figures from Noto Sans CJK, which must be installed
	@$(BIN)/python -m tools.project.font

# List the modules: those that mypy meets only in imports count as an installed package, which it does not check.
SHARED = $(patsubst %.py,-m %,$(subst /,.,$(filter-out %/__init__.py,$(wildcard d2l_compat/*.py d2l_compat/conformance/*.py))))
lint: $(READY)  ## style (ruff) and types (mypy)
	@$(BIN)/ruff check && $(BIN)/ruff format --check
	@$(BIN)/ruff check --quiet --preview --select PLW1514  # encoding= for text, since the default depends on the system
	@$(BIN)/mypy -p tools -p d2l_compat._shared $(SHARED) $(patsubst %,-p d2l_compat.%,$(PYTHON_FRAMEWORKS:pytorch=torch))

format: $(READY)  ## format the code
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

lab: export D2L_COMPAT_INSTALL = never
lab: $(READY) $(JAVA)  ## open the notebooks in JupyterLab
	$(BIN)/jupyter lab --notebook-dir=notebooks

kernel: $(READY)  ## install the Jupyter kernel "Python (d2l)", in which `from d2l import ...` means this package
	@$(BIN)/python -m d2l_compat.kernel --user

site: $(READY)  ## build the web site, with slides, into build/site: open build/site/index.html
	@$(BIN)/python -m tools.site

dist: $(READY)  ## build wheel and sdist into dist/ and check them; TAG=v1.2.3: also check that this is their version
	@$(BIN)/python -m tools.project.dist dist $(TAG)

published: $(READY)  ## check that everything that links, buttons and first cells refer to is online
	@$(BIN)/python -m tools.project.published

env: $(READY) $(OLDER) $(JAVA)  ## only install the environment, in .venv
	@$(if $(JAVA),test -e $(JAVA))

# uv is installed first, from the lock, and then installs everything else with hashes checked. The stamp comes last.
.PHONY: incomplete
$(READY): $(LOCKS) pyproject.toml $(INCOMPLETE)
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "Python 3.11 or newer is needed; $(PYTHON) is $$($(PYTHON) -V 2>&1)." \
	  "Name another one: make PYTHON=/path/to/python3.11" >&2; exit 1; }
	@echo "$(if $(NEW),Installing $(NEW) into .venv$(if $(INSTALLED),$(EMPTY) beside $(INSTALLED)) (once; some gigabytes),Updating .venv to the locks of $(INSTALLED)) ..."
	@test -x $(BIN)/pip || $(PYTHON) -m venv --clear .venv
	@echo "$(INSTALLED)" > .venv/.installed && rm -f .venv/.ready-*
	@cat $(LOCKS) | sed -n '/^uv==/,/[^\\]$$/p' | awk '/^uv==/ && seen++ { exit } { print }' > .venv/uv.lock
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r .venv/uv.lock
	@$(BIN)/uv pip sync --quiet --python $(BIN)/python --require-hashes $(LOCKS)
	@$(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps --no-build-isolation -e .
	@cd .venv && ls -d lib/python*/site-packages/*.dist-info > .listed && mv .listed $(notdir $@)

$(OLDER): requirements/d2l-0.17.txt | $(READY)
	@rm -rf $(@D)
	@$(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps --require-hashes --target $(@D) -r $<
	@touch $@

# DJL's classes and kernel. Without them only the DJL notebooks fail.
MVN = mvn -q -B -f d2l_compat/java/pom.xml
.venv/.java: $(READY) d2l_compat/java/pom.xml $(shell find d2l_compat/java/src) tools/run/java.py
	@echo "Building the classes for DJL (once; it takes some hundred megabytes from Maven's repository) ..."
	@test -n "$(JDK)" || echo "DJL needs a JDK, 17 or newer, and Maven (javac and mvn)." >&2
	@rm -rf $@ d2l_compat/java/target/lib
	@$(MVN) -DskipTests package && $(BIN)/python -m tools.run.java && touch $@ || echo "DJL: not built" >&2

# All frameworks are resolved together first, so that any of the locks can be installed together.
COMPILE = $(BIN)/uv pip compile pyproject.toml --universal --python-version 3.11 --group dev --group site --group bootstrap \
	--no-header --no-annotate --no-emit-index-url --quiet $(if $(UPGRADE),--upgrade)

lock: $(READY)  ## resolve the locks again; UPGRADE=1 takes newer versions
	cat requirements/*.lock > .venv/joint.txt
	$(COMPILE) $(ALL:%=--extra %) $(ALL:%=--group upstream-%) -o .venv/joint.txt
	for f in $(ALL); do \
	  $(COMPILE) --extra $$f --group upstream-$$f --constraint .venv/joint.txt --generate-hashes -o requirements/$$f.lock || exit 1; \
	done

clean:  ## remove the environment and all build products, not the notebooks
	rm -rf .venv build dist d2l_compat/java/target .pytest_cache .mypy_cache .ruff_cache .hypothesis

.PHONY: left-out
left-out:
	@$(if $(JDK)$(filter-out file,$(origin FRAMEWORKS)),,echo "DJL is left out: it needs a JDK, 17 or newer, and Maven (javac and mvn).")
	@$(if $(CHROMIUM),,echo "The site's tests in a browser are left out: they need Chromium, from your system or from .venv/bin/playwright install chromium.")
	@$(if $(X86_LINUX)$(filter-out file,$(origin FRAMEWORKS)),,echo "MXNet is left out: it has been built for Linux on x86-64 only.")

help:  ## list these targets
	@LC_ALL=C sed -n 's/^\([a-z-]*\):.*##/\1 :/p' Makefile | awk -F ' : ' '{ printf "make %-16s %s\n", $$1, $$2 }'

# `make` weaves and executes the lessons, `make test` checks everything, `make help` lists the rest.
# Each framework there is has a lock of its own; FRAMEWORKS narrows: make FRAMEWORKS=pytorch

PYTHON     ?= python3
# What cannot run here is left out, and said so.
JDK        := $(shell command -v mvn >/dev/null && javac -version 2>&1 | awk '$$1 == "javac" && int($$2) >= 17')
CHROMIUM   := $(or $(shell command -v chromium chromium-browser google-chrome),$(wildcard ~/.cache/ms-playwright/chromium*) $(wildcard ~/Library/Caches/ms-playwright/chromium*))
X86_LINUX  := $(filter Linux-x86_64,$(shell uname -s)-$(shell uname -m))
ALL        := $(sort $(basename $(notdir $(wildcard requirements/*.lock))))
FRAMEWORKS ?= $(filter-out $(if $(JDK),,djl) $(if $(X86_LINUX),,mxnet),$(ALL))
LANGUAGES  ?= $(sort $(patsubst text.%.md,%,$(notdir $(wildcard lessons/*/text.*.md))))
# Those named; else all.
LESSONS    ?=
# At a time: as many as there are cores, but each may take a gigabyte of memory.
JOBS       ?= $(shell n=$$(getconf _NPROCESSORS_ONLN); echo $$((n < 8 ? n : 8)))
# Seconds for a page. It is there for what hangs: a slow machine with other work takes minutes for JAX.
TIMEOUT    ?= 1200
# ALWAYS=1 executes what has not changed, too.
ALWAYS     ?=
# Of the tests: on which DEVICE the notebooks run (cpu or gpu), SHUFFLE=SEED for a random order,
# RELEASE=1 for what only `make test-all` runs, VERBOSE=-v for a line per test.
DEVICE     ?= cpu
SHUFFLE    ?=
RELEASE    ?=
VERBOSE    ?=
# Of D2L's own pages: where they are; RECORD=1 keeps what comes of them, for the docs.
BOOK       ?=
RECORD     ?=
# Of a release: v and the version.
TAG        ?=

# Without what Python has compiled before, each process spends most of its start on compiling a framework.
unexport PYTHONDONTWRITEBYTECODE

BIN   := .venv/bin
# What is installed stays: a choice of less runs on it, and what is new comes beside it.
HELD  := $(sort $(filter $(ALL),$(subst -, ,$(notdir $(wildcard .venv/.ready-*))) $(shell cat .venv/.held 2>/dev/null)))
HOLDS  = $(sort $(HELD) $(FRAMEWORKS))
NEW    = $(filter-out $(HELD),$(HOLDS))
LOCKS  = $(HOLDS:%=requirements/%.lock)
# Carries the frameworks in its name, and lists all that was installed.
EMPTY :=
READY  = .venv/.ready-$(subst $(EMPTY) ,-,$(HOLDS))
INCOMPLETE = $(shell test -s $(READY) && cd .venv && xargs ls -d < $(notdir $(READY)) >/dev/null 2>&1 || echo incomplete)
CHOICE = $(addprefix --framework ,$(FRAMEWORKS)) $(addprefix --language ,$(LANGUAGES)) $(addprefix --lesson ,$(LESSONS))
PYTHON_FRAMEWORKS  = $(filter-out djl,$(FRAMEWORKS))
JAVA   = $(if $(filter djl,$(FRAMEWORKS)),.venv/.java)
# An older d2l, which the shim is compared with as well: of a package an environment holds but one.
OLDER  = .venv/d2l-0.17/.ready

.DEFAULT_GOAL := notebooks
.PHONY: notebooks test test-all test-code test-shim test-notebooks test-site test-elsewhere test-growth test-lowest mutants bench bench-notebooks bench-shim book report agreement font lint format lab kernel site dist published env lock clean help

notebooks: left-out $(READY) $(JAVA)  ## weave the lessons and execute what has changed (the default); ALWAYS=1: all
	@$(BIN)/python -m tools.project.documents
	@$(BIN)/python -m tools $(CHOICE) --jobs $(JOBS) --timeout $(TIMEOUT) $(if $(ALWAYS),--always)

# The longest come first: three run at a time, and all are to have work to the end.
SLOW    = jax mlx tensorflow mxnet
IN_TURN = $(filter $(FRAMEWORKS),$(SLOW)) $(filter-out $(SLOW),$(FRAMEWORKS))
CHECKS  = $(if $(filter cpu,$(DEVICE)),test-code test-site $(IN_TURN:%=test-notebooks-%) $(IN_TURN:%=test-shim-%) lint,test-notebooks)
RUN     = $(BIN)/python -m tools.checks --jobs $(JOBS)

# What the checks need is made before, or two of them would make it at once.
test: left-out $(READY) $(OLDER) $(JAVA)  ## what every change has to pass; DEVICE=gpu: the notebooks, on a GPU
	@$(RUN) $(CHECKS)

test-all: export RELEASE = 1
test-all: left-out $(READY) $(OLDER) $(JAVA)  ## and what a release has to pass: other services, toy lessons, oldest versions, more inputs
	@$(MAKE) --no-print-directory .venv/.elsewhere || true  # test-elsewhere tries again, and fails
	@$(RUN) test-lowest test-elsewhere $(CHECKS) test-growth

PYTEST = $(BIN)/python -m pytest -n $(JOBS) $(VERBOSE) $(if $(RELEASE),-m "") $(if $(SHUFFLE),--random-order-bucket=parent --random-order-seed=$(SHUFFLE))
# Each check's report, for machines; a checkout that is read-only does without.
WRITABLE = $(shell test -w . && echo yes)
# JAX compiles each operation for each shape, which takes most of its time. What has been compiled
# once, in whatever process, the checks find again by its content; pages are made without.
ifneq ($(WRITABLE),)
COMPILING = test-shim $(PYTHON_FRAMEWORKS:%=test-shim-%) test-notebooks mutants
$(COMPILING): export JAX_COMPILATION_CACHE_DIR = $(CURDIR)/build/jax
$(COMPILING): export JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS = 0
$(COMPILING): export JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES = -1
endif
# For `make test` it compiles sooner, what then runs slower.
ifeq ($(RELEASE),)
test-shim-jax: export JAX_DISABLE_MOST_OPTIMIZATIONS = 1
endif
report = $(if $(WRITABLE),--junit-xml build/reports/$(1).xml)

test-code: $(READY) $(OLDER) $(JAVA)  ## the tests of the weave, the runner and what all frameworks share
	@$(PYTEST) $(call report,code) tests/tools tests/lessons tests/shim --ignore tests/shim/each --frameworks "$(FRAMEWORKS)"

# A process for a framework has one thread; there are as many as cores.
.PHONY: $(FRAMEWORKS:%=test-shim-%)
test-shim: $(READY) $(OLDER) $(JAVA)  ## the tests of the shim, framework by framework
	@$(MAKE) --no-print-directory --keep-going $(IN_TURN:%=test-shim-%)

$(PYTHON_FRAMEWORKS:%=test-shim-%): test-shim-%: $(READY) $(OLDER)
	@echo "$*:"
	@OMP_NUM_THREADS=1 $(PYTEST) $(call report,shim-$*) tests/shim/each --framework $*

test-shim-djl: $(JAVA)
	@echo "djl:"
	@$(MVN:-q=) test

# Of each framework, on a GPU of each that sees one. What there is of the lessons asked for.
PAGES = $(foreach language,$(LANGUAGES),$(if $(LESSONS),$(LESSONS:%=notebooks/$(language)/$$each/%.ipynb),notebooks/$(language)/$$each))
test-notebooks: $(READY) $(JAVA)  ## nbval: execute every notebook again, compare what it shows, and test the lessons' claims
	@on="$(FRAMEWORKS)"; \
	if test $(DEVICE) = gpu; then on=$$($(BIN)/python -m tools.run.devices $$on) || exit 1; echo "On a GPU: $$on"; fi; \
	pages=$$(for each in $$on; do ls -d $(PAGES) 2>/dev/null; done); \
	test -n "$$pages" || { echo "There is no such notebook." >&2; exit 1; }; \
	$(PYTEST) --nbval --nbval-cell-timeout $(TIMEOUT) --nbval-kernel-startup-timeout $(TIMEOUT) --device $(DEVICE) \
	  $(if $(filter cpu,$(DEVICE)),--claims) $(call report,$(or $(REPORT),notebooks)) $$pages

.PHONY: $(FRAMEWORKS:%=test-notebooks-%)
$(FRAMEWORKS:%=test-notebooks-%): test-notebooks-%:
	@$(MAKE) --no-print-directory test-notebooks FRAMEWORKS=$* REPORT=notebooks-$*

test-site: $(READY)  ## the web site and the slides, in a real browser
	@$(BIN)/python -m tools.site
	@$(PYTEST) $(call report,site) tests/site $(wildcard lessons/*/live/claims.py)

test-elsewhere: .venv/.elsewhere $(JAVA)  ## the notebooks on Colab, Kaggle and Binder, in imitations of these
	@$(PYTEST) --dist load $(call report,elsewhere) tests/elsewhere --frameworks "$(FRAMEWORKS)"

test-growth: $(READY) $(JAVA)  ## toy lessons, added to copies of the project, go through all of this
	@$(PYTEST) $(call report,growth) tests/growth --frameworks "$(FRAMEWORKS)"

.venv/.elsewhere: $(READY) tests/elsewhere/colab.txt tests/elsewhere/places.py environment.yml
	@$(BIN)/python -m tests.elsewhere && touch $@

# Each framework in an environment of its own, inside ours. Upstream's d2l needs newer versions
# of what it imports.
# pandas 3 needs a newer NumPy, and Matplotlib before 3.11 sets lines of Chinese closer.
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

mutants: $(READY) $(OLDER) $(JAVA)  ## seed faults, one at a time, and see each one noticed (half an hour)
	@$(BIN)/python -m tests.mutants --jobs $(JOBS) $(FRAMEWORKS:%=--framework %)

bench:  ## how long things take, beside others in the same run
	@$(MAKE) --no-print-directory --keep-going bench-notebooks bench-shim

bench-notebooks: $(READY) $(JAVA)  ## the notebook regression, beside plain nbval and bare code
	@$(BIN)/python -m tools.bench.regression $(FRAMEWORKS) --jobs $(JOBS)

bench-shim: $(READY)  ## importing the shim, and its attention, beside upstream's d2l and the framework
	@$(BIN)/python -m tools.bench.imports $(PYTHON_FRAMEWORKS)
	@$(BIN)/python -m tools.bench.attention $(PYTHON_FRAMEWORKS)

book: $(READY)  ## run D2L's own pages on the shim: BOOK, the folder of a copy of its repository
	@$(BIN)/python -m tools.book $(PYTHON_FRAMEWORKS:%=--framework %) --jobs $(JOBS) $(if $(RECORD),--record) "$(BOOK)"

report: $(READY)  ## merge the reports of several machines in REPORTS, a folder, and sum them up
	@$(BIN)/python -m tools.project.summary $(REPORTS)

agreement: $(READY) $(JAVA)  ## compare all frameworks with the reference, and update the tables in docs/*/agreement.md
	@test "$(sort $(FRAMEWORKS))" = "$(ALL)" || { echo "The table needs every framework: $(ALL)" >&2; exit 1; }
	$(BIN)/python -m tests.shim.compare_frameworks

font: $(READY)  ## make the font of the figures' Chinese words anew, from Noto Sans CJK, which has to be installed
	@$(BIN)/python -m tools.project.font

# What mypy only meets as an import of the installed package, it does not check.
SHARED = $(patsubst %.py,-m %,$(subst /,.,$(filter-out %/__init__.py,$(wildcard d2l_compat/*.py))))
lint: $(READY)  ## style (ruff) and types (mypy)
	@$(BIN)/ruff check && $(BIN)/ruff format --check
	@$(BIN)/mypy -p tools -p d2l_compat._shared $(SHARED) $(patsubst %,-p d2l_compat.%,$(PYTHON_FRAMEWORKS:pytorch=torch))

format: $(READY)  ## put the code in the project's style
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

lab: export D2L_COMPAT_INSTALL = never
lab: $(READY) $(JAVA)  ## open the notebooks in JupyterLab
	$(BIN)/jupyter lab --notebook-dir=notebooks

kernel: $(READY)  ## install the Jupyter kernel "Python (d2l)", in which `from d2l import ...` means this package
	@$(BIN)/python -m d2l_compat.kernel --user

site: $(READY)  ## build the web site, with slides, into build/site: open build/site/index.html
	@$(BIN)/python -m tools.site

dist: $(READY)  ## build the package, wheel and sdist, into dist/, and check both; TAG: and that it is of this release
	@$(BIN)/python -m tools.project.dist dist $(TAG)

published: $(READY)  ## is everything where the links, the buttons and the first cells look for it? (asks the network)
	@$(BIN)/python -m tools.project.published

env: $(READY) $(OLDER) $(JAVA)  ## only install the environment, in .venv
	@$(if $(JAVA),test -e $(JAVA))

# uv comes first, from the lock, and then installs everything else with hashes checked. Until all is
# there, there is no stamp.
.PHONY: incomplete
$(READY): $(LOCKS) pyproject.toml $(INCOMPLETE)
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "Python 3.11 or newer is needed; $(PYTHON) is $$($(PYTHON) -V 2>&1)." \
	  "Name another one: make PYTHON=/path/to/python3.11" >&2; exit 1; }
	@echo "$(if $(NEW),Installing $(NEW) into .venv$(if $(HELD),$(EMPTY) beside $(HELD)) (once; some gigabytes),Bringing .venv to what the locks of $(HELD) say) ..."
	@test -x $(BIN)/pip || $(PYTHON) -m venv --clear .venv
	@echo "$(HELD)" > .venv/.held && rm -f .venv/.ready-*
	@cat $(LOCKS) | sed -n '/^uv==/,/[^\\]$$/p' | awk '/^uv==/ && seen++ { exit } { print }' > .venv/uv.lock
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r .venv/uv.lock
	@$(BIN)/uv pip sync --quiet --python $(BIN)/python --require-hashes $(LOCKS)
	@$(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps --no-build-isolation -e .
	@cd .venv && ls -d lib/python*/site-packages/*.dist-info > .listed && mv .listed $(notdir $@)

$(OLDER): requirements/d2l-0.17.txt | $(READY)
	@rm -rf $(@D)
	@$(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps --require-hashes --target $(@D) -r $<
	@touch $@

# DJL's classes and kernel. Without them the DJL notebooks fail, and they alone.
MVN = mvn -q -B -f d2l_compat/java/pom.xml
.venv/.java: $(READY) d2l_compat/java/pom.xml $(shell find d2l_compat/java/src) tools/run/java.py
	@echo "Building the classes for DJL (once; it takes some hundred megabytes from Maven's repository) ..."
	@test -n "$(JDK)" || echo "DJL needs a JDK, 17 or newer, and Maven (javac and mvn)." >&2
	@rm -rf $@ d2l_compat/java/target/lib
	@$(MVN) -DskipTests package && $(BIN)/python -m tools.run.java && touch $@ || echo "DJL: not built" >&2

# All frameworks are resolved together first, so that any of their locks can be installed together.
COMPILE = $(BIN)/uv pip compile pyproject.toml --universal --python-version 3.11 --group dev --group site --group bootstrap \
	--no-header --no-annotate --no-emit-index-url --quiet $(if $(UPGRADE),--upgrade)

lock: $(READY)  ## resolve the locks anew; UPGRADE=1 takes newer versions
	cat requirements/*.lock > .venv/joint.txt
	$(COMPILE) $(ALL:%=--extra %) $(ALL:%=--group upstream-%) -o .venv/joint.txt
	for f in $(ALL); do \
	  $(COMPILE) --extra $$f --group upstream-$$f --constraint .venv/joint.txt --generate-hashes -o requirements/$$f.lock || exit 1; \
	done

clean:  ## remove what was built and the environment; the notebooks stay
	rm -rf .venv build dist d2l_compat/java/target .pytest_cache .mypy_cache .ruff_cache .hypothesis

.PHONY: left-out
left-out:
	@$(if $(JDK)$(filter-out file,$(origin FRAMEWORKS)),,echo "DJL is left out: it needs a JDK, 17 or newer, and Maven (javac and mvn).")
	@$(if $(CHROMIUM),,echo "The site's tests in a browser are left out: they need Chromium, by your system or by .venv/bin/playwright install chromium.")
	@$(if $(X86_LINUX)$(filter-out file,$(origin FRAMEWORKS)),,echo "MXNet is left out: it has been built for Linux on x86-64 only.")

help:  ## list these targets
	@LC_ALL=C sed -n 's/^\([a-z-]*\):.*##/\1 :/p' Makefile | awk -F ' : ' '{ printf "make %-16s %s\n", $$1, $$2 }'

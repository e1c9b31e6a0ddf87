# `make` weaves and executes the lessons, `make test` checks everything, `make help` lists the rest.
# Each framework there is has a lock of its own; FRAMEWORKS narrows: make FRAMEWORKS=pytorch

PYTHON     ?= python3
FRAMEWORKS ?= $(sort $(basename $(notdir $(wildcard requirements/*.lock))))
LANGUAGES  ?= $(sort $(patsubst text.%.md,%,$(notdir $(wildcard lessons/*/text.*.md))))
JOBS       ?= 2
TIMEOUT    ?= 300

BIN   := .venv/bin
LOCKS  = $(FRAMEWORKS:%=requirements/%.lock)
# Carries the choice of frameworks in its name, so that another choice installs anew.
EMPTY :=
READY  = .venv/.ready-$(subst $(EMPTY) ,-,$(strip $(FRAMEWORKS)))
CHOICE = $(addprefix --framework ,$(FRAMEWORKS)) $(addprefix --language ,$(LANGUAGES))

.DEFAULT_GOAL := notebooks
.PHONY: notebooks test test-code test-notebooks lint format lab html env lock clean help

notebooks: $(READY)  ## weave and execute the lessons (the default)
	@$(BIN)/python -m tools $(CHOICE) --jobs $(JOBS) --timeout $(TIMEOUT)

test: lint test-code test-notebooks  ## check everything

test-code: $(READY)  ## the tests of the shim, the weave, the runner and the lesson's values
	$(BIN)/python -m pytest -n $(JOBS) tests

test-notebooks: $(READY)  ## nbval: execute every notebook again and compare what it shows
	$(BIN)/python -m pytest -n $(JOBS) --nbval $(foreach f,$(FRAMEWORKS),$(LANGUAGES:%=notebooks/%/$(f)))

lint: $(READY)  ## style (ruff) and types (mypy)
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy

format: $(READY)  ## put the code in the project's style
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

lab: $(READY)  ## open the notebooks in JupyterLab
	$(BIN)/jupyter lab --notebook-dir=notebooks

html: $(READY)  ## render the notebooks to build/html, to read them in a browser
	$(BIN)/jupyter nbconvert --to html --output-dir build/html $(foreach f,$(FRAMEWORKS),$(LANGUAGES:%=notebooks/%/$(f)/*.ipynb))

env: $(READY)  ## only install the environment, in .venv

# uv comes first, from the lock, and then installs everything else with hashes checked.
$(READY): $(LOCKS) pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "Python 3.11 or newer is needed; $(PYTHON) is $$($(PYTHON) -V 2>&1)." \
	  "Name another one: make PYTHON=/path/to/python3.11" >&2; exit 1; }
	@echo "Installing $(FRAMEWORKS) into .venv (once; some gigabytes) ..."
	@test -x $(BIN)/pip || $(PYTHON) -m venv --clear .venv
	@cat $(LOCKS) | sed -n '/^uv==/,/[^\\]$$/p' | awk '/^uv==/ && seen++ { exit } { print }' > .venv/uv.lock
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r .venv/uv.lock
	@$(BIN)/uv pip sync --quiet --python $(BIN)/python --require-hashes $(LOCKS)
	@$(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps --no-build-isolation -e .
	@rm -f .venv/.ready-*
	@touch $@

# All frameworks are resolved together first, so that any of their locks can be installed together.
COMPILE = $(BIN)/uv pip compile pyproject.toml --universal --python-version 3.11 --group dev --group bootstrap \
	--no-header --no-annotate --no-emit-index-url --quiet $(if $(UPGRADE),--upgrade)

lock: $(READY)  ## resolve the locks anew; UPGRADE=1 takes newer versions
	cat requirements/*.lock > .venv/joint.txt
	$(COMPILE) $(FRAMEWORKS:%=--extra %) -o .venv/joint.txt
	for f in $(FRAMEWORKS); do \
	  $(COMPILE) --extra $$f --constraint .venv/joint.txt --generate-hashes -o requirements/$$f.lock || exit 1; \
	done

clean:  ## remove what was built and the environment; the notebooks stay
	rm -rf .venv build .pytest_cache .mypy_cache .ruff_cache .hypothesis

help:  ## list these targets
	@sed -n 's/^\([a-z-]*\):.*##/\1 :/p' Makefile | awk -F ' : ' '{ printf "make %-16s %s\n", $$1, $$2 }'

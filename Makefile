# Few verbs, each self-contained: on a machine with nothing but python3, `make test` makes its own environment.
PYTHON ?= python3
VENV ?= .venv
RUN := $(VENV)/bin/python
STAMP := $(VENV)/.installed
SITE_VENV ?= .venv-site
SITE_STAMP := $(SITE_VENV)/.installed
# K=cloneset chooses the tests of one kind; machinery, local, cli and cluster are kinds as well.
K ?=
TESTS := $(if $(K),$(filter-out tests/real/$(K),$(wildcard tests/$(K) tests/*/$(K))))
ifneq ($(K),)
  ifeq ($(wildcard tests/$(K) tests/*/$(K)),)
    $(error there is no kind "$(K)" in tests: name a folder of it, such as K=cloneset)
  endif
endif
# `make image ARCH="amd64 arm64"`; without it: this machine's.
ARCH ?=
# A worker more than cores: the tests of commands wait for clusters. tests/conftest.py says which files come first.
LOCAL := $(RUN) -m pytest -n 3 --dist loadfile --no-loadscope-reorder
# They wait most of the time, so there are more workers than cores. More than 5 would need more inotify instances than
# Linux gives a user: 128, of which a control plane has 10. Real nodes, which have 38, raise that limit where they may.
REAL := $(RUN) -m pytest tests/real$(if $(K),/$(K)) -n 5 \
  -o addopts="--strict-markers --strict-config -ra --import-mode=importlib --durations=10"

# Some containers turn Python's cache of compiled code off. Tests start hundreds of commands, and each would compile all
# that it imports.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: dist site image help up down test test-long test-real test-nodes test-real-all check format bench cluster-build nodes-build image-build helm-build cluster-up nodes-up cluster-down lock clean

help:  ## Show the verbs
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 16

$(STAMP): requirements/dev.txt pyproject.toml hack/version.py
	@$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "PyKruise needs Python 3.11 or newer; run: make PYTHON=python3.12 ...")'
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { echo "python3 lacks the venv module; on Debian: apt-get install python3-venv" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(RUN) -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/dev.txt
	$(RUN) -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $(STAMP)

$(SITE_STAMP): requirements/site.txt
	$(PYTHON) -m venv $(SITE_VENV)
	$(SITE_VENV)/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/site.txt
	@touch $(SITE_STAMP)

up: $(STAMP)  ## Start the local Kubernetes and leave it running
	$(VENV)/bin/kruise up --detach

down: $(STAMP)  ## End it
	$(VENV)/bin/kruise down

test: $(STAMP)  ## Every test that needs no root, no Go and no cluster
	$(LOCAL) $(TESTS)

test-long: $(STAMP)  ## The same with four times as many examples of the properties, new ones each time
	KRUISE_EXAMPLES=4 $(LOCAL) $(TESTS)

test-real: $(STAMP) cluster-build  ## A smoke selection of the suites on a real Kubernetes
	$(REAL) -m "smoke and not nodes"

test-nodes: $(STAMP) nodes-build  ## A smoke selection on three real nodes (as root)
	$(REAL) -m "smoke and nodes"

test-real-all: $(STAMP) nodes-build image-build helm-build  ## All suites on a real Kubernetes; those on real nodes need root
	@# One size of cluster after the other. A kind may have no tests on one of them: pytest then ends with 5.
	@status=0; ran=no; for size in "not nodes" "nodes"; do \
	  $(REAL) -m "$$size"; code=$$?; \
	  [ $$code = 5 ] || ran=yes; [ $$code = 0 ] || [ $$code = 5 ] || status=1; \
	done; [ $$ran = yes ] && exit $$status

check: $(STAMP)  ## Lint, types, layers
	$(RUN) -m ruff check
	$(RUN) -m ruff format --check
	$(RUN) -m mypy
	$(VENV)/bin/lint-imports

format: $(STAMP)  ## Format the code
	$(RUN) -m ruff format
	$(RUN) -m ruff check --fix

bench: $(STAMP) cluster-build  ## Benchmarks, as ratios within one run
	$(RUN) -m bench

image: $(STAMP)  ## Make the container image, without a container engine; ARCH="amd64 arm64"
	$(RUN) -m hack.image $(foreach arch,$(ARCH),--arch $(arch))

dist: $(STAMP)  ## Make wheel and sdist, with their checksums, in dist
	$(RUN) hack/dist.py

site: $(SITE_STAMP)  ## Make the documents a site in dist/site; checked in the making
	NO_MKDOCS_2_WARNING=1 $(SITE_VENV)/bin/python -m mkdocs build --strict

cluster-build: $(STAMP)  ## Build the real Kubernetes (once; cached outside the checkout)
	$(RUN) -m tests.support.realcluster build

nodes-build: $(STAMP)  ## The same with what real nodes need
	$(RUN) -m tests.support.realcluster build --nodes

image-build: $(STAMP)  ## Make the image that the tests install (once for each tree; as root)
	@[ "$$(id -u)" != 0 ] || $(RUN) -m hack.image --ensure

helm-build: $(STAMP)  ## Build the Helm that the tests install with (once; cached outside the checkout)
	$(RUN) -m tests.support.helmbuild

cluster-up: $(STAMP)  ## Start a real control plane and leave it running
	$(RUN) -m tests.support.realcluster up

nodes-up: $(STAMP)  ## The same with three real nodes (as root)
	$(RUN) -m tests.support.realcluster up --nodes 3

cluster-down: $(STAMP)  ## Stop both
	$(RUN) -m tests.support.realcluster down

lock: $(STAMP)  ## Renew the locked dependencies, with a week of cool-down
	$(RUN) -m pip install --quiet uv
	$(VENV)/bin/uv pip compile pyproject.toml --extra fast --group dev --universal --generate-hashes --upgrade \
	  --no-emit-index-url --no-header --no-annotate -p 3.11 --exclude-newer "1 week" -o requirements/dev.txt
	$(VENV)/bin/uv pip compile pyproject.toml --extra fast --constraint requirements/dev.txt --universal --generate-hashes \
	  --no-emit-index-url --no-header --no-annotate -p 3.11 -o requirements/runtime.txt
	$(VENV)/bin/uv pip compile --group site --universal --generate-hashes --upgrade \
	  --no-emit-index-url --no-header --no-annotate -p 3.11 --exclude-newer "1 week" -o requirements/site.txt

clean:  ## Remove the environment and caches
	rm -rf $(VENV) $(SITE_VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache

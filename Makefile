# Everything that is done with this repository. Only Python >= 3.11, make and git are needed; the rest goes into .venv/.
#
#     make test PYTHON=python3.12          the interpreter that .venv is made with (make clean, to change it)
#     make test ARGS="tests/unit -k view"  what pytest should run, and how

ifeq ($(OS),Windows_NT)
PYTHON ?= python
SCRIPTS := Scripts
EXE := .exe
else
PYTHON ?= python3
SCRIPTS := bin
endif
ARGS ?=
# What runs test-gpu: an environment with minifuse[cuda13,test] or [cuda12,test], often the one that has torch.
GPU_PYTHON ?= python3
# Processes that run the tests. Each compiles kernels and uses threads itself, so more than a few do not pay. A file is one
# process's, and they come by name: by their numbers of tests, the few long ones would come last, and one process would wait.
WORKERS ?= 2
# Those that look at pages wait for a browser half of the time.
BROWSERS ?= 3

VENV := .venv
REQUIREMENTS := requirements.txt
BIN := $(VENV)/$(SCRIPTS)
PIP := $(BIN)/python -m pip --disable-pip-version-check
# Debian's browser; as another user than root, with the rights that sudo gives without a question.
INSTALL_CHROMIUM = as=; test "$$(id -u)" = 0 || as="sudo -n"; $$as apt-get update -qq && \
	$$as env DEBIAN_FRONTEND=noninteractive apt-get install -qq --yes --no-install-recommends chromium > /dev/null
# The Pythons that requirements.txt is for, and the command that writes it. cuda12 excludes cuda13, so it is not in it.
PYTHONS := 3.11 3.12 3.13 3.14
COMPILE = $(BIN)/uv pip compile --quiet --annotation-style line --custom-compile-command "make lock"
LOCK = $(COMPILE) --universal --python-version 3.11 --extra bench --extra browser --extra cuda13 --extra dev $(ARGS) pyproject.toml
# An empty file, as old as the last installation.
INSTALLED := $(VENV)/installed

.DEFAULT_GOAL := help
.PHONY: help demo app site serve-site test tests smoke thorough test-lowest test-newest test-wheel test-sdist test-gpu test-arm test-array-api test-browser \
	docker-commands notebooks decks dist release-check lock lint check format bench clean bytecode

help: ## say what there is
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-15s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

demo: $(INSTALLED) ## train a network on handwritten digits, then compare the backends
	@$(BIN)/minifuse demo $(ARGS)

app: $(INSTALLED) ## the visualizer, at an address that it prints; ARGS="--port 8600" for another one
	@$(BIN)/minifuse app $(ARGS)

# Without ARGS a part of the slow cases, always the same one; of what ARGS names, all.
test: bytecode ## the test suite with doctests and the examples of the pages, without most slow cases; ARGS="tests/unit" runs all of some
	@$(BIN)/python -m pytest $(if $(ARGS),,--sample) --numprocesses $(WORKERS) --dist loadfile --no-loadscope-reorder $(ARGS)

tests: test ## the same as make test; without it, make would take the folder for the target

smoke: $(INSTALLED) ## twelve short tests that read as a tutorial
	@$(BIN)/python -m pytest -q tests/test_smoke.py $(ARGS)

thorough: bytecode ## tests that take minutes: all that are marked `thorough` or `sampled`, and those of Hypothesis
	@$(BIN)/python -m pytest -m "thorough or sampled or hypothesis" --numprocesses $(WORKERS) --dist load $(ARGS)

test-lowest: ## the whole test suite with the lowest versions that pyproject.toml allows, in an environment of its own
	@$(MAKE) --no-print-directory test VENV=.venv-lowest REQUIREMENTS=requirements-lowest.txt

lock: $(INSTALLED) ## the pins of requirements*.txt from the ranges of pyproject.toml; ARGS=--upgrade for the newest versions
	@$(LOCK) --output-file requirements.txt
	@$(LOCK) --resolution lowest-direct --output-file requirements-lowest.txt
	@for python in $(PYTHONS); do for file in requirements.txt requirements-lowest.txt; do \
		$(COMPILE) --no-deps --only-binary :all: --python-version $$python $$file > /dev/null || \
		{ echo "$$file: a pin has no wheel for Python $$python; add its first version that has one to pyproject.toml" >&2; exit 1; }; \
	done; done

test-newest: ## the whole test suite with the newest versions that pyproject.toml allows, in an environment of its own
	@$(MAKE) --no-print-directory test VENV=.venv-newest REQUIREMENTS=requirements-newest.txt

test-gpu: ## on a machine with an NVIDIA GPU: hardware, interpreter and NumPy agree (uses the present environment: GPU_PYTHON)
	@$(GPU_PYTHON) -m pytest -m gpu tests/cuda $(ARGS)

test-arm: $(INSTALLED) ## some tests on aarch64 under QEMU, in a Debian of debootstrap, as root: ARGS=new-folder
	@$(BIN)/python -m tests.release.run_arm $(or $(ARGS),build/debian-arm64)

test-array-api: ## the tests of the array API standard, from a checkout of array-api-tests: make test-array-api SUITE=folder
	@$(BIN)/python -m tests.array_api $(SUITE) $(ARGS)

test-browser: bytecode ## the app in a real Chromium, which is installed by apt when it is missing
	@command -v chromium > /dev/null || command -v chromium-headless-shell > /dev/null || test -n "$$MINIFUSE_CHROMIUM" || { $(INSTALL_CHROMIUM); } || \
		echo "Chromium is missing and apt could not install it: the tests of the app in a browser are skipped." \
		"Install it (apt install chromium), or name one: make test-browser MINIFUSE_CHROMIUM=/path/to/chrome" >&2
	@$(BIN)/python -m pytest --sample -m browser tests/browser --numprocesses $(BROWSERS) --dist load $(ARGS)

docker-commands: $(INSTALLED) ## the Dockerfiles without Docker, each in a bare Debian of debootstrap, as root: ARGS=new-folder
	@$(BIN)/python -m tests.app.run_dockerfile $(or $(ARGS),build/debian)

bytecode: $(INSTALLED) ## compile the package once for the child processes of tests, even if PYTHONDONTWRITEBYTECODE is set
	@$(BIN)/python -m compileall -q minifuse project

dist: $(INSTALLED) ## build and check the sdist and the wheel, in dist/
	@rm -rf dist
	@$(BIN)/python -m build --no-isolation --outdir dist .
	@$(BIN)/twine check --strict dist/*
	@$(BIN)/check-wheel-contents dist/*.whl

test-wheel: ## install the wheel of dist/ with PYTHON into new environments outside of this folder, and run what users run first
	@"$(PYTHON)" tests/check_wheel.py dist/*.whl $(ARGS)

test-sdist: ## unpack the sdist of dist/ in a new folder, and run the demo and some tests there
	@"$(PYTHON)" -m tests.release.try_sdist

release-check: ## check that a tag fits the version and the changelog: make release-check TAG=v1.2.3
	@"$(PYTHON)" -m tests.release.check_tag "$(TAG)"

lint: $(INSTALLED) ## format, style, types, workflows and other project files, checked and left as they are
	@$(BIN)/ruff format --check . || { echo "make format rewrites these files in the project's format" >&2; exit 1; }
	@$(BIN)/ruff check .
	@$(BIN)/mypy
	@$(BIN)/hadolint Dockerfile project/course.Dockerfile
	@$(BIN)/actionlint .github/workflows/*.yml

check: lint test-browser test ## exactly what CI runs: lint, the app and the site in a browser, then test

format: $(INSTALLED) ## rewrite the sources in the project's format
	@$(BIN)/ruff check --fix-only --quiet .
	@$(BIN)/ruff format .

bench: $(INSTALLED) ## measure side by side with NumPy, and with torch where it is installed
	@$(BIN)/python -m project.benchmarks $(ARGS)

site: $(INSTALLED) ## the project's site, with warnings as errors, in build/site; ARGS="--site-dir new-folder" for another one
	@NO_MKDOCS_2_WARNING=1 PYTHONPATH=. $(BIN)/mkdocs build --strict $(ARGS)

serve-site: $(INSTALLED) ## the site at an address that it prints, built anew after each change
	@NO_MKDOCS_2_WARNING=1 PYTHONPATH=. $(BIN)/mkdocs serve $(ARGS)

notebooks: $(INSTALLED) ## Jupyter notebooks: of each module of the course, in ARGS=new-folder, and those of docs/notebooks
	@$(BIN)/python docs/make_notebooks.py $(ARGS)

decks: $(INSTALLED) ## the slides of the course as PDF, printed by Chromium: ARGS=new-folder
	@$(BIN)/python docs/make_decks.py $(ARGS)

clean: ## remove .venv and everything else that is made from the sources
	rm -rf $(VENV) .venv-lowest .venv-newest build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# Read by whatever $(PYTHON) is, so it is written in the Python of all versions.
define REQUIRE_PYTHON
import sys
if sys.version_info < (3, 11):
    sys.exit("$(PYTHON) is Python %d.%d; minifuse needs 3.11 or newer. Name one: make ... PYTHON=python3.12" % sys.version_info[:2])
try:
    import ensurepip, venv
except ImportError:
    sys.exit("$(PYTHON) comes without venv and ensurepip; install them (on Debian and Ubuntu: apt install python%d.%d-venv), "
             "or name another interpreter: make ... PYTHON=python3.12" % sys.version_info[:2])
endef
export REQUIRE_PYTHON

$(BIN)/python$(EXE):
	@command -v "$(PYTHON)" > /dev/null || { echo "$(PYTHON) was not found; install Python 3.11 or newer, or name one: make ... PYTHON=python3.12" >&2; exit 1; }
	@"$(PYTHON)" -c "$$REQUIRE_PYTHON"
	@"$(PYTHON)" -m venv --clear $(VENV) || { rm -rf $(VENV); exit 1; }

$(INSTALLED): $(REQUIREMENTS) pyproject.toml setup.py | $(BIN)/python$(EXE)
	@echo "Installing the versions of $(REQUIREMENTS) into $(VENV) (650 MB and a minute, the first time)"
	@$(PIP) install --quiet --no-compile --requirement $(REQUIREMENTS)
	@$(PIP) install --quiet --no-deps --no-build-isolation --editable .
	@$(BIN)/python -m compileall -q -j 0 $(VENV)/lib || true # pip would compile in one process; some files are templates
	@touch $@

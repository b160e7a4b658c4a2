# make demo    search a network for handwritten digits with the real command (about two minutes)
# make test    the tests that need no root (five minutes on two cores)
# make test-hosts  those on real hosts: Grid Engine, sshd, clouds, full disks; needs root
# make cell    a shell on a real Grid Engine cell of three hosts, on this machine; needs root
# make cluster-demo  a live starcluster cluster of three nodes, on this machine; needs root
# make check   lint, types, tests, docs
# make bench   time the trainer and the search's overhead, and search two functions, on this machine
# make bench-search  our choosers beside Optuna and BoTorch on all functions: hours; can be stopped
#                    and continued
# make docs    HTML in docs/_build/html; checks its links, and its width on a phone (with chromium)
# make rooms   draw the folders of the packages and the imports between them
# make pictures  record the demo and take the report's picture, for README (two minutes)
# Each sets up .venv itself; a second run is quick.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# One more than there are cores: many tests wait for daemons.
WORKERS ?= $(shell expr 1 + $$(nproc))
PYTEST_FLAGS ?=
# What else is installed on this machine, and how Python is set up here, is no matter of the tests.
PYTEST := env -u PYTHONPATH -u PYTHONHOME -u PYTEST_ADDOPTS -u PYTEST_PLUGINS PYTHONNOUSERSITE=1 \
  PYTEST_DISABLE_PLUGIN_AUTOLOAD=1 $(BIN)/python -m pytest -p xdist.plugin -p pytest_timeout \
  -p _hypothesis_pytestplugin -n $(WORKERS)
HOSTS := root or sge or mount
PIP := $(BIN)/python -m pip install -qq --disable-pip-version-check
DEMO := examples/digits
PICTURES := /tmp/starmint

.PHONY: demo test test-hosts cell cluster-demo check lint types docs docs-outputs rooms pictures bench bench-search proto clean

demo: $(VENV)/demo.stamp
	$(BIN)/spearmint --max-concurrent=2 --max-finished-jobs=40 $(DEMO)/config.pb
	$(BIN)/python $(DEMO)/final.py
	$(BIN)/spearmint report $(DEMO)

test: $(VENV)/dev.stamp
	$(PYTEST) --dist worksteal -m "not ($(HOSTS))" $(PYTEST_FLAGS)

test-hosts: $(VENV)/dev.stamp
	$(PYTEST) --dist loadfile --no-loadscope-reorder -m "$(HOSTS)" $(PYTEST_FLAGS)

cell: $(VENV)/dev.stamp
	@$(BIN)/python -m tests.testbed.cell

cluster-demo: $(VENV)/dev.stamp
	@$(BIN)/python -m tests.testbed.cluster_demo

check: lint types test docs

lint: $(VENV)/dev.stamp
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/codespell
	$(BIN)/lint-imports

types: $(VENV)/dev.stamp
	$(BIN)/mypy

docs: $(VENV)/dev.stamp
	$(BIN)/sphinx-build -W --keep-going -q -b html docs docs/_build/html
	$(BIN)/python docs/_tools/check_links.py
	$(BIN)/python docs/_tools/check_phone.py

# The outputs that the pages quote, from real runs: about two minutes.
docs-outputs: $(VENV)/dev.stamp
	$(BIN)/python docs/_tools/record_outputs.py

rooms: $(VENV)/dev.stamp
	$(BIN)/python docs/_tools/draw_rooms.py --output docs/_static/rooms.png
	$(BIN)/python docs/_tools/rooms_table.py --output docs/_tables/rooms.rst

# Needs chromium and chromedriver.
pictures: $(VENV)/dev.stamp
	$(BIN)/python docs/_tools/record_demo.py --directory $(PICTURES) --output docs/_static/demo.svg
	$(BIN)/python docs/_tools/report_picture.py $(PICTURES)/examples/digits --output docs/_static/report.png

bench: $(VENV)/dev.stamp
	$(BIN)/python benchmarks/trainer_numpy.py
	$(BIN)/python benchmarks/search_overhead.py
	$(BIN)/python benchmarks/search.py --results build/search_benchmark \
	  --methods GPEIOptChooser SequentialChooser TPESampler random --problems branin hartmann6

bench-search: $(VENV)/bench.stamp
	$(BIN)/python benchmarks/search.py --results build/search_benchmark
	$(BIN)/python benchmarks/search.py --results build/search_benchmark --timing

# Needs protoc 31 (grpcio-tools 1.73); its output is in the repository.
proto:
	protoc -I. --python_out=. --pyi_out=. \
	  spearmint/config/experiment.proto spearmint/importing/original_job.proto

clean:
	rm -rf $(VENV) docs/_build docs/_generated build *.egg-info

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "Python 3.11 or later is needed: make PYTHON=python3.11 ..." >&2; exit 2; }
	@$(PYTHON) -m venv $(VENV) \
	  || { echo "python3-venv is needed: apt-get install python3-venv" >&2; rm -rf $(VENV); exit 2; }

$(VENV)/demo.stamp: pyproject.toml | $(VENV)/bin/python
	@echo "Installing into $(VENV) ..."
	@$(PIP) --editable '.[report,data]'
	@touch $@

$(VENV)/dev.stamp: pyproject.toml | $(VENV)/bin/python
	@echo "Installing into $(VENV), with all that tests need ..."
	@$(PIP) --editable '.[dev]'
	@touch $@ $(VENV)/demo.stamp

$(VENV)/bench.stamp: pyproject.toml $(VENV)/dev.stamp
	@echo "Installing into $(VENV), PyTorch and BoTorch ..."
	@$(PIP) --editable '.[bench]'
	@touch $@

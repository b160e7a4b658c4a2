# make demo          tune a network for handwritten digits with the real command (about two minutes)
# make test          run the tests that need no root (ten minutes on two cores)
# make test-hosts    run the tests on real hosts: Grid Engine, Slurm, HTCondor, sshd, clusters, full disks; needs root
# make cell          open a shell on a real Grid Engine of three hosts on this machine; needs root
# make cluster-demo  start a starcluster cluster of three nodes on this machine; needs root
# make check         run lint, types, test and docs
# make lint          check style, spelling and imports, and build the docs with their checks
# make types         run mypy
# make docs          build docs/_build/html; check links, and page width on a phone (with chromium)
# make docs-outputs  run the commands that pages quote, and store their output (two minutes)
# make pictures      record the demo, and take the screenshots of reports (four minutes)
# make rooms         draw the folders of the packages and the imports between them
# make bench         time the trainer and the search overhead, and search two functions
# make bench-search  compare our choosers with Optuna, BoTorch and SMAC3 on all suites: a day, resumable
# Each target installs what it needs into .venv; a second run is quick.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# One more than there are cores: many tests wait for daemons.
WORKERS ?= $(shell expr 1 + $$(nproc))
# These wait longer: for hosts to boot, for a queue to poll.
HOST_WORKERS ?= $(shell expr 2 '*' $$(nproc))
PYTEST_FLAGS ?=
# Tests ignore the machine's other packages and its Python settings.
PYTEST := env -u PYTHONPATH -u PYTHONHOME -u PYTEST_ADDOPTS -u PYTEST_PLUGINS PYTHONNOUSERSITE=1 \
  PYTEST_DISABLE_PLUGIN_AUTOLOAD=1 $(BIN)/python -m pytest -p xdist.plugin -p pytest_timeout \
  -p _hypothesis_pytestplugin
HOSTS := root or sge or slurm or htcondor or celery or mount or debootstrap
# Each worker imports only these files, not all 500.
HOST_FILES ?= $(shell grep -rlE 'mark\.($(subst $() or ,|,$(HOSTS)))\b' tests --include='test_*.py')
PIP := $(BIN)/python -m pip install -qq --disable-pip-version-check
DEMO := examples/digits
PICTURES := /tmp/starmint

.PHONY: demo test test-hosts cell cluster-demo check lint types docs docs-outputs rooms pictures bench bench-search proto clean

demo: $(VENV)/demo.stamp
	$(BIN)/spearmint --max-concurrent=2 --max-finished-jobs=40 $(DEMO)/config.pb
	$(BIN)/python $(DEMO)/final.py
	$(BIN)/spearmint report $(DEMO)

test: $(VENV)/dev.stamp
	$(PYTEST) -n $(WORKERS) --dist worksteal -m "not ($(HOSTS))" $(PYTEST_FLAGS)

test-hosts: $(VENV)/dev.stamp
	$(PYTEST) -n $(HOST_WORKERS) --dist loadfile --no-loadscope-reorder -m "$(HOSTS)" $(PYTEST_FLAGS) \
	  $(HOST_FILES)

cell: $(VENV)/dev.stamp
	@$(BIN)/python -m tests.testbed.cell

cluster-demo: $(VENV)/dev.stamp
	@$(BIN)/python -m tests.testbed.cluster_demo

check: lint types test docs

lint: $(VENV)/dev.stamp docs
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/codespell
	$(BIN)/python docs/_tools/check_style.py
	$(BIN)/lint-imports

types: $(VENV)/dev.stamp
	$(BIN)/mypy

docs: $(VENV)/dev.stamp
	@rm -rf docs/_build/html  # pages that are no longer in the sources would be checked, too
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
	$(BIN)/python docs/_tools/report_pictures.py --demo $(PICTURES)/examples/digits

bench: $(VENV)/dev.stamp
	$(BIN)/python benchmarks/trainer_numpy.py
	$(BIN)/python benchmarks/search_overhead.py
	$(BIN)/python benchmarks/search.py --results build/search_benchmark \
	  --methods GPEIOptChooser SequentialChooser TPESampler random --problems branin hartmann6

bench-search: $(VENV)/bench.stamp
	$(BIN)/python benchmarks/search.py --results build/search_benchmark
	$(BIN)/python benchmarks/search.py --results build/search_tasks --suite tasks
	$(BIN)/python benchmarks/search.py --results build/search_more_tasks --suite more-tasks
	$(BIN)/python benchmarks/search.py --results build/search_bbob --suite bbob
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

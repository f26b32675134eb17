# make demo   set up and see what Leadline does
# make test   set up and run every check: ruff, mypy, import rules, tests
# make test-long   tests at full size that make test runs in part: whole trainings, more models
# make lint   the checks without the tests
# make fuzz   attacks on everything that reads, parses or estimates, for MINUTES minutes (10) from SEED (0); findings are files
#             in fuzz-results, and TARGETS=csv,where limits it to some. docs/robustness.md says more
# make gallery   runs the scripts of docs/gallery, writes their pages, and draws the pictures of docs/how/methods.md
# make docs   build the site strictly into site/: a broken link or a missing reference fails
# make release-check   build, check, install in empty environments and use what would be released; needs a registry
# make bench-speed   speed side by side with plain PyTorch, and starts of processes; writes benchmarks/results/speed.json
#                    and startup.json
# make bench-growth  seconds and memory of every method against rows, classes and groups, beside the machine's limits;
#                    hours, or with QUICK=1 a quarter of one, into bench-growth/; NANNYML and QUAPY name interpreters that
#                    have them, FILES=100000000 adds a log of so many rows
# make bench-alarms  false alarms and delays of the monitor, simulated and real; writes benchmarks/results/alarms.json
# make bench-monitor what the monitor costs; writes benchmarks/results/monitor.json
# make bench-footprint   installed size and import time beside NannyML and Evidently; writes docs/footprint.md
# make bench-measure   every suite at hand, from data to results/measured.json, tables and figures of the pages; hours
#                      at first, and continues where it was interrupted. DATA and OUT name the folders of data and of work

PYTHON ?= python3
BIN := .venv/bin

MINUTES ?= 10
SEED ?= 0
DATA ?= ../shared/data
OUT ?= results
# Suites of the benchmark whose data is at hand, the cheapest first; those of the experiments; the paper's experiments.
SUITES := logits-citation-domains logits-mnist logits-amazon-blitzer logits-banking77 logits-tabular-time \
  logits-cifar10c mnist-raw citation-graphs amazon-reviews-time amazon-reviews-domains cifar10-resnets
SWEPT := logits-citation-domains logits-cifar10c mnist-raw citation-graphs amazon-reviews-domains
EXPERIMENTS := ablation init alpha anchors rectify ablation-paper init-paper alpha-paper anchors-paper

.PHONY: demo test test-long lint fuzz bench-speed bench-growth bench-alarms bench-monitor bench-measure gallery docs release-check bench-footprint clean

demo: .venv/core
	$(BIN)/leadline demo --force

# One thread of linear algebra for each of the two processes: four of them wait for each other on two cores.
test test-long: export OPENBLAS_NUM_THREADS := 1
test test-long: export MKL_NUM_THREADS := 1

test: lint
	sh tests/install_programs.sh
	$(BIN)/python -m pytest -n 2 --dist loadfile

test-long: .venv/dev
	$(BIN)/python -m pytest -n 2 --dist worksteal -m long

lint: .venv/dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

fuzz: .venv/fuzz
	$(BIN)/python -m fuzz --minutes $(MINUTES) --seed $(SEED) $(if $(TARGETS),--targets $(TARGETS))

gallery: .venv/core
	$(BIN)/python docs/gallery/build.py
	$(BIN)/python docs/how/methods_figures.py

# The theme's note on its successor is for those who choose tools, not for every build.
docs: export NO_MKDOCS_2_WARNING := 1
docs: .venv/dev
	$(BIN)/python docs/reference/generate.py
	$(BIN)/mkdocs build --strict --quiet

release-check: .venv/dev
	$(BIN)/python -u benchmarks/release_check.py

bench-speed: .venv/dev
	$(BIN)/python benchmarks/speed.py
	$(BIN)/python benchmarks/startup.py

bench-growth: .venv/dev
	$(BIN)/python benchmarks/growth.py $(if $(QUICK),--quick --out bench-growth) $(if $(FILES),--files $(FILES)) \
	  $(if $(NANNYML),--nannyml $(NANNYML)) $(if $(QUAPY),--quapy $(QUAPY))

bench-alarms: .venv/dev
	LEADLINE_DATA=$(DATA) $(BIN)/python benchmarks/alarms.py

bench-monitor: .venv/dev
	$(BIN)/python benchmarks/monitor.py --out benchmarks/results/monitor.json

bench-footprint: .venv/dev
	nice -n 10 $(BIN)/python benchmarks/footprint.py

bench-measure: .venv/dev
	set -e; for suite in $(SUITES); do \
	  $(BIN)/leadline bench reproduce $$suite --data $(DATA) --out $(OUT) --format csv > /dev/null; done
	set -e; for suite in $(SWEPT); do for experiment in $(EXPERIMENTS); do \
	  $(BIN)/leadline bench run $$suite --experiment $$experiment --data $(DATA) --out $(OUT) --format csv > /dev/null; \
	  done; done
	$(BIN)/leadline bench run citation-graphs --experiment gnn-evaluator --seeds 0 --data $(DATA) --out $(OUT)
	test $(OUT) -ef results || cp $(OUT)/measured.json results/measured.json
	$(BIN)/python benchmarks/pages.py
	$(BIN)/leadline bench figures --out $(OUT) --kind png
	set -e; for figure in docs/images/bench-*.png; do cp $(OUT)/figures/$${figure#docs/images/bench-} $$figure; done

.venv/core: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[demo,report]'
	touch $@

# The 21,000 files that come with it are compiled on all cores, as pip does not do.
.venv/dev: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile --editable '.[dev]'
	$(BIN)/python -W ignore -m compileall -qq -j 0 .venv/lib || true  # some hold files for other versions of Python
	touch $@

.venv/fuzz: .venv/dev
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[fuzz]'
	touch $@

clean:
	rm -rf .venv build dist fuzz-results bench-growth leadline-demo leadline-monitor-demo .mypy_cache .ruff_cache .pytest_cache site

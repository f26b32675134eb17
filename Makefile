# make demo   set up and see what Leadline does
# make test   set up and run every check: ruff, mypy, import rules, tests
# make lint   the checks without the tests
# make bench-speed   speed side by side with plain PyTorch; writes benchmarks/results/speed.json

PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test lint bench-speed clean

demo: .venv/core
	$(BIN)/leadline demo --force

test: lint
	sh tests/install_chromium.sh
	$(BIN)/python -m pytest -n 2 --dist loadfile

lint: .venv/dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench-speed: .venv/dev
	$(BIN)/python benchmarks/speed.py

.venv/core: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[demo,report]'
	touch $@

.venv/dev: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	touch $@

clean:
	rm -rf .venv build dist leadline-demo .mypy_cache .ruff_cache .pytest_cache

# The two commands are `make run` and `make test`; the rest are parts of them.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PORT   ?= 8377
READY  := $(VENV)/.ready-to-run
STAMP  := $(VENV)/.ready
CLIENTS := tests/node/node_modules/.ready
export HF_HUB_OFFLINE := 1

TESTED := $(subst $() ,:,$(strip $(shell find tests -name node_modules -prune -o -type d ! -name __pycache__ ! -name kit -print)))

QUICK := tests/text tests/index tests/search tests/tools tests/profiles tests/library tests/kinds/memories tests/test_house.py

.PHONY: run test quick check lint fix docs pictures browser-all unit node packages release release-check bench eval models clean

run: $(READY)  ## set up, serve a sample from a home of its own (.sample-home) on 127.0.0.1:$(PORT)
	@sh tools/run.sh $(BIN) $(PORT)

test: $(STAMP)  ## set up everything and pass the tests
	@$(MAKE) --no-print-directory -j4 --output-sync=target check models node packages
	@$(MAKE) --no-print-directory unit

$(READY): pyproject.toml tools/setup.sh
	@PYTHON=$(PYTHON) sh tools/setup.sh $(VENV) .
	@touch $(READY)

$(STAMP): pyproject.toml tools/setup.sh
	@PYTHON=$(PYTHON) sh tools/setup.sh $(VENV) '.[dev]'
	@touch $(STAMP) $(READY)

models: $(STAMP)  ## pull the default model once, into the user's cache
	@$(BIN)/commonplace models pull || echo "WARNING: the default model could not be pulled; the built-in static model is used."

check: $(STAMP)  ## look: format, lint, types, imports
	$(BIN)/ruff format --check src tests bench tools
	$(BIN)/ruff check src tests bench tools
	$(BIN)/mypy
	@MYPYPATH=$(TESTED) $(BIN)/mypy --config-file tests/mypy.ini $(shell find tests -name node_modules -prune -o -name '*.py' ! -name conftest.py -print)
	$(BIN)/lint-imports

lint: check

fix: $(STAMP)  ## repair what can be repaired
	$(BIN)/ruff format src tests bench tools
	$(BIN)/ruff check --fix src tests bench tools

docs: $(STAMP)  ## rewrite the generated parts of the docs
	$(BIN)/python tools/write_docs.py

node: $(CLIENTS)  ## the clients other people wrote, that the tests speak to the server with

$(CLIENTS): tests/node/package.json tests/node/package-lock.json tools/node.sh
	@sh tools/node.sh

packages:  ## what the tests borrow from Debian
	@sh tools/packages.sh

unit: $(STAMP) models node packages
	@$(BIN)/commonplace models pull use-multilingual-v3 || echo "WARNING: the multilingual model could not be pulled; its tests are skipped."
	$(BIN)/pytest -n 3 --dist loadfile --no-loadscope-reorder -rfEs

browser-all: $(STAMP) node packages  ## every screen of the page: light and dark, narrow and wide, with script and without
	BROWSER_ALL=1 $(BIN)/pytest tests/web/test_browser.py

pictures: $(STAMP)  ## draw what a search prints, for docs/pictures
	@sh tools/pictures.sh $(BIN)

quick: $(STAMP)  ## a minute and a half: rooms on SQLite with the local index, nothing slow; the slowest five are named
	@$(BIN)/pytest -n 2 --dist worksteal -m "not slow and not model" -k "not postgres and not turbopuffer" --durations=5 $(QUICK)

release: $(STAMP)  ## build and check what a release publishes; a tag publishes it
	@sh tools/release.sh $(BIN)

release-check: $(STAMP)  ## install the wheel by pip, uv, uvx and pipx in empty homes, and ask each something
	$(BIN)/python tools/check_install.py

bench: $(STAMP)
	$(BIN)/python bench/engine.py --sizes 10000,100000
	$(BIN)/python bench/vectors.py
	$(BIN)/python bench/files.py

eval: $(STAMP) models  ## make eval DATA=folder-of-judged-collections
	$(BIN)/commonplace eval $(DATA)

clean:
	rm -rf $(VENV) .sample-home .mypy_cache .pytest_cache .ruff_cache .import_linter_cache

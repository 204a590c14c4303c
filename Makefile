# `make test` and `make train` need only Python 3.11+ and pip; they make .venv themselves.
# All paths are relative, so the checkout may lie in a folder with spaces in its name.

PYTHON ?= python3
GPUS := $(shell nvidia-smi -L 2>/dev/null | grep -c '^GPU')
EXTRA ?= $(if $(filter-out 0,$(GPUS)),cuda,cpu)
# Two cards are used as two; without one, two CPU devices stand for them.
DEVICES ?= $(if $(filter 0,$(GPUS)),--emulate 2,$(if $(filter 1,$(GPUS)),,--data-gpu 0 --model-gpu 1))
BIN := .venv/bin
INSTALLED := .venv/installed

.PHONY: train test check format bench kills campaigns install clean

# Your own clips: make train DATA=/path/to/LJSpeech-1.1
DATA ?= demo/train
train: install
	test "$(DATA)" != demo/train || test -d demo || $(BIN)/myxtts demo-corpus --out demo
	$(BIN)/myxtts train $(DEVICES) --config configs/demo.yaml --train-data "$(DATA)" --resume auto

test: check
	$(BIN)/python -m pytest -m "not campaign"

check: install
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: install
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: install
	$(BIN)/python benchmarks/overlap.py

# Random deaths: 200 of producer, consumer and user's patience, 400 of saves, 30 of whole trainings.
kills: install
	$(BIN)/python -m pytest tests/test_kills.py tests/test_checkpoint_kills.py tests/test_train_kills.py

# Every test that takes longer than `make test` has time for.
campaigns: install
	$(BIN)/python -m pytest -m campaign

install: $(INSTALLED)

# Debian without python3-venv has no ensurepip: the outer pip then installs into the new .venv.
$(INSTALLED): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "MyXTTS needs Python 3.11 or later: make PYTHON=python3.11 $(MAKECMDGOALS)"; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv \
		|| { rm -rf .venv && $(PYTHON) -m venv --without-pip .venv; }
	PIP_CONSTRAINT=constraints.txt $(PYTHON) -m pip --python $(BIN)/python \
		install --quiet --disable-pip-version-check --editable ".[$(EXTRA),demo,dev]"
	@touch $@

clean:
	rm -rf .venv .mypy_cache .ruff_cache .hypothesis

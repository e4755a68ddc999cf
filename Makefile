# Every target sets up what it needs: an environment in .venv, the compiled core, the packages of its extra.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Folders of the package, too: an editable installation knows the modules it was made with.
SOURCES := pyproject.toml CMakeLists.txt $(wildcard core/*/*) $(shell find src -type d -not -name __pycache__)
# Build tools are installed into the environment, so that a changed core compiles incrementally.
INSTALL = $(BIN)/pip install --quiet --disable-pip-version-check
# The last two are for libsvm-official, which `make bench` compiles from its sources.
BUILD_TOOLS := "scikit-build-core>=0.11" "nanobind>=2.4" ninja setuptools wheel

.PHONY: demo papers test test-all test-torch test-aarch64 fuzz mutants lint bench embedded docs sanitize sanitize-threads wheel test-wheel clean

demo: $(VENV)/.ready-demo
	$(BIN)/python examples/demo.py $(ARGS)

# Tables and figures of the five papers, measured again: make papers ARGS="--all --quick"
papers: $(VENV)/.ready-papers
	$(BIN)/python -m papers $(ARGS)

test: $(VENV)/.ready-test
	$(BIN)/python -m pytest -n 2 $(ARGS)

# Rows on a device, with torch on the CPU too: a download of gigabytes that nothing else needs.
test-torch: $(VENV)/.ready-test
	$(INSTALL) torch
	$(BIN)/python -m pytest -n 2 tests/test_device.py tests/test_docs.py -k "device or gpu" $(ARGS)

# The large grids in full, which `make test` samples.
test-all: $(VENV)/.ready-test
	$(BIN)/python -m pytest -n 2 --all $(ARGS)

# The tests of the core that need no Python, compiled for 64-bit ARM and run by an emulator.
AARCH64 ?= aarch64-linux-gnu-g++
QEMU ?= qemu-aarch64
test-aarch64:
	@command -v cmake > /dev/null && command -v $(AARCH64) > /dev/null && command -v $(QEMU) > /dev/null || \
	  { echo "This needs cmake, $(AARCH64) and $(QEMU): on Debian, apt install cmake g++-aarch64-linux-gnu qemu-user"; exit 1; }
	cmake -S . -B build/aarch64 -DSLIMSVM_CORE_TESTS=ON -DSLIMSVM_WERROR=ON -DCMAKE_BUILD_TYPE=Release \
	  -DCMAKE_SYSTEM_NAME=Linux -DCMAKE_SYSTEM_PROCESSOR=aarch64 -DCMAKE_CXX_COMPILER=$(AARCH64) -DCMAKE_EXE_LINKER_FLAGS=-static
	cmake --build build/aarch64
	$(QEMU) build/aarch64/core_tests

# Random and hostile problems, judged in long double: make fuzz ARGS="--problems 2000 --seed 1"
fuzz: $(VENV)/.ready-test
	PYTHONPATH=tests OPENBLAS_NUM_THREADS=1 $(BIN)/python -m fuzz $(ARGS)

# Small errors put into the core modules: which of them do the tests miss? make mutants ARGS="--modules training/path.py --each 0"
mutants: $(VENV)/.ready-mutants
	$(BIN)/python tools/mutants.py $(ARGS)

lint: $(VENV)/.ready-lint
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: $(VENV)/.ready-bench
	$(BIN)/python -m benchmarks $(ARGS)

# Models in C on emulated processors: make embedded ARGS=--write puts the tables into benchmarks/EMBEDDED.md
embedded: $(VENV)/.ready-embedded
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m benchmarks.embedded $(ARGS)

# The site, in build/docs; examples run again only when they have changed. Nothing dead, nothing from the network.
docs: $(VENV)/.ready-docs
	$(BIN)/sphinx-build -W --keep-going -d build/doctrees -b html docs build/docs $(ARGS)
	$(BIN)/python tools/check_site.py build/docs

# The tests again, with the core compiled under the address and undefined-behaviour sanitizers.
sanitize: $(VENV)-sanitize/.ready
	ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=print_stacktrace=1 \
	LD_PRELOAD="$$($(CXX) -print-file-name=libasan.so) $$($(CXX) -print-file-name=libubsan.so)" \
	$(VENV)-sanitize/bin/python -m pytest -n 2 -p no:cacheprovider $(ARGS)

# The tests of the core that need no Python, under the thread sanitizer.
sanitize-threads:
	@command -v cmake > /dev/null || { echo "This needs cmake"; exit 1; }
	cmake -S . -B build/sanitize-threads -DSLIMSVM_CORE_TESTS=ON -DSLIMSVM_SANITIZE=thread -DCMAKE_BUILD_TYPE=Release
	cmake --build build/sanitize-threads
	TSAN_OPTIONS=halt_on_error=1 build/sanitize-threads/core_tests

# dist/: the sources, and a wheel for this Python and any Linux whose C library is not older than this one's.
# Wheels of a release are built on an older system: docs/releasing.md.
wheel: $(VENV)/.ready-build
	rm -rf dist build/wheel
	$(BIN)/python -m build --outdir build/wheel .
	mkdir -p dist && cp build/wheel/*.tar.gz dist
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/auditwheel repair --wheel-dir dist build/wheel/*.whl
	$(BIN)/twine check --strict dist/*

# That wheel in an environment without a compiler and without the sources: make test-wheel ARGS="--all -- -n 2"
test-wheel:
	test -e dist/*.whl || $(MAKE) wheel
	$(PYTHON) tools/test_wheel.py $(ARGS)

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)
	$(INSTALL) --upgrade pip

$(VENV)/.ready-core: $(SOURCES) | $(BIN)/python
	$(INSTALL) $(BUILD_TOOLS)
	$(INSTALL) --no-build-isolation --editable .
	touch $@

$(VENV)/.ready-%: $(VENV)/.ready-core
	$(INSTALL) --no-build-isolation --editable ".[$*]"
	touch $@

$(VENV)-sanitize/.ready: $(SOURCES)
	$(PYTHON) -m venv $(VENV)-sanitize
	$(VENV)-sanitize/bin/pip install --quiet --upgrade pip
	$(VENV)-sanitize/bin/pip install --quiet $(BUILD_TOOLS)
	$(VENV)-sanitize/bin/pip install --quiet --no-build-isolation --editable ".[test]" \
	  -Cbuild-dir=build/sanitize -Ccmake.define.SLIMSVM_SANITIZE=ON
	touch $@

clean:
	rm -rf build dist docs/api docs/auto_examples $(VENV) $(VENV)-sanitize

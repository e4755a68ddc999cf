"""The Arduino sketch: its header is what its script makes, and it compiles and answers."""

from __future__ import annotations

import re
import runpy
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import make_moons

from slimsvm import SlimSVC
from slimsvm.export import quantize

ROOT = Path(__file__).parent.parent
SKETCH = ROOT / "examples" / "arduino" / "slimsvm_moons"
MAIN = """#include <Arduino.h>
#include "slimsvm_moons.ino"
int main() { setup(); while (Serial.available()) loop(); }
"""
STUB = Path(__file__).parent / "arduino"


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    path = tmp_path_factory.mktemp("header") / "model.h"
    runpy.run_path(str(SKETCH.parent / "make_header.py"))["main"](path)
    return path.read_text()


def parts(header):
    """Words of the header, and the numbers of its tables: other processors may round the last digits otherwise."""
    tables = re.findall(r"= \{\n(.*?)\};", header, flags=re.DOTALL)
    numbers = [np.array([float(v) for v in re.findall(r"-?\d+", table)]) for table in tables]
    words = re.sub(r"= \{\n.*?\};", "", header, flags=re.DOTALL)
    return re.sub(r"Made by slimsvm \S+|-?\d+(\.\d+)?(e-?\d+)?f\b", "", words), numbers


def test_the_header_is_what_the_script_makes(made):
    words, tables = parts(made)
    kept_words, kept = parts((SKETCH / "model.h").read_text())
    assert words == kept_words, "run examples/arduino/make_header.py"
    assert [len(table) for table in tables] == [len(table) for table in kept]
    for table, before in zip(tables, kept, strict=True):
        assert np.abs(table - before).max() <= max(1, 0.02 * np.abs(before).max())


def test_the_sketch_answers_as_python_does(made, tmp_path):
    """Two numbers in, label and probability out, as over the serial line."""
    if shutil.which("g++") is None:
        pytest.skip("g++ is not installed")
    (tmp_path / "model.h").write_text(made)
    shutil.copy(SKETCH / "slimsvm_moons.ino", tmp_path)
    (tmp_path / "main.cpp").write_text(MAIN)
    command = ["g++", "-Wall", "-Wextra", "-Werror", "-I", str(STUB), "main.cpp", "-o", "sketch"]
    subprocess.run(command, cwd=tmp_path, check=True, timeout=120)
    X, y = make_moons(1000, noise=0.2, random_state=0)
    small = quantize(SlimSVC(n_vectors=8, probability=True, random_state=0).fit(X, y), probabilities=True)
    rows = X[:200].astype(np.float32)
    typed = "".join(f"{a:.9g} {b:.9g}\n" for a, b in rows)
    said = subprocess.run(["./sketch"], cwd=tmp_path, input=typed, capture_output=True, text=True, timeout=60).stdout
    found = np.array([line.split() for line in said.splitlines()], dtype=float)
    assert (found[:, 0] == small.predict(rows)).all()
    assert np.abs(found[:, 1] - small.probabilities(rows).max(axis=1)).max() <= 0.5e-4 + 1e-9


@pytest.mark.parametrize("from_pins", ["0", "1"])
def test_the_sketch_compiles_for_the_uno(tmp_path, from_pins):
    if shutil.which("avr-g++") is None:
        pytest.skip("avr-g++ is not installed (Debian: gcc-avr avr-libc)")
    text = (SKETCH / "slimsvm_moons.ino").read_text().replace("#define FROM_PINS 0", f"#define FROM_PINS {from_pins}")
    (tmp_path / "sketch.cpp").write_text(f"#include <Arduino.h>\n{text}")
    flags = ["-mmcu=atmega328p", "-std=gnu++11", "-Os", "-Wall", "-Wextra", "-Werror"]
    command = ["avr-g++", *flags, "-I", str(STUB), "-I", str(SKETCH), "-c", "sketch.cpp", "-o", "sketch.o"]
    subprocess.run(command, cwd=tmp_path, check=True, timeout=120)
    sizes = subprocess.run(["avr-size", "sketch.o"], cwd=tmp_path, check=True, capture_output=True, text=True).stdout
    _, data, bss, *_ = map(int, sizes.splitlines()[1].split()[:3])
    assert data + bss == 0  # tables are in flash alone

"""The core without Python: tests/core, by each compiler there is, on every instruction set of this machine."""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from slimsvm import _core

ROOT = Path(__file__).parent.parent
SETS = ("baseline", "avx2", "avx512")
X86 = platform.machine() in ("x86_64", "AMD64")
# What each copy is compiled with (core/cpu/simd.hpp), in the words of /proc/cpuinfo.
AVX2 = {"avx2", "fma", "bmi1", "bmi2", "f16c", "abm", "movbe"}
AVX512 = AVX2 | {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"}


@pytest.mark.skipif("LD_PRELOAD" in os.environ, reason="a sanitizer is loaded into every process")
@pytest.mark.parametrize("compiler", ["g++", "clang++"])
def test_the_core_by_itself_on_every_instruction_set(compiler, tmp_path):
    """Without optimisation, where vectors would go astray between functions compiled for different sets."""
    program = build(compiler, tmp_path)
    best = SETS.index(run(program, "--set"))
    for wish in SETS:
        lines = run(program, SLIMSVM_ISA=wish).splitlines()
        assert lines[-1] == f"{SETS[min(best, SETS.index(wish))]}: passed"
    if X86:
        check_registers(program)


def build(compiler, folder):
    """The program; warnings are errors, as an attribute that a compiler ignores is only warned of."""
    sources = sorted((ROOT / "tests" / "core").glob("*.cpp"))
    sources += sorted(path for path in (ROOT / "core").rglob("*.cpp") if path.parent.name != "bindings")
    if shutil.which(compiler) is None or not sources or not (ROOT / "core").exists():
        pytest.skip(f"{compiler} or the sources are not here")
    program = folder / "core_tests"
    flags = ["-std=c++17", "-O0", "-Wall", "-Wextra", "-Wno-psabi", "-Werror", "-pthread", f"-I{ROOT / 'core'}"]
    made = subprocess.run([compiler, *flags, *sources, "-o", program], capture_output=True, text=True)
    assert made.returncode == 0, made.stderr
    return program


def run(program, *arguments, **environment):
    done = subprocess.run([program, *arguments], capture_output=True, text=True, env=os.environ | environment)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.strip()


def check_registers(program):
    """Each copy of the dense tile works in the registers of its set."""
    listing = disassembled(program)
    for copy, own, wider in (
        ("run_avx512", "%zmm", None),
        ("run_avx2", "%ymm", "%zmm"),
        ("run_baseline", "%xmm", "%ymm"),
    ):
        bodies = re.findall(
            rf"^\w+ <[^>\n]*{copy}[^>\n]*DenseTile[^\n]*>:\n(.*?)\n\n", listing, re.MULTILINE | re.DOTALL
        )
        assert len(bodies) >= 10  # five kernels, float and double
        assert all(own in body for body in bodies)
        assert wider is None or not any(wider in body for body in bodies)


def disassembled(path):
    if shutil.which("objdump") is None:
        pytest.skip("objdump is not installed")
    return subprocess.run(["objdump", "-d", path], capture_output=True, text=True, check=True).stdout


@pytest.mark.skipif("LD_PRELOAD" in os.environ, reason="a core with sanitizers is compiled for other registers")
@pytest.mark.skipif(not X86 or not str(_core.__file__).endswith(".so"), reason="needs an ELF or Mach-O file for x86-64")
def test_the_core_in_use_multiplies_in_the_widest_registers():
    listing = disassembled(_core.__file__)
    for register in ("%zmm", "%ymm"):
        assert len(re.findall(rf"vfmadd\w+ .*{register}", listing)) > 100


@pytest.mark.skipif(not Path("/proc/cpuinfo").exists() or not X86, reason="needs Linux on x86-64")
@pytest.mark.skipif("SLIMSVM_ISA" in os.environ, reason="the instruction set was chosen")
def test_a_set_is_used_where_all_of_its_features_are_there():
    flags = set(re.search(r"^flags\s*:(.*)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)[1].split())
    expected = "avx512" if flags >= AVX512 else "avx2" if flags >= AVX2 else "baseline"
    assert _core.instruction_set == expected


def test_more_than_the_core_can_count_is_refused_in_words():
    nothing = np.zeros(0)
    with pytest.raises(ValueError, match=r"2147483647 columns: at most 2147483646 can be used; leave out or hash"):
        _core.sparse_rows(nothing, np.zeros(0, np.int64), np.zeros(1, np.int64), 2**31 - 1)
    with pytest.raises(ValueError, match="must not be negative"):
        _core.sparse_rows(nothing, np.zeros(0, np.int64), np.zeros(1, np.int64), -1)
    many = 2**20 + 1
    with pytest.raises(ValueError, match=r"1048577 classes: at most 1048576 can be used; merge classes"):
        _core.KernelMatrix.of_function(len, np.ones(many), [1] * many, 1 << 20)


def test_limits_of_steps_may_be_beyond_32_bits():
    rows = _core.dense_rows(np.random.default_rng(0).normal(size=(60, 2)))
    machine = _core.KernelMatrix.of_kernel(rows, np.arange(60), [60], _core.gaussian(1.0), 1 << 20)
    y = np.where(np.arange(60) % 2, 1.0, -1.0)
    bounds = np.minimum(y, 0), np.maximum(y, 0)
    assert machine.solve([0], y, *bounds, np.zeros(60), None, np.inf, 1e-3, max_steps=2**40)["converged"]

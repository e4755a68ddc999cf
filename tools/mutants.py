"""Mutation testing: are small errors in the core modules noticed by their tests? Run with ``make mutants``.

A mutant is a module with one operator, number, condition or loop changed (by the operators of cosmic-ray), in a copy of
the package. The tests of that module run on it until one fails. A mutant that passes them all *survives*: either the
tests miss a behaviour, or the change has no effect that matters, such as another limit of iterations. Survivors are to
be read one by one; the score alone says little.
"""

from __future__ import annotations

import argparse
import difflib
import os
import queue
import random
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from cosmic_ray import ast, mutating, plugins

ROOT = Path(__file__).parents[1]
PACKAGE = Path("src", "slimsvm")

# The modules, and the tests that are to notice an error in them: the quickest first.
TESTS = {
    "solvers/certificate.py": "test_certificate.py test_returned_model.py test_primal.py",
    "data/counts.py": "test_counts.py test_weights.py",
    "data/dataset.py": "test_slim_data.py test_weights.py test_folds.py",
    "solvers/dual/sklearn_svm.py": "test_family_duals.py test_family.py",
    "solvers/dual/interior.py": "test_norms_hostile.py test_extremes.py test_norms.py",
    "solvers/dual/least_squares.py": "test_least_squares.py",
    "solvers/dual/multiplier.py": "test_norms.py test_norms_hostile.py",
    "solvers/dual/rounding.py": "test_rounding.py",
    "solvers/dual/vertex.py": "test_vertex.py",
    "solvers/dual/zero.py": "test_zero.py",
    "quantization/grid.py": "test_bytes.py test_c.py",
    "quantization/rounding.py": "test_bytes.py",
    "frontiers/result.py": "test_frontier.py",
    "data/duplicates.py": "test_folds.py test_counts.py test_slim_data.py",
    "problem/losses.py": "test_targets.py test_primal.py",
    "problem/slacks.py": "test_slacks.py test_norms.py",
    "solvers/primal/interior.py": "test_primal.py",
    "solvers/primal/newton.py": "test_primal.py",
    "solvers/primal/probability.py": "test_probability.py",
    "rows/sums.py": "test_sums.py",
    "solvers/sparse/lp.py": "test_lp.py",
    "solvers/sparse/reweighting.py": "test_lp.py test_returned_model.py",
    "data/folds.py": "test_folds.py test_frontier.py",
    "basis/learning.py": "test_learning.py",
    "training/path.py": "test_frontier.py",
    "basis/reduced_set.py": "test_compression.py",
    "training/intervals.py": "test_slim_regressor.py",
    "basis/selection.py": "test_bases.py test_frontier.py",
    "training/sizes.py": "test_frontier.py",
    "model/voting.py": "test_multiclass.py test_to_sklearn.py test_device.py",
}

# Those of cosmic-ray that make errors which somebody might make.
OPERATORS = [
    "NumberReplacer",
    "AddNot",
    "ReplaceAndWithOr",
    "ReplaceOrWithAnd",
    "ReplaceTrueWithFalse",
    "ReplaceFalseWithTrue",
    "ReplaceBreakWithContinue",
    "ZeroIterationForLoop",
    "ReplaceUnaryOperator_Delete_USub",
    "ReplaceUnaryOperator_Delete_Not",
    *(f"ReplaceBinaryOperator_{a}_{b}" for a, b in [("Add", "Sub"), ("Sub", "Add"), ("Mul", "Div"), ("Div", "Mul")]),
    *(f"ReplaceComparisonOperator_{a}_{b}" for a, b in [("Lt", "LtE"), ("LtE", "Lt"), ("Gt", "GtE"), ("GtE", "Gt")]),
    *(f"ReplaceComparisonOperator_{a}_{b}" for a, b in [("Lt", "Gt"), ("Gt", "Lt"), ("Eq", "NotEq"), ("NotEq", "Eq")]),
]

# Tests of a copy: an editable installation would import the sources that it was made with.
RUN_TESTS = """
import sys
sys.meta_path = [finder for finder in sys.meta_path if "ScikitBuild" not in type(finder).__name__]
sys.path.insert(0, "src")
import pytest
sys.exit(pytest.main(["-q", "-x", "-p", "no:cacheprovider", "-p", "no:randomly", *sys.argv[1:]]))
"""
EXTRA_SECONDS, TIMES_LONGER = 20, 4  # how much longer than without a change tests may take before they count as failed


@dataclass(frozen=True)
class Mutant:
    """The module with one place changed: the operator's occurrence of this number."""

    module: str
    operator: str
    occurrence: int

    def source(self) -> str:
        return (ROOT / PACKAGE / self.module).read_text(encoding="utf-8")

    def code(self) -> str:
        return mutating.mutate_code(self.source(), plugins.get_operator(self.operator)(), self.occurrence)

    def change(self) -> str:
        """The lines that differ."""
        lines = difflib.unified_diff(self.source().splitlines(), self.code().splitlines(), lineterm="", n=0)
        return "\n".join(line for line in lines if not line.startswith(("---", "+++")))


def mutants_of(module: str) -> list[Mutant]:
    """Every mutant of a module."""
    nodes, found = list(ast.ast_nodes(ast.get_ast_from_path(ROOT / PACKAGE / module))), []
    for name in (f"core/{name}" for name in OPERATORS):
        operator = plugins.get_operator(name)()
        places = sum(len(list(operator.mutation_positions(node))) for node in nodes)
        found += [Mutant(module, name, k) for k in range(places)]
    return found


class Copy:
    """A copy of the package, its compiled core and the tests, in which one module at a time is changed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for name in ("src", "tests"):
            shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copy(ROOT / "pyproject.toml", folder)
        core = Path(sys.modules["slimsvm._core"].__file__)
        for built in (core, core.with_name("_build.py")):
            if not (folder / PACKAGE / built.name).exists():
                shutil.copy(built, folder / PACKAGE)

    def passes(self, module: str, code: str, seconds: float | None = None) -> bool:
        """Whether the tests of a module pass with this code in its place, in this time."""
        path = self.folder / PACKAGE / module
        before = path.read_text(encoding="utf-8")
        path.write_text(code, encoding="utf-8")
        tests = [f"tests/{name}" for name in TESTS[module].split()]
        try:
            done = subprocess.run(
                [sys.executable, "-B", "-c", RUN_TESTS, *tests],
                cwd=self.folder,
                env=os.environ | {"OPENBLAS_NUM_THREADS": "1"},
                timeout=seconds,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return False
        finally:
            path.write_text(before, encoding="utf-8")
        return done.returncode == 0


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser("make mutants", description=__doc__)
    parser.add_argument("--modules", nargs="*", default=list(TESTS), help="some of the modules, as vectors/path.py")
    parser.add_argument("--each", type=int, default=10, help="mutants of each module, drawn by the seed (0: all)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2, help="tests that run side by side")
    parser.add_argument("--minutes", type=float, help="start no further mutant after this time")
    given = parser.parse_args()
    if unknown := set(given.modules) - set(TESTS):
        parser.error(f"no tests are named for {', '.join(sorted(unknown))}; choose from {', '.join(TESTS)}")
    return given


def drawn(given: argparse.Namespace) -> list[Mutant]:
    """The mutants to try, those of all modules in turn."""
    chosen = []
    for module in given.modules:
        mutants = mutants_of(module)
        random.Random(f"{given.seed} {module}").shuffle(mutants)
        chosen.append(list(enumerate(mutants[: given.each or None])))
    return [mutant for _, mutant in sorted((pair for part in chosen for pair in part), key=lambda pair: pair[0])]


def main() -> int:
    import slimsvm._core  # noqa: F401  # where the compiled core is

    given = arguments()
    start = time.monotonic()
    with tempfile.TemporaryDirectory() as place, ThreadPoolExecutor(given.jobs) as pool:
        copies: queue.Queue[Copy] = queue.Queue()
        for k in range(given.jobs):
            copies.put(Copy(Path(place, str(k))))

        def passes(module: str, code: str, seconds: float | None = None) -> bool:
            copy = copies.get()
            try:
                return copy.passes(module, code, seconds)
            finally:
                copies.put(copy)

        def seconds_unchanged(module: str) -> float | None:
            begun = time.monotonic()
            if passes(module, (ROOT / PACKAGE / module).read_text(encoding="utf-8")):
                return time.monotonic() - begun
            print(f"left out: the tests of {module} fail without any change ({TESTS[module]})", flush=True)
            return None

        limits = dict(zip(given.modules, pool.map(seconds_unchanged, given.modules), strict=True))
        given.modules = [module for module in given.modules if limits[module] is not None]
        print(f"tests without a change: {time.monotonic() - start:.0f} s", flush=True)

        def survives(mutant: Mutant) -> bool | None:
            if given.minutes is not None and time.monotonic() - start > 60 * given.minutes:
                return None
            alive = passes(mutant.module, mutant.code(), EXTRA_SECONDS + TIMES_LONGER * limits[mutant.module])
            if alive:
                print(f"survives: {mutant.module}\n{mutant.change()}", flush=True)
            return alive

        mutants = drawn(given)
        outcomes = list(zip(mutants, pool.map(survives, mutants), strict=True))
    print(f"\n{'module':28} noticed of tried")
    for module in given.modules:
        tried = [alive for mutant, alive in outcomes if mutant.module == module and alive is not None]
        print(f"{module:28} {tried.count(False):4} of {len(tried)}")
    tried = [alive for _, alive in outcomes if alive is not None]
    print(f"{'all':28} {tried.count(False):4} of {len(tried)}, {time.monotonic() - start:.0f} s")
    return int(None in limits.values())


if __name__ == "__main__":
    sys.exit(main())

"""Install a wheel where there is no compiler, and test it there: python tools/test_wheel.py [dist/slimsvm-....whl]

A fresh environment in a temporary folder, a copy of the tests beside it, and no other programs: PATH leads to the
environment alone, so that nothing can be compiled, and no variable of the caller's gets through but those of pip.
The tests are those of [tool.cibuildwheel] in pyproject.toml.
"""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
COMPILERS = ("cc", "c++", "gcc", "g++", "clang", "clang++", "cl", "clang-cl", "cmake", "ninja", "make", "ld", "as")

FIT = """
import sys, shutil, slimsvm
from sklearn.datasets import make_moons
assert slimsvm.__file__.startswith(sys.prefix), slimsvm.__file__
found = [name for name in sys.argv[1:] if shutil.which(name)]
assert not found, f"not a bare environment: {found}"
X, y = make_moons(1000, noise=0.25, random_state=0)
model = slimsvm.SlimSVC(n_vectors=8, random_state=0).fit(X[:500], y[:500])
score = (model.predict(X[500:]) == y[500:]).mean()
assert score > 0.9, score
print(f"fit and predict: {score:.3f} of the labels from {model.n_vectors_} vectors")
slimsvm.show_versions()
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("wheel", nargs="?", type=Path, help="the one in dist/ for this Python, unless given")
    parser.add_argument("--extra", default="test", help="extra to install with it; empty for none but the tests' needs")
    parser.add_argument("--all", action="store_true", help="all tests, not only the quick ones")
    parser.add_argument("options", nargs="*", help="after --: options for pytest")
    arguments = parser.parse_args()
    wheel = (arguments.wheel or only_wheel()).resolve()
    with tempfile.TemporaryDirectory(prefix="slimsvm-wheel-") as folder:
        bare = Bare(Path(folder))
        bare.install(wheel, arguments.extra)
        bare.python("-I", "-c", FIT, *COMPILERS)
        bare.test(arguments.all, arguments.options)
    print(f"{wheel.name} installs and works without a compiler")


def only_wheel() -> Path:
    """That of this version of Python, or else the one that serves all later versions."""
    own = f"cp{sys.version_info.major}{sys.version_info.minor}-cp*"
    for tag in (own, "cp*-abi3-*"):
        wheels = sorted(ROOT.glob(f"dist/slimsvm-*-{tag}.whl"))
        if len(wheels) == 1:
            return wheels[0]
    sys.exit("no wheel for this Python in dist/, or several: make wheel, or name one")


class Bare:
    """An environment and a copy of the tests, away from the checkout."""

    def __init__(self, folder: Path):
        self.folder = folder
        subprocess.run([sys.executable, "-m", "venv", folder / "env"], check=True)
        programs = folder / "env" / ("Scripts" if os.name == "nt" else "bin")
        self.program = programs / ("python.exe" if os.name == "nt" else "python")
        # pip's settings say where packages come from; Windows needs to know where the system is.
        kept = {name: value for name, value in os.environ.items() if name.startswith(("PIP_", "SYSTEM", "SystemRoot"))}
        self.environment = {
            **kept,
            "PATH": str(programs),
            "HOME": str(folder),
            "TMPDIR": str(folder),
            "LANG": "C.UTF-8",
        }
        self.work = folder / "work"
        # Documentation and changelog are read by tests; the package itself is not copied.
        for name in ("tests", "docs", "examples"):
            shutil.copytree(ROOT / name, self.work / name, ignore=shutil.ignore_patterns("__pycache__"))
        for name in ("pyproject.toml", "README.md", "CHANGELOG.md", "CITATION.cff"):
            shutil.copy(ROOT / name, self.work)

    def python(self, *arguments: object) -> None:
        subprocess.run([self.program, *arguments], check=True, cwd=self.work, env=self.environment)

    def install(self, wheel: Path, extra: str) -> None:
        needs = [] if extra else configuration()["test-requires"]
        target = f"slimsvm[{extra}] @ {wheel.as_uri()}" if extra else str(wheel)
        self.python(
            "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--only-binary", ":all:", target, *needs
        )

    def test(self, everything: bool, options: list[str]) -> None:
        if everything:
            command = ["python", "-m", "pytest", "-p", "no:cacheprovider", "tests"]
        else:
            command = shlex.split(configuration()["test-command"].replace("{project}", "."))
        self.python(*command[1:], *options)


def configuration() -> dict:
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["cibuildwheel"]


if __name__ == "__main__":
    main()

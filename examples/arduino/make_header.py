"""Train a model of 8 vectors on two moons and write it as the header of the sketch beside this file.

python examples/arduino/make_header.py
"""

from __future__ import annotations

from pathlib import Path

from sklearn.datasets import make_moons

from slimsvm import SlimSVC, to_c

HEADER = Path(__file__).parent / "slimsvm_moons" / "model.h"


def main(path: Path = HEADER) -> None:
    X, y = make_moons(1000, noise=0.2, random_state=0)
    clf = SlimSVC(n_vectors=8, probability=True, random_state=0).fit(X, y)
    header = to_c(clf, dtype="int8", X=X)
    path.write_text(header, encoding="utf-8")
    print(f"{path.name}: {100 * clf.score(X, y):.1f} % of {len(X)} rows right in Python\n{header.report}")


if __name__ == "__main__":
    main()

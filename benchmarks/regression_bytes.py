"""R^2 at equal bytes: `SlimSVR(max_bytes=...)` beside trees, forests, boosted trees and networks, all quantised.

As `equal_bytes` does for two classes, with the sets of `targets`: half of the rows are for training, inputs and target
standardised on that half.
"""

from __future__ import annotations

import numpy as np
from sklearn.metrics import r2_score

from . import equal_bytes, targets
from .equal_bytes import Contest
from .rivals import VALUE_RIVALS

VALUES = Contest(
    title="Regression at equal bytes",
    rivals=VALUE_RIVALS,
    problems=targets.problems,
    rows_of=targets.rows_of,
    halves=targets.halves,
    error=lambda part, model: 1 - float(r2_score(part.y_test, model.predict(part.X_test))),
    shown=lambda error: f"{1 - error:.3f}",
    near=0.01,
    measured="R²",
    budgets=[512, 2048],
    most_rows=targets.MOST_ROWS,
    quick=["auto", "sinc"],
    dtype=np.float64,
)


def main(argv: list[str] | None = None) -> None:
    equal_bytes.main(argv, VALUES, "benchmarks regression-bytes")


if __name__ == "__main__":
    main()

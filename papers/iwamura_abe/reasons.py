"""Why numbers of ours differ from the paper's, by table, set and column.

Most are numbers of support vectors of the machine over all rows. Ours are those of the optimum. Where C is large or
slacks are squared, the paper's are met by a solver that stops far from it: LIBSVM was run to several tolerances on the
first splits (three of image and splice, ten with the sum of slacks, five otherwise); its own is 0.001.
"""

from __future__ import annotations

from ..recipe import Cell
from .machines import OSV, SPARSE, SVM


def _early(stopped: str, exact: str = "") -> str:
    at_end = f", and {exact} at its own 0.001" if exact else ""
    return f"a solver that stops early: on the first splits LIBSVM has {stopped}{at_end}"


EQUAL = (
    "not determined: equal rows on the margin share a multiplier in any way, so that every number from that of the "
    "distinct ones to ours is right, and the paper's is between them"
)
SWAPPED = (
    "the two columns of this row look swapped in the paper: exchanged, rates and deviations are those measured here"
)
FLAT = (
    "w is nearly 0, so that whole classes are near the margin: 393 rows are within 0.1 of it, and where a solver stops "
    "decides which of them count"
)
BIAS = (
    "kernel and C are right, as the number of support vectors is the same; a bias higher by 0.1 gives 97.8 here, "
    "so theirs was probably not that of the optimum. Other C and γ of the grid, inputs cut at 0 and 1, and LIBSVM "
    "stopped early were tried: none gives 97.8"
)
THYROID = (
    "other splits: one of the paper's hundred is here. 300 random ones give 89.3 and 85.4, with standard errors of 0.2 "
    "and 0.3; splits with equal shares of the classes were tried, and other C: 500 gives 90.6, but 37 support vectors"
)
FEW = "these few splits: at the paper's settings, in the last columns, the rate on them is as low"
REASONS: dict[int, dict[Cell, str]] = {
    2: {("flare-solar", "rate of *"): FEW},
    3: {
        ("banana", "rate of sparse"): FEW,
        ("flare-solar", "rate of *"): FEW,
        ("ringnorm", "rate of SVM"): BIAS,
        ("ringnorm", "rate of sparse"): "our folds choose C = 10; with the paper's C = 1 the same splits give 98.0",
    },
    4: {("thyroid", "*"): THYROID},
    5: {("ringnorm", SVM): BIAS},
    6: {
        ("banana", SVM): FLAT,
        ("diabetes", SVM): _early("263 at a tolerance of 1, 255 at 0.5", "247"),
        ("german", SVM): _early("462 at a tolerance of 1, 423 at 0.5"),
        ("image", SVM): _early("588 at a tolerance of 1, 578 at 0.5"),
        ("image", OSV): "the set has 18 inputs, as the paper's Table I says; 15 is their rank",
        ("ringnorm", SVM): _early("257 at a tolerance of 1, 229 at 0.1", "224"),
        ("flare-solar", SVM): EQUAL,
        ("titanic", SVM): EQUAL,
    },
    7: {
        ("breast-cancer", SVM): _early("121 at a tolerance of 0.5", "111"),
        ("diabetes", SVM): _early("256 at a tolerance of 0.5", "245"),
        ("german", SVM): "other splits: the first ten, which are the paper's own, give 398",
        ("flare-solar", SVM): EQUAL,
        ("splice", SVM): EQUAL,
        ("titanic", SVM): EQUAL,
    },
    10: {
        ("banana", "rate of *"): FEW,
        ("flare-solar", "rate of *"): FEW,
        ("image", "rate of sparse"): SWAPPED,
        ("ringnorm", "rate of SVM"): SWAPPED,
    },
    11: {("image", SPARSE): SWAPPED, ("ringnorm", SVM): SWAPPED},
    12: {
        ("banana", SVM): _early("160 at a tolerance of 1, 169 at 1.9", "147"),
        ("breast-cancer", SVM): _early("174 at a tolerance of 1", "182"),
        ("diabetes", SVM): _early("385 at a tolerance of 1", "391"),
        ("german", SVM): _early("572 at a tolerance of 0.5", "617"),
        ("image", SVM): _early("223 at a tolerance of 0.1, 232 at 0.5", "219"),
        ("flare-solar", SVM): _early("429 at a tolerance of 1.9, with a rate that is lower, as the paper's is", "640"),
        ("splice", SVM): _early("494 at a tolerance of 1, 284 at 1.9 with a rate lower by 2, as the paper's is", "758"),
        ("thyroid", SVM): _early("20 at a tolerance of 1, 17 at 1.9", "22"),
        ("twonorm", SVM): _early("210 at a tolerance of 1, 292 at 0.5", "369"),
    },
}

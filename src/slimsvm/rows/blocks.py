"""Rows read a block at a time in each pass, from files or from a function that returns a new iterator."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import numpy as np
import scipy.sparse as sp

from ..data.classes import class_sums
from ..data.counts import SUM_SCALE_BITS, exact_sums, leading_bits
from ..data.duplicates import row_keys, row_slices
from ..linalg.array_api import to_numpy
from ..linalg.arrays import Array
from ..utils.warnings import without_control_characters
from .remote import FeatureCache, RemoteRows, RowBlock
from .target_kinds import CLASSES, TargetKind, check_same_targets, one_column

Item = TypeVar("Item")
RawBlock = tuple[Any, Any, Any]  # rows, labels, and weights or None


class Blocks:
    """Labelled rows in blocks, which `SlimSVC.fit` takes in place of X and y.

    ``pieces`` returns a new iterator over blocks of rows, labels and weights (or None). ``names`` are the column names
    or None; with data frames they are known once the first block is read.
    """

    def __init__(self, pieces: Callable[[], Iterator[RawBlock]], names: list[str] | None = None, what: str = "blocks"):
        self.pieces, self.names, self.what = pieces, names, what

    def __repr__(self) -> str:
        return f"<slimsvm.rows: {self.what}>"

    def __iter__(self) -> Iterator[RawBlock]:
        """The nonempty blocks, checked: 2-D, finite floats, a label for each row."""
        columns: int | None = None
        for number, (X, y, weight) in enumerate(self.pieces()):
            X = _floats(self._in_order(X, number), number)
            if not X.shape[0]:
                continue
            if columns is not None and X.shape[1] != columns:
                raise ValueError(f"block {number} has {X.shape[1]} columns, those before it {columns}")
            columns = X.shape[1]
            _check_finite(X, number, self.names)
            yield X, y if y is None else _as_long(y, X, "y", number, columns=True), _weights(weight, X, number)

    def _in_order(self, X: Any, number: int) -> Any:
        """Columns of a data frame in the order of the first block's, by name."""
        mine = list(getattr(X, "columns", ()))
        if not mine or not all(isinstance(name, str) for name in mine):
            return X
        self.names = mine if self.names is None else self.names
        if mine == self.names:
            return X
        if sorted(mine) != sorted(self.names):
            raise ValueError(f"block {number} has the columns {mine}; those of the others are {self.names}")
        return X[self.names]

    def rows(self) -> Iterator[Any]:
        """The rows of each block, without labels."""
        return (X for X, _, _ in prefetched(iter(self)))


def is_block_source(X: Any) -> bool:
    """Whether X is a `Blocks`."""
    return isinstance(X, Blocks)


def _floats(X: Any, number: int) -> Any:
    if sp.issparse(X):
        X = X.tocsr()
    else:
        X = np.asarray(to_numpy(X))
        if X.ndim != 2:
            raise ValueError(f"block {number} has rows of shape {X.shape}; rows x columns are needed")
        if X.dtype.kind not in "fiub":
            raise ValueError(
                f"block {number} has values of type {X.dtype}, not numbers; encode categories first, for example with "
                "scikit-learn's OneHotEncoder or OrdinalEncoder"
            )
    X = X if X.dtype in (np.float32, np.float64) else X.astype(np.float64)
    return X if sp.issparse(X) else np.ascontiguousarray(X)


def _check_finite(X: Any, number: int, names: list[str] | None) -> None:
    values = X.data if sp.issparse(X) else X
    if np.isfinite(values).all():
        return
    bad = np.flatnonzero(~np.isfinite(X.toarray() if sp.issparse(X) else X).all(axis=0))
    shown = without_control_characters(", ".join(str(k if names is None else names[k]) for k in bad[:5].tolist()))
    raise ValueError(
        f"block {number} has missing or infinite values in columns {shown}{', ...' if len(bad) > 5 else ''}: fill them "
        "or leave these rows out before fitting"
    )


def _as_long(y: Any, X: Any, name: str, number: int, columns: bool = False) -> Array:
    """A value for each row (with ``columns`` one or several), checked for length."""
    y = np.asarray(to_numpy(y))
    y = y if columns else one_column(y)
    if y.ndim not in ((1, 2) if columns else (1,)) or len(y) != X.shape[0]:
        raise ValueError(f"block {number} has {X.shape[0]} rows, but {name} of shape {y.shape}")
    return y


def _weights(weight: Any, X: Any, number: int) -> Array | None:
    if weight is None:
        return None
    weight = _as_long(weight, X, "weights", number).astype(np.float64)
    if not (np.isfinite(weight).all() and (weight >= 0).all()):
        raise ValueError(f"block {number} has weights that are negative, infinite or missing; they must be 0 or more")
    return weight


def _common(types: set[Any]) -> Any:
    """A common dtype for labels of these dtypes."""
    if len({kind.kind for kind in types} & set("US")) and len({kind.kind for kind in types}) > 1:
        raise ValueError(f"labels are words in some blocks and numbers in others: {sorted(map(str, types))}")
    return np.result_type(*types)


def prefetched(items: Iterator[Item]) -> Iterator[Item]:
    """The same items; a thread computes the next item while the caller uses the current one."""
    done = object()
    with ThreadPoolExecutor(1) as pool:
        coming = pool.submit(next, items, done)
        while (item := coming.result()) is not done:
            coming = pool.submit(next, items, done)
            yield item  # type: ignore[misc]


class ArrayParts:
    """Concatenates arrays that arrive one by one, without holding all of them twice."""

    def __init__(self) -> None:
        self.parts: list[Array] = []

    def add(self, part: Array) -> None:
        self.parts.append(part)

    def concatenate(self) -> Array:
        """Return the concatenated array and release the parts."""
        shape = sum(map(len, self.parts)), *self.parts[0].shape[1:]
        whole = np.empty(shape, dtype=np.result_type(*{part.dtype for part in self.parts}))
        start = 0
        self.parts.reverse()
        while self.parts:
            part = self.parts.pop()
            whole[start : start + len(part)] = part
            start += len(part)
        return whole


class BlockRows(RemoteRows):
    """Rows and weights that are read anew in each pass; class numbers or targets of all rows are in memory."""

    def __init__(self, source: Blocks, threads: int = 1, target_kind: TargetKind = CLASSES):
        """Read all blocks once for classes, weights and row keys; rows of weight 0 are left out."""
        self.source, self.cache = source, FeatureCache()
        targets, counts = ArrayParts(), ArrayParts()
        found: dict[Any, int] = {}
        lengths: list[int] = []
        codes, keys, weights = ArrayParts(), ArrayParts(), ArrayParts()
        units: list[int] = []  # exact sums of the weights of each class
        kinds, types = set(), set()  # dtypes of rows, dtypes of labels
        weighted: set[bool] = set()
        width = 0
        for X, y, weight in prefetched(iter(source)):
            if y is None and target_kind.needed:
                raise ValueError("these blocks have no labels; name the column of the labels, or give (X, y) pairs")
            kept = None if weight is None or weight.all() else np.flatnonzero(weight)
            if kept is not None:
                X, y, weight = X[kept], None if y is None else y[kept], weight[kept]
            weighted.add(weight is not None)
            if not X.shape[0]:
                continue
            y, values = target_kind.read(y, X.shape[0], len(lengths))
            if values is not None:
                targets.add(values)
                check_same_targets(len(lengths), values.shape, targets.parts[0].shape)
            if values is not None and weight is not None:
                counts.add(weight)
            labels, numbers = np.unique(y, return_inverse=True)
            mine = np.array([found.setdefault(label, len(found)) for label in labels.tolist()], dtype=np.int64)
            own = mine[numbers].astype(np.min_scalar_type(-1 - len(found)))
            units += [0] * (len(found) - len(units))
            if weight is not None and len(weight):
                weights.add(leading_bits(weight))
                units = [a + b for a, b in zip(units, exact_sums(weight, own, len(found)), strict=True)]
            codes.add(own)
            keys.add(row_keys(X, threads))
            lengths.append(X.shape[0])
            kinds.add(X.dtype)
            types.add(y.dtype)
            width = X.shape[1]
        if not sum(lengths):
            raise ValueError(f"{source!r} has no rows" + (" of a weight above 0" if True in weighted else ""))
        if len(weighted) > 1:
            raise ValueError("some blocks have weights and others have none")
        self.lengths = np.array(lengths)
        self.shape = int(self.lengths.sum()), width
        self.dtype = np.dtype(np.float64 if np.dtype(np.float64) in kinds else np.float32)
        seen = np.array(list(found), dtype=_common(types))
        self.classes, place = np.unique(seen, return_inverse=True)
        self.codes, self.keys = codes.concatenate(), keys.concatenate()
        for rows in row_slices(len(self.codes)):
            self.codes[rows] = place[self.codes[rows]]
        if not all(weighted):
            self.set_counts(None, [int(mass) << SUM_SCALE_BITS for mass in class_sums(self.codes, len(found))])
        else:
            self.set_counts(weights.concatenate(), [units[k] for k in np.argsort(place)])
        if targets.parts:
            values = targets.concatenate()
            self.single_target, self.targets = values.ndim == 1, values.reshape(len(values), -1)
            self.target_scaler = target_kind.units(self.targets, counts.concatenate() if all(weighted) else self.counts)
            for rows in row_slices(len(self.targets), self.targets.shape[1]):
                self.targets[rows] = self.target_scaler.transform(self.targets[rows])

    def pieces(self) -> Iterator[RowBlock]:
        """All blocks with their class numbers, counts and targets."""
        first = 0
        for X, _, weight in prefetched(iter(self.source)):
            if weight is not None and not weight.all():
                X, weight = X[np.flatnonzero(weight)], weight[weight > 0]
            if not X.shape[0]:
                continue
            rows = slice(first, first + X.shape[0])
            if rows.stop > self.shape[0]:
                break
            if row_keys(X[:1])[0] != self.keys[first]:
                raise ValueError(
                    f"{self.source!r} gave other rows, or the same in another order, than in the first pass: it must "
                    "give the same rows in the same order each time; if it shuffles, let it begin from the same seed"
                )
            X = X if X.dtype == self.dtype else X.astype(self.dtype)
            counts = np.broadcast_to(1.0, X.shape[0]) if weight is None else weight
            targets = None if self.targets is None else self.targets[rows]
            yield RowBlock(X, self.codes[rows], counts, first, self.cache, targets)
            first = rows.stop
        if first != self.shape[0]:
            raise ValueError(
                f"{self.source!r} had {self.shape[0]} rows in the first pass and {first} or more in a later one: it "
                "must give the same rows each time"
            )

    def map_blocks(self, work: Callable[..., Any], *args: Any, each: list[Any] | None = None) -> Iterator[Any]:
        for k, row_block in enumerate(self.pieces()):
            yield work(row_block, *args) if each is None else work(row_block, *args, each[k])

    def fetch(self, rows: Array) -> tuple[Any, Array]:
        found: list[Any] = []
        counts = np.empty(len(rows))
        for row_block in self.pieces():
            mine = slice(*np.searchsorted(rows, (row_block.first, row_block.first + len(row_block.codes))))
            if mine.start < mine.stop:
                found.append(row_block.X[rows[mine] - row_block.first])
                counts[mine] = row_block.counts[rows[mine] - row_block.first]
        return sp.vstack(found, format="csr") if sp.issparse(found[0]) else np.concatenate(found), counts


def from_blocks(blocks: Iterable[Any] | Callable[[], Iterator[Any]], names: Iterable[str] | None = None) -> Blocks:
    """Labelled rows from an iterable of blocks that can be iterated repeatedly.

    Parameters
    ----------
    blocks : iterable, or function without arguments that returns an iterator
        Blocks ``(X, y)`` or ``(X, y, weights)``: arrays, sparse matrices or data frames. Every pass
        iterates over them again, so a one-time iterator such as a generator is refused: pass the function that makes
        it.
    names : iterable of str, optional
        Names of the columns.

    Returns
    -------
    Blocks
        For ``SlimSVC().fit(rows)``.

    Examples
    --------
    >>> import numpy as np
    >>> from slimsvm import SlimSVC, rows
    >>> def blocks():
    ...     for seed in range(20):
    ...         X = np.random.default_rng(seed).normal(size=(500, 4))
    ...         yield X, X[:, 0] * X[:, 1] > 0
    >>> SlimSVC(10).fit(rows.from_blocks(blocks)).n_vectors_
    10
    """
    if not callable(blocks) and iter(blocks) is blocks:
        raise TypeError(
            f"blocks={type(blocks).__name__} can be gone through only once, and a fit takes several passes; pass a "
            "list of blocks, or the function that makes the iterator: from_blocks(read)"
        )

    def pieces() -> Iterator[RawBlock]:
        for number, block in enumerate(blocks() if callable(blocks) else blocks):
            if not isinstance(block, (tuple, list)) or len(block) not in (1, 2, 3):
                raise TypeError(f"block {number} is {type(block).__name__}; (X, y) or (X, y, weights) is needed")
            X, y, weight = (*block, None, None)[:3]
            yield X, y, weight

    return Blocks(pieces, None if names is None else [str(name) for name in names])

"""The bytes of a .slim file: a JSON header, uncompressed arrays, and a checksum at the end.

The file stores no offsets: the position of an array follows from the shapes before it. So arrays cannot overlap, leave
gaps or expand in memory, and the length of the file is checked before any array is read.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
import struct
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..linalg.arrays import Array
from ..utils.warnings import without_control_characters

MAGIC = b"\x93SLIMSVM"
VERSION = 1
PREFIX = struct.Struct("<8sIIQ")  # magic, version of the format, zero, bytes of the header
ALIGNMENT = 8
DIGEST = hashlib.sha256().digest_size
MAX_HEADER_BYTES = 16 << 20  # parsed JSON takes some thirty times its length in memory
MAX_DIGITS = 100  # of an integer in the header
LONG_DIGITS = 20  # many integers of more digits can be made to have the same hash ...
MAX_LONG_INTEGERS = 1000  # ... so a file may have only this many of them
MAX_AXIS = 1 << 31
MAX_AXES = 8

NUMBERS = ("|b1", "|i1", "|u1", "<i2", "<u2", "<i4", "<u4", "<i8", "<u8", "<f2", "<f4", "<f8")
TEXT = re.compile(r"<U[1-9][0-9]{0,3}")  # the width is limited, as every predicted label takes it
LAST_CHARACTER = 0x10FFFF


class FileError(ValueError):
    """A file that is no model: truncated, altered, foreign, or made by a newer version.

    Examples
    --------
    >>> import io
    >>> import slimsvm
    >>> slimsvm.load(io.BytesIO(b"something else"))
    Traceback (most recent call last):
        ...
    slimsvm.persistence.FileError: the file is not a .slim file; slimsvm.load reads what slimsvm.save wrote
    """

    def __init__(self, message: str) -> None:
        super().__init__(without_control_characters(message))  # the message may quote the file


FileError.__module__ = "slimsvm.persistence"  # where users import it from


# --- writing -----------------------------------------------------------------------------------------------------


def storable(dtype: np.dtype[Any]) -> bool:
    """Can arrays of this dtype be stored?"""
    code = dtype.newbyteorder("<").str
    return code in NUMBERS or TEXT.fullmatch(code) is not None


def pack(header: dict[str, Any], arrays: list[Array]) -> bytes:
    """The bytes of a file; the same header and arrays always give the same bytes."""
    described, raw = [], []
    for array in arrays:
        order = "F" if array.flags.f_contiguous and not array.flags.c_contiguous else "C"
        array = array.astype(array.dtype.newbyteorder("<"), order="K", copy=False)
        described.append({"dtype": array.dtype.str, "shape": list(array.shape), "order": order})
        raw.append(array.tobytes(order="F" if order == "F" else "C"))
    text = json.dumps(header | {"arrays": described}, separators=(",", ":"), allow_nan=False).encode()
    if len(text) > MAX_HEADER_BYTES:
        raise ValueError(
            f"all but the arrays takes {len(text)} bytes as JSON; a .slim file holds at most {MAX_HEADER_BYTES}. "
            "Shorten metadata, or the lists of categories"
        )
    out = bytearray(PREFIX.pack(MAGIC, VERSION, 0, len(text)) + text)
    for part in raw:
        out += bytes(-len(out) % ALIGNMENT) + part
    return bytes(out + hashlib.sha256(out).digest())


# --- reading -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Slot:
    """The position of an array in the file, its dtype, shape and memory order."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    order: str
    start: int
    count: int

    @property
    def end(self) -> int:
        return self.start + self.count * self.dtype.itemsize

    def read(self, data: bytes) -> Array:
        """A copy of the array that owns its memory, in native byte order."""
        flat = np.frombuffer(data, self.dtype, self.count, self.start)
        if self.dtype.kind == "b" and flat.view(np.uint8).max(initial=0) > 1:
            raise FileError("an array of truth values has others than 0 and 1")
        if self.dtype.kind == "U" and flat.view(np.dtype("<u4")).max(initial=0) > LAST_CHARACTER:
            raise FileError("an array of texts has characters that do not exist")
        order: Any = self.order
        return np.array(flat.reshape(self.shape, order=order), self.dtype.newbyteorder("="), order=order, copy=True)


@dataclass(frozen=True)
class Contents:
    """A file whose checksum and layout are right."""

    header: dict[str, Any]
    slots: list[Slot]
    data: bytes

    @property
    def digest(self) -> str:
        return self.data[-DIGEST:].hex()

    def arrays(self) -> list[Array]:
        """Copies of all arrays, in the order of the header."""
        return [slot.read(self.data) for slot in self.slots]


def unpack(data: bytes) -> Contents:
    """Check the bytes of a file and parse its header; FileError if any byte is invalid."""
    length = _checked_prefix(data)
    body = memoryview(data)[:-DIGEST]
    if len(body) < PREFIX.size or hashlib.sha256(body).digest() != data[-DIGEST:]:
        raise FileError("the checksum of the file is wrong: it is truncated or was altered; get another copy of it")
    end = len(body)
    if length > min(MAX_HEADER_BYTES, end - PREFIX.size):
        raise FileError(f"the header is said to take {length} bytes, which the file has not, or which is too much")
    header = _parsed(data[PREFIX.size : PREFIX.size + length])
    slots, place = [], PREFIX.size + length
    for described in _list(header.pop("arrays", None), "arrays"):
        start = place + -place % ALIGNMENT
        slot = _slot(described, start)
        if slot.end > end:
            raise FileError(f"an array of shape {slot.shape} is longer than the file")
        if data[place:start].strip(b"\0"):
            raise FileError("there is something between two arrays")
        slots.append(slot)
        place = slot.end
    if place != end:
        raise FileError(f"there are {end - place} bytes behind the last array")
    return Contents(header, slots, data)


def _checked_prefix(data: bytes) -> int:
    """The length of the header; FileError where the first bytes are not those of a .slim file."""
    if not data:
        raise FileError("the file is empty")
    if data[: len(MAGIC)] != MAGIC:
        raise FileError(f"the file is not a .slim file{_guess(data)}; slimsvm.load reads what slimsvm.save wrote")
    if len(data) < PREFIX.size:
        raise FileError("the file ends within its first bytes: it is truncated; get another copy of it")
    _, version, reserved, length = PREFIX.unpack_from(data)
    if version > VERSION:
        raise FileError(
            f"the file was made by a newer slimsvm: its format is {version}, this slimsvm reads up to {VERSION}; "
            "upgrade (pip install -U slimsvm), or save the model with an older one"
        )
    if version < 1 or reserved:
        raise FileError("the first bytes of the file make no sense: it was altered; get another copy of it")
    return int(length)


# First bytes of other files that users pass by mistake.
FIRST_BYTES = {
    b"\x80": "a pickle, which load never runs",
    b"PK": "a ZIP archive, as skops and numpy write them",
    b"\x93NUMPY": "an array of numpy",
    b"\x1f\x8b": "compressed by gzip",
    b"x\x9c": "compressed by zlib, as joblib does",
}


def _guess(data: bytes) -> str:
    return next((f" (it looks like {what})" for start, what in FIRST_BYTES.items() if data.startswith(start)), "")


def _slot(described: Any, start: int) -> Slot:
    match described:
        case {"dtype": code, "shape": shape, "order": order, **others} if not others:
            shape = _list(shape, "shape")
        case _:
            raise FileError("an array is not described by dtype, shape and order")
    if type(code) is not str or not (code in NUMBERS or TEXT.fullmatch(code)):
        raise FileError(f"arrays of type {_short(code)} are not allowed")
    if order not in ("C", "F"):
        raise FileError(f"order {_short(order)} is neither C nor F")
    if len(shape) > MAX_AXES or not all(type(n) is int and 0 <= n <= MAX_AXIS for n in shape):
        raise FileError(f"the shape {_short(shape)} is not possible")
    if math.prod(n for n in shape if n) > 1 << 48:
        raise FileError(f"the shape {_short(shape)} is too large")
    return Slot(np.dtype(code), tuple(shape), order, start, math.prod(shape))


def _parsed(text: bytes) -> dict[str, Any]:
    """Parse the header as strict JSON: no NaN, no duplicate keys, no overlong integers."""
    try:
        header = json.loads(
            text.decode(),
            object_pairs_hook=_without_twins,
            parse_constant=_no_constant,
            parse_int=Integers().read,
            parse_float=_finite,
        )
    except (UnicodeDecodeError, json.JSONDecodeError, RecursionError) as error:
        raise FileError(f"the header is not valid JSON: {_short(error)}") from None
    if type(header) is not dict:
        raise FileError("the header is not a JSON object")
    return header


def _without_twins(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    entries = dict(pairs)
    if len(entries) < len(pairs):
        raise FileError("the header has a key twice")
    return entries


def _no_constant(name: str) -> Any:
    raise FileError(f"the header is not valid JSON: {name} is no number of it")


class Integers:
    """Limits the number of long integers: as keys with equal hashes they would make dictionaries very slow."""

    def __init__(self) -> None:
        self._long = 0

    def complaint(self, digits: int) -> str:
        """Count one more integer of so many digits; return what is wrong with it, or the empty text."""
        self._long += digits > LONG_DIGITS
        if digits > MAX_DIGITS:
            return f"an integer of {digits} digits, where {MAX_DIGITS} are allowed"
        return (
            f"more than {MAX_LONG_INTEGERS} integers of more than {LONG_DIGITS} digits"
            if self._long > MAX_LONG_INTEGERS
            else ""
        )

    def read(self, digits: str) -> int:
        complaint = self.complaint(len(digits))
        if complaint:
            raise FileError(f"the header has {complaint}")
        return int(digits)


def _finite(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        raise FileError(f"the header has the number {_short(digits)}, which is too large")
    return number


def _list(value: Any, name: str) -> list[Any]:
    if type(value) is not list:
        raise FileError(f"the header has no list {name!r}")
    return value


def _short(value: Any) -> str:
    text = str(value)
    return text if len(text) <= 60 else text[:57] + "..."

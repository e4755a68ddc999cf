"""The integer grid of a device: rows in 16 bits, vectors in 8, in units of the kernel's width.

A distance kernel is ``2^-D`` with ``D = sum_k |w_k (x_k - z_k)|^p``: w_k is the weight of input k, 1 / w_k its *width*.
The unit of a row is the same small fraction of a width in all inputs, so a distance is a plain sum of squares (or
absolute values). The unit of a vector's byte is a step, a power of two of these units, as coarse as the range of the
vectors in that input requires:

    u = (x - offset) gain    16 bits, in units of 2^-bits widths: gain = w 2^bits
    q                        8 bits: a vector is at u = q 2^shift, ``offset + q 2^shift / gain``
    D = 2^(-p bits) sum_k |u_k - q_k 2^shift_k|^p

Inputs of equal weight share one offset, one gain and one shift, and take no bytes of their own. Otherwise an input
takes two bytes (3 bits for its shift, 6 for the exponent of its gain, 7 for the mantissa), and two more for an offset
of its own (the upper half of a float32) where vectors lie far from zero or a scaler is folded in.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ..linalg.arrays import Array

MAX_BYTE = 127  # the largest absolute value in a vector's bytes
MAX_SHIFT = 7  # shifts have three bits
MAX_DISTANCE = 16  # from here on kernel values are 0: 2^-16 in 15 bits
# Two-byte gains: mantissa bits after the leading one, and the largest difference of exponents.
MANTISSA_BITS, MAX_EXPONENT_SPREAD = 7, 63
READING_BITS = 24  # mantissa bits of a gain (float32 has 24); 24 + 31 bits of (reading - offset) fit in int64
# In widths: above COMMON_STEP, inputs get steps of their own; below FINE_STEP, steps need no finer offsets.
COMMON_STEP, FINE_STEP = 1 / 16, 1 / 64


@dataclass(frozen=True)
class Grid:
    """Gains, offsets and steps of the inputs, as the device stores them."""

    inputs: int  # columns of a row
    used: Array  # inputs of nonzero weight; the others have no gain, and vectors no byte for them
    gain: Array  # float32, one for each used input
    offset: Array  # float32
    shift: Array  # a step has 2^shift units
    bits: int  # a unit is 2^-bits widths
    gain_bytes: int = 0  # bytes per input; 0: all inputs share one
    offset_bytes: int = 0

    @property
    def n_bytes(self) -> int:
        """Bytes of gains, offsets and the mask of used inputs.

        A common gain and a common offset are float32; the mask has a bit per input, and is absent if all are used.
        """
        own = (self.gain_bytes + self.offset_bytes) * len(self.used)
        which = 0 if len(self.used) == self.inputs else (self.inputs + 7) // 8
        return own + which + (0 if self.gain_bytes else 4) + (0 if self.offset_bytes else 4)

    @property
    def weights(self) -> Array:
        """The weights w of all inputs, with rounded gains as on the device."""
        return self._spread(self.gain.astype(np.float64) * 2.0**-self.bits)

    def _spread(self, values: Array) -> Array:
        """Scatter values of the used inputs to all inputs, with zeros elsewhere."""
        spread = np.zeros((*values.shape[:-1], self.inputs))
        spread[..., self.used] = values
        return spread

    def rows(self, X: Array) -> Array:
        """Rows on the grid: int16, rounded half away from zero, clipped to +-32767."""
        # One operation at a time in float32: the same bits on every machine.
        with np.errstate(over="ignore"):
            t = (np.asarray(X[:, self.used], dtype=np.float32) - self.offset) * self.gain
        t = np.clip(t, np.float32(-32767), np.float32(32767))
        return np.trunc(t + np.where(t < 0, np.float32(-0.5), np.float32(0.5))).astype(np.int16)

    @property
    def readings(self) -> Readings | None:
        """The conversion of integer readings to rows without floats; None if gains or offsets are out of its range."""
        fraction, exponent = np.frexp(self.gain.astype(np.float64))
        size = np.abs(self.offset.astype(np.float64))
        if exponent.max() > 16 or exponent.min() < -125 or size.max() >= 2.0**22:
            return None
        gain = (fraction * 2.0**READING_BITS).astype(np.int64)
        offset = np.copysign(np.floor(256 * size + 0.5), self.offset).astype(np.int64)
        return Readings(offset, gain, np.minimum(READING_BITS + 8 - exponent, 63))

    @property
    def spans(self) -> Array:
        """Length of a step of each input, in widths."""
        return 2.0 ** (self.shift - self.bits)

    def steps(self, Z: Array) -> Array:
        """Vectors in steps, before rounding."""
        return (np.asarray(Z[:, self.used], dtype=np.float64) - self.offset) * self.gain * 2.0**-self.shift

    def rounded(self, Z: Array) -> Array:
        """Vectors as int8, each coordinate rounded to nearest."""
        return np.clip(np.rint(self.steps(Z)), -MAX_BYTE, MAX_BYTE).astype(np.int8)

    def values(self, q: Array) -> Array:
        """The vectors that bytes stand for; zero for inputs that are not used."""
        return self._spread(self.offset + q * (2.0**self.shift / self.gain.astype(np.float64)))


@dataclass(frozen=True)
class Readings:
    """Converts 16-bit integer readings x to rows: ``(256 x - offset) gain 2^-shift``, rounded to nearest."""

    offset: Array
    gain: Array
    shift: Array

    def rows(self, X: Array) -> Array:
        """Rows on the grid from readings X of the used inputs."""
        t = (X.astype(np.int64) * 256 - self.offset) * self.gain
        size = (np.abs(t) + (np.int64(1) << (self.shift - 1))) >> self.shift
        return (np.sign(t) * np.minimum(size, 32767)).astype(np.int16)


def packed_inputs(grid: Grid) -> tuple[Array, int]:
    """Shift, exponent and mantissa of each input packed in two bytes, and the largest exponent."""
    fraction, exponent = np.frexp(grid.gain.astype(np.float64))
    exponent, top = exponent - 1, int(exponent.max()) - 1  # exponent for a mantissa from 1 to 2
    mantissa = np.rint((2 * fraction - 1) * 2**MANTISSA_BITS).astype(int)
    return grid.shift << 13 | (top - exponent) << MANTISSA_BITS | mantissa, top


def make_grid(weights: Array, Z: Array, power: int, folded: bool = False) -> Grid:
    """The grid of fewest bytes whose steps are fine enough for these vectors; all in the units of the rows.

    ``folded``: a scaler is folded in, so inputs need offsets of their own.
    """
    used = np.flatnonzero(weights)
    used = used if len(used) else np.arange(1)
    grid = _grid_of(np.maximum(weights[used], np.finfo(np.float32).tiny), Z[:, used], power, folded)
    return replace(grid, inputs=len(weights), used=used)


def _grid_of(weights: Array, Z: Array, power: int, folded: bool) -> Grid:
    low, high = (Z.min(axis=0), Z.max(axis=0)) if len(Z) else (np.zeros(len(weights)), np.zeros(len(weights)))

    def widths(offset: Array) -> Array:
        """The largest distance of vectors from the offset in each input, in widths."""
        return weights * np.maximum(high - offset, offset - low)

    same = float(np.ptp(weights)) <= 1e-6 * float(weights.max())
    if same and not folded:
        middle = np.full(len(weights), np.float32((low.min() + high.max()) / 2))
        most = float(widths(middle).max())
        if most <= COMMON_STEP * MAX_BYTE:
            return _finished(weights, middle, np.full(len(weights), most), power, own=False)
    zero, best = np.zeros(len(weights), dtype=np.float32), ((low + high) / 2).astype(np.float32)
    short = upper_half(best)
    at_zero, smallest, nearly = widths(zero), widths(best), widths(short)
    if not folded and not _coarser(at_zero, smallest):
        return _finished(weights, zero, at_zero, power)
    if _coarser(nearly, smallest):
        return _finished(weights, best, smallest, power, offset_bytes=4)
    return _finished(weights, short, nearly, power, offset_bytes=2)


def _coarser(widths: Array, smallest: Array) -> bool:
    """Is the step of some input twice as coarse as with the best offset, and too coarse?"""
    return bool(((widths > FINE_STEP * MAX_BYTE) & (widths > 2 * smallest)).any())


def _finished(
    weights: Array, offset: Array, widths: Array, power: int, own: bool = True, offset_bytes: int = 0
) -> Grid:
    """Units in which clipped rows are beyond `MAX_DISTANCE` of every vector; steps as fine as bytes allow."""
    room = MAX_BYTE << MAX_SHIFT
    bits = int(np.floor(np.log2((32767 - room) / MAX_DISTANCE ** (1 / power))))
    far = float(widths.max())
    if far > 0:
        bits = min(bits, int(np.floor(np.log2(room * (1 + 1e-6) / far))))
    bits = max(bits, 0)
    with np.errstate(divide="ignore"):
        shift = np.ceil(np.log2(widths * 2.0**bits / (MAX_BYTE * (1 + 1e-6))))
    gains = weights * 2.0**bits
    gains = (two_byte_gains(gains) if own else gains).astype(np.float32)
    shift = np.clip(shift, 0, MAX_SHIFT).astype(int)
    return Grid(len(gains), np.arange(len(gains)), gains, offset, shift, bits, 2 if own else 0, offset_bytes)


def upper_half(values: Array) -> Array:
    """float32 rounded to its upper 16 bits."""
    bits = np.ascontiguousarray(values, dtype=np.float32).view(np.uint32)
    return ((bits + np.uint32(0x8000)) & np.uint32(0xFFFF0000)).view(np.float32)


def two_byte_gains(gains: Array) -> Array:
    """Gains rounded to 7 bits after the leading one, and at least 2^-63 times the power of two of the largest."""
    fraction, exponent = np.frexp(gains)
    short = np.ldexp(np.rint(np.ldexp(fraction, MANTISSA_BITS + 1)), exponent - MANTISSA_BITS - 1)
    return np.maximum(short, np.ldexp(1.0, exponent.max() - 1 - MAX_EXPONENT_SPREAD))

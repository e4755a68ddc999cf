"""Integer arithmetic of a device: 2^-x by a table, coefficients in 16 bits, probabilities in 15."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..linalg.arrays import Array
from .grid import MAX_DISTANCE

# 2^-x for x = 0, 1/64 .. 1 in 15 bits. The table is shared by all models and counts as code.
HALF_POWERS = np.rint(2.0 ** (15 - np.arange(65) / 64)).astype(np.uint16)
KERNEL_BITS = 15
ONE_IN_15_BITS = 1 << KERNEL_BITS
LOG2_E = float(np.log2(np.e))
MAX_PLACES = 40  # most binary places of log-odds
MAX_SUM_SHIFT = 32  # most binary digits that are rounded off a sum


def power_of_half(distance: Array, unit: int) -> Array:
    """``2^-D`` in 15 bits for a distance in units of 2^-unit below `MAX_DISTANCE`."""
    D = distance << (16 - unit) if unit <= 16 else (distance + (1 << (unit - 17))) >> (unit - 16)
    whole, place, rest = D >> 16, (D >> 10) & 63, D & 1023
    high, low = HALF_POWERS[place].astype(np.int64), HALF_POWERS[place + 1].astype(np.int64)
    value = high - (((high - low) * rest + 512) >> 10)
    return (value + ((1 << whole) >> 1)) >> whole


def power_of_half_or_zero(distance: Array, unit: int) -> Array:
    """``2^-D`` in 15 bits for any distance: 0 from `MAX_DISTANCE` on."""
    beyond = distance >= MAX_DISTANCE << unit
    return np.where(beyond, 0, power_of_half(np.where(beyond, 0, distance), unit))


def coefficients_in_16_bits(coef: Array, bias: Array, bits: int) -> tuple[Array, Array, Array]:
    """int16 coefficients in units of 2^-exponent, exponents per output, and biases in units of 2^-(exponent + bits)."""
    largest = np.maximum(np.abs(coef).max(axis=1, initial=0.0), np.abs(bias) * 2.0 ** (bits + 15 - 31) * (1 + 1e-6))
    largest = np.maximum(largest, np.finfo(np.float32).tiny)
    exponent = np.floor(np.log2(32767 / largest)).astype(int)
    exponent = np.minimum(exponent, exponent.min() + 20)  # sums of all outputs are compared in 64 bits
    exponent = np.clip(exponent, -100, 100)
    unit = 2.0 ** exponent[:, None]
    numbers = np.clip(np.rint(coef * unit), -32767, 32767).astype(np.int16)
    return numbers, exponent.astype(np.int8), np.rint(bias * 2.0 ** (exponent + bits)).astype(np.int32)


def values_in_16_bits(coef: Array, bias: Array, bits: int) -> tuple[Array, Array, Array, Array]:
    """int16 coefficients in units of 2^-exponent, an exponent per output, the number of binary digits to round off each
    sum (shift), and biases in units of 2^-(exponent + bits - shift).

    The shifts keep every prediction within 31 bits, whatever the row: a bias that is large relative to the coefficients
    costs them no digits.
    """
    largest = np.maximum(np.abs(coef).max(axis=1, initial=0.0), np.abs(bias) * 2.0 ** (bits + 15 - 30 - MAX_SUM_SHIFT))
    largest = np.maximum(largest, np.finfo(np.float32).tiny)
    exponent = np.clip(np.floor(np.log2(32767 / largest)).astype(int), -90, 100)
    numbers = np.clip(np.rint(coef * 2.0 ** exponent[:, None]), -32767, 32767).astype(np.int16)
    reach = np.abs(numbers.astype(np.float64)).sum(axis=1) * ONE_IN_15_BITS + np.abs(bias) * 2.0 ** (exponent + bits)
    shift = np.ceil(np.log2(np.maximum(reach, 1) / (2.0**31 - 4))).clip(0).astype(int)
    units = np.rint(bias * 2.0 ** (exponent + bits - shift))
    return numbers, exponent.astype(np.int8), shift.astype(np.uint8), units.astype(np.int32)


def rounding_shift(sums: Array, shift: Array) -> Array:
    """Sums divided by ``2^shift``, rounded half away from zero."""
    return np.sign(sums) * ((np.abs(sums) + ((np.int64(1) << shift) >> 1)) >> shift)


@dataclass(frozen=True)
class QuantizedLayer:
    """Log-odds to base 2 in integers, and the class probabilities computed from them.

    ``coef`` (int16) and ``bias`` (int32) give sums with ``places`` binary places; ``shares`` as in
    `slimsvm.model.inference.ProbabilityLayer`.
    """

    coef: Array
    bias: Array
    places: int
    shares: bool

    @classmethod
    def of(cls, coef: Array, bias: Array, bits: int, shares: bool) -> QuantizedLayer:
        """Quantise a probability layer with one exponent for all outputs, so that their sums can be compared."""
        coef, bias = LOG2_E * coef, LOG2_E * bias
        bound = np.abs(bias).max(initial=0.0) * 2.0 ** (bits - 16) * (1 + 1e-6)  # a bias has 31 bits
        largest = max(np.abs(coef).max(initial=0.0), bound, np.finfo(np.float32).tiny)
        places = int(np.clip(np.floor(np.log2(32767 / largest)) + bits, 0, MAX_PLACES))
        numbers = np.clip(np.rint(coef * 2.0 ** (places - bits)), -32767, 32767).astype(np.int16)
        return cls(numbers, np.rint(bias * 2.0**places).clip(-(2**31) + 1, 2**31 - 1).astype(np.int32), places, shares)

    @property
    def n_bytes(self) -> int:
        return 2 * self.coef.size + 4 * len(self.bias)

    def probabilities(self, sums: Array, winners: Array) -> Array:
        """Probabilities in units of 1/32768: rows x classes. The winner of a row gets the largest."""
        parts = self._parts(sums + self.bias)
        total = parts.sum(axis=1, keepdims=True)
        return _led((((parts << KERNEL_BITS) + (total >> 1)) // total), winners)

    def _parts(self, log_odds: Array) -> Array:
        """Numbers of 15 bits proportional to the probabilities."""
        if log_odds.shape[1] == 1:
            small = power_of_half_or_zero(np.abs(log_odds), self.places)
            second = log_odds >= 0
            return np.hstack([np.where(second, small, ONE_IN_15_BITS), np.where(second, ONE_IN_15_BITS, small)])
        top = log_odds.max(axis=1, keepdims=True)
        if not self.shares:
            return power_of_half_or_zero(top - log_odds, self.places)
        small = power_of_half_or_zero(np.abs(log_odds), self.places)
        over = np.where(
            log_odds < 0,
            power_of_half_or_zero(np.maximum(np.minimum(top, 0) - log_odds, 0), self.places),
            ONE_IN_15_BITS,
        )
        return ((over << KERNEL_BITS) + ((ONE_IN_15_BITS + small) >> 1)) // (ONE_IN_15_BITS + small)


def _led(p: Array, winners: Array) -> Array:
    """Integer version of `slimsvm.model.probabilities.align_with_winners`."""
    led = p.copy()
    for row in np.flatnonzero((p >= p[np.arange(len(p)), winners][:, None]).sum(axis=1) > 1):
        best = winners[row]
        level = total = int(p[row, best])
        shared = [best]
        for c in sorted((c for c in range(p.shape[1]) if c != best), key=lambda c: -p[row, c]):
            if p[row, c] <= level:
                break
            shared.append(c)
            total += int(p[row, c])
            level = total // len(shared)
        led[row] = np.minimum(p[row], level - 1)
        led[row, best] = level
    return led

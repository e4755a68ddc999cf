"""Pieces of C: names, numbers, arrays, and functions that every header has."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ...linalg.arrays import Array
from ...model.voting import Votes
from ...utils.warnings import without_control_characters

LINE_WIDTH = 118

KEYWORDS = frozenset(
    """
    asm auto bool break case char class const continue default delete do double else enum explicit export extern false
    float for friend goto if inline int long main mutable namespace new operator private protected public register
    restrict return short signed sizeof static struct switch template this throw true try typedef typename union
    unsigned using virtual void volatile while
    """.split()  # noqa: SIM905
)


def identifier(name: Any) -> str:
    """Return the name if C and C++ accept it as a prefix; ValueError if not."""
    if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]{0,40}", name) or name in KEYWORDS:
        raise ValueError(
            f"name={name!r} is no good as a prefix in C: use letters, digits and _, beginning with a letter, at most "
            "41 of them, and no keyword"
        )
    return name


def real(value: float) -> str:
    """The shortest literal that reads back as the same float32."""
    text = np.format_float_scientific(np.float32(value), unique=True, trim="0")
    mantissa, _, exponent = text.partition("e")
    short = np.format_float_positional(np.float32(value), unique=True, trim="0")
    text = short if len(short) <= len(text) else f"{mantissa}e{int(exponent)}"
    return text + "f"


def whole(value: Any) -> str:
    """The literal of a 32-bit integer; C has none for the smallest, which is written as a difference."""
    return str(int(value)) if value > -(2**31) else "(-2147483647 - 1)"


def quoted(text: str) -> str:
    """A C string literal; bytes that are not plain ASCII become escapes of three octal digits, the longest in C."""
    plain = {34: '\\"', 92: "\\\\", 63: "\\?"}  # ?? might begin a trigraph
    return '"' + "".join(plain.get(b, chr(b) if 32 <= b < 127 else f"\\{b:03o}") for b in text.encode()) + '"'


def comment(text: str) -> str:
    """User text made safe for a C comment."""
    plain = without_control_characters(text).encode("ascii", "replace").decode()
    return plain.replace("*/", "* /").replace("/*", "/ *").replace("??", "? ?")


@dataclass
class HeaderWriter:
    """Builds the text of a header with a prefix for all names, and counts the bytes of its tables."""

    name: str
    lines: list[str] = field(default_factory=list)
    tables: dict[str, int] = field(default_factory=dict)

    @property
    def upper(self) -> str:
        return self.name.upper()

    def add(self, text: str) -> None:
        """Append text, in which @ stands for the prefix and @@ for the prefix in capitals."""
        self.lines.append(text.strip("\n").replace("@@", self.upper).replace("@", self.name) + "\n")

    def define(self, **numbers: int) -> None:
        self.lines.extend(f"#define {self.upper}_{key} {value}\n" for key, value in numbers.items())
        self.lines.append("\n")

    def table(self, kind: str, name: str, values: Array, what: str, size: int, shape: str | None = None) -> None:
        """Append a ``static const`` array of numbers in flash, with a comment on its meaning."""
        flat = np.asarray(values).ravel()
        numbers = (real(v) for v in flat) if kind == "float" else (str(int(v)) for v in flat)
        shape = shape or f"[{flat.size}]"
        head = f"/* {what} */\nstatic const {kind} {self.name}_{name}{shape} {self.upper}_ROM = {{\n"
        self.lines.append(head + "".join(wrapped(numbers)) + "};\n\n")
        self.tables[name] = size * flat.size

    def text(self) -> str:
        return "".join(self.lines)


def wrapped(numbers: Iterable[str]) -> Iterable[str]:
    """Numbers as lines of text, wrapped at LINE_WIDTH."""
    line = "   "
    for number in numbers:
        if len(line) + len(number) + 2 > LINE_WIDTH:
            yield line + "\n"
            line = "   "
        line += f" {number},"
    yield line + "\n"


# --- what every header begins and ends with ---------------------------------------------------------------------------

ROM = """
/* On AVR constants would be copied to RAM unless they are read from flash by special instructions. */
#if defined(__AVR__)
#include <avr/pgmspace.h>
#define @@_ROM PROGMEM
#define @@_FLOAT(number) pgm_read_float(&(number))
#define @@_INT8(number) ((int8_t)pgm_read_byte(&(number)))
#define @@_UINT8(number) pgm_read_byte(&(number))
#define @@_INT16(number) ((int16_t)pgm_read_word(&(number)))
#define @@_UINT16(number) pgm_read_word(&(number))
#define @@_INT32(number) ((int32_t)pgm_read_dword(&(number)))
#else
#define @@_ROM
#define @@_FLOAT(number) (number)
#define @@_INT8(number) (number)
#define @@_UINT8(number) (number)
#define @@_INT16(number) (number)
#define @@_UINT16(number) (number)
#define @@_INT32(number) (number)
#endif
"""


def label_kind(classes: Array) -> str:
    """The C type of labels: integers, floats, or text."""
    labels = classes.tolist()
    if all(isinstance(label, (bool, int)) and -(2**31) <= int(label) < 2**31 for label in labels):
        return "int32_t"
    plain = all(isinstance(label, float) and np.float32(label) == label for label in labels)
    return "float" if plain else "const char *"


def add_labels(out: HeaderWriter, classes: Array) -> None:
    """Add the function that returns the label of a class number."""
    labels, kind = classes.tolist(), label_kind(classes)
    if kind == "int32_t" and list(map(int, labels)) == list(range(len(labels))):
        out.add("""
/* The label of a class: here its number. */
static inline int32_t @_label(int number) { return (int32_t)number; }
""")
        out.lines.append("\n")
        return
    as_text: dict[str, Callable[[Any], str]] = {
        "int32_t": whole,
        "float": real,
        "const char *": lambda v: quoted(str(v)),
    }
    values = ", ".join(map(as_text[kind], labels))
    texts = sum(len(str(label).encode()) + 1 for label in labels) if kind == "const char *" else 0
    out.tables["labels"] = 4 * len(labels) + texts  # numbers and 32-bit pointers have four bytes
    array = "const char *const labels" if kind == "const char *" else f"const {kind} labels"
    returned = kind if kind.endswith("*") else f"{kind} "
    out.add(f"""
/* The label of a class. */
static inline {returned}@_label(int number)
{{
    static {array}[@@_CLASSES] = {{{values}}};
    return labels[number];
}}
""")
    out.lines.append("\n")


def add_winner(out: HeaderWriter, votes: Votes, kind: str, n_classes: int, n_values: int) -> None:
    """Add the function that returns the predicted class number from decision values."""
    zero = "0.0f" if kind == "float" else "0"
    wins = ">=" if votes.zero_is_positive else ">"
    if n_values == 1:
        body = f"    return v[0] {wins} {zero} ? 1 : 0;"
    elif not votes.pairs:
        body = """    int best = 0;
    for (int c = 1; c < @@_CLASSES; ++c)
        if (v[c] > v[best]) best = c;
    return best;"""
    else:
        tie = " || (votes[c] == votes[best] && sums[c] > sums[best])" if votes.by_value else ""
        count = f"        votes[v[p] {wins} {zero} ? a : b] += 1;\n"
        sums = "        sums[a] += v[p];\n        sums[b] -= v[p];\n" if votes.by_value else ""
        body = (
            (f"    {kind} sums[@@_CLASSES] = {{{zero}}};\n" if votes.by_value else "")
            + "    int votes[@@_CLASSES] = {0}, best = 0, a = 0, b = 1;\n"
            + "    /* Pairs of classes a < b in order; the first of a pair is the positive one. */\n"
            + "    for (int p = 0; p < @@_VALUES; ++p) {\n"
            + count
            + sums
            + "        if (++b == @@_CLASSES) { ++a; b = a + 1; }\n    }\n"
            + "    for (int c = 1; c < @@_CLASSES; ++c)\n"
            + f"        if (votes[c] > votes[best]{tie}) best = c;\n"
            + "    return best;"
        )
    out.add(f"""
/* The class that the values of the binary problems are for. */
static inline int @_winner(const {kind} v[@@_VALUES])
{{
{body}
}}
""")
    out.lines.append("\n")


def shown_scores(shown: Votes | None) -> str:
    """C statements that turn decision values v into the scores f of `decision_function`."""
    if shown is None or not shown.pairs:
        return "    for (int o = 0; o < @@_OUTPUTS; ++o) f[o] = v[o];"
    wins = ">=" if shown.zero_is_positive else ">"
    squeeze = ""
    if shown.by_value:
        squeeze = """
    for (int c = 0; c < @@_CLASSES; ++c)
        f[c] += sums[c] / (3.0f * ((sums[c] < 0.0f ? -sums[c] : sums[c]) + 1.0f));"""
    sums = "        sums[a] += v[p];\n        sums[b] -= v[p];\n" if shown.by_value else ""
    return (
        ("    float sums[@@_CLASSES] = {0.0f};\n" if shown.by_value else "")
        + "    int a = 0, b = 1;\n"
        + "    for (int c = 0; c < @@_CLASSES; ++c) f[c] = 0.0f;\n"
        + "    for (int p = 0; p < @@_VALUES; ++p) {\n"
        + f"        f[v[p] {wins} 0.0f ? a : b] += 1.0f;\n"
        + sums
        + "        if (++b == @@_CLASSES) { ++a; b = a + 1; }\n    }"
        + squeeze
    )

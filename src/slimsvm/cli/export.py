"""``slimsvm export``."""

from __future__ import annotations

import os
import re
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..utils.warnings import without_control_characters
from . import preprocessing, tables
from .console import Console
from .errors import CommandError, WrongUse, needs, one_line
from .inputs import NUMBER
from .labels import labels_for, target_of
from .models import Saved, check_new, open_model, without_encoding

if TYPE_CHECKING:
    from .options import Reading


def export(
    path: Path,
    c: Path | None,
    onnx: Path | None,
    int8: bool,
    example: Path | None,
    name: str | None,
    data: Path | None,
    double: bool,
    max_bytes: int | None,
    reading: Reading,
    out: Console,
) -> None:
    """A model as C or as ONNX."""
    if (c is None) == (onnx is None):
        raise WrongUse("give one of --c FILE and --onnx FILE" + (", not both" if c is not None else ""))
    if onnx is not None and (int8 or example is not None or data is not None or max_bytes is not None):
        raise WrongUse("--int8, --example, --data and --bytes go with --c, not with --onnx")
    if c is not None and double:
        raise WrongUse("--float64 goes with --onnx, not with --c")
    if data is not None and not int8:
        raise WrongUse("--data goes with --int8: its rows refit the rounded coefficients")
    chosen = name if name is not None else _name(c)
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", chosen):
        raise WrongUse(f"--name {name}: must be a name in C: letters, digits and _, and no digit first")
    for target in (c, onnx, example):
        if target is not None:
            check_new(target, suffix=None)
    saved = open_model(path)
    if c is not None:
        _to_c(saved, c, int8, example, chosen, data, max_bytes, reading, out)
    elif onnx is not None:
        _to_onnx(saved, onnx, double, out)


def _name(header: Path | None) -> str:
    """A name in C from that of the file."""
    name = re.sub(r"[^A-Za-z0-9_]", "_", header.stem if header is not None else "model")
    return name if re.match(r"[A-Za-z_]", name) else f"model_{name}"


def _to_c(
    saved: Saved,
    path: Path,
    int8: bool,
    example: Path | None,
    name: str,
    data: Path | None,
    max_bytes: int | None,
    reading: Reading,
    out: Console,
) -> None:
    from .. import to_c
    from ..quantization.quantize import ScalerBytesWarning

    X, y = (None, None) if data is None else _rows(saved, data, reading, out)
    model = saved.model
    encode = getattr(model, "named_steps", {}).get("encode")
    if encode is not None:
        X = None if X is None else encode.transform(X)
        model = without_encoding(model)
    with out.work(1) as begin:
        begin("C")
        settings = saved.metadata.get("settings")
        if isinstance(settings, dict) and settings.get("bytes"):  # --bytes counts the scaler, max_bytes does not
            warnings.simplefilter("ignore", ScalerBytesWarning)
        try:
            source = to_c(model, name=name, dtype="int8" if int8 else "float32", X=X, y=y, max_bytes=max_bytes)
        except (TypeError, ValueError) as error:
            raise CommandError(f"{saved.path} cannot become C: {one_line(error)}") from None
    made = [] if encode is None else preprocessing.recipes(saved.model)
    path.write_text(_how_to_encode(made) + str(source), encoding="utf-8")
    files = {"header": str(path)}
    if example is not None:
        main = source.example.replace(f'#include "{name}.h"', f'#include "{os.path.relpath(path, example.parent)}"')
        example.write_text(main, encoding="utf-8")
        files["example"] = str(example)
    content = {**files, "name": name, "dtype": "int8" if int8 else "float32", "report": _numbers(source.report)}
    if made:
        content["inputs"] = made
        out.note(f"the C code starts after the encoding of the columns; its {len(made)} inputs are:", *_numbered(made))
    out.report(content, str(source.report).rstrip(), *(f"{kind}: {file}" for kind, file in files.items()))


def _rows(saved: Saved, data: Path, reading: Reading, out: Console) -> tuple[Any, Any]:
    table = tables.read(data, saved.reading(reading))
    target = target_of(table, tables.LABEL if table.sparse else saved.target)
    y = labels_for(saved.model, table, target)
    return saved.rows(table, {target}, out), y


def _numbered(made: list[str]) -> list[str]:
    return [f"x[{k}] = {recipe}" for k, recipe in enumerate(made)]


def _how_to_encode(made: list[str]) -> str:
    """A comment for the header; names and categories may hold anything, the end of a comment, too."""
    if not made:
        return ""
    lines = [
        without_control_characters(" ".join(line.split())).replace("*", "·").replace("\\", "/")
        for line in _numbered(made)
    ]
    return "\n".join(["/* Inputs, made from the columns of the table:", *(f"   {line}" for line in lines), "*/", ""])


def _numbers(report: Any) -> Any:
    """A report's numbers, for JSON."""
    found = getattr(report, "__dict__", None) or {
        name: getattr(report, name) for name in getattr(report, "__slots__", ()) if hasattr(report, name)
    }
    return {name: value for name, value in found.items() if not name.startswith("_")} or str(report)


def _a_row(saved: Saved) -> Any:
    """A row for the types of the columns, where they are encoded: each is then an input of its own."""
    import pandas as pd

    if saved.inputs is None or "inputs" not in saved.metadata or saved.inputs.plain:
        return None
    return pd.DataFrame({column.name: [0.0 if column.kind == NUMBER else ""] for column in saved.inputs.columns})


def _to_onnx(saved: Saved, path: Path, double: bool, out: Console) -> None:
    from ..export.onnx import to_onnx

    with out.work(1) as begin:
        begin("ONNX")
        try:
            proto = to_onnx(saved.model, _a_row(saved), dtype="float64" if double else "float32")
        except ImportError as error:
            raise needs(getattr(error, "name", None) or "onnx", "ONNX", "onnx") from None
        except (TypeError, ValueError, RuntimeError, NotImplementedError) as error:
            raise CommandError(f"{saved.path} cannot become ONNX: {one_line(error)}") from None
    content = proto.SerializeToString()
    path.write_bytes(content)
    names = {"inputs": [one.name for one in proto.graph.input], "outputs": [one.name for one in proto.graph.output]}
    out.report(
        {"onnx": str(path), "bytes": len(content), **names},
        f"{path}: {len(content)} bytes, from {', '.join(names['inputs'])} to {', '.join(names['outputs'])}",
    )

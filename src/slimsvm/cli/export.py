"""``slimsvm export``."""

from __future__ import annotations

import os
import re
import warnings
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..export import to_c, to_onnx
from ..quantization.quantize import ScalerBytesWarning
from ..utils.warnings import without_control_characters
from . import preprocessing, tables
from .console import Console
from .errors import CommandError, WrongUse, needs, one_line
from .inputs import NUMBER
from .labels import target_of
from .models import SavedModel, check_new, open_model, without_encoding

if TYPE_CHECKING:
    from .options import ExportOptions, ReadingOptions


def export(path: Path, options: ExportOptions, reading: ReadingOptions, console: Console) -> None:
    """Write a model as C or as ONNX."""
    c, onnx = options.c, options.onnx
    if (c is None) == (onnx is None):
        raise WrongUse("give one of --c FILE and --onnx FILE" + (", not both" if c is not None else ""))
    of_c = (options.example, options.data, options.max_bytes)
    if onnx is not None and (options.int8 or any(value is not None for value in of_c)):
        raise WrongUse("--int8, --example, --data and --bytes go with --c, not with --onnx")
    if c is not None and options.float64:
        raise WrongUse("--float64 goes with --onnx, not with --c")
    if options.data is not None and not options.int8:
        raise WrongUse("--data goes with --int8: its rows refit the rounded coefficients")
    name = options.name if options.name is not None else _name(c)
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
        raise WrongUse(f"--name {name}: must be a name in C: letters, digits and _, and no digit first")
    for file in filter(None, (c, onnx, options.example)):
        check_new(file, suffix=None)
    saved = open_model(path)
    if c is not None:
        _write_c(saved, c, name, options, reading, console)
    elif onnx is not None:
        _write_onnx(saved, onnx, options.float64, console)


def _name(header: Path | None) -> str:
    """A C identifier made from the file name."""
    name = re.sub(r"[^A-Za-z0-9_]", "_", header.stem if header is not None else "model")
    return name if re.match(r"[A-Za-z_]", name) else f"model_{name}"


def _write_c(
    saved: SavedModel, path: Path, name: str, options: ExportOptions, reading: ReadingOptions, console: Console
) -> None:
    X, y = (None, None) if options.data is None else _rows(saved, options.data, reading, console)
    encoder, dtype = preprocessing.encoder_of(saved.model), "int8" if options.int8 else "float32"
    X = X if encoder is None or X is None else encoder.transform(X)
    with console.work(1) as begin:
        begin("C")
        if (saved.metadata.get("settings") or {}).get("bytes"):  # --bytes counts the scaler, max_bytes does not
            warnings.simplefilter("ignore", ScalerBytesWarning)
        try:
            model = without_encoding(saved.model)
            source = to_c(model, name=name, dtype=dtype, X=X, y=y, max_bytes=options.max_bytes)
        except (TypeError, ValueError) as error:
            raise CommandError(f"{saved.path} cannot become C: {one_line(error)}") from None
    recipes = [] if encoder is None else preprocessing.recipes(saved.model)
    path.write_text(_how_to_encode(recipes) + str(source), encoding="utf-8")
    files = {"header": str(path)}
    if options.example is not None:
        include = os.path.relpath(path, options.example.parent)
        program = source.example.replace(f'#include "{name}.h"', f'#include "{include}"')
        options.example.write_text(program, encoding="utf-8")
        files["example"] = str(options.example)
    content = {**files, "name": name, "dtype": dtype, "report": asdict(source.report)}
    if recipes:
        content["inputs"] = recipes
        count = len(recipes)
        console.note(
            f"the C code starts after the encoding of the columns; its {count} inputs are:", *_numbered(recipes)
        )
    console.report(content, str(source.report).rstrip(), *(f"{kind}: {file}" for kind, file in files.items()))


def _rows(saved: SavedModel, data: Path, reading: ReadingOptions, console: Console) -> tuple[Any, Any]:
    table = tables.read(data, saved.reading(reading))
    target = target_of(table, tables.LABEL if table.sparse else saved.target)
    y = saved.task.true_labels(saved.model, table, target)
    return saved.rows(table, {target}, console), y


def _numbered(recipes: list[str]) -> list[str]:
    return [f"x[{k}] = {recipe}" for k, recipe in enumerate(recipes)]


def _how_to_encode(recipes: list[str]) -> str:
    """A C comment on how inputs are computed from columns; names and categories cannot end the comment."""
    if not recipes:
        return ""
    lines = [
        without_control_characters(" ".join(line.split())).replace("*", "·").replace("\\", "/")
        for line in _numbered(recipes)
    ]
    return "\n".join(["/* Inputs, made from the columns of the table:", *(f"   {line}" for line in lines), "*/", ""])


def _a_row(saved: SavedModel) -> Any:
    """One row with the type of each column if the model encodes columns: each column is then an ONNX input."""
    import pandas as pd

    if saved.inputs is None or "inputs" not in saved.metadata or saved.inputs.plain:
        return None
    return pd.DataFrame({column.name: [0.0 if column.kind == NUMBER else ""] for column in saved.inputs.columns})


def _write_onnx(saved: SavedModel, path: Path, float64: bool, console: Console) -> None:
    with console.work(1) as begin:
        begin("ONNX")
        try:
            proto = to_onnx(saved.model, _a_row(saved), dtype="float64" if float64 else "float32")
        except ImportError as error:
            raise needs(error.name or "onnx", "ONNX", "onnx") from None
        except (TypeError, ValueError, RuntimeError, NotImplementedError) as error:
            raise CommandError(f"{saved.path} cannot become ONNX: {one_line(error)}") from None
    content = proto.SerializeToString()
    path.write_bytes(content)
    names = {"inputs": [one.name for one in proto.graph.input], "outputs": [one.name for one in proto.graph.output]}
    console.report(
        {"onnx": str(path), "bytes": len(content), **names},
        f"{path}: {len(content)} bytes, from {', '.join(names['inputs'])} to {', '.join(names['outputs'])}",
    )

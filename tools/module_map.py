"""``python tools/module_map.py`` writes the map of the modules into CONTRIBUTING.md and docs/development/modules.md.

A package of src/slimsvm is described by the first sentence of its ``__init__.py``, a module by that of its docstring, a
file of the core by that of its first comment.
"""

from __future__ import annotations

import ast
import re
import textwrap
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE, CORE = ROOT / "src" / "slimsvm", ROOT / "core"
CONTRIBUTING, PAGE = ROOT / "CONTRIBUTING.md", ROOT / "docs" / "development" / "modules.md"
MARK = re.compile(r"(?<=<!-- map -->\n).*(?=<!-- end of the map -->)", re.DOTALL)
WIDTH = 126


def rooms() -> list[str]:
    """Rooms of the package from the ground up, as tests/test_arrows.py has them."""
    tree = ast.parse((ROOT / "tests" / "test_arrows.py").read_text(encoding="utf-8"))
    assigned = [node for node in tree.body if isinstance(node, ast.Assign)]
    return next(ast.literal_eval(node.value) for node in assigned if ast.unparse(node.targets[0]) == "PACKAGES")


def sentence(path: Path) -> str:
    """The first sentence of a module's docstring, or of the comment at the head of a C++ file."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".py":
        about = ast.get_docstring(ast.parse(text)) or ""
    else:
        first = re.search(r"(?:^ *//.*\n)+", text, re.MULTILINE)
        about = (
            " ".join(line.strip().removeprefix("//").strip() for line in first.group().splitlines()) if first else ""
        )
    paragraph = " ".join(about.split("\n\n")[0].split())
    return re.split(r"(?<=[.!?])\s", paragraph)[0]


def modules(room: Path) -> dict[str, Path]:
    """Modules of a room by their names within it."""
    names = {
        path.relative_to(room).with_suffix("").as_posix(): path
        for path in sorted(room.rglob("*.py"))
        if path.name not in ("__init__.py", "_build.py")
    }
    subrooms = {f"{path.parent.relative_to(room).as_posix()}/": path for path in sorted(room.rglob("*/__init__.py"))}
    subrooms.pop("./", None)
    return dict(sorted({**names, **subrooms}.items()))


def headers() -> dict[str, Path]:
    """Headers of the core, and sources that have none of their own, by their paths within it."""
    paths = {path.relative_to(CORE).with_suffix("").as_posix(): path for path in sorted(CORE.rglob("*.cpp"))}
    paths |= {path.relative_to(CORE).with_suffix("").as_posix(): path for path in sorted(CORE.rglob("*.hpp"))}
    return dict(sorted(paths.items()))


def short_map() -> str:
    """Rooms and the names of their modules: what CONTRIBUTING.md shows."""
    lines = ["```text", "src/slimsvm/: a room imports from its own modules and from rooms above it"]
    for room in rooms():
        lines.append(f"{room}/  {sentence(PACKAGE / room / '__init__.py').rstrip('.')}")
        lines += wrapped(" ".join(grouped(modules(PACKAGE / room))))
    lines.append("core/: C++17; only the bindings know Python")
    lines += wrapped(" ".join(grouped(headers())))
    return "\n".join([*lines, "```", ""])


def grouped(names: dict[str, Path]) -> list[str]:
    """Names, those of a folder together: ``dual/{batch solve}``."""
    folders: dict[str, list[str]] = {}
    for name in names:
        folder, _, leaf = name.rpartition("/")
        folders.setdefault(folder, []).append(leaf)
    found = []
    for folder, leaves in folders.items():
        leaves = [leaf for leaf in leaves if leaf]
        found += leaves if not folder else [f"{folder}/{{{' '.join(leaves)}}}"] if leaves else [f"{folder}/"]
    return found


def wrapped(names: str) -> list[str]:
    return textwrap.wrap(names, WIDTH, initial_indent="  ", subsequent_indent="  ", break_on_hyphens=False)


def page() -> str:
    """Every module with the sentence that says what it is for."""
    lines = [
        "# Every module",
        "",
        "`python tools/module_map.py` writes this page from the sources.",
        "",
    ]
    for room in rooms():
        lines += [f"## {room}", "", sentence(PACKAGE / room / "__init__.py"), "", "| module | |", "|---|---|"]
        lines += [f"| `{name}` | {cell(sentence(path))} |" for name, path in modules(PACKAGE / room).items()]
        lines.append("")
    lines += ["## The core", "", "| file | |", "|---|---|"]
    lines += [f"| `{name}` | {cell(sentence(path))} |" for name, path in headers().items()]
    return "\n".join([*lines, ""])


def cell(text: str) -> str:
    return text.replace("|", "\\|")


def main() -> None:
    text = CONTRIBUTING.read_text(encoding="utf-8")
    CONTRIBUTING.write_text(MARK.sub(lambda _: short_map(), text), encoding="utf-8")
    PAGE.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()

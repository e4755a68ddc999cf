"""Pictures of the pages in docs/, from the examples: ``python tools/pictures.py [NAME ...]``, all unless named.

They look as in the gallery: nothing behind them, grey letters. The head of a report is a photograph of the page, which
needs Chromium (or Chrome). ``make demo`` makes docs/demo.png.
"""

from __future__ import annotations

import runpy
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt

ROOT = Path(__file__).resolve().parent.parent
EXAMPLES = ROOT / "examples"
FIGURES = {"frontier": 1, "lp": 1, "reliability": 1, "vectors": 1}  # which figure of its example a page shows


def run(name: str) -> dict[str, Any]:
    """The names that an example defines; its figures are open."""
    plt.close("all")
    matplotlib.rcdefaults()
    plt.style.use(EXAMPLES / "gallery.mplstyle")
    return runpy.run_path(str(EXAMPLES / f"plot_{name}.py"))


def photograph(page: str, picture: Path) -> None:
    """What a browser shows of a page."""
    browser = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if browser is None:
        raise SystemExit("no chromium on PATH, which takes the picture of a report; name the other pictures")
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "report.html"
        file.write_text(page, encoding="utf-8")
        options = ["--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--window-size=1000,1180"]
        command = [browser, *options, f"--screenshot={picture}", file.as_uri()]
        subprocess.run(command, check=True, capture_output=True, timeout=120)


def main() -> None:
    known = [*FIGURES, "report"]
    for name in sys.argv[1:] or known:
        if name not in known:
            raise SystemExit(f"{name!r} is no picture of an example; there are {', '.join(known)}")
        picture = ROOT / "docs" / f"{name}.png"
        names = run(name)
        if name == "report":
            photograph(names["page"], picture)
        else:
            plt.figure(FIGURES[name]).savefig(picture)
        print(picture.relative_to(ROOT))


if __name__ == "__main__":
    main()

"""Print pip constraints for the oldest versions that pyproject.toml allows at run time: python tools/oldest.py"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

# Their newest versions are read by newer versions of scikit-learn only.
FRAMES = ("pandas", "polars")

project = tomllib.loads((Path(__file__).parent.parent / "pyproject.toml").read_text(encoding="utf-8"))["project"]
frames = [need for need in project["optional-dependencies"]["test"] if need.startswith(FRAMES)]
for need in project["dependencies"] + frames:
    name, least = re.fullmatch(r"([\w-]+)>=([\d.]+)", need).groups()
    print(f"{name}=={least}.*")

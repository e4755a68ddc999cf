"""Print pip constraints for the oldest versions that pyproject.toml allows at run time: python tools/oldest.py"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

project = tomllib.loads((Path(__file__).parent.parent / "pyproject.toml").read_text(encoding="utf-8"))["project"]
for need in project["dependencies"]:
    name, least = re.fullmatch(r"([\w-]+)>=([\d.]+)", need).groups()
    print(f"{name}=={least}.*")

"""How the gallery's pictures look; sphinx-gallery calls it before each example."""

from pathlib import Path

import matplotlib.pyplot as plt

STYLE = Path(__file__).parents[2] / "examples" / "gallery.mplstyle"


def style(gallery_conf, file):
    """Nothing behind them, and lines that light and dark pages both show."""
    plt.style.use(STYLE)

"""Every table and figure of five papers on sparse support vector machines, measured again.

`recipes` lists them, `run` measures one, ``python -m papers`` does it from a shell.
"""

from __future__ import annotations

from difflib import get_close_matches
from pathlib import Path

from slimsvm import __version__

from . import dekel_singer, huang, iwamura_abe, lopez_dorronsoro, wu
from .recipe import Column, Paper, Printed, Recipe, Task
from .result import Compared, Result
from .running import Store, measured
from .writing import page, save, total, webpage

_ALL = (huang, dekel_singer, lopez_dorronsoro, iwamura_abe, wu)
PAPERS = tuple(part.PAPER for part in _ALL)

__all__ = [
    "PAPERS",
    "Column",
    "Compared",
    "Paper",
    "Printed",
    "Recipe",
    "Result",
    "Task",
    "page",
    "recipes",
    "run",
    "save",
    "total",
    "webpage",
]


def recipes(name: str | None = None) -> list[Recipe]:
    """Tables and figures, in the order of the papers.

    Parameters
    ----------
    name : str, optional
        Of a recipe (``"huang-table-1"``) or of a paper (``"huang"``); all of them unless given.

    Returns
    -------
    list of Recipe

    Examples
    --------
    >>> import papers
    >>> [recipe.name for recipe in papers.recipes("lopez_dorronsoro")]
    ['lopez_dorronsoro-table-2', 'lopez_dorronsoro-figure-1']
    """
    every = [recipe for part in _ALL for recipe in part.RECIPES]
    if name is None:
        return every
    found = [recipe for recipe in every if name in (recipe.name, recipe.paper.key)]
    if not found:
        known = [*(paper.key for paper in PAPERS), *(recipe.name for recipe in every)]
        near = get_close_matches(name, known, n=3)
        hint = f"did you mean {' or '.join(near)}?" if near else "python -m papers --list shows them"
        raise ValueError(f"{name!r} is not a paper or one of its tables and figures: {hint}")
    return found


def run(
    recipe: str | Recipe,
    *,
    quick: bool = False,
    folder: str | Path | None = None,
    n_jobs: int = 1,
    again: bool = False,
    verbose: bool = False,
) -> Result:
    """Measure a table or a figure.

    Parameters
    ----------
    recipe : str or Recipe
        A name, such as ``"huang-table-1"``.
    quick : bool, default=False
        A few splits of a few sets.
    folder : path, optional
        Each task that is done is kept here, and is not done again by the same version of the library.
    n_jobs : int, default=1
        Processes.
    again : bool, default=False
        Forget what is kept.
    verbose : bool, default=False
        Show progress.

    Returns
    -------
    Result

    Examples
    --------
    >>> import papers
    >>> result = papers.run("huang-figure-3", quick=True)
    >>> print(result.markdown())  # doctest: +SKIP
    """
    if isinstance(recipe, str):
        found = recipes(recipe)
        if len(found) != 1:
            names = ", ".join(one.name for one in found)
            raise ValueError(f"{recipe!r} is a whole paper; run one of its tables and figures: {names}")
        recipe = found[0]
    store = Store(None if folder is None else Path(folder), __version__)
    if again:
        store.forget(recipe)
    return measured(recipe, store, quick, n_jobs, verbose)

"""Tasks done in any order, each kept in a file as soon as it is done, so that a run can be broken off and go on."""

from __future__ import annotations

import json
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from slimsvm.utils.progress import ProgressLine

from .recipe import Recipe, Task
from .result import Result

Done = dict[str, dict[str, Any]]  # by the task's name: what it returned, and its seconds


class Store:
    """What has been done, in a folder: a file of JSON lines for each recipe, or for several that share their tasks.

    None: nothing is kept.
    """

    def __init__(self, folder: Path | None, version: str):
        self.folder, self.version = folder, version

    def _path(self, recipe: Recipe) -> Path:
        assert self.folder is not None
        return self.folder / "tasks" / f"{recipe.kept_as or recipe.name}.jsonl"

    def done(self, recipe: Recipe) -> Done:
        """By this version of the library; a line that was cut off counts as not there."""
        if self.folder is None or not self._path(recipe).exists():
            return {}
        found: Done = {}
        for line in self._path(recipe).read_text(encoding="utf-8").splitlines():
            try:
                entry = json.loads(line)
            except json.JSONDecodeError:
                continue
            if entry["version"] == self.version:
                found[entry["task"]] = entry
        return found

    def add(self, recipe: Recipe, entry: dict[str, Any]) -> None:
        if self.folder is None:
            return
        path = self._path(recipe)
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a", encoding="utf-8") as file:
            file.write(json.dumps({**entry, "version": self.version}) + "\n")

    def forget(self, recipe: Recipe) -> None:
        if self.folder is not None:
            self._path(recipe).unlink(missing_ok=True)


def measured(
    recipe: Recipe, store: Store, quick: bool, n_jobs: int, verbose: bool, only: Callable[[Task], bool] | None = None
) -> Result:
    """Do what is not done yet."""
    tasks = list(recipe.tasks())
    wanted = [task for task in tasks if (task.quick or not quick) and (only is None or only(task))]
    left_out = _missing(wanted)
    wanted = [task for task in wanted if not left_out.keys() & set(task.data)]
    done = store.done(recipe)
    waiting = [task for task in wanted if task.name not in done]
    line = ProgressLine(recipe.name) if verbose else None
    for k, entry in enumerate(_run(waiting, n_jobs), 1):
        store.add(recipe, entry)
        done[entry["task"]] = entry
        if line is not None:
            line.update(f"{len(wanted) - len(waiting) + k} of {len(wanted)} tasks, {entry['task']}")
    if line is not None:
        line.finish(f"{len(wanted)} of {len(wanted)} tasks")
    found = {task.name: done[task.name] for task in wanted}
    outcomes = {name: entry["outcome"] for name, entry in found.items()}
    seconds = sum(entry["seconds"] for entry in found.values())
    return Result(recipe, outcomes, len(tasks), left_out, seconds)


def _missing(tasks: Iterable[Task]) -> dict[str, str]:
    """Sets that cannot be had, each with what its loader says."""
    from . import datasets

    found = {}
    for name in dict.fromkeys(name for task in tasks for name in task.data):
        try:
            datasets.load(name)
        except datasets.MissingData as error:
            found[name] = str(error)
    return found


def _run(tasks: list[Task], n_jobs: int) -> Iterator[dict[str, Any]]:
    if n_jobs == 1:
        yield from map(_done, tasks)
        return
    from joblib import Parallel, delayed

    yield from Parallel(n_jobs=n_jobs, return_as="generator_unordered")(delayed(_done)(task) for task in tasks)


def _done(task: Task) -> dict[str, Any]:
    """One task. Tables are of the settings that they state, limits of iterations included: warnings of them say
    nothing new."""
    began = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        outcome = task.work(*task.arguments)
    outcome = json.loads(json.dumps(outcome, default=float))  # the same whether it comes from here or from a file
    return {"task": task.name, "outcome": outcome, "seconds": time.perf_counter() - began}

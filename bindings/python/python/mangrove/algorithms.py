"""Graph algorithms on the live graph: ``db.algo.pagerank(...)``.

There is a method for each algorithm of the database, with its options as keyword arguments. It returns a :class:`mangrove.Table`.

>>> import mangrove
>>> db = mangrove.open()
>>> _ = db.query("g.addV('page').property(T.id, 1).as('a').addV('page').property(T.id, 2).addE('link').from('a')")
>>> ranks = db.algo.pagerank(damping=0.9)
>>> ranks.columns
['vertex', 'rank']
>>> sorted(row["vertex"] for row in ranks.rows())
[1, 2]
"""

from __future__ import annotations

import inspect
from typing import Any, Optional

from . import _mangrove
from ._progress import Progress, wanted

__all__ = ["Algorithm", "Algorithms"]


class Algorithm:
    """An algorithm of the database, to be called."""

    def __init__(self, database: _mangrove.Database, described: dict[str, Any]) -> None:
        self._database = database
        self._described = described
        self.__name__ = described["name"]
        self.__doc__ = _explained(described)
        self.__signature__ = inspect.Signature(
            [
                inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=inspect.Parameter.empty if default is None else None)
                for name, _, default, _ in described["options"]
            ]
            + [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None) for name in ("threads", "progress")]
        )

    def __call__(self, *, threads: Optional[int] = None, progress: Progress = None, **options: Any) -> _mangrove.Table:
        """Runs the algorithm on the graph as it is now.

        ``threads`` is the most threads that work on it. ``progress`` shows how far it has come, in a terminal and in a notebook; a
        function is called with the phase, the unit, how many are done and how many there are.
        """
        bar, report = wanted(progress, self.__name__)

        def show(phase: str, unit: str, done: int, all: int) -> None:
            if bar is not None:
                bar.show(done, all, unit, phase if phase != self.__name__ else "")

        try:
            return self._database._algorithm(self.__name__, options, threads or 0, report if bar is None else show)
        finally:
            if bar is not None:
                bar.end()

    def __repr__(self) -> str:
        return f"<mangrove algorithm {self.__name__}: {self._described['summary']}>"


def _explained(described: dict[str, Any]) -> str:
    lines = [described["summary"], "", f"Columns: {', '.join(described['columns'])}.", "", "Options:"]
    for name, allowed, default, meaning in described["options"]:
        given = "must be given" if default is None else f"default {default}"
        lines.append(f"    {name}: {meaning}; {allowed}; {given}")
    return "\n".join(lines)


class Algorithms:
    """The algorithms of a database: ``db.algo``."""

    def __init__(self, database: _mangrove.Database) -> None:
        self._database = database
        self._known = {one["name"]: one for one in _mangrove._algorithms()}

    def __getattr__(self, name: str) -> Algorithm:
        if name.startswith("_"):
            raise AttributeError(name)
        if name not in self._known:
            raise AttributeError(f"there is no algorithm '{name}'; there are {', '.join(self._known)}")
        return Algorithm(self._database, self._known[name])

    def __dir__(self) -> list[str]:
        return sorted(self._known)

    def __repr__(self) -> str:
        return f"<mangrove algorithms: {', '.join(self._known)}>"

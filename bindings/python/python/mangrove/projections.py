"""Named projections: the neighbors of chosen vertices, kept in memory for algorithms.

>>> import mangrove
>>> db = mangrove.open()
>>> _ = db.query("g.addV('page').property(T.id, 1).as('a').addV('page').property(T.id, 2).addE('link').from('a')")
>>> created = db.projections.create("links", edges="link", directed=False)
>>> created["vertex_count"], created["cell_count"]
(2, 2)
>>> len(db.algo.pagerank(projection="links"))
2
>>> [kept["name"] for kept in db.projections.list()]
['links']
>>> _ = db.projections.drop("links")

Algorithms keep by themselves what they have read. A named projection stays until it is dropped, and shows the graph of its last
refresh.
"""

from __future__ import annotations

from typing import Any, Optional

from . import _mangrove

__all__ = ["Projections"]


class Projections:
    """The named projections of a database: ``db.projections``."""

    def __init__(self, database: _mangrove.Database) -> None:
        self._database = database

    def _call(self, service: str, **parameters: Any) -> Any:
        given = {name: value for name, value in parameters.items() if value is not None}
        return self._database.query(f"g.call('mangrove.projection.{service}', parameters)", parameters=given).all()

    def create(
        self,
        name: str,
        *,
        vertices: Optional[str] = None,
        edges: Optional[str] = None,
        directed: bool = True,
        weight: Optional[str] = None,
    ) -> dict[str, Any]:
        """Reads a projection: the vertices and edges of these labels, or all.

        Without ``directed``, an edge leads both ways. ``weight`` is the property of edges that is their weight. Returns what
        :meth:`list` has about it.
        """
        row: dict[str, Any] = self._call("create", name=name, vertices=vertices, edges=edges, directed=directed, weight=weight)[0]
        return row

    def list(self) -> list[dict[str, Any]]:
        """The projections, with their sizes in bytes and the last commit that they show."""
        rows: list[dict[str, Any]] = self._call("list")
        return rows

    def refresh(self, name: str) -> dict[str, Any]:
        """Reads again what has changed since the projection was created or refreshed."""
        row: dict[str, Any] = self._call("refresh", name=name)[0]
        return row

    def drop(self, name: str) -> dict[str, Any]:
        """Drops a projection. Returns what :meth:`list` had about it."""
        row: dict[str, Any] = self._call("drop", name=name)[0]
        return row

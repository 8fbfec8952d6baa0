"""Tables that are loaded: which columns are what.

>>> import mangrove
>>> db = mangrove.open()
>>> people = [{"id": 1, "name": "ada"}, {"id": 2, "name": "bob"}]
>>> knows = [{"src": 1, "dst": 2, "since": 2001}]
>>> report = db.load(mangrove.Vertices("person", people, id="id"), mangrove.Edges("knows", knows))
>>> report.vertices, report.edges
(2, 1)
>>> db.query("g.V(1).outE('knows').values('since')").one()
2001
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Any, Callable, Iterable, Mapping, Optional, Sequence, Union

from . import _mangrove
from ._errors import RequestError
from ._progress import Progress, wanted

__all__ = ["Edges", "LoadReport", "Vertices"]


@dataclass(frozen=True)
class Vertices:
    """A table whose rows are vertices.

    ``data`` is a table or a stream of pyarrow, a frame of pandas or polars, a relation of DuckDB, or a list of dictionaries. ``id`` is
    the column of ids: whole numbers, text or UUIDs; without one the graph chooses ids. Labels are those of ``label``, of the column
    ``label_column``, or both. All other columns become properties, unless ``properties`` names them; ``rename`` gives them other keys.
    """

    label: Optional[str]
    data: Any
    id: Optional[str] = None
    label_column: Optional[str] = None
    properties: Optional[Sequence[str]] = None
    rename: Mapping[str, str] = field(default_factory=dict)
    name: Optional[str] = None


@dataclass(frozen=True)
class Edges:
    """A table whose rows are edges: ``source`` and ``target`` are the columns with the ids of the vertices at their ends.

    The other arguments are those of :class:`Vertices`.
    """

    label: Optional[str]
    data: Any
    source: str = "src"
    target: str = "dst"
    id: Optional[str] = None
    label_column: Optional[str] = None
    properties: Optional[Sequence[str]] = None
    rename: Mapping[str, str] = field(default_factory=dict)
    name: Optional[str] = None


@dataclass(frozen=True)
class LoadReport:
    """What a load has done. ``rejected`` has the first rows that were not loaded: table or file, row, and why."""

    vertices: int
    edges: int
    created: int
    updated: int
    unchanged: int
    rejects: int
    seconds: float
    rejected: list[tuple[str, int, str]]

    def __str__(self) -> str:
        said = f"{self.vertices:,} vertices and {self.edges:,} edges in {self.seconds:.2f} s"
        if self.created or self.updated or self.unchanged:
            said += f": {self.created:,} created, {self.updated:,} updated, {self.unchanged:,} unchanged"
        if self.rejects:
            said += f"; {self.rejects:,} rows rejected, the first: {self.rejected[0][0]} row {self.rejected[0][1]}: {self.rejected[0][2]}"
        return said


def _stream(data: Any, name: str) -> tuple[Any, int]:
    """Something with Arrow's stream, and about how many bytes it has."""
    if hasattr(data, "__arrow_c_stream__"):
        size = getattr(data, "nbytes", 0)
        return data, int(size) if isinstance(size, int) else 0
    if isinstance(data, (list, tuple)) and all(isinstance(row, Mapping) for row in data):
        try:
            import pyarrow
        except ImportError as error:
            raise ImportError(
                f"{name}: a list of dictionaries is loaded with the package pyarrow: pip install 'mangrove-graph[arrow]' ({error})"
            ) from None
        names = list(dict.fromkeys(key for row in data for key in row))
        try:
            table = pyarrow.table({key: [row.get(key) for row in data] for key in names})
        except (pyarrow.ArrowInvalid, pyarrow.ArrowTypeError) as error:
            raise RequestError(f"{name}: the values of a key are of several types: {error}", "InvalidArgument") from None
        return table, table.nbytes
    raise RequestError(
        f"{name}: a {type(data).__name__} is no table: it takes a table or a stream of pyarrow, a frame of pandas (2.2 or later) or "
        "polars, a relation of DuckDB, or a list of dictionaries; files are loaded by load_files",
        "InvalidArgument",
    )


def _given(table: Union[Vertices, Edges], at: int) -> dict[str, Any]:
    if not isinstance(table, (Vertices, Edges)):
        raise RequestError(
            f"a {type(table).__name__} says not what its columns are for: give mangrove.Vertices(label, data, id=…) or "
            "mangrove.Edges(label, data, source=…, target=…)",
            "InvalidArgument",
        )
    kind = "vertices" if isinstance(table, Vertices) else "edges"
    name = table.name or f"{table.label or table.label_column or 'table'} ({kind}, argument {at + 1})"
    data, size = _stream(table.data, name)
    return {
        "kind": kind,
        "name": name,
        "data": data,
        "label": table.label,
        "label_column": table.label_column,
        "id": table.id,
        "source": table.source if isinstance(table, Edges) else None,
        "target": table.target if isinstance(table, Edges) else None,
        "properties": None if table.properties is None else list(table.properties),
        "rename": list(table.rename.items()),
        "bytes": size,
    }


def _load(
    run: Callable[[dict[str, Any]], dict[str, Any]],
    progress: Progress,
    upsert: bool,
    keys: Sequence[str],
    edge_keys: Sequence[str],
    max_rejects: Optional[int],
    rejects: Optional[Union[str, "os.PathLike[str]"]],
    mapping: Optional[str] = None,
) -> LoadReport:
    bar, report = wanted(progress, "loading")

    def show(done: int, all: int, rows: int, name: str) -> None:
        if bar is not None:
            bar.show(done, all, "bytes", f"{rows:,} rows")

    load = {
        "upsert": upsert,
        "keys": list(keys),
        "edge_keys": list(edge_keys),
        "max_rejects": max_rejects,
        "rejects": None if rejects is None else os.fspath(rejects),
        "mapping": mapping,
        "progress": report if bar is None else show,
    }
    try:
        return LoadReport(**run(load))
    finally:
        if bar is not None:
            bar.end()


def load_tables(db: _mangrove.Database, tables: Iterable[Union[Vertices, Edges]], progress: Progress, **options: Any) -> LoadReport:
    """Loads tables; see :meth:`Database.load`."""
    given = [_given(table, at) for at, table in enumerate(tables)]
    return _load(lambda load: db._load_tables(given, load), progress, **options)


def load_files(
    db: _mangrove.Database, files: Iterable[Union[str, "os.PathLike[str]"]], progress: Progress, **options: Any
) -> LoadReport:
    """Loads files; see :meth:`Database.load_files`."""
    paths = [os.fspath(file) for file in files]
    return _load(lambda load: db._load_files(paths, load), progress, **options)

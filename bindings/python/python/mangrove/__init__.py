"""Mangrove: a property-graph database in your process that answers Gremlin.

>>> import mangrove
>>> db = mangrove.open()
>>> db.query("g.addV('person').property('name', 'ada').as('a').addV('person').property('name', 'bob').addE('knows').from('a')").all()
[Edge(...)]
>>> db.query("g.V().has('name', name).out('knows').values('name')", name="ada").all()
['bob']
"""

from __future__ import annotations

from typing import Any

from ._database import Database, Isolation
from ._errors import (
    ClosedError,
    CommittedError,
    ConflictError,
    DamagedError,
    Error,
    InternalError,
    OutcomeUnknownError,
    RequestError,
    RetryLaterError,
)
from ._mangrove import (
    Edge,
    Path,
    Prepared,
    Property,
    Results,
    Server,
    Subgraph,
    Table,
    Transaction,
    Vertex,
    VertexProperty,
    __version__,
)
from ._open import open, remote, serve
from .loading import Edges, LoadReport, Vertices

__all__ = [
    "ClosedError",
    "CommittedError",
    "ConflictError",
    "DamagedError",
    "Database",
    "Edge",
    "Edges",
    "Error",
    "InternalError",
    "Isolation",
    "LoadReport",
    "OutcomeUnknownError",
    "Path",
    "Prepared",
    "Property",
    "RequestError",
    "Results",
    "RetryLaterError",
    "Server",
    "Subgraph",
    "Table",
    "Transaction",
    "Vertex",
    "VertexProperty",
    "Vertices",
    "__version__",
    "open",
    "remote",
    "serve",
]


def load_ipython_extension(shell: Any) -> None:
    """Registers the cell magic ``%%gremlin``: ``%load_ext mangrove``."""
    from ._magic import load

    load(shell)

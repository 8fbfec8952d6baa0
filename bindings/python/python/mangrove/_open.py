"""The functions with which everything begins."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Optional, Union

from ._database import Database
from ._mangrove import Server

if TYPE_CHECKING:
    from .gremlin import EmbeddedConnection


def open(  # noqa: A001 - as in the modules of other databases
    location: Union[str, "os.PathLike[str]"] = ":memory:",
    *,
    read_only: bool = False,
    memory_limit: Optional[int] = None,
) -> Database:
    """Opens a database in this process.

    ``location`` is ``":memory:"`` for a new graph that ends with its last handle; a directory, which is made if it does not exist;
    or an address as ``s3://BUCKET/DIRECTORY``. With ``read_only`` nothing is created or changed, and a graph at an address is followed
    while its owner writes. ``memory_limit`` is the number of bytes that the graph, its queries and its loads may use together.

    >>> import mangrove
    >>> with mangrove.open() as db:
    ...     db.query("g.inject(1, 2, 3).sum()").one()
    6
    """
    return Database(os.fspath(location), read_only=read_only, memory_limit=memory_limit)


def serve(db: Database, *, host: str = "127.0.0.1", port: int = 0, name: str = "g", allow_remote: bool = False) -> Server:
    """Serves an open database to other programs: every client of Gremlin Server can connect.

    The server stops at :meth:`Server.stop`, at the end of a ``with`` block, or when it is dropped. With port 0 it takes a free one.
    ``name`` is the traversal source by which clients know the graph. It has no users and no encryption, so it listens on this machine
    only; ``allow_remote`` lets other machines in all the same.

    >>> import mangrove
    >>> db = mangrove.open()
    >>> with mangrove.serve(db) as server:
    ...     server.url.startswith("ws://127.0.0.1:")
    True
    """
    return db._serve(host, port, allow_remote, name)


def remote(db: Database) -> "EmbeddedConnection":
    """The database as a remote connection of gremlinpython, without a socket.

    >>> import mangrove
    >>> from gremlin_python.process.anonymous_traversal import traversal
    >>> g = traversal().with_(mangrove.remote(mangrove.open()))
    >>> g.add_v("person").property("name", "ada").values("name").to_list()
    ['ada']
    """
    from .gremlin import EmbeddedConnection

    return EmbeddedConnection(db)

"""gremlinpython's own ``g`` over an embedded database: bytecode goes in and results come out, without a socket.

>>> import mangrove
>>> from gremlin_python.process.anonymous_traversal import traversal
>>> db = mangrove.open()
>>> g = traversal().with_(mangrove.remote(db))
>>> g.add_v("person").property("name", "ada").iterate()
[...]
>>> g.V().has_label("person").values("name").to_list()
['ada']

Transactions are those of gremlinpython:

>>> tx = g.tx()
>>> gtx = tx.begin()
>>> _ = gtx.add_v("person").property("name", "bob").iterate()
>>> tx.commit()
>>> g.V().count().next()
2
"""

# gremlinpython declares its methods as those that only raise.
# pyright: reportIncompatibleMethodOverride=false

from __future__ import annotations

import io
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Iterator, Optional

from . import _mangrove
from ._errors import ClosedError

try:
    from gremlin_python.driver.remote_connection import RemoteConnection, RemoteTraversal
    from gremlin_python.process.traversal import Bytecode, Traverser
    from gremlin_python.structure.io.graphbinaryV1 import GraphBinaryReader, GraphBinaryWriter
except ImportError as error:
    raise ImportError(
        "mangrove.remote needs the package gremlinpython: pip install 'mangrove-graph[gremlin]'"
    ) from error

__all__ = ["EmbeddedConnection"]


class EmbeddedConnection(RemoteConnection):  # type: ignore[misc]
    """A database of this process, as gremlinpython's remote connection."""

    def __init__(self, db: _mangrove.Database, transaction: Optional[_mangrove.Transaction] = None) -> None:
        super().__init__(f"embedded:{db.location}", "g")
        self._db = db
        self._transaction = transaction
        self._sessions: list[EmbeddedConnection] = []
        self._executor: Optional[ThreadPoolExecutor] = None
        self._is_closed = False
        self._writer = GraphBinaryWriter()
        self._reader = GraphBinaryReader()

    def submit(self, bytecode: Bytecode) -> RemoteTraversal:
        """Runs bytecode. Results are found as they are read."""
        if self._is_closed:
            raise ClosedError("the connection is closed; make another one with mangrove.remote(db)", "Closed")
        written = bytearray()
        self._writer.to_dict(bytecode, written)
        results = self._db._submit(bytes(written), self._transaction)
        return RemoteTraversal(self._traversers(results))

    def _traversers(self, results: _mangrove._WireResults) -> Iterator[Traverser]:
        while True:
            count, content = results.next()
            if count == 0:
                return
            buffer = io.BytesIO(content)
            for _ in range(count):
                yield Traverser(self._reader.to_object(buffer))

    def submit_async(self, bytecode: Bytecode) -> "Future[RemoteTraversal]":
        """As :meth:`submit`, on another thread."""
        if self._executor is None:
            self._executor = ThreadPoolExecutor(max_workers=4, thread_name_prefix="mangrove-remote")

        def run() -> RemoteTraversal:
            found = self.submit(bytecode)
            return RemoteTraversal(iter(list(found.traversers)))

        return self._executor.submit(run)

    def is_closed(self) -> bool:
        """Whether the connection is closed."""
        return self._is_closed

    def is_session_bound(self) -> bool:
        """Whether the connection is that of a transaction."""
        return self._transaction is not None

    def create_session(self) -> "EmbeddedConnection":
        """A connection for one transaction; ``g.tx()`` calls it."""
        if self.is_session_bound():
            raise ValueError("this connection is that of a transaction already; a transaction has none inside")
        session = EmbeddedConnection(self._db, self._db.transaction())
        self._sessions.append(session)
        return session

    def remove_session(self, session: "EmbeddedConnection") -> None:
        """Ends a connection that :meth:`create_session` has made."""
        session.close()
        self._sessions.remove(session)

    def commit(self) -> None:
        """Commits the transaction of the connection."""
        self._of_transaction().commit()

    def rollback(self) -> None:
        """Rolls back the transaction of the connection."""
        self._of_transaction().rollback()

    def _of_transaction(self) -> _mangrove.Transaction:
        if self._transaction is None:
            raise ValueError("this connection has no transaction; g.tx().begin() makes one that has")
        return self._transaction

    def close(self) -> None:
        """Closes the connection, and rolls back transactions that are open. The database stays open."""
        for session in list(self._sessions):
            self.remove_session(session)
        if self._transaction is not None and not self._db.is_closed and self._transaction.is_open:
            self._transaction.rollback()
        if self._executor is not None:
            self._executor.shutdown()
        self._is_closed = True

    def __enter__(self) -> "EmbeddedConnection":
        return self

    def __exit__(self, *exception: Any) -> None:
        self.close()

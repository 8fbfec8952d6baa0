"""The database: what the native class does, and what is written in Python on top of it."""

from __future__ import annotations

import functools
import os
import random
import time
from typing import TYPE_CHECKING, Any, Callable, Literal, Optional, Sequence, TypeVar, Union

from . import _mangrove
from ._errors import ConflictError
from ._progress import Progress
from .algorithms import Algorithms
from .loading import Edges, LoadReport, Vertices, load_files, load_tables
from .projections import Projections

if TYPE_CHECKING:
    import igraph
    import networkx

    from .graphs import Adjacency

Isolation = Literal["serializable", "snapshot"]

_Result = TypeVar("_Result")
_Function = TypeVar("_Function", bound=Callable[..., Any])

#: The longest wait before a transaction is run again, in seconds.
_WAIT_MAX = 0.064


class Database(_mangrove.Database):
    """A database in this process.

    ``location`` is ``":memory:"``, a directory, ``s3://BUCKET/DIRECTORY``, or ``file:DIRECTORY`` for a home of objects in a directory.
    A directory can be open in one process at a time. ``memory_limit`` is the number of bytes that the graph, its queries and its
    loads may use together.

    Handles can be used from any thread. The interpreter's lock is released while the database works.
    """

    __slots__ = ()

    def options(
        self,
        *,
        timeout: Optional[float] = None,
        memory_limit: Optional[int] = None,
        threads: Optional[int] = None,
        isolation: Optional[Isolation] = None,
        retries: Optional[int] = None,
    ) -> Database:
        """Another handle of the same database, whose queries have these options.

        ``timeout`` is in seconds, ``memory_limit`` in bytes that one query may hold. ``threads`` is the most threads that work on a
        query. ``isolation`` and ``retries`` are those of queries that write in a transaction of their own.

        >>> import mangrove
        >>> db = mangrove.open()
        >>> quick = db.options(timeout=0.5, threads=1)
        >>> quick.query("g.V().count()").one()
        0
        """
        return type(self)(_handle=self._with_options(timeout, memory_limit, threads, isolation, retries))

    def run_in_transaction(
        self,
        function: Callable[..., _Result],
        *arguments: Any,
        isolation: Optional[Isolation] = None,
        attempts: int = 10,
        **named: Any,
    ) -> _Result:
        """Calls ``function(tx, *arguments, **named)`` in a transaction, and commits it.

        After a conflict with another transaction, all of it is run again, up to ``attempts`` times. So the function should have no
        effects outside of its transaction.

        >>> import mangrove
        >>> db = mangrove.open()
        >>> def count_and_add(tx):
        ...     count = tx.query("g.V().count()").one()
        ...     tx.query("g.addV('item').property('number', n)", n=count)
        ...     return count
        >>> [db.run_in_transaction(count_and_add) for _ in range(3)]
        [0, 1, 2]
        """
        if attempts < 1:
            raise ValueError(f"attempts is {attempts}; it is 1 or more")
        for attempt in range(1, attempts + 1):
            try:
                with self.transaction(isolation=isolation) as tx:
                    return function(tx, *arguments, **named)
            except ConflictError:
                if attempt == attempts:
                    raise
                # A random part of a time that doubles, so that two transactions that met once do not meet again.
                time.sleep(random.random() * min(_WAIT_MAX, 0.001 * 2**attempt))
        raise AssertionError("the loop returns or raises")

    def transactional(
        self, *, isolation: Optional[Isolation] = None, attempts: int = 10
    ) -> Callable[[Callable[..., _Result]], Callable[..., _Result]]:
        """A decorator: each call of the function is a transaction, which is the first argument of the function.

        See :meth:`run_in_transaction`.

        >>> import mangrove
        >>> db = mangrove.open()
        >>> @db.transactional()
        ... def add_person(tx, name):
        ...     return tx.query("g.addV('person').property('name', name)", name=name).one()
        >>> add_person("ada")["name"]
        'ada'
        """

        def decorate(function: Callable[..., _Result]) -> Callable[..., _Result]:
            @functools.wraps(function)
            def run(*arguments: Any, **named: Any) -> _Result:
                def call(tx: _mangrove.Transaction) -> _Result:
                    return function(tx, *arguments, **named)

                return self.run_in_transaction(call, isolation=isolation, attempts=attempts)

            return run

        return decorate

    @property
    def algo(self) -> Algorithms:
        """The graph algorithms: ``db.algo.pagerank(damping=0.9)``. ``dir(db.algo)`` has their names, ``help`` their options."""
        return Algorithms(self)

    @property
    def projections(self) -> Projections:
        """The named projections, which algorithms read with the option ``projection``."""
        return Projections(self)

    def load(
        self,
        *tables: Union[Vertices, Edges],
        upsert: bool = False,
        keys: Sequence[str] = (),
        edge_keys: Sequence[str] = (),
        max_rejects: Optional[int] = None,
        rejects: Optional[Union[str, "os.PathLike[str]"]] = None,
        progress: Progress = None,
    ) -> LoadReport:
        """Loads tables of other libraries: all of them at once, so that edges find the vertices of other tables.

        Without ``upsert`` the graph must be empty, and stays empty if the load fails. With it, elements that are there already are
        changed, and edges may end at vertices of the graph; vertices are recognized by their ids, or by the properties that ``keys``
        names (``"person.email"``), edges by ``edge_keys`` (``"paid.date"``).

        Rows that cannot be loaded are rejected: the load goes on until there are more than ``max_rejects``, and writes them to the file
        ``rejects``. ``progress`` shows how far the load has come; a function is called with bytes done, all bytes, rows and the table.
        """
        return load_tables(
            self, tables, progress, upsert=upsert, keys=keys, edge_keys=edge_keys, max_rejects=max_rejects, rejects=rejects
        )

    def load_files(
        self,
        *files: Union[str, "os.PathLike[str]"],
        mapping: Optional[str] = None,
        upsert: bool = False,
        keys: Sequence[str] = (),
        edge_keys: Sequence[str] = (),
        max_rejects: Optional[int] = None,
        rejects: Optional[Union[str, "os.PathLike[str]"]] = None,
        progress: Progress = None,
    ) -> LoadReport:
        """Loads files and folders: CSV, Parquet, GraphSON, GraphML, JSON lines, compressed or not.

        ``mapping`` is the text of a mapping, which says what the columns of tables are for. The other arguments are those of
        :meth:`load`.
        """
        return load_files(
            self,
            files,
            progress,
            upsert=upsert,
            keys=keys,
            edge_keys=edge_keys,
            max_rejects=max_rejects,
            rejects=rejects,
            mapping=mapping,
        )

    def to_networkx(
        self, vertices: Sequence[str] = (), edges: Sequence[str] = (), *, properties: bool = True
    ) -> "networkx.MultiDiGraph":
        """The graph as one of NetworkX: nodes are the ids of vertices, keys of edges are their ids, properties are attributes.

        ``vertices`` and ``edges`` are labels; without any, all.
        """
        from . import graphs

        return graphs.to_networkx(self, vertices, edges, properties=properties)

    def to_igraph(self, vertices: Sequence[str] = (), edges: Sequence[str] = (), *, properties: bool = True) -> "igraph.Graph":
        """The graph as one of igraph. The attribute ``id`` of vertices and edges is their id; properties are attributes, too."""
        from . import graphs

        return graphs.to_igraph(self, vertices, edges, properties=properties)

    def to_scipy(
        self,
        vertices: Sequence[str] = (),
        edges: Sequence[str] = (),
        *,
        weight: Optional[str] = None,
        default_weight: Optional[float] = None,
        undirected: bool = False,
    ) -> "Adjacency":
        """The graph as a sparse matrix of SciPy, with the ids of the vertices that its rows stand for.

        ``weight`` is the property of edges that is their value, ``default_weight`` the value of those that have none.
        """
        from . import graphs

        return graphs.to_scipy(
            self, vertices, edges, weight=weight, default_weight=default_weight, undirected=undirected
        )

    def from_networkx(
        self, graph: "networkx.Graph", *, vertex_label: str = "vertex", edge_label: str = "edge", upsert: bool = False
    ) -> LoadReport:
        """Loads a graph of NetworkX: nodes are ids, attributes are properties. The attribute ``label`` of nodes and edges is their
        label."""
        from . import graphs

        return graphs.from_networkx(self, graph, vertex_label=vertex_label, edge_label=edge_label, upsert=upsert)

    def __repr__(self) -> str:
        return f"<mangrove.Database {self.location!r}{' (closed)' if self.is_closed else ''}>"

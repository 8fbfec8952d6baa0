"""The native module."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, Iterator, Optional, Sequence, Union, final, overload

from typing_extensions import Self, disjoint_base

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow

__version__: str
__all__ = [
    "__version__",
    "Database",
    "Prepared",
    "Transaction",
    "Results",
    "Sampler",
    "Server",
    "Table",
    "Canceller",
    "Vertex",
    "Edge",
    "VertexProperty",
    "Property",
    "Path",
    "Subgraph",
    "_algorithms",
    "_after_fork_in_child",
]

@final
class Canceller:
    def __new__(cls) -> Self: ...
    def cancel(self) -> None: ...

@disjoint_base
class Database:
    def __new__(
        cls,
        location: str = ":memory:",
        *,
        read_only: bool = False,
        memory_limit: Optional[int] = None,
        _handle: Optional[Database] = None,
    ) -> Self: ...
    def query(
        self, query: Union[str, Prepared], params: Optional[dict[str, Any]] = None, /, **named: Any
    ) -> Results:
        """Runs a query in a transaction of its own: a traversal or a script in Gremlin, or a prepared query.

        Parameters are given as keyword arguments, or in a dictionary. A query that writes is committed when this returns. One that
        only reads runs as its results are read.
        """

    def prepare(self, text: str) -> Prepared:
        """Parses a query, to be run many times with different parameters."""

    def transaction(self, *, isolation: Optional[str] = None, read_only: bool = False) -> Transaction:
        """Begins a transaction."""

    def explain(self, text: str) -> str:
        """The plan of a query as text."""

    def profile(self, text: str, params: Optional[dict[str, Any]] = None, /, **named: Any) -> str:
        """Runs a traversal to its end, and returns what each operator of its plan did as a table in text."""

    def counts(self) -> tuple[int, int]:
        """The numbers of vertices and edges, from counters."""

    def close(self) -> None:
        """Closes the database: queries that run in other threads end, open transactions are rolled back, unread results are given up."""

    @property
    def location(self) -> str:
        """Where the database is kept."""

    @property
    def is_closed(self) -> bool:
        """Whether the database is closed."""

    def __enter__(self) -> Self: ...
    def __exit__(self, *exception: object) -> None: ...
    def _with_options(
        self,
        timeout: Optional[float] = None,
        memory_limit: Optional[int] = None,
        threads: Optional[int] = None,
        isolation: Optional[str] = None,
        retries: Optional[int] = None,
        canceller: Optional[Canceller] = None,
    ) -> Database: ...
    def _submit(self, bytecode: bytes, transaction: Optional[Transaction] = None) -> _WireResults: ...
    def _algorithm(
        self,
        name: str,
        options: dict[str, Any],
        threads: int = 0,
        progress: Optional[Callable[[str, str, int, int], object]] = None,
    ) -> Table: ...
    def _load_tables(self, tables: list[dict[str, Any]], load: dict[str, Any]) -> dict[str, Any]: ...
    def _load_files(self, files: list[str], load: dict[str, Any]) -> dict[str, Any]: ...
    def vertices(self, *labels: str, keys: Optional[Sequence[str]] = None, mixed: str = "error") -> Table:
        """The properties of vertices as columns: ``id`` and one for each key; without keys also ``label``, and every key."""

    def edges(self, *labels: str, keys: Optional[Sequence[str]] = None, mixed: str = "error") -> Table:
        """The properties of edges as columns: ``id``, ``src``, ``dst`` and one for each key; without keys also ``label``, and every key."""

    def _csr(
        self, vertices: list[str], edges: list[str], undirected: bool, weight: Optional[str], default_weight: Optional[float]
    ) -> tuple[Table, Table, Table, Optional[Table]]: ...
    def _serve(self, host: str, port: int, allow_remote: bool, name: str) -> Server: ...
    def _all_types(self) -> tuple[list[str], list[tuple[str, str, str]]]: ...
    def _begin_epoch(
        self,
        vertex_types: Sequence[tuple[str, Optional[str], Optional[str]]],
        edge_types: Sequence[tuple[int, str, int, Optional[str], str, Optional[str], Optional[str], bool]],
        threads: int,
    ) -> _Epoch: ...
    def _next_epoch(self, epoch: _Epoch, threads: int) -> _Epoch: ...

@final
class Prepared:
    """A query that was parsed once, to be run many times."""

    def __call__(self, params: Optional[dict[str, Any]] = None, /, **named: Any) -> Results: ...
    @property
    def text(self) -> str:
        """The text of the query."""

@final
class Transaction:
    """A transaction: queries that see one snapshot of the graph, and take effect together or not at all."""

    def query(
        self, query: Union[str, Prepared], params: Optional[dict[str, Any]] = None, /, **named: Any
    ) -> Results:
        """Runs a query in the transaction."""

    def vertices(self, *labels: str, keys: Optional[Sequence[str]] = None, mixed: str = "error") -> Table:
        """The properties of vertices as columns, as the transaction sees them."""

    def edges(self, *labels: str, keys: Optional[Sequence[str]] = None, mixed: str = "error") -> Table:
        """The properties of edges as columns, as the transaction sees them."""

    def commit(self) -> None:
        """Makes all writes of the transaction visible at once, and durable."""

    def rollback(self) -> None:
        """Takes back all writes of the transaction."""

    @property
    def is_open(self) -> bool:
        """Whether the transaction has not ended."""

    def __enter__(self) -> Self: ...
    def __exit__(self, exception_type: Optional[type[BaseException]], *exception: object) -> None: ...

@final
class Results:
    """The results of a query. They are found as they are read: by iteration, or by one of the methods."""

    def __iter__(self) -> Iterator[Any]: ...
    def __next__(self) -> Any: ...
    def all(self) -> list[Any]:
        """All results that were not read."""

    def fetchmany(self, size: int = 1024) -> list[Any]:
        """Up to ``size`` further results; an empty list at the end."""

    def first(self) -> Any:
        """The next result, or ``None`` at the end. Later ones are not found."""

    def one(self) -> Any:
        """The only result. Raises :class:`RequestError` if there is none, or more than one."""

    def table(self, *, mixed: str = "error", one_column: bool = False) -> Table:
        """All results that were not read, as columns.

        Values that have no type of Arrow together are an error; with ``mixed="text"`` such a column becomes text. With
        ``one_column=True`` all results are in one column.
        """

    def arrow(self, **options: Any) -> pyarrow.Table:
        """All results that were not read, as a table of pyarrow. See :meth:`table` for the options."""

    def df(self, **options: Any) -> pandas.DataFrame:
        """All results that were not read, as a frame of pandas. See :meth:`table` for the options."""

    def pl(self, **options: Any) -> polars.DataFrame:
        """All results that were not read, as a frame of polars. See :meth:`table` for the options."""

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any: ...
    def _peek(self, size: int) -> list[Any]: ...
    def _repr_html_(self) -> str: ...
    def close(self) -> None:
        """Ends the query and gives up the results that were not read."""

    def cancel(self) -> None:
        """Ends the query, from any thread."""

    def __enter__(self) -> Self: ...
    def __exit__(self, *exception: object) -> None: ...

@final
class Server:
    """A running server. It stops when it is stopped or dropped."""

    def stop(self) -> None:
        """Stops the server. The database stays open."""

    @property
    def url(self) -> str:
        """The address that clients of Gremlin connect to."""

    @property
    def port(self) -> int:
        """The port."""

    def __enter__(self) -> Self: ...
    def __exit__(self, *exception: object) -> None: ...

@final
class Table:
    """A table: columns of Arrow, which other libraries read without a copy."""

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""

    def arrow(self) -> pyarrow.Table:
        """As a table of pyarrow, without a copy."""

    def df(self) -> pandas.DataFrame:
        """As a frame of pandas."""

    def pl(self) -> polars.DataFrame:
        """As a frame of polars, without a copy."""

    def numpy(self) -> dict[str, Any]:
        """As a dictionary of arrays of NumPy, by column. Columns of numbers without gaps are not copied."""

    def rows(self) -> list[dict[str, Any]]:
        """As a list of dictionaries."""

    def __len__(self) -> int: ...
    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any: ...
    def __arrow_c_schema__(self) -> Any: ...
    def _repr_html_(self) -> str: ...

@final
class Vertex:
    """A vertex: its id, its label and its properties."""

    def __new__(cls, id: Any, label: Optional[str] = None, properties: Optional[dict[str, Any]] = None) -> Self: ...
    @property
    def id(self) -> Any: ...
    @property
    def label(self) -> str: ...
    @property
    def properties(self) -> dict[str, Any]: ...
    @property
    def meta(self) -> dict[str, list[dict[str, Any]]]: ...
    def __getitem__(self, key: str, /) -> Any: ...
    def get(self, key: str, default: Any = None) -> Any:
        """The value of a property, or ``default`` if there is none."""

    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

@final
class Edge:
    """An edge: its id, its label, the vertices at its ends without their properties, and its properties."""

    def __new__(
        cls,
        id: Any,
        label: Optional[str] = None,
        source: Optional[Vertex] = None,
        target: Optional[Vertex] = None,
        properties: Optional[dict[str, Any]] = None,
    ) -> Self: ...
    @property
    def id(self) -> Any: ...
    @property
    def label(self) -> str: ...
    @property
    def source(self) -> Vertex: ...
    @property
    def target(self) -> Vertex: ...
    @property
    def properties(self) -> dict[str, Any]: ...
    def __getitem__(self, key: str, /) -> Any: ...
    def get(self, key: str, default: Any = None) -> Any:
        """The value of a property, or ``default`` if there is none."""

    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

@final
class VertexProperty:
    """A property of a vertex: its id, its key, its value and its meta-properties."""

    @property
    def id(self) -> Any: ...
    @property
    def key(self) -> str: ...
    @property
    def value(self) -> Any: ...
    @property
    def meta(self) -> dict[str, Any]: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

@final
class Property:
    """A property of an edge, or a meta-property: its key and its value."""

    @property
    def key(self) -> str: ...
    @property
    def value(self) -> Any: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

@final
class Path(Sequence[Any]):
    """A path: its objects in order, and for each the labels of its step. It is a sequence of its objects."""

    @property
    def objects(self) -> list[Any]: ...
    @property
    def labels(self) -> list[list[str]]: ...
    def _repr_html_(self) -> str: ...
    def __len__(self) -> int: ...
    @overload
    def __getitem__(self, at: int, /) -> Any: ...
    @overload
    def __getitem__(self, at: slice, /) -> list[Any]: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

@final
class Subgraph:
    """A part of a graph, as ``subgraph()`` gathers it."""

    @property
    def vertices(self) -> list[Vertex]: ...
    @property
    def edges(self) -> list[Edge]: ...
    def _repr_html_(self) -> str: ...

@final
class _WireResults:
    def next(self) -> tuple[int, bytes]: ...

def _algorithms() -> list[dict[str, Any]]: ...
def _after_fork_in_child() -> None: ...

@final
class _Array:
    """Numbers that NumPy reads in place: ``numpy.asarray(array)``."""

    @property
    def __array_interface__(self) -> dict[str, Any]: ...

@final
class _Epoch:
    """A moment of the graph, with its vertices and edges by type."""

    def vertex_count(self, vertex_type: int) -> int: ...
    def edge_count(self, edge_type: int) -> int: ...
    def refreshed(self) -> tuple[int, int]: ...
    def commit(self) -> Optional[int]: ...
    def columns(self, edge_type: int) -> tuple[_Array, _Array]: ...
    def vertex_features(
        self,
        vertex_type: int,
        numbers: bytes,
        key: str,
        kind: Optional[str],
        width: Optional[int],
        fill: Optional[float],
        threads: int,
    ) -> _Array: ...
    def edge_features(
        self,
        edge_type: int,
        numbers: bytes,
        key: str,
        kind: Optional[str],
        width: Optional[int],
        fill: Optional[float],
        threads: int,
    ) -> _Array: ...
    def vertex_ids(self, vertex_type: int, numbers: bytes) -> list[Any]: ...
    def vertex_numbers(self, vertex_type: int, ids: Sequence[Any]) -> _Array: ...
    def close(self) -> None: ...

@final
class Sampler:
    """How samples are drawn."""

    def __new__(
        cls,
        fanouts: Sequence[Sequence[int]],
        *,
        replace: bool,
        disjoint: bool,
        weighted: bool,
        times_of: Optional[str],
        last: bool,
        seed: int,
        reverse: Sequence[Optional[int]],
    ) -> Self: ...
    def sample(
        self,
        epoch: _Epoch,
        batch: int,
        seeds: Sequence[tuple[int, bytes, Optional[bytes]]],
        threads: int,
    ) -> tuple[
        list[_Array], list[_Array], list[_Array], list[_Array], Optional[list[_Array]], list[list[int]], list[list[int]]
    ]: ...

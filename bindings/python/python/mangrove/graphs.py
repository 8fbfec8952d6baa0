"""The graph as an object of other libraries, and back: NetworkX, igraph, SciPy.

Large graphs cross as arrays: the rows of neighbors are read at once, by several threads, and not vertex by vertex.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Optional, Sequence

from . import _mangrove
from ._errors import RequestError
from .loading import Edges, LoadReport, Vertices, load_tables

if TYPE_CHECKING:
    import igraph
    import networkx
    import numpy
    import scipy.sparse

__all__ = ["Adjacency", "from_networkx", "to_igraph", "to_networkx", "to_scipy"]


class Adjacency(NamedTuple):
    """A graph as a sparse matrix, and the ids of the vertices that its rows and columns stand for."""

    #: The matrix: 1, or the weight, in the row of an edge's source and the column of its target.
    matrix: "scipy.sparse.csr_array"
    #: By row, the id of the vertex.
    ids: "numpy.ndarray[Any, Any]"


def _needed(package: str, extra: str, error: ImportError) -> ImportError:
    return ImportError(f"this needs the package {package}: pip install {extra} ({error})")


def to_scipy(
    db: _mangrove.Database,
    vertices: Sequence[str] = (),
    edges: Sequence[str] = (),
    *,
    weight: Optional[str] = None,
    default_weight: Optional[float] = None,
    undirected: bool = False,
) -> Adjacency:
    """The graph as a sparse matrix of SciPy; see :meth:`Database.to_scipy`."""
    try:
        import numpy
        import scipy.sparse
    except ImportError as error:
        raise _needed("scipy", "scipy", error) from None
    ids, indptr, indices, weights = db._csr(list(vertices), list(edges), undirected, weight, default_weight)
    rows, columns = indptr.numpy()["indptr"], indices.numpy()["indices"]
    values = numpy.ones(len(columns)) if weights is None else weights.numpy()["weight"]
    count = len(rows) - 1
    return Adjacency(scipy.sparse.csr_array((values, columns, rows), shape=(count, count)), ids.numpy()["id"])


def _attributes(table: _mangrove.Table, taken: Sequence[str]) -> tuple[dict[str, list[Any]], list[str]]:
    columns = table.arrow().to_pydict()
    return columns, [name for name in columns if name not in taken]


def to_networkx(
    db: _mangrove.Database, vertices: Sequence[str] = (), edges: Sequence[str] = (), *, properties: bool = True
) -> "networkx.MultiDiGraph":
    """The graph as one of NetworkX; see :meth:`Database.to_networkx`."""
    try:
        import networkx
    except ImportError as error:
        raise _needed("networkx", "networkx", error) from None
    with db.transaction(read_only=True) as tx:
        graph: Any = networkx.MultiDiGraph()
        columns, keys = _attributes(tx.vertices(*vertices, keys=None if properties else []), ["id"])
        graph.add_nodes_from(_rows(columns, keys, ["id"]))
        columns, keys = _attributes(tx.edges(*edges, keys=None if properties else []), ["id", "src", "dst"])
        known = set(graph)
        graph.add_edges_from(
            (source, target, key, attributes)
            for (source, target, key, attributes) in _rows(columns, keys, ["src", "dst", "id"])
            if source in known and target in known
        )
    return graph


def _rows(columns: dict[str, list[Any]], keys: Sequence[str], first: Sequence[str]) -> list[tuple[Any, ...]]:
    """Rows of ids with a dictionary of the values that they have."""
    values = [columns[key] for key in keys]
    attributes = [{key: value for key, value in zip(keys, row) if value is not None} for row in zip(*values)]
    if not keys:
        attributes = [{} for _ in columns[first[0]]]
    return list(zip(*(columns[name] for name in first), attributes))


def to_igraph(
    db: _mangrove.Database, vertices: Sequence[str] = (), edges: Sequence[str] = (), *, properties: bool = True
) -> "igraph.Graph":
    """The graph as one of igraph; see :meth:`Database.to_igraph`."""
    try:
        import igraph
    except ImportError as error:
        raise _needed("igraph", "igraph", error) from None
    with db.transaction(read_only=True) as tx:
        found, keys = _attributes(tx.vertices(*vertices, keys=None if properties else []), ["id"])
        links, link_keys = _attributes(tx.edges(*edges, keys=None if properties else []), ["id", "src", "dst"])
    numbers = {key: number for number, key in enumerate(found["id"])}
    kept = [at for at, (source, target) in enumerate(zip(links["src"], links["dst"])) if source in numbers and target in numbers]
    graph = igraph.Graph(
        n=len(numbers), edges=[(numbers[links["src"][at]], numbers[links["dst"][at]]) for at in kept], directed=True
    )
    # igraph gives the attribute "name" a meaning: it names the vertex. So ids have another one.
    graph.vs["id"] = found["id"]
    for key in keys:
        graph.vs[key] = found[key]
    graph.es["id"] = [links["id"][at] for at in kept]
    for key in link_keys:
        graph.es[key] = [links[key][at] for at in kept]
    return graph


def from_networkx(
    db: _mangrove.Database, graph: "networkx.Graph", *, vertex_label: str = "vertex", edge_label: str = "edge", upsert: bool = False
) -> LoadReport:
    """Loads a graph of NetworkX; see :meth:`Database.from_networkx`."""
    for node in graph:
        if not isinstance(node, (int, str)) or isinstance(node, bool):
            raise RequestError(
                f"the node {node!r} is no id: an id is an int or a str; networkx.relabel_nodes gives nodes other names", "InvalidArgument"
            )
    kinds = {type(node) for node in graph}
    if len(kinds) > 1:
        raise RequestError(
            "some nodes are int and some are str, and a column of ids has one type; networkx.relabel_nodes(graph, str) makes all text",
            "InvalidArgument",
        )

    def plain(attributes: dict[Any, Any]) -> dict[str, Any]:
        return {str(key): value for key, value in attributes.items() if str(key) not in _TAKEN}

    nodes = [{**plain(attributes), _ID: node, _LABEL: str(attributes.get("label", vertex_label))} for node, attributes in graph.nodes(data=True)]
    links = [
        {**plain(attributes), _SOURCE: source, _TARGET: target, _LABEL: str(attributes.get("label", edge_label))}
        for source, target, attributes in graph.edges(data=True)
    ]
    tables: list[Any] = []
    if nodes:
        tables.append(Vertices(None, nodes, id=_ID, label_column=_LABEL, name="nodes"))
    if links:
        tables.append(Edges(None, links, source=_SOURCE, target=_TARGET, label_column=_LABEL, name="edges"))
    options: dict[str, Any] = {"upsert": upsert, "keys": (), "edge_keys": (), "max_rejects": 0, "rejects": None}
    return load_tables(db, tables, False, **options)


_ID, _LABEL, _SOURCE, _TARGET = "~id", "~label", "~source", "~target"
#: The attribute that is the label, and no property.
_TAKEN = {"label", "id"}

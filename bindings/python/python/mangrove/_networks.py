"""A database as the typed graph of a neural network, at one moment: what :mod:`mangrove.pyg` and :mod:`mangrove.dgl` share."""

# PyTorch is not part of what the types are checked with.
# pyright: reportMissingImports=false

from __future__ import annotations

from typing import Any, List, Literal, Mapping, NamedTuple, Optional, Sequence, Tuple, TypeVar, Union

import numpy as np
import torch
from torch import Tensor

from . import _mangrove
from ._database import Database
from ._errors import RequestError

#: The name of an edge type: source, name, target.
Triple = Tuple[str, str, str]
#: Fan-outs by hop, for all edge types or by edge type.
Fanouts = Union[Sequence[int], Mapping[Triple, Sequence[int]]]

_Self = TypeVar("_Self", bound="TypedGraph")


class NodeType:
    """A type of vertices: those with ``label``, or all vertices of the graph (``label=None``). ``time`` is the property with the time of
    a vertex, an integer."""

    def __init__(self, label: Optional[str], *, time: Optional[str] = None) -> None:
        self.label = label
        self.time = time


class EdgeType:
    """A type of edges: those with ``label``, or edges of all labels (``label=None``).

    ``direction`` says how stored edges lead: ``"out"`` from source to target, ``"in"`` from target to source, so that every edge is turned
    around, ``"both"`` in both directions. ``weight`` is the property with the weight of an edge, 1 for edges without it. ``time`` is the
    property with the time of an edge, an integer. ``features`` are the properties of edges that can be read.
    """

    def __init__(
        self,
        label: Optional[str],
        *,
        direction: Literal["out", "in", "both"] = "out",
        weight: Optional[str] = None,
        time: Optional[str] = None,
        features: Optional[Mapping[str, str]] = None,
    ) -> None:
        self.label = label
        self.direction = direction
        self.weight = weight
        self.time = time
        self.features = dict(features or {})


class TypedGraph:
    """Vertices and edges of a database by type, at one moment."""

    def __init__(
        self,
        db: Database,
        nodes: Union[Sequence[str], Mapping[str, NodeType], None] = None,
        edges: Union[Sequence[Triple], Mapping[Triple, EdgeType], None] = None,
        *,
        features: Optional[Mapping[str, Mapping[str, str]]] = None,
        fill: Optional[Mapping[str, Mapping[str, float]]] = None,
        homogeneous: bool = False,
        threads: int = 0,
    ) -> None:
        """``nodes`` are the node types: labels, or a dictionary of names and :class:`NodeType`. ``edges`` are the edge types: triples of
        source, label and target, or a dictionary of triples and :class:`EdgeType`. Without them, the graph has all types that the
        database has. ``features`` are the tensors of each node type: the name of the tensor, and the property that it is made
        of. ``fill`` are the values that stand for properties that a vertex does not have, by node type and name of the tensor.
        Without one, a missing value is an error.

        A ``homogeneous`` graph has one node type and one edge type, which need not be named. ``threads`` is the most threads that
        work on one call; 0 means one for each executor.
        """
        if nodes is None or edges is None:
            all_nodes, all_edges = db._all_types()
            nodes = all_nodes if nodes is None else nodes
            edges = [triple for triple in all_edges if {triple[0], triple[2]} <= set(nodes)] if edges is None else edges
        if not isinstance(nodes, Mapping):
            nodes = {label: NodeType(label) for label in nodes}
        if not isinstance(edges, Mapping):
            edges = {(source, label, target): EdgeType(label) for source, label, target in edges}
        self._database = db
        self._nodes = dict(nodes)
        self._edges = dict(edges)
        self._node_places = {name: place for place, name in enumerate(self._nodes)}
        self._edge_places = {triple: place for place, triple in enumerate(self._edges)}
        for source, name, target in self._edges:
            for end in (source, target):
                if end not in self._node_places:
                    raise RequestError(f"the edge type {(source, name, target)} has an end '{end}', which is no node type")
        self._features = {name: dict(of_type) for name, of_type in (features or {}).items()}
        for name in self._features:
            if name not in self._node_places:
                raise RequestError(f"features are given for '{name}', which is no node type: {', '.join(self._nodes)}")
        self._fill = {name: dict(of_type) for name, of_type in (fill or {}).items()}
        self.homogeneous = homogeneous
        if homogeneous and (len(self._nodes), len(self._edges)) != (1, 1):
            raise RequestError(
                f"a homogeneous graph has one node type and one edge type, and not {len(self._nodes)} and {len(self._edges)}"
            )
        self.threads = threads
        self._shapes: dict[tuple[str, str], tuple[torch.dtype, tuple[int, ...]]] = {}
        self._epoch = db._begin_epoch(
            [(name, of.label, of.time) for name, of in self._nodes.items()],
            [
                (
                    self._node_places[source],
                    name,
                    self._node_places[target],
                    of.label,
                    of.direction,
                    of.weight,
                    of.time,
                    bool(of.features),
                )
                for (source, name, target), of in self._edges.items()
            ],
            threads,
        )

    @property
    def node_types(self) -> list[str]:
        """The names of the node types."""
        return list(self._nodes)

    @property
    def edge_types(self) -> list[Triple]:
        """The names of the edge types."""
        return list(self._edges)

    def metadata(self) -> tuple[list[str], list[Triple]]:
        """Node types and edge types, for models such as ``to_hetero``."""
        return self.node_types, self.edge_types

    def refresh(self) -> tuple[int, int]:
        """Begins an epoch with the newest moment. Returns how many pages of vertices were read, and how many were kept."""
        next_epoch = self._database._next_epoch(self._epoch, self.threads)
        self._epoch.close()
        self._epoch = next_epoch
        self._shapes.clear()
        return next_epoch.refreshed()

    def close(self) -> None:
        """Gives up the moment, so that the database can free what only it shows."""
        self._epoch.close()

    def __enter__(self: _Self) -> _Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    @property
    def commit(self) -> Optional[int]:
        """The timestamp of the last commit that the epoch shows."""
        return self._epoch.commit()

    def _node_place(self, node_type: Optional[str]) -> int:
        if node_type is None and self.homogeneous:
            return 0
        try:
            return self._node_places[node_type]  # type: ignore[index]
        except KeyError:
            raise RequestError(f"'{node_type}' is no node type: {', '.join(self._nodes)}") from None

    def _edge_place(self, edge_type: Optional[Triple]) -> int:
        if edge_type is None and self.homogeneous:
            return 0
        try:
            return self._edge_places[tuple(edge_type)]  # type: ignore[index, arg-type]
        except (KeyError, TypeError):
            raise RequestError(f"{edge_type} is no edge type: {', '.join(map(str, self._edges))}") from None

    def num_nodes(self, node_type: Optional[str] = None) -> int:
        """The number of vertices of a type."""
        return self._epoch.vertex_count(self._node_place(node_type))

    def num_edges(self, edge_type: Optional[Triple] = None) -> int:
        """The number of edges of a type."""
        return self._epoch.edge_count(self._edge_place(edge_type))

    def ids(self, node_type: Optional[str], numbers: Any) -> list[Any]:
        """The ids of vertices by their numbers."""
        return self._epoch.vertex_ids(self._node_place(node_type), _bytes(numbers))

    def numbers(self, node_type: Optional[str], ids: Sequence[Any]) -> Tensor:
        """The numbers of vertices by their ids."""
        return _tensor(self._epoch.vertex_numbers(self._node_place(node_type), list(ids)))

    def tensor(
        self,
        node_type: Optional[str],
        key: str,
        index: Any = None,
        *,
        dtype: Optional[Literal["float32", "float64", "int64"]] = None,
        fill: Optional[float] = None,
    ) -> Tensor:
        """The values of a property of the vertices of a type, or of those with the numbers ``index``: a row for each vertex."""
        place = self._node_place(node_type)
        numbers = self._numbers_of(index, self._epoch.vertex_count(place))
        return _tensor(
            self._epoch.vertex_features(place, _bytes(numbers), key, dtype, None, fill, self.threads)
        )

    def _feature_key(self, node_type: Optional[str], name: str) -> tuple[int, str, str]:
        """The place of a node type, its name, and the property that a tensor of it is made of."""
        place = self._node_place(node_type)
        of_type = self.node_types[place]
        try:
            return place, of_type, self._features[of_type][name]
        except KeyError:
            raise KeyError(f"the node type '{of_type}' has no tensor '{name}': name its property in features") from None

    def feature(self, node_type: Optional[str], name: str, index: Any = None) -> Tensor:
        """One of the ``features`` of a node type, of all vertices or of those with the numbers ``index``: a row for each vertex."""
        place, of_type, key = self._feature_key(node_type, name)
        numbers = self._numbers_of(index, self._epoch.vertex_count(place))
        fill = self._fill.get(of_type, {}).get(name)
        shape = self._feature_shape(node_type, name) if len(numbers) == 0 or fill is not None else None
        if shape is not None and len(numbers) == 0:
            return torch.empty((0, *shape[1]), dtype=shape[0])
        dtype, width = (None, None) if shape is None else (str(shape[0]).split(".")[-1], (shape[1] or (1,))[0])
        return _tensor(self._epoch.vertex_features(place, _bytes(numbers), key, dtype, width, fill, self.threads))

    def _feature_shape(self, node_type: Optional[str], name: str) -> tuple[torch.dtype, tuple[int, ...]]:
        """Type and shape of a row: those of the first value that there is."""
        place, of_type, key = self._feature_key(node_type, name)
        fill = self._fill.get(of_type, {}).get(name)
        known = self._shapes.get((of_type, name))
        if known is None:
            count = self._epoch.vertex_count(place)
            count = count if fill is not None else min(count, 1)
            numbers = _bytes(np.arange(count, dtype=np.int64))
            read = _tensor(self._epoch.vertex_features(place, numbers, key, None, None, fill, self.threads))
            known = self._shapes[(of_type, name)] = (read.dtype, tuple(read.shape[1:]))
        return known

    def feature_size(self, node_type: Optional[str], name: str) -> tuple[int, ...]:
        """The shape of one of the ``features`` of a node type."""
        return (self.num_nodes(node_type), *self._feature_shape(node_type, name)[1])

    def edge_tensor(
        self,
        edge_type: Optional[Triple],
        name: str,
        index: Any = None,
        *,
        dtype: Optional[Literal["float32", "float64", "int64"]] = None,
        fill: Optional[float] = None,
    ) -> Tensor:
        """The values of one of the ``features`` of an edge type, of all edges or of those with the numbers ``index``."""
        place = self._edge_place(edge_type)
        of = list(self._edges.values())[place]
        if name not in of.features:
            raise RequestError(f"the edge type has no feature '{name}': give it as EdgeType(…, features={{'{name}': KEY}})")
        numbers = self._numbers_of(index, self._epoch.edge_count(place))
        return _tensor(
            self._epoch.edge_features(place, _bytes(numbers), of.features[name], dtype, None, fill, self.threads)
        )

    @staticmethod
    def _numbers_of(index: Any, count: int) -> Any:
        if index is None:
            return np.arange(count, dtype=np.int64)
        if isinstance(index, slice):
            return np.arange(count, dtype=np.int64)[index]
        if isinstance(index, Tensor):
            index = index.detach().cpu().numpy()
        index = np.asarray(index)
        return index.nonzero()[0] if index.dtype == np.bool_ else index

    def edge_index(self, edge_type: Optional[Triple] = None) -> Tensor:
        """All edges of a type: two rows, sources and targets. Edges are in the order of their targets, and this order is that of their
        numbers."""
        begins, sources = self._columns(edge_type)
        targets = torch.repeat_interleave(torch.arange(begins.numel() - 1), begins.diff())
        return torch.stack([sources, targets])

    def _columns(self, edge_type: Optional[Triple]) -> tuple[Tensor, Tensor]:
        begins, sources = self._epoch.columns(self._edge_place(edge_type))
        return _tensor(begins), _tensor(sources)


class Drawn(NamedTuple):
    """A sample: vertices by node type, edges by edge type."""

    #: The numbers of the vertices: seeds first, then those that each hop has found.
    nodes: List[Tensor]
    #: For each edge, the place of its source in ``nodes`` of the source's type.
    rows: List[Tensor]
    #: For each edge, the place of its target in ``nodes`` of the target's type.
    cols: List[Tensor]
    #: The numbers of the edges.
    edges: List[Tensor]
    #: For each vertex, the seed whose tree it is in; ``None`` if trees share vertices.
    trees: Optional[List[Tensor]]
    #: How many vertices are seeds, and how many each hop has found.
    node_hops: List[List[int]]
    #: How many edges each hop has followed.
    edge_hops: List[List[int]]


class Draws:
    """Draws samples of the neighbors of seeds, one after the other. ``reverse`` names for an edge type the type of the edges in the other
    direction, for samples of edges of both directions."""

    def __init__(
        self,
        graph: TypedGraph,
        num_neighbors: Fanouts,
        *,
        replace: bool = False,
        reverse: Optional[Mapping[Triple, Triple]] = None,
        disjoint: bool = False,
        times_of: Optional[Literal["nodes", "edges"]] = None,
        last: bool = False,
        weighted: bool = False,
        seed: Optional[int] = None,
        threads: Optional[int] = None,
    ) -> None:
        if isinstance(num_neighbors, Mapping):
            for triple in num_neighbors:
                graph._edge_place(triple)
            hops = max((len(of_type) for of_type in num_neighbors.values()), default=0)
            by_type = {tuple(triple): list(of_type) for triple, of_type in num_neighbors.items()}
            fanouts = [by_type.get(triple, [0] * hops) for triple in graph.edge_types]
        else:
            fanouts = [list(num_neighbors)] * len(graph.edge_types)
        reverse_places: list[Optional[int]] = []
        if reverse is not None:
            named = {tuple(one): tuple(other) for one, other in reverse.items()}
            named.update({other: one for one, other in named.items()})
            for triple in graph.edge_types:
                other = named.get(triple, triple if triple[0] == triple[2] else None)
                reverse_places.append(None if other is None else graph._edge_place(other))  # type: ignore[arg-type]
        self._graph = graph
        self._threads = graph.threads if threads is None else threads
        self._batch = 0
        self._sampler = _mangrove.Sampler(
            fanouts,
            replace=replace,
            disjoint=disjoint or times_of is not None,
            weighted=weighted,
            times_of=times_of,
            last=last,
            seed=int(torch.randint(1 << 62, ())) if seed is None else seed,
            reverse=reverse_places,
        )

    def draw(self, seeds: Mapping[Optional[str], Any], times: Optional[Mapping[Optional[str], Any]] = None) -> Drawn:
        """The next sample: of the vertices with these numbers by node type."""
        graph = self._graph
        given = [
            (graph._node_place(name), _bytes(numbers), None if times is None else _bytes(times[name]))
            for name, numbers in seeds.items()
        ]
        batch, self._batch = self._batch, self._batch + 1
        nodes, rows, cols, edges, trees, node_hops, edge_hops = self._sampler.sample(
            graph._epoch, batch, given, self._threads
        )
        trees = None if trees is None else _tensors(trees)
        return Drawn(_tensors(nodes), _tensors(rows), _tensors(cols), _tensors(edges), trees, node_hops, edge_hops)


def _bytes(numbers: Any) -> bytes:
    """Numbers as the bytes of 64-bit integers."""
    if isinstance(numbers, Tensor):
        numbers = numbers.detach().cpu().numpy()
    return np.ascontiguousarray(numbers, dtype="<i8").tobytes()


def _tensor(array: Any) -> Tensor:
    """A tensor that reads an array of the native module in place."""
    return torch.from_numpy(np.asarray(array))


def _tensors(arrays: Sequence[Any]) -> List[Tensor]:
    return [_tensor(array) for array in arrays]

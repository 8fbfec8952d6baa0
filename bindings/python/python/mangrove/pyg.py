"""PyTorch Geometric over a live database: feature store, graph store, and neighbor sampling.

>>> import mangrove, mangrove.pyg
>>> db = mangrove.open()
>>> _ = db.query("g.addV('paper').property('x', [1.0, 2.0]).as('a').addV('paper').property('x', [3.0, 4.0]).addE('cites').to('a')").all()
>>> graph = mangrove.pyg.Graph(db, features={"paper": {"x": "x"}})
>>> loader = graph.loader("paper", num_neighbors=[10, 5], batch_size=128)
>>> [batch["paper"].x.shape for batch in loader]
[torch.Size([2, 2])]

A :class:`Graph` shows the database at one moment, its *epoch*: samples and features fit together whatever writers commit. A loader of
:meth:`Graph.loader` begins each pass over its batches with the newest moment, for which only changed pages are read. PyTorch
Geometric's own loaders take ``data=graph.stores`` and ``neighbor_sampler=graph.sampler(…)``.

Vertices of a type have numbers from 0 on, the rows of tensors. A number belongs to one epoch: after vertices were added or removed, others
may have moved. :meth:`Graph.ids` and :meth:`Graph.numbers` say which vertex is which.

Neighbors are sampled and features are read in the native module, without the interpreter's lock. Processes that loaders fork
(``num_workers``) cannot use a database that is open in their parent.
"""

# PyTorch Geometric is not part of what the types are checked with.
# pyright: reportMissingImports=false

from __future__ import annotations

from typing import Any, Callable, Iterator, List, Literal, Mapping, Optional, Sequence, Tuple, Union

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import FeatureStore as _FeatureStore
from torch_geometric.data import GraphStore as _GraphStore
from torch_geometric.data import TensorAttr
from torch_geometric.data.graph_store import EdgeAttr, EdgeLayout
from torch_geometric.loader import NeighborLoader as _NeighborLoader
from torch_geometric.sampler import (
    BaseSampler,
    EdgeSamplerInput,
    HeteroSamplerOutput,
    NegativeSampling,
    NodeSamplerInput,
    SamplerOutput,
)
from torch_geometric.sampler.neighbor_sampler import edge_sample, node_sample

from . import _mangrove
from ._database import Database
from ._errors import RequestError

__all__ = ["EdgeType", "FeatureStore", "Graph", "GraphStore", "Loader", "NeighborSampler", "NodeType"]

#: The name of an edge type: source, name, target.
Triple = Tuple[str, str, str]
#: What chooses vertices: their numbers, or a mask.
Nodes = Union[Tensor, Sequence[int], None]


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


class Graph:
    """Vertices and edges of a database by type, at one moment.

    ``nodes`` are the node types: labels, or a dictionary of names and :class:`NodeType`. ``edges`` are the edge types: triples of source,
    label and target, or a dictionary of triples and :class:`EdgeType`. Without them, the graph has all types that the database has.
    ``features`` are the tensors of each node type: the name of the tensor, and the property that it is made of. ``homogeneous``
    gives batches without types, as PyTorch Geometric's ``Data``; the graph then has one node type and one edge type.

    ``fill`` are the values that stand for properties that a vertex does not have, by node type and name of the tensor. Without
    one, a missing value is an error. ``threads`` is the most threads that work on one call; 0 means one for each executor.
    """

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
        self.feature_store = FeatureStore(self)
        self.graph_store = GraphStore(self)

    @property
    def stores(self) -> tuple[FeatureStore, GraphStore]:
        """The two stores, as the ``data`` of PyTorch Geometric's loaders."""
        return self.feature_store, self.graph_store

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

    def __enter__(self) -> Graph:
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

    def sampler(
        self, num_neighbors: Union[Sequence[int], Mapping[Triple, Sequence[int]]], **options: Any
    ) -> NeighborSampler:
        """A sampler for PyTorch Geometric's loaders. ``options`` are those of :class:`NeighborSampler`."""
        return NeighborSampler(self, num_neighbors, **options)

    def loader(
        self,
        input_nodes: Union[Nodes, str, Tuple[str, Nodes], Callable[[Graph], Any]],
        num_neighbors: Union[Sequence[int], Mapping[Triple, Sequence[int]]],
        *,
        refresh: bool = True,
        sampler: Optional[Mapping[str, Any]] = None,
        **options: Any,
    ) -> Loader:
        """A loader whose passes begin with the newest moment of the database. See :class:`Loader`."""
        return Loader(self, input_nodes, num_neighbors, refresh=refresh, sampler=sampler, **options)


class Loader:
    """Batches of seeds with their sampled neighbors and features: PyTorch Geometric's ``NeighborLoader``, made anew for each pass.

    Unless ``refresh`` is false, a pass begins with the newest moment of the database. ``input_nodes`` are the seeds, as
    ``NeighborLoader`` takes them, or a function of the graph that returns them: numbers belong to one epoch, so a function finds
    the seeds of each. ``sampler`` are options of :class:`NeighborSampler`, ``options`` those of ``NeighborLoader``.
    """

    def __init__(
        self,
        graph: Graph,
        input_nodes: Any,
        num_neighbors: Any,
        *,
        refresh: bool = True,
        sampler: Optional[Mapping[str, Any]] = None,
        **options: Any,
    ) -> None:
        self.graph = graph
        self._input_nodes = input_nodes
        self._num_neighbors = num_neighbors
        self._refresh = refresh
        self._options = options
        self._sampler = NeighborSampler(graph, num_neighbors, **(sampler or {}))
        self._is_first = True

    def __iter__(self) -> Iterator[Any]:
        # The first pass reads the epoch that the graph has begun with.
        if self._refresh and not self._is_first:
            self.graph.refresh()
        self._is_first = False
        return iter(self._loader())

    def __len__(self) -> int:
        return len(self._loader())

    def _loader(self) -> Any:
        nodes = self._input_nodes(self.graph) if callable(self._input_nodes) else self._input_nodes
        if nodes is None and self.graph.homogeneous:
            nodes = torch.arange(self.graph.num_nodes())
        return _NeighborLoader(
            self.graph.stores,
            num_neighbors=self._num_neighbors,
            input_nodes=nodes,
            neighbor_sampler=self._sampler,
            **self._options,
        )


class FeatureStore(_FeatureStore):  # type: ignore[misc]
    """The features of a :class:`Graph`. They are read only: the database changes them, in Gremlin."""

    def __init__(self, graph: Graph) -> None:
        super().__init__()
        self.__dict__["_graph"] = graph

    def _key(self, attr: TensorAttr) -> tuple[int, str, str, str]:
        graph: Graph = self._graph
        place = graph._node_place(attr.group_name)
        name = graph.node_types[place]
        try:
            return place, name, attr.attr_name, graph._features[name][attr.attr_name]
        except KeyError:
            raise KeyError(f"the node type '{name}' has no tensor '{attr.attr_name}': name its property in features") from None

    def _get_tensor(self, attr: TensorAttr) -> Tensor:
        graph: Graph = self._graph
        place, name, tensor_name, key = self._key(attr)
        count = graph._epoch.vertex_count(place)
        numbers = graph._numbers_of(attr.index, count)
        fill = graph._fill.get(name, {}).get(tensor_name)
        shape = self._shape(place, name, tensor_name, key, fill) if len(numbers) == 0 or fill is not None else None
        if shape is not None and len(numbers) == 0:
            return torch.empty((0, *shape[1]), dtype=shape[0])
        dtype, width = (None, None) if shape is None else (str(shape[0]).split(".")[-1], (shape[1] or (1,))[0])
        return _tensor(graph._epoch.vertex_features(place, _bytes(numbers), key, dtype, width, fill, graph.threads))

    def _shape(
        self, place: int, name: str, tensor_name: str, key: str, fill: Optional[float]
    ) -> tuple[torch.dtype, tuple[int, ...]]:
        """Type and shape of a row: those of the first value that there is."""
        graph: Graph = self._graph
        known = graph._shapes.get((name, tensor_name))
        if known is None:
            count = graph._epoch.vertex_count(place)
            count = count if fill is not None else min(count, 1)
            read = _tensor(
                graph._epoch.vertex_features(
                    place, _bytes(np.arange(count, dtype=np.int64)), key, None, None, fill, graph.threads
                )
            )
            known = graph._shapes[(name, tensor_name)] = (read.dtype, tuple(read.shape[1:]))
        return known

    def _get_tensor_size(self, attr: TensorAttr) -> tuple[int, ...]:
        graph: Graph = self._graph
        place, name, tensor_name, key = self._key(attr)
        fill = graph._fill.get(name, {}).get(tensor_name)
        return (graph._epoch.vertex_count(place), *self._shape(place, name, tensor_name, key, fill)[1])

    def get_all_tensor_attrs(self) -> List[TensorAttr]:
        graph: Graph = self._graph
        return [
            TensorAttr(None if graph.homogeneous else node_type, name)
            for node_type, names in graph._features.items()
            for name in names
        ]

    def _put_tensor(self, tensor: Any, attr: TensorAttr) -> bool:
        raise NotImplementedError("features are properties of vertices: change them in the database")

    def _remove_tensor(self, attr: TensorAttr) -> bool:
        raise NotImplementedError("features are properties of vertices: remove them in the database")


class GraphStore(_GraphStore):  # type: ignore[misc]
    """The edges of a :class:`Graph`, in compressed columns. They are read only: the database changes them, in Gremlin."""

    def __init__(self, graph: Graph) -> None:
        super().__init__()
        self.__dict__["_graph"] = graph

    def _get_edge_index(self, edge_attr: EdgeAttr) -> Optional[tuple[Tensor, Tensor]]:
        graph: Graph = self._graph
        if edge_attr.layout != EdgeLayout.CSC:
            return None
        begins, sources = graph._columns(edge_attr.edge_type)
        return sources, begins

    def get_all_edge_attrs(self) -> List[EdgeAttr]:
        graph: Graph = self._graph
        return [
            EdgeAttr(
                edge_type=None if graph.homogeneous else triple,
                layout=EdgeLayout.CSC,
                is_sorted=True,
                size=(graph.num_nodes(triple[0]), graph.num_nodes(triple[2])),
            )
            for triple in graph.edge_types
        ]

    def _put_edge_index(self, edge_index: Any, edge_attr: EdgeAttr) -> bool:
        raise NotImplementedError("edges are those of the database: change them there")

    def _remove_edge_index(self, edge_attr: EdgeAttr) -> bool:
        raise NotImplementedError("edges are those of the database: remove them there")


class NeighborSampler(BaseSampler):  # type: ignore[misc]
    """Samples neighbors in the native module.

    ``num_neighbors`` are the fan-outs by hop, for all edge types or by edge type; -1 means all. An edge type that is not named is
    not followed. ``subgraph_type`` is ``"directional"`` or ``"bidirectional"``; for the latter, ``reverse`` names for an edge type the type of the
    edges in the other direction, and edges between vertices of one type are their own.

    ``times_of`` makes samples temporal: of ``"nodes"`` or ``"edges"`` that have times, none is later than its seed. Each seed then has
    a tree of its own. ``temporal_strategy="last"`` takes the last ones.

    A sample is a function of ``seed`` and of how many batches the sampler has drawn before. It does not depend on threads.
    """

    def __init__(
        self,
        graph: Graph,
        num_neighbors: Union[Sequence[int], Mapping[Triple, Sequence[int]]],
        *,
        replace: bool = False,
        subgraph_type: Literal["directional", "bidirectional"] = "directional",
        reverse: Optional[Mapping[Triple, Triple]] = None,
        disjoint: bool = False,
        times_of: Optional[Literal["nodes", "edges"]] = None,
        temporal_strategy: Literal["uniform", "last"] = "uniform",
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
        if subgraph_type not in ("directional", "bidirectional"):
            raise RequestError(f"subgraph_type is 'directional' or 'bidirectional', and not {subgraph_type!r}")
        if temporal_strategy not in ("uniform", "last"):
            raise RequestError(f"temporal_strategy is 'uniform' or 'last', and not {temporal_strategy!r}")
        reverse_places: list[Optional[int]] = []
        if subgraph_type == "bidirectional":
            named = {tuple(one): tuple(other) for one, other in (reverse or {}).items()}
            named.update({other: one for one, other in named.items()})
            for triple in graph.edge_types:
                other = named.get(triple, triple if triple[0] == triple[2] else None)
                reverse_places.append(None if other is None else graph._edge_place(other))  # type: ignore[arg-type]
        self.graph = graph
        self.disjoint = disjoint or times_of is not None
        self.threads = graph.threads if threads is None else threads
        self._batch = 0
        self._is_bidirectional = subgraph_type == "bidirectional"
        self._sampler = _mangrove.Sampler(
            fanouts,
            replace=replace,
            disjoint=self.disjoint,
            weighted=weighted,
            times_of=times_of,
            last=temporal_strategy == "last",
            seed=int(torch.randint(1 << 62, ())) if seed is None else seed,
            reverse=reverse_places,
        )

    def sample_from_nodes(self, index: NodeSamplerInput, **kwargs: Any) -> Union[SamplerOutput, HeteroSamplerOutput]:
        return node_sample(index, self._sample)

    def sample_from_edges(
        self, index: EdgeSamplerInput, neg_sampling: Optional[NegativeSampling] = None
    ) -> Union[SamplerOutput, HeteroSamplerOutput]:
        graph = self.graph
        num_nodes = graph.num_nodes() if graph.homogeneous else {name: graph.num_nodes(name) for name in graph.node_types}
        return edge_sample(index, self._sample, num_nodes, self.disjoint, None, neg_sampling)

    def _sample(self, seed: Any, seed_time: Any = None, **_: Any) -> Union[SamplerOutput, HeteroSamplerOutput]:
        graph = self.graph
        if not isinstance(seed, dict):
            seed, seed_time = {None: seed}, None if seed_time is None else {None: seed_time}
        seeds = [
            (graph._node_place(name), _bytes(numbers), None if seed_time is None else _bytes(seed_time[name]))
            for name, numbers in seed.items()
        ]
        batch, self._batch = self._batch, self._batch + 1
        nodes, rows, cols, edges, trees, node_hops, edge_hops = self._sampler.sample(
            graph._epoch, batch, seeds, self.threads
        )
        if graph.homogeneous:
            return SamplerOutput(
                node=_tensor(nodes[0]),
                row=_tensor(rows[0]),
                col=_tensor(cols[0]),
                edge=_tensor(edges[0]),
                batch=None if trees is None else _tensor(trees[0]),
                num_sampled_nodes=node_hops[0],
                num_sampled_edges=None if self._is_bidirectional else edge_hops[0],
            )
        by_node: Callable[[Any], dict[str, Any]] = lambda columns: dict(zip(graph.node_types, columns))  # noqa: E731
        by_edge: Callable[[Any], dict[Triple, Any]] = lambda columns: dict(zip(graph.edge_types, columns))  # noqa: E731
        return HeteroSamplerOutput(
            node=by_node(map(_tensor, nodes)),
            row=by_edge(map(_tensor, rows)),
            col=by_edge(map(_tensor, cols)),
            edge=by_edge(map(_tensor, edges)),
            batch=None if trees is None else by_node(map(_tensor, trees)),
            num_sampled_nodes=by_node(node_hops),
            num_sampled_edges=None if self._is_bidirectional else by_edge(edge_hops),
        )


def _bytes(numbers: Any) -> bytes:
    """Numbers as the bytes of 64-bit integers."""
    if isinstance(numbers, Tensor):
        numbers = numbers.detach().cpu().numpy()
    return np.ascontiguousarray(numbers, dtype="<i8").tobytes()


def _tensor(array: Any) -> Tensor:
    """A tensor that reads an array of the native module in place."""
    return torch.from_numpy(np.asarray(array))

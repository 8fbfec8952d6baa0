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

from ._errors import RequestError
from ._networks import Draws, EdgeType, Fanouts, NodeType, Triple, TypedGraph

__all__ = ["EdgeType", "FeatureStore", "Graph", "GraphStore", "Loader", "NeighborSampler", "NodeType"]

#: What chooses vertices: their numbers, or a mask.
Nodes = Union[Tensor, Sequence[int], None]


class Graph(TypedGraph):
    """Vertices and edges of a database by type, at one moment. Batches of a ``homogeneous`` graph are PyTorch Geometric's ``Data``, others
    its ``HeteroData``."""

    @property
    def feature_store(self) -> FeatureStore:
        """The features, as PyTorch Geometric reads them."""
        return FeatureStore(self)

    @property
    def graph_store(self) -> GraphStore:
        """The edges, as PyTorch Geometric reads them."""
        return GraphStore(self)

    @property
    def stores(self) -> tuple[FeatureStore, GraphStore]:
        """The two stores, as the ``data`` of PyTorch Geometric's loaders."""
        return self.feature_store, self.graph_store

    def sampler(
        self, num_neighbors: Fanouts, **options: Any
    ) -> NeighborSampler:
        """A sampler for PyTorch Geometric's loaders. ``options`` are those of :class:`NeighborSampler`."""
        return NeighborSampler(self, num_neighbors, **options)

    def loader(
        self,
        input_nodes: Union[Nodes, str, Tuple[str, Nodes], Callable[[Graph], Any]],
        num_neighbors: Fanouts,
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

    def _get_tensor(self, attr: TensorAttr) -> Tensor:
        graph: Graph = self._graph
        return graph.feature(attr.group_name, attr.attr_name, attr.index)

    def _get_tensor_size(self, attr: TensorAttr) -> tuple[int, ...]:
        graph: Graph = self._graph
        return graph.feature_size(attr.group_name, attr.attr_name)

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
        num_neighbors: Fanouts,
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
        if subgraph_type not in ("directional", "bidirectional"):
            raise RequestError(f"subgraph_type is 'directional' or 'bidirectional', and not {subgraph_type!r}")
        if temporal_strategy not in ("uniform", "last"):
            raise RequestError(f"temporal_strategy is 'uniform' or 'last', and not {temporal_strategy!r}")
        self.graph = graph
        self.disjoint = disjoint or times_of is not None
        self._is_bidirectional = subgraph_type == "bidirectional"
        self._draws = Draws(
            graph,
            num_neighbors,
            replace=replace,
            reverse=(reverse or {}) if self._is_bidirectional else None,
            disjoint=disjoint,
            times_of=times_of,
            last=temporal_strategy == "last",
            weighted=weighted,
            seed=seed,
            threads=threads,
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
        drawn = self._draws.draw(seed, seed_time)
        if graph.homogeneous:
            return SamplerOutput(
                node=drawn.nodes[0],
                row=drawn.rows[0],
                col=drawn.cols[0],
                edge=drawn.edges[0],
                batch=None if drawn.trees is None else drawn.trees[0],
                num_sampled_nodes=drawn.node_hops[0],
                num_sampled_edges=None if self._is_bidirectional else drawn.edge_hops[0],
            )
        by_node: Callable[[Any], dict[str, Any]] = lambda columns: dict(zip(graph.node_types, columns))  # noqa: E731
        by_edge: Callable[[Any], dict[Triple, Any]] = lambda columns: dict(zip(graph.edge_types, columns))  # noqa: E731
        return HeteroSamplerOutput(
            node=by_node(drawn.nodes),
            row=by_edge(drawn.rows),
            col=by_edge(drawn.cols),
            edge=by_edge(drawn.edges),
            batch=None if drawn.trees is None else by_node(drawn.trees),
            num_sampled_nodes=by_node(drawn.node_hops),
            num_sampled_edges=None if self._is_bidirectional else by_edge(drawn.edge_hops),
        )

"""DGL over a live database: message-flow graphs that are sampled from the newest moment, and whole graphs.

A :class:`Graph` shows the database at one moment, its *epoch*, as that of :mod:`mangrove.pyg` does. It stands where DGL's own
``dgl.dataloading.DataLoader`` takes a graph, with a :class:`NeighborSampler` as the sampler::

    graph = mangrove.dgl.Graph(db, features={"paper": {"feat": "x"}})
    sampler = graph.sampler([10, 5])
    loader = dgl.dataloading.DataLoader(graph, seeds, sampler, batch_size=128, shuffle=True)
    for input_nodes, output_nodes, blocks in loader:
        out = model(blocks, blocks[0].srcdata["feat"])

:meth:`Graph.refresh` begins an epoch with the newest moment, for which only changed pages are read. :meth:`Graph.whole` copies the epoch
into a graph of DGL, for training without batches.

Vertices of a type have numbers from 0 on, which are DGL's node ids. A number belongs to one epoch. Neighbors are sampled and features are
read in the native module, without the interpreter's lock. Processes that loaders fork (``num_workers``) cannot use a database that is
open in their parent.
"""

# DGL is not part of what the types are checked with. Without it, a checker takes this module for it.
# pyright: reportMissingImports=false, reportAttributeAccessIssue=false

from __future__ import annotations

import itertools
from typing import Any, Callable, Mapping, Optional, Tuple

import dgl
import torch
from dgl.dataloading import Sampler as _Sampler
from torch import Tensor

from ._errors import RequestError
from ._networks import Draws, EdgeType, Fanouts, NodeType, Triple, TypedGraph

__all__ = ["EdgeType", "Graph", "NeighborSampler", "NodeType"]


class Graph(TypedGraph):
    """Vertices and edges of a database by type, at one moment. If it has one node type, tensors stand for dictionaries by node type, as in
    DGL."""

    @property
    def device(self) -> torch.device:
        """Where samples are made: in the memory of the processor."""
        return torch.device("cpu")

    def get_node_storage(self, key: str, ntype: Optional[str] = None) -> _Storage:
        """One of the ``features`` of a node type, as DGL's loaders fetch it for a ``dgl.LazyFeature``."""
        name = self.node_types[0] if ntype is None else ntype
        return _Storage(lambda numbers: self.feature(name, key, numbers))

    def get_edge_storage(self, key: str, etype: Optional[Triple] = None) -> _Storage:
        """One of the ``features`` of an edge type, as DGL's loaders fetch it for a ``dgl.LazyFeature``."""
        triple = self.edge_types[0] if etype is None else etype
        return _Storage(lambda numbers: self.edge_tensor(triple, key, numbers))

    def whole(self) -> dgl.DGLGraph:
        """The whole graph, with the features of its vertices and edges. It is a copy, which later epochs do not change."""
        edges = {triple: tuple(self.edge_index(triple)) for triple in self.edge_types}
        graph = dgl.heterograph(edges, {name: self.num_nodes(name) for name in self.node_types})
        for node_type, names in self._features.items():
            for name in names:
                graph.nodes[node_type].data[name] = self.feature(node_type, name)
        for triple, of in self._edges.items():
            for name in of.features:
                graph.edges[triple].data[name] = self.edge_tensor(triple, name)
        return graph

    def sampler(self, num_neighbors: Fanouts, **options: Any) -> NeighborSampler:
        """A sampler for DGL's loaders. ``options`` are those of :class:`NeighborSampler`."""
        return NeighborSampler(num_neighbors, **options)


class _Storage:
    """A feature, from which rows are fetched."""

    def __init__(self, read: Callable[[Tensor], Tensor]) -> None:
        self._read = read

    def fetch(self, indices: Tensor, device: Any, pin_memory: bool = False, **_: Any) -> Tensor:
        """The rows of these numbers."""
        rows = self._read(indices)
        return (rows.pin_memory() if pin_memory else rows).to(device)


class NeighborSampler(_Sampler):  # type: ignore[misc]
    """Samples message-flow graphs in the native module, one for each hop, the outermost first.

    ``num_neighbors`` are the fan-outs, for all edge types or by edge type. As in DGL, the last one is that of the seeds; -1 means all.
    A vertex keeps the neighbors that were drawn for it in all message-flow graphs. With ``weighted``, neighbors are drawn by the weights of
    their edges.

    Sources have the features of the graph in the first message-flow graph, and targets in the last one, where the labels of seeds are
    read. Edges have the features of their type.

    A sample is a function of ``seed`` and of how many batches the sampler has drawn before. It does not depend on threads.
    """

    def __init__(
        self,
        num_neighbors: Fanouts,
        *,
        replace: bool = False,
        weighted: bool = False,
        seed: Optional[int] = None,
        threads: Optional[int] = None,
    ) -> None:
        super().__init__()
        # Samples begin at the seeds, and DGL names the outermost hop first.
        if isinstance(num_neighbors, Mapping):
            self._fanouts: Fanouts = {triple: list(of_type)[::-1] for triple, of_type in num_neighbors.items()}
        else:
            self._fanouts = list(num_neighbors)[::-1]
        self._options = {"replace": replace, "weighted": weighted, "seed": seed, "threads": threads}
        self._of: Optional[Tuple[Graph, Draws]] = None

    def _draws(self, graph: Graph) -> Draws:
        if self._of is None or self._of[0] is not graph:
            self._of = (graph, Draws(graph, self._fanouts, **self._options))  # type: ignore[arg-type]
        return self._of[1]

    def sample(self, g: Graph, indices: Any, exclude_eids: Any = None) -> Tuple[Any, Any, list[dgl.DGLGraph]]:
        """Samples the neighbors of the vertices ``indices``. Returns the numbers of the vertices whose features are read, ``indices``, and
        the message-flow graphs."""
        if exclude_eids is not None:
            raise RequestError("this sampler excludes no edges; give edges that are to be left out a label of their own")
        types, has_types = g.node_types, len(g.node_types) > 1
        if not isinstance(indices, Mapping):
            if has_types:
                raise RequestError(f"the graph has several node types, so seeds are a dictionary of {', '.join(types)}")
            indices = {types[0]: indices}
        drawn = self._draws(g).draw(indices)
        hops = max((len(of_type) for of_type in drawn.edge_hops), default=0)
        # The vertices of a hop and of those before it come first.
        ends = [_sums(of_type, hops + 1) for of_type in drawn.node_hops]
        edge_ends = [_sums(of_type, hops) for of_type in drawn.edge_hops]
        nodes = dict(zip(types, drawn.nodes))
        blocks = [self._block(g, drawn, hop, ends, edge_ends) for hop in reversed(range(hops))]
        if blocks:
            self._read_features(g, blocks)
        seeds = {name: nodes[name][: ends[place][0]] for place, name in enumerate(types)}
        if has_types:
            return nodes, seeds, blocks
        return nodes[types[0]], seeds[types[0]], blocks

    @staticmethod
    def _block(g: Graph, drawn: Any, hop: int, ends: list[list[int]], edge_ends: list[list[int]]) -> dgl.DGLGraph:
        """The edges of this hop and of those before it."""
        edges = {
            triple: (drawn.rows[place][: edge_ends[place][hop]], drawn.cols[place][: edge_ends[place][hop]])
            for place, triple in enumerate(g.edge_types)
        }
        types = g.node_types
        block = dgl.create_block(
            edges,
            num_src_nodes={name: ends[place][hop + 1] for place, name in enumerate(types)},
            num_dst_nodes={name: ends[place][hop] for place, name in enumerate(types)},
        )
        for place, name in enumerate(types):
            block.srcnodes[name].data[dgl.NID] = drawn.nodes[place][: ends[place][hop + 1]]
            block.dstnodes[name].data[dgl.NID] = drawn.nodes[place][: ends[place][hop]]
        for place, triple in enumerate(g.edge_types):
            numbers = drawn.edges[place][: edge_ends[place][hop]]
            block.edges[triple].data[dgl.EID] = numbers
            for name in g._edges[triple].features:
                block.edges[triple].data[name] = g.edge_tensor(triple, name, numbers)
        return block

    @staticmethod
    def _read_features(g: Graph, blocks: list[dgl.DGLGraph]) -> None:
        for node_type, names in g._features.items():
            sources, targets = blocks[0].srcnodes[node_type].data, blocks[-1].dstnodes[node_type].data
            for name in names:
                sources[name] = g.feature(node_type, name, sources[dgl.NID])
                # Seeds are the first sources.
                targets[name] = sources[name][: len(targets[dgl.NID])]


def _sums(counts: list[int], length: int) -> list[int]:
    """The sums of the counts up to each of them, for so many hops."""
    return list(itertools.accumulate([*counts, *[0] * (length - len(counts))]))

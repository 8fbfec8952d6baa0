"""Cora and Citeseer in the database, and a graph convolutional network that is trained from there.

Usage: planetoid.py [--data DIRECTORY] [--seeds N] [cora] [citeseer]

The network is that of Kipf and Welling (*Semi-Supervised Classification with Graph Convolutional Networks*, 2017): two layers, 16 hidden
units, dropout 0.5, weight decay 0.0005 on the first layer, Adam with a step of 0.01 for 200 epochs, on the split of Planetoid. The paper
has a test accuracy of 81.5 % for Cora and 70.3 % for Citeseer, the mean over 100 initializations.

The data are the files `ind.NAME.*` of Planetoid. They are pickles: load only files that you trust.
"""

from __future__ import annotations

import argparse
import pickle
import statistics
import sys
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch_geometric.nn import GCNConv

import mangrove
import mangrove.pyg


class Planetoid(NamedTuple):
    """A data set: features, classes, edges, and how many vertices each part of the split has."""

    x: np.ndarray
    y: np.ndarray
    edges: list[tuple[int, int]]
    split: np.ndarray


def _read(path: Path) -> Any:
    with path.open("rb") as file:
        return pickle.load(file, encoding="latin1")


def planetoid(directory: Path, name: str) -> Planetoid:
    """Reads a data set. Vertices of the test set that the files do not have (in Citeseer) have features and class 0."""
    part = {suffix: _read(directory / f"ind.{name}.{suffix}") for suffix in ("y", "tx", "ty", "allx", "ally", "graph")}
    test = np.loadtxt(directory / f"ind.{name}.test.index", dtype=np.int64)
    count = int(test.max()) + 1
    x = np.zeros((count, part["allx"].shape[1]), dtype=np.float32)
    y = np.zeros(count, dtype=np.int64)
    known = part["allx"].shape[0]
    x[:known], y[:known] = part["allx"].toarray(), part["ally"].argmax(axis=1)
    x[test], y[test] = part["tx"].toarray(), part["ty"].argmax(axis=1)
    # Each edge once; the files have it in both directions, and a few more than once.
    edges = {(min(a, b), max(a, b)) for a, others in part["graph"].items() for b in others if a != b}
    # 0: training, 1: validation, 2: test, 3: not used.
    split = np.full(count, 3, dtype=np.int64)
    trained = part["y"].shape[0]
    split[:trained], split[trained : trained + 500], split[test] = 0, 1, 2
    return Planetoid(x, y, sorted(edges), split)


def load(data: Planetoid) -> mangrove.Database:
    """A database with the data set: papers, with features, class and split, and citations."""
    db = mangrove.open()
    add_paper = db.prepare(
        "g.addV('paper').property(T.id, number).property('x', features).property('y', topic).property('split', part)"
    )
    with db.transaction() as tx:
        for number, (features, topic, part) in enumerate(zip(data.x, data.y.tolist(), data.split.tolist())):
            tx.query(add_paper, number=number, features=features, topic=topic, part=part).all()
        add = db.prepare("g.V(one).addE('cites').to(__.V(other))")
        for one, other in data.edges:
            tx.query(add, one=one, other=other).all()
    return db


def graph_of(db: mangrove.Database) -> mangrove.pyg.Graph:
    """The papers with their citations in both directions."""
    return mangrove.pyg.Graph(
        db,
        nodes=["paper"],
        edges={("paper", "cites", "paper"): mangrove.pyg.EdgeType("cites", direction="both")},
        features={"paper": {"x": "x", "y": "y", "split": "split"}},
        homogeneous=True,
    )


class Network(torch.nn.Module):
    """Two graph convolutions."""

    def __init__(self, features: int, classes: int) -> None:
        super().__init__()
        self.first = GCNConv(features, 16, cached=False)
        self.second = GCNConv(16, classes, cached=False)

    def forward(self, x: torch.Tensor, edge_index: torch.Tensor) -> torch.Tensor:
        # Features are words, of which a paper has few: only those that are there can be dropped.
        x = torch.sparse_coo_tensor(
            x.indices(), F.dropout(x.values(), 0.5, self.training), x.shape, is_coalesced=True, check_invariants=False
        )
        x = F.relu(self.first(x, edge_index))
        x = F.dropout(x, 0.5, self.training)
        return self.second(x, edge_index)


def accuracy(graph: mangrove.pyg.Graph, seed: int, epochs: int = 200) -> tuple[float, float]:
    """Trains a network; returns its accuracy on the validation set and on the test set.

    A batch has all seeds of a part of the split, with all of their neighbors, and all of the neighbors of these. So the network
    computes for each seed what it would compute on the whole graph, except for the degrees of the outermost vertices: for these, the
    sampler goes one hop further, and the third hop is there for nothing but their degrees.
    """
    torch.manual_seed(seed)
    classes = int(graph.tensor(None, "y").max()) + 1
    split = graph.tensor(None, "split")
    batches = {}
    for part in (0, 1, 2):
        seeds = (split == part).nonzero().view(-1)
        loader = graph.loader(seeds, num_neighbors=[-1, -1, -1], batch_size=len(seeds), refresh=False)
        (batch,) = loader
        # Rows that sum up to one, as in the paper.
        batch.x = (batch.x / batch.x.sum(dim=1, keepdim=True).clamp(min=1)).to_sparse_coo()
        batches[part] = batch
    network = Network(batches[0].x.shape[1], classes)
    optimizer = torch.optim.Adam(
        [
            {"params": network.first.parameters(), "weight_decay": 5e-4},
            {"params": network.second.parameters(), "weight_decay": 0.0},
        ],
        lr=0.01,
    )

    def outcome(part: int) -> float:
        batch = batches[part]
        network.eval()
        with torch.no_grad():
            found = network(batch.x, batch.edge_index)[: batch.batch_size].argmax(dim=1)
        return float((found == batch.y[: batch.batch_size]).float().mean())

    for _ in range(epochs):
        network.train()
        batch = batches[0]
        optimizer.zero_grad()
        found = network(batch.x, batch.edge_index)[: batch.batch_size]
        F.cross_entropy(found, batch.y[: batch.batch_size]).backward()
        optimizer.step()
    return outcome(1), outcome(2)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="the directory of the files of Planetoid")
    parser.add_argument("--seeds", type=int, default=10, help="how many networks are trained")
    parser.add_argument("names", nargs="*", default=["cora", "citeseer"])
    arguments = parser.parse_args()
    # The matrices are small: more threads wait for one another.
    torch.set_num_threads(1)
    for name in arguments.names:
        with load(planetoid(arguments.data, name)) as db, graph_of(db) as graph:
            results = [accuracy(graph, seed) for seed in range(arguments.seeds)]
            tests = [100 * test for _, test in results]
            spread = statistics.stdev(tests) if len(tests) > 1 else 0.0
            print(
                f"{name}: {graph.num_nodes()} papers, {graph.num_edges()} edges; "
                f"test accuracy {statistics.mean(tests):.1f} % ± {spread:.1f} over {len(tests)} networks"
            )
    return 0


if __name__ == "__main__":
    sys.exit(main())

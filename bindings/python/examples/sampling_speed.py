"""How fast neighbors are sampled: this package beside PyTorch Geometric's sampler of graphs in memory.

Usage: sampling_speed.py [--scale N] [--edges FILE.npy] [--features WIDTH]

The graph is a Kronecker graph (R-MAT with the parameters of Graph500) in both directions, or that of a file: an array of two rows. PyTorch
Geometric needs `pyg-lib` or `torch-sparse` for its sampler; without them, its rows are left out. `--library FILE` loads the sampler of
`torch-sparse` alone, compiled from `csrc/neighbor_sample.cpp` and `csrc/cpu/neighbor_sample_cpu.cpp` of its source.

A row is the fastest of five passes over the same seeds in batches of 1,024: the sampler alone, and the loader, which also reads the
features of each batch.
"""

from __future__ import annotations

import argparse
import time
import warnings
from typing import Any, Callable, Iterable

import numpy as np
import torch
import torch_geometric.typing
from torch_geometric.data import Data
from torch_geometric.loader import NeighborLoader
from torch_geometric.sampler import NodeSamplerInput

import mangrove
import mangrove.pyg

BATCH = 1_024
PASSES = 5


def kronecker(scale: int, seed: int = 1) -> np.ndarray:
    """The edges of a Kronecker graph with 16 edges a vertex, each in one direction."""
    rng = np.random.default_rng(seed)
    count = 16 << scale
    ends = np.zeros((2, count), dtype=np.int64)
    for _ in range(scale):
        drawn = rng.random(count)
        # The quadrants have the probabilities 0.57, 0.19, 0.19 and 0.05.
        ends = 2 * ends + np.stack([drawn >= 0.76, ((drawn >= 0.57) & (drawn < 0.76)) | (drawn >= 0.95)])
    return rng.permutation(1 << scale)[ends]


def load(edges: np.ndarray, x: np.ndarray) -> mangrove.Database:
    """A database with a vertex for each row of features, and these edges."""
    db = mangrove.open()
    add_vertex = db.prepare("g.addV('vertex').property(T.id, number).property('x', features)")
    add_edge = db.prepare("g.V(one).addE('edge').to(__.V(other))")
    with db.transaction() as tx:
        for number in range(len(x)):
            tx.query(add_vertex, number=number, features=x[number]).all()
    for first in range(0, edges.shape[1], 1 << 16):
        with db.transaction() as tx:
            for one, other in edges[:, first : first + (1 << 16)].T.tolist():
                tx.query(add_edge, one=one, other=other).all()
    return db


def fastest(work: Callable[[], int]) -> tuple[float, int]:
    """The shortest time of a pass, and the edges of one."""
    best, edges = float("inf"), 0
    for _ in range(PASSES):
        begin = time.perf_counter()
        edges = work()
        best = min(best, time.perf_counter() - begin)
    return best, edges


def batches(seeds: torch.Tensor) -> Iterable[NodeSamplerInput]:
    whole = NodeSamplerInput(input_id=None, node=seeds)
    for first in range(0, len(seeds), BATCH):
        yield whole[torch.arange(first, min(len(seeds), first + BATCH))]


def report(what: str, work: Callable[[], int]) -> None:
    seconds, edges = fastest(work)
    print(f"{what}: {edges / seconds / 1e6:.2f} M edges/s, {seconds:.3f} s a pass of {edges} edges", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--scale", type=int, default=15)
    parser.add_argument("--edges", help="a file of NumPy with two rows of vertex numbers")
    parser.add_argument("--features", type=int, default=64)
    parser.add_argument("--library", help="a shared library with the sampler of torch-sparse")
    arguments = parser.parse_args()
    if arguments.library:
        torch.ops.load_library(arguments.library)
        torch_geometric.typing.WITH_TORCH_SPARSE = True
    edges = np.load(arguments.edges) if arguments.edges else kronecker(arguments.scale)
    count = int(edges.max()) + 1
    x = np.random.default_rng(2).random((count, arguments.features), dtype=np.float32)
    begin = time.perf_counter()
    db = load(edges, x)
    print(f"{count} vertices and {edges.shape[1]} edges, loaded in {time.perf_counter() - begin:.1f} s", flush=True)
    seeds = torch.from_numpy(np.random.default_rng(3).permutation(count)[: min(count, 64 * BATCH)])
    whole = torch.from_numpy(np.concatenate([edges, edges[::-1]], axis=1))
    data = Data(x=torch.from_numpy(x), edge_index=whole, num_nodes=count)
    types: dict[Any, Any] = {("vertex", "edge", "vertex"): mangrove.pyg.EdgeType("edge", direction="both")}
    begin = time.perf_counter()
    graph = mangrove.pyg.Graph(
        db, nodes=["vertex"], edges=types, features={"vertex": {"x": "x"}}, homogeneous=True
    )
    print(f"the first epoch: {time.perf_counter() - begin:.3f} s", flush=True)
    for fanouts in ([15, 10], [10, 5]):
        for threads in (1, 2):
            sampler = graph.sampler(fanouts, threads=threads)
            report(
                f"{fanouts}, mangrove, {threads} threads",
                lambda: sum(sampler.sample_from_nodes(batch).row.numel() for batch in batches(seeds)),
            )
        loader = graph.loader(seeds, fanouts, batch_size=BATCH, refresh=False)
        report(f"{fanouts}, mangrove, loader with features", lambda: sum(batch.edge_index.shape[1] for batch in loader))
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                theirs = NeighborLoader(data, num_neighbors=fanouts, input_nodes=seeds, batch_size=BATCH)
            report(
                f"{fanouts}, PyTorch Geometric in memory",
                lambda: sum(theirs.node_sampler.sample_from_nodes(batch).row.numel() for batch in batches(seeds)),
            )
            report(
                f"{fanouts}, PyTorch Geometric in memory, loader with features",
                lambda: sum(batch.edge_index.shape[1] for batch in theirs),
            )
        except ImportError as error:
            print(f"{fanouts}, PyTorch Geometric in memory: left out: {error}")


if __name__ == "__main__":
    main()

"""DGL over a live database: sampled message-flow graphs and whole graphs. It needs DGL (`test_dgl.sh`)."""

from __future__ import annotations

from typing import Any

import pytest

import mangrove

pytest.importorskip("dgl")
torch = pytest.importorskip("torch")

import dgl  # noqa: E402
import dgl.nn  # noqa: E402

import mangrove.dgl  # noqa: E402

AUTHORS, PAPERS = 40, 120


@pytest.fixture
def library(db: mangrove.Database) -> mangrove.Database:
    """Authors who wrote papers, and papers that cite earlier ones. Paper n has the vector (n, 1)."""
    db.load(
        mangrove.Vertices("author", [{"id": f"a{n}"} for n in range(AUTHORS)], id="id"),
        mangrove.Vertices(
            "paper", [{"id": f"p{n}", "x": [float(n), 1.0], "topic": n % 3} for n in range(PAPERS)], id="id"
        ),
        mangrove.Edges("wrote", [{"src": f"a{n * 7 % AUTHORS}", "dst": f"p{n}"} for n in range(PAPERS)]),
        mangrove.Edges(
            "cites",
            [{"src": f"p{n}", "dst": f"p{n // k}", "since": 2000 + k} for n in range(2, PAPERS) for k in (2, 3, 5)],
        ),
    )
    return db


def papers(db: mangrove.Database, **options: Any) -> mangrove.dgl.Graph:
    return mangrove.dgl.Graph(
        db, ["paper"], [("paper", "cites", "paper")], features={"paper": {"feat": "x", "label": "topic"}}, **options
    )


@pytest.mark.filterwarnings("ignore:Dataloader CPU affinity")
def test_dgls_own_loader_takes_graph_and_sampler(library: mangrove.Database) -> None:
    graph = papers(library)
    loader = dgl.dataloading.DataLoader(
        graph, torch.arange(PAPERS), graph.sampler([4, 2]), batch_size=16, shuffle=True, drop_last=False
    )
    cites = {(edge.source.id, edge.target.id) for edge in library.query("g.E().hasLabel('cites')")}
    seen = []
    for input_nodes, output_nodes, blocks in loader:
        assert len(blocks) == 2
        assert torch.equal(blocks[0].srcdata[dgl.NID], input_nodes) and torch.equal(blocks[-1].dstdata[dgl.NID], output_nodes)
        assert torch.equal(blocks[0].dstdata[dgl.NID], blocks[1].srcdata[dgl.NID])
        ids = graph.ids("paper", input_nodes)
        assert [int(id[1:]) for id in ids] == blocks[0].srcdata["feat"][:, 0].int().tolist()
        assert [int(id[1:]) % 3 for id in graph.ids("paper", output_nodes)] == blocks[-1].dstdata["label"].tolist()
        for block, fanout in zip(blocks, (4, 4)):
            sources, targets = block.edges()
            for source, target in zip(block.srcdata[dgl.NID][sources].tolist(), block.dstdata[dgl.NID][targets].tolist()):
                assert tuple(graph.ids("paper", [source, target])) in cites
            assert int(block.in_degrees().max()) <= fanout
        assert int(blocks[-1].in_degrees().max()) <= 2, "the last fan-out is that of the seeds"
        seen += output_nodes.tolist()
    assert sorted(seen) == list(range(PAPERS))


@pytest.mark.filterwarnings("ignore:Dataloader CPU affinity")
def test_dgl_fetches_features_that_a_sampler_leaves_to_it(library: mangrove.Database) -> None:
    graph = papers(library)

    class Lazy(mangrove.dgl.NeighborSampler):
        def sample(self, g: Any, indices: Any, exclude_eids: Any = None) -> Any:
            input_nodes, output_nodes, blocks = super().sample(g, indices, exclude_eids)
            blocks[0].srcdata["later"] = dgl.LazyFeature("feat")
            return input_nodes, output_nodes, blocks

    loader = dgl.dataloading.DataLoader(graph, torch.arange(8), Lazy([3]), batch_size=4)
    for _, _, (block,) in loader:
        assert torch.equal(block.srcdata["later"], block.srcdata["feat"])


def test_all_neighbors_give_what_the_whole_graph_gives(library: mangrove.Database) -> None:
    graph = papers(library)
    whole = graph.whole()
    assert (whole.num_nodes(), whole.num_edges()) == (PAPERS, library.query("g.E().hasLabel('cites').count()").one())
    torch.manual_seed(0)
    first, second = dgl.nn.SAGEConv(2, 8, "mean"), dgl.nn.SAGEConv(8, 3, "mean")
    expected = second(whole, first(whole, whole.ndata["feat"].float()).relu())
    seeds = torch.tensor([5, 17, 0, 99])
    _, _, blocks = graph.sampler([-1, -1]).sample(graph, seeds)
    hidden = first(blocks[0], blocks[0].srcdata["feat"].float()).relu()
    assert torch.allclose(second(blocks[1], hidden), expected[seeds], atol=1e-5)


def test_several_types(library: mangrove.Database) -> None:
    cites, wrote = ("paper", "cites", "paper"), ("author", "wrote", "paper")
    graph = mangrove.dgl.Graph(
        library,
        {"author": mangrove.dgl.NodeType("author"), "paper": mangrove.dgl.NodeType("paper")},
        {cites: mangrove.dgl.EdgeType("cites", features={"since": "since"}), wrote: mangrove.dgl.EdgeType("wrote")},
        features={"paper": {"feat": "x"}},
    )
    whole = graph.whole()
    assert whole.num_nodes("author") == AUTHORS and whole.num_edges("wrote") == PAPERS
    assert set(whole.edges["cites"].data["since"].tolist()) == {2002, 2003, 2005}
    seeds = {"paper": torch.tensor([7, 8])}
    input_nodes, output_nodes, blocks = graph.sampler([-1, -1]).sample(graph, seeds)
    assert output_nodes["paper"].tolist() == [7, 8] and output_nodes["author"].numel() == 0
    assert blocks[-1].num_edges("wrote") == 2 and blocks[0].num_edges("wrote") > 2
    for block in blocks:
        in_whole = whole.edges["cites"].data["since"][block.edges["cites"].data[dgl.EID]]
        assert torch.equal(block.edges["cites"].data["since"], in_whole)
    with pytest.raises(mangrove.RequestError, match="several node types"):
        graph.sampler([2]).sample(graph, torch.tensor([1]))
    # Only named edge types are followed.
    _, _, (block,) = graph.sampler({wrote: [-1]}).sample(graph, seeds)
    assert block.num_edges("cites") == 0 and block.num_edges("wrote") == 2


def test_samples_repeat_with_their_seed_and_follow_the_database(library: mangrove.Database) -> None:
    graph = papers(library)
    seeds = torch.arange(60)
    draws = [graph.sampler([2, 2], seed=7).sample(graph, seeds)[2][0].edata[dgl.EID] for _ in range(2)]
    assert torch.equal(*draws)
    before = graph.num_edges(("paper", "cites", "paper"))
    library.query("g.V('p1').addE('cites').to(__.V('p119'))")
    assert graph.num_edges(("paper", "cites", "paper")) == before, "an epoch is one moment"
    graph.refresh()
    assert graph.num_edges(("paper", "cites", "paper")) == before + 1
    new = graph.numbers("paper", ["p1", "p119"])
    _, _, (block,) = graph.sampler([-1]).sample(graph, new[1:])
    assert new[0] in block.srcdata[dgl.NID]


def test_a_wrong_use_is_named(library: mangrove.Database) -> None:
    graph = papers(library)
    with pytest.raises(mangrove.RequestError, match="excludes no edges"):
        graph.sampler([1]).sample(graph, torch.tensor([0]), exclude_eids=torch.tensor([0]))

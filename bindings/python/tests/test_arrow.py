"""Columns both ways: results, tables, loads, and graphs of other libraries."""

from __future__ import annotations

import pathlib
from datetime import datetime, timezone
from typing import Any

import pytest

import mangrove
from mangrove import Edges, Vertices

pa = pytest.importorskip("pyarrow")
np = pytest.importorskip("numpy")


def test_maps_and_elements_become_columns(people: mangrove.Database) -> None:
    table = people.query("g.V().order().by(T.id).project('name', 'age').by('name').by(coalesce(values('age'), constant(-1)))").arrow()
    assert table.to_pydict() == {"name": ["ada", "bob", "cyd"], "age": [36, -1, -1]}
    vertices = people.query("g.V().order().by(T.id)").arrow()
    assert vertices.column_names[:2] == ["id", "label"]
    assert vertices.to_pydict() == {"id": [1, 2, 3], "label": ["person"] * 3, "name": ["ada", "bob", "cyd"], "age": [36, None, None]}
    edges = people.query("g.E().order().by(T.id)").arrow().to_pydict()
    assert (edges["src"], edges["dst"], edges["since"]) == ([1, 1], [2, 3], [2001, 2002])
    assert people.query("g.V().values('name').order()").arrow().to_pydict() == {"value": ["ada", "bob", "cyd"]}


def test_values_have_types_of_arrow(db: mangrove.Database) -> None:
    values = {"i": 1, "f": 0.5, "b": True, "s": "x", "y": b"\x01", "t": datetime(2020, 1, 1, tzinfo=timezone.utc), "l": [1, 2], "n": None}
    table = db.query("g.inject(x)", x=values).arrow()
    for name, kind in {"i": pa.int64(), "f": pa.float64(), "b": pa.bool_()}.items():
        assert table.schema.field(name).type == kind
    row = table.to_pylist()[0]
    assert {key: row[key] for key in "ifbsyln"} == {key: values[key] for key in "ifbsyln"}
    assert pa.types.is_timestamp(table.schema.field("t").type) and row["t"] == values["t"]


def test_types_that_do_not_go_together(db: mangrove.Database) -> None:
    with pytest.raises(mangrove.RequestError, match="mixed"):
        db.query("g.inject(1, 'a')").arrow()
    assert db.query("g.inject(1, 'a')").arrow(mixed="text").to_pydict() == {"value": ["1", "a"]}
    assert db.query("g.inject(1, 2.5)").arrow().to_pydict() == {"value": [1.0, 2.5]}
    with pytest.raises(mangrove.RequestError, match="'error' or 'text'"):
        db.query("g.inject(1)").arrow(mixed="x")


def test_results_that_were_read_in_part(people: mangrove.Database) -> None:
    results = people.query("g.V().values('name').order()")
    assert next(results) == "ada"
    assert results.arrow().to_pydict() == {"value": ["bob", "cyd"]}
    results = people.query("g.V().values('name').order()")
    assert "ada" in results._repr_html_()
    assert results.arrow().to_pydict() == {"value": ["ada", "bob", "cyd"]}
    assert results.all() == []


def test_record_batches_are_read_as_they_are_found(db: mangrove.Database) -> None:
    endless = db.query("g.inject(1).repeat(identity()).emit()")
    reader = pa.RecordBatchReader.from_stream(endless)
    batch = reader.read_next_batch()
    assert batch.num_rows > 0 and set(batch.column(0).to_pylist()) == {1}
    reader.close()


def test_pandas_polars_and_numpy(people: mangrove.Database) -> None:
    pytest.importorskip("pandas")
    pytest.importorskip("polars")
    text = "g.V().order().by(T.id)"
    assert list(people.query(text).df()["name"]) == ["ada", "bob", "cyd"]
    assert people.query(text).pl()["id"].to_list() == [1, 2, 3]
    table = people.vertices("person", keys=["name"])
    assert table.columns == ["id", "name"] and len(table) == 3 and "of 3 rows" in repr(table)
    assert sorted(table.numpy()["id"]) == [1, 2, 3]
    assert sorted(people.edges("knows", keys=["since"]).numpy()["since"]) == [2001, 2002]
    assert {row["name"] for row in table.rows()} == {"ada", "bob", "cyd"}
    with pytest.raises(mangrove.RequestError, match="no label 'nobody'"):
        people.vertices("nobody")


def test_columns_of_numbers_are_not_copied(db: mangrove.Database) -> None:
    db.load(Vertices("n", pa.table({"id": np.arange(10_000), "x": np.arange(10_000) * 0.5}), id="id"))
    table = db.vertices("n", keys=["x"]).arrow()
    chunk = table["x"].chunk(0)
    array = chunk.to_numpy(zero_copy_only=True)
    assert array.ctypes.data == chunk.buffers()[1].address


def test_a_transaction_shows_its_columns(people: mangrove.Database) -> None:
    with people.transaction() as tx:
        tx.query("g.addV('person').property(T.id, 4)")
        assert len(tx.vertices("person")) == 4 and len(people.vertices("person")) == 3
        assert len(tx.edges()) == 2
        tx.rollback()


def frames() -> list[Any]:
    """The same table, as several libraries have it."""
    columns = {"id": [1, 2, 3], "name": ["ada", "bob", None], "score": [0.5, 1.5, 2.5]}
    made: list[Any] = [pa.table(columns), [dict(zip(columns, row)) for row in zip(*columns.values())]]
    made.append(pa.RecordBatchReader.from_batches(made[0].schema, made[0].to_batches(max_chunksize=2)))
    try:
        import pandas

        made.append(pandas.DataFrame(columns))
    except ImportError:
        pass
    try:
        import polars

        made.append(polars.DataFrame(columns))
    except ImportError:
        pass
    try:
        import duckdb

        rows = made[0]  # noqa: F841 - the query names it
        made.append(duckdb.sql("SELECT * FROM rows"))
    except ImportError:
        pass
    return made


@pytest.mark.parametrize("at", range(6))
def test_tables_of_other_libraries_are_loaded(db: mangrove.Database, at: int) -> None:
    tables = frames()
    if at >= len(tables):
        pytest.skip("a library is not installed")
    seen: list[Any] = []
    report = db.load(Vertices("person", tables[at], id="id", rename={"score": "points"}), progress=lambda *figures: seen.append(figures))
    assert (report.vertices, report.edges, report.rejects) == (3, 0, 0) and "3 vertices" in str(report)
    assert db.query("g.V().order().by(T.id).values('points')").all() == [0.5, 1.5, 2.5]
    assert db.query("g.V(3).properties().key()").all() == ["points"]
    assert seen and seen[-1][2] == 3


def test_vertices_and_edges_in_one_load(db: mangrove.Database) -> None:
    people = pa.table({"id": ["a", "b", "c"], "kind": ["person", "person", "robot"]})
    knows = pa.table({"src": ["a", "b"], "dst": ["b", "c"], "since": [1, 2]})
    report = db.load(Edges("knows", knows), Vertices(None, people, id="id", label_column="kind"))
    assert (report.vertices, report.edges) == (3, 2)
    assert db.query("g.V('a').out().out().label()").one() == "robot"


def test_an_upsert_changes_what_is_there(db: mangrove.Database) -> None:
    db.load(Vertices("person", [{"id": 1, "name": "ada"}], id="id"))
    with pytest.raises(mangrove.RequestError, match="not empty"):
        db.load(Vertices("person", [{"id": 2}], id="id"))
    report = db.load(
        Vertices("person", [{"id": 1, "name": "ada l."}, {"id": 2, "name": "bob"}], id="id"),
        Edges("knows", [{"src": 2, "dst": 1}]),
        upsert=True,
    )
    assert (report.created, report.updated) == (2, 1)
    assert db.query("g.V(2).out().values('name')").one() == "ada l."


def test_rows_that_cannot_be_loaded_are_told(db: mangrove.Database, tmp_path: pathlib.Path) -> None:
    people, knows = [{"id": 1}, {"id": 2}], [{"src": 1, "dst": 2}, {"src": 1, "dst": 99}]
    with pytest.raises(mangrove.RequestError, match="99"):
        db.load(Vertices("person", people, id="id"), Edges("knows", knows), max_rejects=0)
    assert db.counts() == (0, 0), "a load that fails leaves the graph empty"
    report = db.load(Vertices("person", people, id="id"), Edges("knows", knows), max_rejects=5, rejects=tmp_path / "rejects")
    assert (report.edges, report.rejects) == (1, 1) and report.rejected[0][1] == 2 and "99" in report.rejected[0][2]
    assert "99" in (tmp_path / "rejects").read_text()


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (lambda: Vertices("a", 5), "a int is no table"),
        (lambda: Vertices(None, [{"id": 1}], id="id"), "needs a label"),
        (lambda: Vertices("a", [{"id": 1}], id="key"), "there is no column 'key'; the columns are id"),
        (lambda: Edges("a", [{"src": 1}]), "there is no column 'dst'"),
        (lambda: Vertices("a", [{"id": 1}, {"id": "x"}], id="id"), "several types"),
        (lambda: {"id": 1}, "says not what its columns are for"),
    ],
)
def test_wrong_tables_say_what_is_wrong(db: mangrove.Database, table: Any, message: str) -> None:
    with pytest.raises(mangrove.RequestError, match=message):
        db.load(table())


def test_what_progress_raises_ends_the_load(db: mangrove.Database) -> None:
    def stop(*_: Any) -> None:
        raise ZeroDivisionError

    table = pa.table({"id": np.arange(300_000)})
    with pytest.raises(ZeroDivisionError):
        db.load(Vertices("n", table, id="id"), progress=stop)


def test_files_are_loaded(db: mangrove.Database, tmp_path: pathlib.Path) -> None:
    import pyarrow.parquet

    (tmp_path / "person.csv").write_text("id:ID,name:string,:LABEL\n1,ada,person\n2,bob,person\n")
    (tmp_path / "knows.csv").write_text(":START_ID,:END_ID,:TYPE\n1,2,knows\n")
    report = db.load_files(tmp_path / "person.csv", tmp_path / "knows.csv")
    assert (report.vertices, report.edges) == (2, 1)
    assert db.query("g.V().has('name', 'ada').out('knows').values('name')").one() == "bob"
    with pytest.raises(mangrove.RetryLaterError, match="No such file"):
        mangrove.open().load_files(tmp_path / "nothing.csv")
    with pytest.raises(mangrove.RequestError, match="no file is named"):
        db.load_files()


def test_scipy_networkx_and_igraph(people: mangrove.Database) -> None:
    scipy = pytest.importorskip("scipy")
    nx = pytest.importorskip("networkx")
    matrix, ids = people.to_scipy(edges=["knows"], weight="since")
    assert scipy.sparse.issparse(matrix) and matrix.shape == (3, 3)
    found = {(int(ids[r]), int(ids[c])): v for r, c, v in zip(*matrix.tocoo().coords, matrix.tocoo().data)}
    assert found == {(1, 2): 2001.0, (1, 3): 2002.0}
    graph = people.to_networkx()
    assert graph.nodes[1] == {"label": "person", "name": "ada", "age": 36}
    assert graph.edges[1, 2, 10] == {"label": "knows", "since": 2001}
    with mangrove.open() as copy:
        copy.from_networkx(graph)
        assert copy.query("g.V(1).outE('knows').has('since', 2002).inV().values('name')").one() == "cyd"
        assert copy.counts() == (3, 2)
    with mangrove.open() as copy:
        copy.from_networkx(nx.path_graph(4))
        assert copy.counts() == (4, 3) and copy.query("g.V(0).out('edge').label()").one() == "vertex"
        with pytest.raises(mangrove.RequestError, match="is no id"):
            copy.from_networkx(nx.Graph([((1, 2), (2, 3))]))
    pytest.importorskip("igraph")
    drawn = people.to_igraph()
    assert drawn.vcount() == 3 and sorted(drawn.es["since"]) == [2001, 2002] and drawn.is_directed()


def test_algorithms(people: mangrove.Database) -> None:
    ranks = people.algo.pagerank(damping=0.85)
    assert ranks.columns == ["vertex", "rank"] and len(ranks) == 3
    assert abs(sum(row["rank"] for row in ranks.rows()) - 1) < 1e-6
    distances = {row["vertex"]: row["depth"] for row in people.algo.bfs(source=1).rows()}
    assert distances == {1: 0, 2: 1, 3: 1}
    assert "damping" in (people.algo.pagerank.__doc__ or "") and "pagerank" in dir(people.algo)
    with pytest.raises(mangrove.RequestError, match="damping"):
        people.algo.pagerank(damping=3)
    with pytest.raises(mangrove.RequestError, match="dampin"):
        people.algo.pagerank(dampin=0.5)
    with pytest.raises(AttributeError, match="there is no algorithm 'rank'"):
        people.algo.rank()
    assert not hasattr(people.algo, "rank")


def test_named_projections(people: mangrove.Database) -> None:
    created = people.projections.create("friends", vertices="person", edges="knows", weight="since")
    assert (created["vertex_count"], created["cell_count"], created["weight"]) == (3, 2, "since")
    people.query("g.V(2).as('b').V(3).addE('knows').from('b').property('since', 2003)")
    assert people.projections.list()[0]["cell_count"] == 2
    assert people.projections.refresh("friends")["cell_count"] == 3
    assert len(people.algo.pagerank(projection="friends")) == 3
    with pytest.raises(mangrove.RequestError, match="friends"):
        people.projections.create("friends")
    people.projections.drop("friends")
    assert people.projections.list() == []
    with pytest.raises(mangrove.RequestError, match="friends"):
        people.projections.refresh("friends")


def test_the_progress_of_an_algorithm_is_told_and_can_end_it(db: mangrove.Database) -> None:
    count = 60_000
    rng = np.random.default_rng(1)
    db.load(
        Vertices("n", pa.table({"id": np.arange(count)}), id="id"),
        Edges("to", pa.table({"src": rng.integers(0, count, 400_000), "dst": rng.integers(0, count, 400_000)})),
    )
    seen: list[Any] = []
    db.algo.betweenness(samples=200, progress=lambda *figures: seen.append(figures))
    assert seen and all(done <= all or all == 0 for _, _, done, all in seen)

    def stop(*_: Any) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        db.algo.betweenness(progress=stop)
    with pytest.raises(mangrove.RetryLaterError):
        db.options(timeout=0.2).algo.betweenness()

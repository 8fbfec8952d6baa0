#!/usr/bin/env python3
"""Mangrove in Python beside two embedded databases, Ladybug and DuckDB, on the same graph in one run.

Each side runs in a process of its own, one after the other, several rounds. All sides must give the same answers, or the run fails.
A row has the least time of each side over the rounds, and who is ahead.

    bench/python/run.sh [--vertices 200000] [--edges 2000000] [--rounds 3] [--sides mangrove,ladybug,duckdb]
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time
from typing import Any, Callable

#: Look-ups in a round.
LOOKUPS = 2_000
#: The most rows of the large result.
LARGE = 1_000_000

ROWS = {
    "open": "open an empty database in a directory",
    "load": "load the vertices and edges from Parquet",
    "reopen": "open it again, first answer included",
    "one_hop": f"names one hop away, a prepared query, {LOOKUPS:,} times",
    "two_hops": f"number of distinct vertices two hops away, {LOOKUPS:,} times",
    "large_arrow": "1 M rows of source, target and weight to Arrow",
    "large_pandas": "1 M rows of source, target and weight to pandas",
    "top_degree": "the ten vertices with the most outgoing edges",
    "top_property": "the ten vertices with the highest score",
}

#: What Mangrove does in a row that another side may do faster, and what that costs.
LIMITS = {
    "load": "Mangrove writes neighbor lists in both directions and an index of ids besides the columns",
    "reopen": "Mangrove reads the whole graph into memory",
    "large_arrow": "an edge of Mangrove names its ends by position, so their ids are looked up; a table has them in columns",
    "large_pandas": "as to Arrow",
}


def write_graph(folder: pathlib.Path, vertices: int, edges: int) -> None:
    """A graph with a skewed distribution of degrees, from a seed."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng(7)
    ids = np.arange(vertices)
    names = pa.array([f"person {number}" for number in ids])
    people = pa.table({"id": ids, "name": names, "score": rng.permutation(vertices) * 0.5})
    # A power of a uniform number: few vertices have many edges.
    source = (rng.random(edges) ** 2.5 * vertices).astype(np.int64)
    target = rng.permutation(vertices)[(rng.random(edges) ** 2.5 * vertices).astype(np.int64)]
    knows = pa.table({"src": source, "dst": target, "weight": rng.random(edges)})
    pq.write_table(people, folder / "people.parquet")
    pq.write_table(knows, folder / "knows.parquet")


class Timer:
    """The times and the answers of one side."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self.answers: dict[str, Any] = {}

    def measure(self, row: str, work: Callable[[], Any], answer: Callable[[Any], Any] = lambda result: result) -> Any:
        gc.collect()
        begun = time.perf_counter()
        result = work()
        self.seconds[row] = time.perf_counter() - begun
        self.answers[row] = answer(result)
        return result


def of_table(table: Any) -> list[Any]:
    """What tells large results apart without their order: the number of rows, and sums."""
    import pyarrow.compute as pc

    sums = [pc.sum(table.column(at)).as_py() for at in range(3)]
    return [table.num_rows, sums[0], sums[1], round(sums[2], 3)]


def of_frame(frame: Any) -> list[Any]:
    sums = [frame.iloc[:, at].sum() for at in range(3)]
    return [len(frame), int(sums[0]), int(sums[1]), round(float(sums[2]), 3)]


def chosen(vertices: int) -> list[int]:
    """The vertices that are looked up."""
    return [(number * 7919) % vertices for number in range(LOOKUPS)]


def mangrove_side(folder: pathlib.Path, place: pathlib.Path, vertices: int, edges: int) -> Timer:
    import pyarrow.parquet as pq

    import mangrove

    timer = Timer()
    db = timer.measure("open", lambda: mangrove.open(place / "graph"), lambda _: None)
    report = timer.measure(
        "load",
        lambda: db.load(
            mangrove.Vertices("person", pq.read_table(folder / "people.parquet"), id="id"),
            mangrove.Edges("knows", pq.read_table(folder / "knows.parquet")),
            progress=False,
        ),
        lambda report: [report.vertices, report.edges],
    )
    assert report.rejects == 0
    db.close()

    def reopen() -> Any:
        opened = mangrove.open(place / "graph")
        return opened, opened.query("g.V(0).values('name')").one()

    db, _ = timer.measure("reopen", reopen, lambda pair: pair[1])
    one = db.prepare("g.V(x).out('knows').values('name')")
    two = db.prepare("g.V(x).out('knows').out('knows').dedup().count()")
    sample = chosen(vertices)
    timer.measure("one_hop", lambda: [one(x=vertex).all() for vertex in sample], lambda found: sum(map(len, found)))
    timer.measure("two_hops", lambda: [two(x=vertex).one() for vertex in sample], sum)
    rows = min(LARGE, edges)
    large = f"g.E().hasLabel('knows').limit({rows}).project('src', 'dst', 'weight').by(outV().id()).by(inV().id()).by('weight')"
    if rows < edges:
        large = large.replace(f".limit({rows})", f".has('weight', lt({rows / edges}))")
    timer.measure("large_arrow", lambda: db.query(large).arrow(), of_table)
    timer.measure("large_pandas", lambda: db.query(large).df(), of_frame)
    degree = "g.V().hasLabel('person').order().by(outE('knows').count(), desc).by(id()).limit(10).id()"
    timer.measure("top_degree", lambda: db.query(degree).all())
    timer.measure("top_property", lambda: db.query("g.V().hasLabel('person').order().by('score', desc).limit(10).id()").all())
    return timer


def ladybug_side(folder: pathlib.Path, place: pathlib.Path, vertices: int, edges: int) -> Timer:
    import ladybug

    timer = Timer()

    def start() -> Any:
        database = ladybug.Database(str(place / "graph"))
        return database, ladybug.Connection(database)

    database, connection = timer.measure("open", start, lambda _: None)

    def load() -> list[int]:
        connection.execute("CREATE NODE TABLE person(id INT64, name STRING, score DOUBLE, PRIMARY KEY(id))")
        connection.execute("CREATE REL TABLE knows(FROM person TO person, weight DOUBLE)")
        connection.execute(f"COPY person FROM '{folder}/people.parquet'")
        connection.execute(f"COPY knows FROM '{folder}/knows.parquet'")
        return [vertices, edges]

    timer.measure("load", load)
    connection.close()
    database.close()

    def reopen() -> Any:
        database, connection = start()
        return database, connection, connection.execute("MATCH (a:person) WHERE a.id = 0 RETURN a.name").get_next()[0]

    database, connection, _ = timer.measure("reopen", reopen, lambda found: found[2])
    one = connection.prepare("MATCH (a:person)-[:knows]->(b:person) WHERE a.id = $x RETURN b.name")
    two = connection.prepare("MATCH (a:person)-[:knows]->(:person)-[:knows]->(c:person) WHERE a.id = $x RETURN count(DISTINCT c.id)")
    sample = chosen(vertices)
    timer.measure(
        "one_hop",
        lambda: [[row[0] for row in connection.execute(one, {"x": vertex}).get_all()] for vertex in sample],
        lambda found: sum(map(len, found)),
    )
    timer.measure("two_hops", lambda: [connection.execute(two, {"x": vertex}).get_next()[0] for vertex in sample], sum)
    rows = min(LARGE, edges)
    filtered = f"WHERE k.weight < {rows / edges}" if rows < edges else ""
    large = f"MATCH (a:person)-[k:knows]->(b:person) {filtered} RETURN a.id, b.id, k.weight"
    timer.measure("large_arrow", lambda: connection.execute(large).get_as_arrow(), of_table)
    timer.measure("large_pandas", lambda: connection.execute(large).get_as_df(), of_frame)
    degree = "MATCH (a:person)-[:knows]->(b:person) RETURN a.id, count(*) AS degree ORDER BY degree DESC, a.id LIMIT 10"
    timer.measure("top_degree", lambda: [row[0] for row in connection.execute(degree).get_all()])
    score = "MATCH (a:person) RETURN a.id ORDER BY a.score DESC LIMIT 10"
    timer.measure("top_property", lambda: [row[0] for row in connection.execute(score).get_all()])
    return timer


def duckdb_side(folder: pathlib.Path, place: pathlib.Path, vertices: int, edges: int) -> Timer:
    import duckdb

    timer = Timer()
    connection = timer.measure("open", lambda: duckdb.connect(str(place / "graph")), lambda _: None)

    def load() -> list[int]:
        connection.execute("CREATE TABLE person(id BIGINT PRIMARY KEY, name VARCHAR, score DOUBLE)")
        connection.execute(f"INSERT INTO person SELECT * FROM '{folder}/people.parquet'")
        connection.execute(f"CREATE TABLE knows AS SELECT * FROM '{folder}/knows.parquet'")
        connection.execute("CREATE INDEX by_source ON knows(src)")
        return [vertices, edges]

    timer.measure("load", load)
    connection.close()

    def reopen() -> Any:
        connection = duckdb.connect(str(place / "graph"))
        return connection, connection.execute("SELECT name FROM person WHERE id = 0").fetchone()[0]

    connection, _ = timer.measure("reopen", reopen, lambda found: found[1])
    one = "SELECT p.name FROM knows k JOIN person p ON p.id = k.dst WHERE k.src = ?"
    two = "SELECT count(DISTINCT b.dst) FROM knows a JOIN knows b ON b.src = a.dst WHERE a.src = ?"
    sample = chosen(vertices)
    timer.measure(
        "one_hop",
        lambda: [[row[0] for row in connection.execute(one, [vertex]).fetchall()] for vertex in sample],
        lambda found: sum(map(len, found)),
    )
    timer.measure("two_hops", lambda: [connection.execute(two, [vertex]).fetchone()[0] for vertex in sample], sum)
    rows = min(LARGE, edges)
    filtered = f"WHERE weight < {rows / edges}" if rows < edges else ""
    large = f"SELECT src, dst, weight FROM knows {filtered}"
    timer.measure("large_arrow", lambda: connection.execute(large).to_arrow_table(), of_table)
    timer.measure("large_pandas", lambda: connection.execute(large).df(), of_frame)
    degree = "SELECT src, count(*) AS degree FROM knows GROUP BY src ORDER BY degree DESC, src LIMIT 10"
    timer.measure("top_degree", lambda: [row[0] for row in connection.execute(degree).fetchall()])
    score = "SELECT id FROM person ORDER BY score DESC LIMIT 10"
    timer.measure("top_property", lambda: [row[0] for row in connection.execute(score).fetchall()])
    return timer


SIDES = {"mangrove": mangrove_side, "ladybug": ladybug_side, "duckdb": duckdb_side}


def shown(seconds: float) -> str:
    return f"{seconds * 1e3:,.1f} ms" if seconds < 10 else f"{seconds:,.1f} s"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--vertices", type=int, default=200_000, help="vertices of the graph (200,000)")
    parser.add_argument("--edges", type=int, default=2_000_000, help="edges of the graph (2,000,000)")
    parser.add_argument("--rounds", type=int, default=3, help="how often each side runs (3)")
    parser.add_argument("--sides", default=",".join(SIDES), help="the sides, by commas")
    parser.add_argument("--side", help=argparse.SUPPRESS)
    parser.add_argument("--folder", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.side:
        with tempfile.TemporaryDirectory(dir=given.folder) as place:
            folder = pathlib.Path(given.folder)
            timer = SIDES[given.side](folder, pathlib.Path(place), given.vertices, given.edges)
        print(json.dumps({"seconds": timer.seconds, "answers": timer.answers}))
        return 0
    sides = given.sides.split(",")
    best: dict[str, dict[str, float]] = {side: {} for side in sides}
    answers: dict[str, tuple[str, Any]] = {}
    with tempfile.TemporaryDirectory() as folder:
        write_graph(pathlib.Path(folder), given.vertices, given.edges)
        for round in range(given.rounds):
            for side in sides:
                print(f"round {round + 1} of {given.rounds}: {side}", file=sys.stderr)
                command = [sys.executable, __file__, "--side", side, "--folder", folder]
                command += ["--vertices", str(given.vertices), "--edges", str(given.edges)]
                done = subprocess.run(command, capture_output=True, text=True, env=os.environ)
                if done.returncode != 0:
                    print(done.stdout + done.stderr, file=sys.stderr)
                    return 1
                found = json.loads(done.stdout)
                for row, answer in found["answers"].items():
                    first = answers.setdefault(row, (side, answer))
                    if first[1] != answer:
                        print(f"{row}: {side} answers {answer}, and {first[0]} {first[1]}", file=sys.stderr)
                        return 1
                for row, seconds in found["seconds"].items():
                    best[side][row] = min(seconds, best[side].get(row, seconds))
    print(f"{given.vertices:,} vertices, {given.edges:,} edges, least of {given.rounds} rounds; all answers agree\n")
    print("| | " + " | ".join(sides) + " | ahead |\n|---" + "|---" * len(sides) + "|---|")
    for row, meaning in ROWS.items():
        first = min(sides, key=lambda side: best[side][row])
        why = f": {LIMITS[row]}" if first != "mangrove" and row in LIMITS else ""
        print(f"| {meaning} | " + " | ".join(shown(best[side][row]) for side in sides) + f" | {first}{why} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())

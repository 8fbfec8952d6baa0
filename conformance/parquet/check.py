"""Exchanges Parquet files between Mangrove, Arrow, DuckDB and pandas.

Arrow writes tables with every type of property in every encoding that it has. Mangrove loads them and exports its
graph. Arrow reads the export, and every value must equal the one that was written. DuckDB, a third reader, must get the
same counts and sums. All three also read the Parquet files of a checkpoint, and agree with Gremlin.

Usage: check.py MANGROVE
"""

import datetime
import decimal
import json
import subprocess
import sys
import tempfile
import uuid
from pathlib import Path

import duckdb
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from counted import Checks

ROWS = 1000
UTC = datetime.timezone.utc


def some(row, value):
    """A value, or null in every seventh row."""
    return None if row % 7 == 3 else value


def people():
    """A table with a column of every type."""
    moment = datetime.datetime(1969, 12, 31, 23, 59, 58, 123456, tzinfo=UTC)
    rows = range(ROWS)
    column = lambda make, kind: pa.array([some(row, make(row)) for row in rows], type=kind)
    return pa.table({
        "id": pa.array([row * 3 - 5 for row in rows], type=pa.int64()),
        "truth": column(lambda row: row % 2 == 0, pa.bool_()),
        "i8": column(lambda row: row % 256 - 128, pa.int8()),
        "i16": column(lambda row: row * 31 - 15000, pa.int16()),
        "i32": column(lambda row: row * 4_000_000 - 2_000_000_000, pa.int32()),
        "i64": column(lambda row: row * 9_000_000_000_000_000 - 2**62, pa.int64()),
        "u8": column(lambda row: row % 256, pa.uint8()),
        "u16": column(lambda row: row * 65, pa.uint16()),
        "u32": column(lambda row: row * 4_000_000, pa.uint32()),
        "u64": column(lambda row: row * 9_000_000_000_000_000, pa.uint64()),
        "f16": column(lambda row: row / 8, pa.float16()),
        "f32": column(lambda row: row / 3, pa.float32()),
        "f64": column(lambda row: -row / 7, pa.float64()),
        "text": column(lambda row: ["", "\\N", "é\n\"a,b\"", f"text {row}"][row % 4], pa.string()),
        "large": column(lambda row: f"large {row % 5}", pa.large_string()),
        "word": column(lambda row: f"word {row % 3}", pa.string()).dictionary_encode(),
        "bytes": column(lambda row: bytes([row % 256, 0, 255]), pa.binary()),
        "three": column(lambda row: bytes([row % 256, 1, 2]), pa.binary(3)),
        "uuid": column(lambda row: uuid.UUID(int=row << 64 | row).bytes, pa.uuid()),
        "price": column(lambda row: decimal.Decimal(row * 7 - 900).scaleb(-3), pa.decimal128(12, 3)),
        "wide": column(lambda row: decimal.Decimal(row).scaleb(20) + 1, pa.decimal128(38, 0)),
        "day": column(lambda row: datetime.date(1950, 1, 1) + datetime.timedelta(days=row * 50), pa.date32()),
        "second": column(lambda row: moment.replace(microsecond=0) + datetime.timedelta(hours=row), pa.timestamp("s", tz="UTC")),
        "milli": column(lambda row: datetime.datetime(2020, 1, 1, 0, 0, 0, row * 1000), pa.timestamp("ms")),
        "micro": column(lambda row: moment + datetime.timedelta(microseconds=row), pa.timestamp("us", tz="UTC")),
        "nano": column(lambda row: row * 1_000_000_007, pa.timestamp("ns", tz="UTC")),
        "ints": column(lambda row: list(range(1, row % 5 + 2)), pa.list_(pa.int32())),
        "texts": column(lambda row: [f"a{row}", "", "b,c"], pa.list_(pa.string())),
        "days": column(lambda row: [datetime.date(2000, 1, 1 + row % 28)] * 2, pa.list_(pa.date32())),
        "none": column(lambda row: [], pa.list_(pa.int32())),
        "deep": column(lambda row: [[row, 1], [], [2]], pa.list_(pa.list_(pa.int64()))),
        "map": column(lambda row: [("k", row), (f"l{row}", 2)], pa.map_(pa.string(), pa.int64())),
        "pair": column(lambda row: {"x": row, "y": f"y{row}"}, pa.struct({"x": pa.int32(), "y": pa.string()})),
    })


def knows():
    """Edges from every vertex."""
    rows = range(ROWS)
    return pa.table({
        "~from": pa.array([row * 3 - 5 for row in rows], type=pa.int64()),
        "~to": pa.array([(row * 7 + 1) % ROWS * 3 - 5 for row in rows], type=pa.int64()),
        "since": pa.array([some(row, row / 2) for row in rows]),
    })


def untyped(json_value):
    """The value of typed JSON."""
    if not isinstance(json_value, dict):
        return json_value
    if "@type" not in json_value:
        return {key: untyped(item) for key, item in json_value.items()}
    kind, value = json_value["@type"], json_value["@value"]
    if kind == "g:List":
        return [untyped(item) for item in value]
    if kind == "g:Map":
        return {untyped(key): untyped(item) for key, item in zip(value[::2], value[1::2])}
    return value


def normal(value):
    """A value in normal form, whatever Python type it has."""
    if isinstance(value, datetime.datetime):
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)
    if isinstance(value, datetime.date):
        return datetime.datetime(value.year, value.month, value.day, tzinfo=UTC)
    if isinstance(value, uuid.UUID):
        return value.bytes
    if isinstance(value, decimal.Decimal):
        return value.normalize(decimal.Context(prec=60))
    if isinstance(value, list) and value and all(isinstance(item, tuple) for item in value):
        return {key: normal(item) for key, item in value}
    if isinstance(value, list):
        return [normal(item) for item in value]
    return value


def values(table, name):
    """A column as values in normal form. If the column's name ends with a type, its texts are read as that type."""
    column = table.column(name)
    if pa.types.is_timestamp(column.type) and column.type.unit == "ns":
        return [value.value if value.is_valid else None for chunk in column.chunks for value in chunk]
    found = column.to_pylist()
    if name.endswith(":any"):
        return [None if text is None else normal(untyped(json.loads(text))) for text in found]
    return [normal(value) for value in found]


def mangrove(*arguments):
    return subprocess.run([sys.argv[1], *map(str, arguments)], check=True, capture_output=True, text=True)


def by_id(table):
    """The rows in the order of their ids."""
    return table.sort_by("~id")


def check_way(checks, folder, name, **way):
    """Arrow writes, Mangrove loads and exports, Arrow reads."""
    folder = folder / name
    folder.mkdir()
    person, edges = people(), knows()
    pq.write_table(person, folder / "person.parquet", row_group_size=130, **way)
    pq.write_table(edges, folder / "knows.parquet", row_group_size=300, **way)
    mangrove("load", folder / "person.parquet", folder / "knows.parquet", "--data", folder / "graph", "--max-rejects", 0)
    compression = way.get("compression", "snappy")
    packing = ["--compress", compression] if compression in ("gzip", "zstd") else []
    mangrove("export", "--data", folder / "graph", "--format", "parquet", "-o", folder / "out", *packing)
    found = by_id(pq.read_table(folder / "out" / "vertices_person.parquet"))
    checks.equal(f"{name}: ids", found.column("~id").to_pylist(), person.column("id").to_pylist())
    names = {column.split(":")[0]: column for column in found.column_names}
    for column in person.column_names[1:]:
        exported = names.get(column, column)
        checks.equal(f"{name}: {column} as {exported}", values(found, exported), values(person, column))
    plain = [column for column in found.column_names if ":" in column]
    checks.equal(f"{name}: columns with a type", sorted(plain), ["deep:any", "map:any", "none:any", "pair:any"])
    found = pq.read_table(folder / "out" / "edges_knows.parquet").sort_by("~from")
    for column in edges.column_names:
        checks.equal(f"{name}: {column} of edges", values(found, column), values(edges, column))
    checks.equal(f"{name}: labels", set(found.column("~label").to_pylist()), {"knows"})
    check_duckdb(checks, name, folder, person)


def check_duckdb(checks, name, folder, person):
    """DuckDB computes the same sums from the export."""
    query = (
        "select count(*), sum(\"i32\"), min(\"text\"), sum(\"price\"), epoch_us(max(\"micro\")), sum(len(\"ints\")), count(distinct \"word\")"
        f" from '{folder}/out/vertices_person.parquet'"
    )
    count, total, least, price, micro, items, words = duckdb.sql(query).fetchall()[0]
    there = lambda column: [value for value in person.column(column).to_pylist() if value is not None]
    expected = (
        ROWS,
        sum(there("i32")),
        min(there("text")),
        sum(there("price")),
        (max(there("micro")) - datetime.datetime(1970, 1, 1, tzinfo=UTC)) // datetime.timedelta(microseconds=1),
        sum(map(len, there("ints"))),
        len(set(there("word"))),
    )
    checks.equal(f"{name}: DuckDB", (count, total, least, price, micro, items, words), expected)


def check_plain(checks, folder):
    """With `--plain`, values of several types become one column: Arrow sees one type a key, and DuckDB needs no
    cast."""
    zone = datetime.timezone(datetime.timedelta(hours=2))
    moment = datetime.datetime(2024, 5, 6, 7, 8, 9, 123456, tzinfo=UTC)
    typed = lambda kind, value: {"@type": kind, "@value": value}
    rows = [
        {"age": typed("g:Int32", 3), "score": 1, "joined": typed("gx:OffsetDateTime", moment.isoformat()), "id": 5, "mixed": 1},
        {"age": 5_000_000_000, "score": 0.5, "joined": typed("gx:OffsetDateTime", moment.astimezone(zone).isoformat()), "id": 6, "mixed": "x"},
        {"age": typed("g:Int32", 4), "score": 2.25, "dst": "there", "huge": typed("gx:BigInteger", 2**64)},
    ]
    lines = [{"vertex": at, "label": "person", "properties": row} for at, row in enumerate(rows)]
    lines += [{"edge": 9, "label": "knows", "from": 0, "to": 1, "properties": {"src": "book", "weight": 0.5}}]
    (folder / "plain.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    mangrove("export", "--load", folder / "plain.jsonl", "--format", "parquet", "--plain", "-o", folder / "plain")
    people = pq.read_table(folder / "plain" / "vertices_person.parquet").sort_by("id")
    types = {field.name: str(field.type) for field in people.schema}
    expected = {
        "id": "int64", "label": "string", "age": "int64", "score": "double", "joined": "timestamp[us, tz=UTC]", "id_property": "int64",
        "mixed": "string", "dst_property": "string", "huge": "decimal128(20, 0)",
    }
    checks.equal("plain: types", types, expected)
    checks.equal("plain: ages", people.column("age").to_pylist(), [3, 5_000_000_000, 4])
    checks.equal("plain: times", [normal(time) for time in people.column("joined").to_pylist() if time], [moment, moment])
    checks.equal("plain: mixed", people.column("mixed").to_pylist(), ["1", "x", None])
    checks.equal("plain: ids as properties", people.column("id_property").to_pylist(), [5, 6, None])
    found = duckdb.sql(
        "select sum(p.age), sum(p.score), max(p.huge), count(distinct p.joined), any_value(e.src_property)"
        f" from '{folder}/plain/vertices_person.parquet' p left join '{folder}/plain/edges_knows.parquet' e on e.src = p.id"
    ).fetchall()
    checks.equal("plain: DuckDB", found, [(5_000_000_007, 3.75, decimal.Decimal(2**64), 1, "book")])


def check_duckdb_writes(checks, folder):
    """Mangrove loads a file that DuckDB wrote."""
    path = folder / "thing.parquet"
    duckdb.sql(
        "copy (select range as id, 'n' || range as name, range * 0.5 as half, [range, 1] as list, date '2020-01-01' + range::int as day"
        f" from range(5000)) to '{path}' (format parquet, row_group_size 2048)"
    )
    query = "g.V().has('name', 'n4999').values('half', 'list', 'day')"
    said = mangrove("load", path, "--max-rejects", 0, "--query", query).stdout
    for text in ("5000", "2499.5", "[4999, 1]", "2033-09-08"):
        checks.equal(f"DuckDB writes: {text}", text in said.replace("4999,1", "4999, 1"), True)


def check_refusals(checks, folder):
    """For a type that is not supported, the error names it."""
    table = pa.table({"id": [1, 2], "name": ["a" * 1000, "b" * 1000]})
    for codec in ("lz4", "brotli"):
        path = folder / f"{codec}.parquet"
        pq.write_table(table, path, compression=codec)
        said = subprocess.run([sys.argv[1], "load", path], capture_output=True, text=True)
        checks.equal(f"{codec} is refused", (said.returncode != 0, "snappy, zstd or gzip" in said.stderr), (True, True))
    path = folder / "time.parquet"
    pq.write_table(pa.table({"id": [1], "at": [datetime.time(1, 2)]}), path)
    said = subprocess.run([sys.argv[1], "load", path], capture_output=True, text=True)
    checks.equal("a time is refused", (said.returncode != 0, "column 'at'" in said.stderr), (True, True))


def gremlin(data, script):
    """The only result of a script."""
    return untyped(json.loads(mangrove("query", "--data", data, "--format", "jsonl", script).stdout))


def columns_of(data):
    """The files of the open columns of the newest checkpoint, by label."""
    newest = max((data / "manifest").glob("*.json"), key=lambda path: int(path.stem))
    files = json.loads(newest.read_text())["manifest"]["columns"]["files"]
    return {file["label"]: data / file["path"] for file in files}


def check_checkpoint(checks, folder):
    """DuckDB, Arrow and pandas read the open columns of a checkpoint as Gremlin reads the graph, before changes and after."""
    folder = folder / "checkpoint"
    folder.mkdir()
    pq.write_table(people(), folder / "person.parquet")
    pq.write_table(knows(), folder / "knows.parquet")
    data = folder / "graph"
    mangrove("load", folder / "person.parquet", folder / "knows.parquet", "--data", data, "--max-rejects", 0)
    for change in [
        "g.V().has('person', 'i32', gt(0)).limit(10).property('i32', 7).property(list, 'nick', 'a').property(list, 'nick', 'b').iterate()",
        "g.V().has('person', 'i32', lt(0)).limit(3).property('i32', 'text in place of a number').iterate()",
        "g.addV('city::place').property('name', 'Ulm').as('c').V().hasLabel('person').limit(100).addE('lives').from('c').iterate()",
        "g.V().hasLabel('person').limit(4).drop().iterate()",
    ]:
        mangrove("query", "--data", data, change)
        mangrove("checkpoint", "--data", data, "--parquet")
        files = columns_of(data)
        person, edges = files["person"], files["knows"]
        one = lambda query: duckdb.sql(query).fetchall()[0]
        found = one(f"select count(*), sum(i32), count(i32) from '{person}'")
        is_number = "g.V().hasLabel('person').filter(values('i32').is(typeOf(GType.NUMBER)))"
        expected = (
            gremlin(data, "g.V().hasLabel('person').count()"),
            gremlin(data, f"{is_number}.values('i32').sum()"),
            gremlin(data, f"{is_number}.count()"),
        )
        checks.equal(f"checkpoint: DuckDB after {change}", found, expected)
        join = (
            f"select count(*), sum(e.since) from '{edges}' e join '{person}' a on e._source = a._id"
            f" join '{person}' b on e._target_internal = b._internal where a.truth and b.i64 > 0"
        )
        walk = "g.V().has('person', 'truth', true).outE('knows').where(inV().has('i64', gt(0)))"
        expected = (gremlin(data, f"{walk}.count()"), gremlin(data, f"{walk}.values('since').sum()"))
        checks.equal(f"checkpoint: a join after {change}", one(join), expected)
        ids = pq.read_table(person).column("_id").to_pylist()
        checks.equal(f"checkpoint: ids after {change}", sorted(ids), sorted(gremlin(data, "g.V().hasLabel('person').id().fold()")))
        rest = [text for text in pq.read_table(person).column("_rest").to_pylist() if text is not None and "text in place" in text]
        texts = gremlin(data, "g.V().hasLabel('person').has('i32', 'text in place of a number').count()")
        checks.equal(f"checkpoint: values of another type after {change}", len(rest), texts)
        frame = pd.read_parquet(person)
        found = {word: int(count) for word, count in frame["word"].value_counts().items()}
        words = gremlin(data, "g.V().hasLabel('person').has('word').groupCount().by('word')")
        checks.equal(f"checkpoint: pandas counts words after {change}", found, words)
        degrees = pd.read_parquet(edges).merge(frame, left_on="_source", right_on="_id")
        checks.equal(f"checkpoint: pandas joins after {change}", (len(degrees), degrees["f64"].sum().round(6)), (
            gremlin(data, "g.V().hasLabel('person').outE('knows').count()"),
            round(gremlin(data, "g.V().hasLabel('person').as('p').outE('knows').select('p').values('f64').sum()"), 6),
        ))
        said = mangrove("verify", "--data", data).stdout
        checks.equal(f"checkpoint: verify after {change}", f"{len(files)} files of open columns" in said, True)
    nicks = one(f"select count(*), sum(len(nick)) from '{person}' where nick is not null")
    checks.equal("checkpoint: lists", nicks[1], 2 * nicks[0])
    place = pq.read_table(files["city::place"])
    checks.equal("checkpoint: several labels", place.column("name").to_pylist(), ["Ulm"])
    named = {path.name for path in files.values()}
    checks.equal("checkpoint: files that no manifest needs", len(set(path.name for path in (data / "open").iterdir()) - named) <= len(named), True)


def check_algorithms(checks, folder):
    """Results of algorithms: numbers, lists of vertices, vectors. The ranks are those of a plain power iteration."""
    count, damping = 200, 0.85
    edges = [(at, at * 7 % count) for at in range(count)] + [(at, (at * at + 3) % count) for at in range(0, count, 2)]
    (folder / "places.csv").write_text("id\n" + "".join(f"{at}\n" for at in range(count)))
    (folder / "roads.csv").write_text("~from,~to\n" + "".join(f"{one},{other}\n" for one, other in edges))
    def run(name, *options):
        out = folder / f"{name}.parquet"
        given = [word for option in options for word in ("-O", option)]
        command = [sys.argv[1], "algo", name, *given, "--out", out, "--load", folder / "places.csv", folder / "roads.csv"]
        subprocess.run(command, check=True, capture_output=True)
        return out

    ranks, degrees = [1 / count] * count, [0] * count
    for one, _ in edges:
        degrees[one] += 1
    for _ in range(30):
        lost = sum(rank for rank, degree in zip(ranks, degrees) if degree == 0)
        after = [(1 - damping + damping * lost) / count] * count
        for one, other in edges:
            after[other] += damping * ranks[one] / degrees[one]
        ranks = after
    out = run("pagerank", "rounds=30")
    table = pq.read_table(out)
    checks.equal("algorithm: types", [str(field.type) for field in table.schema], ["int64", "double"])
    found = dict(zip(table["vertex"].to_pylist(), table["rank"].to_pylist()))
    near = all(abs(found[at] - ranks[at]) < 1e-12 for at in range(count))
    checks.equal("algorithm: ranks", (len(found), near), (count, True))
    total = duckdb.sql(f"select sum(rank), count(distinct vertex) from '{out}'").fetchall()[0]
    checks.equal("algorithm: DuckDB", (round(total[0], 9), total[1]), (1.0, count))
    walks = pd.read_parquet(run("random_walks", "steps=5", "walks=2"))
    steps = set(edges)
    follows = all((one, other) in steps for walk in walks["walk"] for one, other in zip(walk, walk[1:]))
    checks.equal("algorithm: lists", (len(walks), follows), (2 * count, True))
    vectors = pd.read_parquet(run("fast_rp", "dimensions=8"))
    checks.equal("algorithm: vectors", {len(vector) for vector in vectors["embedding"]}, {8})


def main():
    checks = Checks()
    with tempfile.TemporaryDirectory(dir="target") as folder:
        folder = Path(folder)
        check_checkpoint(checks, folder)
        check_way(checks, folder, "snappy", compression="snappy")
        check_way(checks, folder, "gzip, second pages", compression="gzip", data_page_version="2.0")
        check_way(checks, folder, "zstd, no dictionaries", compression="zstd", use_dictionary=False, data_page_version="1.0")
        check_way(checks, folder, "plain, small pages", compression="none", data_page_size=500, data_page_version="2.0")
        check_way(checks, folder, "old times", use_deprecated_int96_timestamps=True)
        deltas = {"text": "DELTA_BYTE_ARRAY", "large": "DELTA_LENGTH_BYTE_ARRAY", "i32": "DELTA_BINARY_PACKED", "f64": "BYTE_STREAM_SPLIT"}
        check_way(checks, folder, "deltas", use_dictionary=False, column_encoding=deltas)
        check_duckdb_writes(checks, folder)
        check_plain(checks, folder)
        check_algorithms(checks, folder)
        check_refusals(checks, folder)
    print(f"{checks.passed} passed, {checks.failed} failed")
    return 1 if checks.failed else 0


if __name__ == "__main__":
    sys.exit(main())

"""Ladybug, embedded: its Python interface with prepared Cypher.

Usage: ladybug_side.py PLACE LIMIT_SECONDS    (PLACE: `memory`, or `disk` for a new database under target/)
"""

import json
import os
import pathlib
import shutil
import sys
import time
import warnings
from decimal import Decimal

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import ladybug

from sides.lines import Side, TimedOut, serve
from workloads import QUERIES


class Ladybug(Side):
    def __init__(self, place, limit_seconds):
        self.place, self.limit_seconds = place, limit_seconds
        self.database = self.connection = None
        self.prepared, self.texts = {}, {}

    def load(self, folder):
        location = ":memory:"
        if self.place == "disk":
            location = folder / "ladybug"
            for old in folder.glob("ladybug*"):
                shutil.rmtree(old) if old.is_dir() else old.unlink()
        self.database = ladybug.Database(location)
        self.connection = ladybug.Connection(self.database)
        self.texts = json.loads((folder / "workloads.json").read_text())["queries"]
        tables = folder / "tables"
        seconds = self.load_tables(tables) if tables.is_dir() else self.load_people(folder)
        self.connection.set_query_timeout(int(self.limit_seconds * 1000))
        settings = {
            "where": "in memory" if self.place == "memory" else "on disk, its defaults of durability",
            "threads": self.run("CALL current_setting('threads') RETURN *")[0][0],
            "asked through": f"Python {sys.version.split()[0]}, prepared Cypher",
            "indexes": "none but those of ids: it has no secondary index on properties, so it scans",
        }
        return seconds, ladybug.__version__, settings

    def load_people(self, folder):
        """Loads the generated graph. Returns the seconds."""
        people = "id INT64 PRIMARY KEY, born INT64, name STRING, code INT64, city STRING, age INT64"
        self.run(f"CREATE NODE TABLE person({people}, label STRING)")
        self.run("CREATE REL TABLE knows(FROM person TO person, since INT64, label STRING)")
        start = time.perf_counter()
        self.run(f"COPY person FROM '{folder / 'people.csv'}' (HEADER=true)")
        self.run(f"COPY knows FROM '{folder / 'knows.csv'}' (HEADER=true)")
        return time.perf_counter() - start

    def load_tables(self, tables):
        """Loads the tables of a network. Edges of one label between several pairs of labels are one table."""
        vertices, edges = {}, {}
        for path in sorted(tables.glob("*.csv")):
            parts = path.stem.split("_")
            if len(parts) == 1:
                vertices[parts[0]] = path
            else:
                edges.setdefault(parts[1], []).append((parts[0], parts[2], path))
        start = time.perf_counter()
        for label, path in vertices.items():
            with open(path) as file:
                fields = [field.split(":") for field in file.readline().strip().split("|")]
            types = {"long": "INT64", "string": "STRING"}
            columns = [f"{name} {types[kind]}" for name, kind in fields[1:]]
            self.run(f"CREATE NODE TABLE {label}({', '.join(['id INT64 PRIMARY KEY', *columns])})")
            self.run(f"COPY {label} FROM '{path}' (HEADER=true, DELIM='|')")
        for label, between in edges.items():
            ends = ", ".join(f"FROM {source} TO {target}" for source, target, _ in between)
            self.run(f"CREATE REL TABLE {label}({ends})")
            for source, target, path in between:
                which = f", FROM='{source}', TO='{target}'" if len(between) > 1 else ""
                self.run(f"COPY {label} FROM '{path}' (HEADER=true, DELIM='|'{which})")
        return time.perf_counter() - start

    def run(self, statement, parameters=None):
        result = self.connection.execute(statement, parameters or {})
        rows = result.get_all()
        result.close()
        return rows

    def ask(self, query, parameters):
        try:
            statement = self.prepared.get(query)
            if statement is None:
                statement = self.prepared[query] = self.connection.prepare(self.texts[query]["cypher"])
            return self.run(statement, parameters)
        except RuntimeError as error:
            if "Interrupted" in str(error):
                raise TimedOut(f"ended after {self.limit_seconds:g} s") from error
            raise

    def flatten(self, result):
        # Ladybug's sums are decimals, while the expected ones are integers.
        return [int(cell) if isinstance(cell, Decimal) else cell for row in result for cell in row]

    def rephrase(self, queries):
        again = [query for query in queries if query in QUERIES and QUERIES[query].cypher_again]
        for query in again:
            self.prepared[query] = self.connection.prepare(QUERIES[query].cypher_again)
        return bool(again)

    def process(self):
        return os.getpid()


if __name__ == "__main__":
    # Ladybug warns that prepare() is deprecated. Preparing with every call is slower.
    warnings.filterwarnings("ignore", category=DeprecationWarning)
    serve(Ladybug(sys.argv[1], float(sys.argv[2])))

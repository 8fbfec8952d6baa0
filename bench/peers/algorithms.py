"""Measures graph algorithms of Mangrove beside NetworkX, igraph, Ladybug and Kuzu: one edge list, the same parameters, answers compared first.

`make bench-algorithms` sets everything up and runs this. README.md describes the method. How a run goes (load, compare, time) is that of peers.py.
"""

import argparse
import json
import pathlib
import random
import sys
import time

import graph
import peers
from algorithms_oracle import Oracle, difference
from figures import Missing, figure

HERE = pathlib.Path(__file__).resolve().parent
SIDES = ["mangrove", "mangrove-single", "igraph", "networkx", "kuzu", "ladybug"]
PAGERANK = {"damping": 0.85, "tolerance": 1e-7, "rounds": 100}
BETWEENNESS_SOURCES = 16
BFS_SOURCES = 4
# In the error of a side that does not have an algorithm.
NOT_THERE = "NotThere"


class Case:
    """An algorithm with the parameters of each operation. `writes` is what peers.Run asks for."""

    writes = False

    def __init__(self, name, operations):
        self.name, self.operations = name, operations


def cases(edges, seed):
    """The cases for a graph. Sources have edges, because every vertex has."""
    draw = random.Random(f"{seed}/sources")
    sources = draw.sample(range(edges.vertex_count), min(edges.vertex_count, BETWEENNESS_SOURCES))
    one = lambda algorithm, **parameters: Case(algorithm, [[algorithm, parameters]])
    return [
        one("pagerank", **PAGERANK),
        one("wcc"),
        one("scc"),
        Case("bfs", [["bfs", {"source": source}] for source in sources[:BFS_SOURCES]]),
        one("lcc"),
        one("triangles"),
        one("k-core"),
        one("louvain"),
        one("betweenness", sources=sources),
    ]


class Edges:
    """An edge list: `arcs` as they are, and `pairs` without directions. Neither has loops or parallel edges, and every vertex has an edge."""

    def __init__(self, listed):
        arcs = {(source, target) for source, target in listed if source != target}
        if not arcs:
            raise ValueError("the graph has no edge between two vertices: give a line `source target` for each edge")
        numbers = {name: number for number, name in enumerate(sorted({end for arc in arcs for end in arc}))}
        self.vertex_count = len(numbers)
        self.arcs = sorted((numbers[source], numbers[target]) for source, target in arcs)
        self.pairs = sorted({(min(arc), max(arc)) for arc in self.arcs})

    def write(self, folder):
        """Writes the files that all sides load: numbers of vertices, arcs and pairs."""
        folder.mkdir(parents=True, exist_ok=True)
        with open(folder / "vertices.csv", "w", encoding="ascii") as out:
            out.write("id:ID,:LABEL\n")
            out.writelines(f"{number},vertex\n" for number in range(self.vertex_count))
        for label, edges in (("arc", self.arcs), ("pair", self.pairs)):
            with open(folder / f"{label}s.csv", "w", encoding="ascii") as out:
                out.write(":START_ID,:END_ID,:TYPE\n")
                out.writelines(f"{source},{target},{label}\n" for source, target in edges)


def read(path):
    """The pairs of numbers in a file; further words of a line do not count."""
    with open(path, encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            if not line.strip() or line.startswith(("#", "%")):
                continue
            words = line.replace(",", " ").split()
            try:
                yield int(words[0]), int(words[1])
            except (IndexError, ValueError) as error:
                raise ValueError(f"line {number} of {path} does not begin with the numbers of two vertices") from error


class Run(peers.Run):
    """A run that compares answers as the algorithm allows: numbers within a tolerance, components as partitions, communities by modularity."""

    def difference(self, case, answers):
        for (algorithm, parameters), answer, expected in zip(case.operations, answers, self.expected[case.name], strict=True):
            found = difference(algorithm, answer, expected, self.oracle)
            if found:
                return f"`{algorithm}` of {peers.short(parameters)}: {found}"
            if algorithm == "louvain":
                self.communities(case, answer)
        return None

    def result(self, side, case, measure):
        try:
            self.keep(side, case.name, measure())
        except peers.Refused as error:
            if NOT_THERE in str(error):
                self.results[side, case.name] = Missing("–", str(error))
            else:
                self.keep(side, case.name, Missing("failed", str(error)))

    def communities(self, case, answer):
        modularity = self.oracle.modularity(answer)
        self.figures.append(figure(case.name, self.side, "modularity", modularity, ""))
        self.settings[self.side]["modularity of louvain"] = f"{modularity:.4f}"

    def measure(self, side, command):
        self.side = side
        super().measure(side, command)


def commands(options):
    python = [sys.executable, HERE / "sides/algorithms_side.py"]
    found = {side: [*python, side] for side in SIDES if not side.startswith("mangrove")}
    if options.embedded:
        found["mangrove"] = [options.embedded, "all"]
        found["mangrove-single"] = [options.embedded, "1"]
    return {side: list(map(str, command)) for side, command in found.items()}


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    path = lambda text: pathlib.Path(text).resolve()
    parser.add_argument("--graph", type=path, help="an edge list, `source target` in each line (default: a generated graph)")
    parser.add_argument("--vertices", type=int, default=20_000, help="the vertices of the generated graph")
    parser.add_argument("--edges", type=int, help="its edges (default: ten times the vertices)")
    parser.add_argument("--seed", type=int, default=42)
    parser.add_argument("--seconds", type=float, default=1.0, help="the time of a case on a side, in seconds")
    parser.add_argument("--sides", default=",".join(SIDES), help="sides, with commas: " + ", ".join(SIDES))
    parser.add_argument("--only", help="measure only cases whose name contains this text")
    parser.add_argument("--json", type=path, help="also write the figures to this file")
    parser.add_argument("--folder", type=path, required=True, help="the folder for the graph's files and the logs")
    parser.add_argument("--embedded", type=path, help="the example `algorithms_side` of mangrove-bench")
    options = parser.parse_args()
    options.sides = [side for side in SIDES if side in options.sides.split(",")]
    if not options.sides:
        parser.error("--sides names none of " + ", ".join(SIDES))
    options.folder = options.folder / "algorithms"
    return options


def edges_of(options):
    if options.graph:
        return Edges(read(options.graph))
    spec = graph.Spec(options.vertices, options.edges or 10 * options.vertices, options.seed)
    return Edges((source, target) for source, target, _ in graph.knows(spec))


def main():
    options = arguments()
    begin = time.monotonic()
    try:
        edges = edges_of(options)
    except (OSError, ValueError) as error:
        sys.exit(f"error: {error}")
    edges.write(options.folder)
    print(f"the graph: {edges.vertex_count} vertices, {len(edges.arcs)} edges, {len(edges.pairs)} pairs", file=sys.stderr)
    known = cases(edges, options.seed)
    (options.folder / "workloads.json").write_text(json.dumps({"cases": {case.name: case.operations for case in known}}))
    chosen = [case for case in known if not options.only or options.only in case.name]
    run = Run(options, chosen, Oracle(edges))
    print(f"answers are known after {time.monotonic() - begin:.0f} s", file=sys.stderr)
    return peers.measure_all(run, commands(options), peers.machine(), begin)


if __name__ == "__main__":
    sys.exit(main())

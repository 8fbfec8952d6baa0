"""Graph algorithms of NetworkX, igraph, Ladybug and Kuzu, as sides of algorithms.py.

Usage: algorithms_side.py networkx|igraph|ladybug|kuzu

A graph is built before the time of a case begins, in the form that the library likes best. An answer is in the library's own form; `flatten`
makes it a list with a number for each vertex, outside of the time.
"""

import importlib
import os
import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from sides.lines import Side, serve


class NotThere(Exception):
    """The library does not have the algorithm."""


def numbers(folder, label):
    with open(folder / f"{label}s.csv", encoding="ascii") as lines:
        next(lines)
        return [tuple(map(int, line.split(",")[:2])) for line in lines]


def vertex_count(folder):
    with open(folder / "vertices.csv", encoding="ascii") as lines:
        return sum(1 for _ in lines) - 1


class AlgorithmSide(Side):
    """A side with a method for each algorithm, which returns an answer and what makes a list of it."""

    def ask(self, query, parameters):
        method = getattr(self, query.replace("-", "_"), None)
        if method is None:
            raise NotThere(f"it has no {query}")
        return method(**parameters)

    def flatten(self, result):
        answer, listed = result
        return listed(answer)

    def process(self):
        return os.getpid()


class NetworkX(AlgorithmSide):
    def load(self, folder):
        self.nx = importlib.import_module("networkx")
        self.count = vertex_count(folder)
        arcs, pairs = numbers(folder, "arc"), numbers(folder, "pair")
        start = time.perf_counter()
        self.directed, self.undirected = self.nx.DiGraph(arcs), self.nx.Graph(pairs)
        seconds = time.perf_counter() - start
        return seconds, self.nx.__version__, {"asked through": f"Python {sys.version.split()[0]}", "threads": 1}

    def by_vertex(self, found):
        return [found[vertex] for vertex in range(self.count)]

    def by_group(self, groups):
        found = [-1] * self.count
        for number, group in enumerate(groups):
            for vertex in group:
                found[vertex] = number
        return found

    def pagerank(self, damping, tolerance, rounds):
        # The limit is multiplied by the number of vertices.
        tolerance /= self.count
        return self.nx.pagerank(self.undirected, alpha=damping, tol=tolerance, max_iter=rounds), self.by_vertex

    def wcc(self):
        return list(self.nx.connected_components(self.undirected)), self.by_group

    def scc(self):
        return list(self.nx.strongly_connected_components(self.directed)), self.by_group

    def bfs(self, source):
        listed = lambda found: [found.get(vertex, -1) for vertex in range(self.count)]
        return self.nx.single_source_shortest_path_length(self.undirected, source), listed

    def lcc(self):
        return self.nx.clustering(self.undirected), self.by_vertex

    def triangles(self):
        return sum(self.nx.triangles(self.undirected).values()) // 3, lambda found: [found]

    def k_core(self):
        return self.nx.core_number(self.undirected), self.by_vertex

    def louvain(self):
        return self.nx.community.louvain_communities(self.undirected, seed=1), self.by_group

    def betweenness(self, sources):
        found = self.nx.betweenness_centrality_subset(self.undirected, sources, range(self.count))
        return found, self.by_vertex


class IGraph(AlgorithmSide):
    def load(self, folder):
        igraph = importlib.import_module("igraph")
        count, arcs, pairs = vertex_count(folder), numbers(folder, "arc"), numbers(folder, "pair")
        start = time.perf_counter()
        self.directed = igraph.Graph(count, arcs, directed=True)
        self.undirected = igraph.Graph(count, pairs)
        seconds = time.perf_counter() - start
        return seconds, igraph.__version__, {"asked through": f"Python {sys.version.split()[0]}, C", "threads": 1}

    def pagerank(self, damping, **_):
        # PRPACK ends by a limit of its own.
        return self.undirected.pagerank(damping=damping), list

    def wcc(self):
        return self.undirected.connected_components().membership, list

    def scc(self):
        return self.directed.connected_components(mode="strong").membership, list

    def bfs(self, source):
        def listed(found):
            order, begins, _ = found
            depths = [-1] * self.undirected.vcount()
            for depth, (begin, end) in enumerate(zip(begins, begins[1:])):
                for vertex in order[begin:end]:
                    depths[vertex] = depth
            return depths

        return self.undirected.bfs(source), listed

    def lcc(self):
        return self.undirected.transitivity_local_undirected(mode="zero"), list

    def triangles(self):
        return len(self.undirected.list_triangles()), lambda found: [found]

    def k_core(self):
        return self.undirected.coreness(), list

    def louvain(self):
        return self.undirected.community_multilevel().membership, list

    def betweenness(self, sources):
        everything = range(self.undirected.vcount())
        return self.undirected.betweenness(sources=sources, targets=everything), list


class Cypher(AlgorithmSide):
    """Ladybug, or its predecessor Kuzu, which has the same extension of algorithms built in."""

    def __init__(self, module):
        self.name = module

    def load(self, folder):
        module = importlib.import_module(self.name)
        database = module.Database(":memory:")
        self.connection = module.Connection(database)
        if self.name == "ladybug":
            self.run("INSTALL algo")
            self.run("LOAD algo")
        self.count = vertex_count(folder)
        self.run("CREATE NODE TABLE vertex(id INT64 PRIMARY KEY, label STRING)")
        for label in ("arc", "pair", "both"):
            self.run(f"CREATE REL TABLE {label}(FROM vertex TO vertex, label STRING)")
        start = time.perf_counter()
        self.run(f"COPY vertex FROM '{folder / 'vertices.csv'}' (HEADER=true)")
        for label in ("arc", "pair"):
            self.run(f"COPY {label} FROM '{folder / f'{label}s.csv'}' (HEADER=true)")
        seconds = time.perf_counter() - start
        # Its ranks follow directions, so that both ways of a pair must be there.
        self.run("MATCH (a:vertex)-[:pair]->(b:vertex) CREATE (a)-[:both {label: 'both'}]->(b), (b)-[:both {label: 'both'}]->(a)")
        for label in ("arc", "pair", "both"):
            self.run(f"CALL project_graph('{label}s', ['vertex'], ['{label}'])")
        threads = self.run("CALL current_setting('threads') RETURN *")[0][0]
        return seconds, module.__version__, {"asked through": f"Python {sys.version.split()[0]}, Cypher", "threads": threads}

    def run(self, statement):
        result = self.connection.execute(statement)
        rows = result.get_all()
        result.close()
        return rows

    def by_vertex(self, rows):
        found = [-1] * self.count
        for vertex, number in rows:
            found[vertex] = number
        return found

    def call(self, function, column):
        return self.run(f"CALL {function} RETURN node.id, {column}"), self.by_vertex

    def pagerank(self, damping, tolerance, rounds):
        options = f"dampingFactor := {damping}, maxIterations := {rounds}, tolerance := {tolerance:.12f}"
        return self.call(f"page_rank('boths', {options})", "rank")

    def wcc(self):
        return self.call("weakly_connected_components('pairs')", "group_id")

    def scc(self):
        return self.call("strongly_connected_components('arcs')", "group_id")

    def k_core(self):
        return self.call("k_core_decomposition('pairs')", "k_degree")

    def louvain(self):
        return self.call("louvain('pairs')", "louvain_id")


SIDES = {
    "networkx": NetworkX,
    "igraph": IGraph,
    "ladybug": lambda: Cypher("ladybug"),
    "kuzu": lambda: Cypher("kuzu"),
}

if __name__ == "__main__":
    serve(SIDES[sys.argv[1]]())

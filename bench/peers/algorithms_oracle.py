"""The answers of graph algorithms, by loops that are slow and obvious, and how answers of sides are compared with them.

An answer has a number for each vertex, or one number in all (`triangles`).
"""

from collections import Counter, deque

# The sum of all differences of ranks. Sides end when the sum of changes of a round is below 1e-7.
RANKS_TOLERANCE = 1e-5
RELATIVE_TOLERANCE = 1e-6
# Communities have at least this part of the greatest modularity that a side has found: less is no clustering. How good it is, the report says.
MODULARITY_SHARE = 0.5


class Oracle:
    """Answers questions about an edge list (`algorithms.Edges`)."""

    def __init__(self, edges):
        self.count, self.pairs, self.best_modularity = edges.vertex_count, edges.pairs, 0.0
        self.neighbors = [set() for _ in range(self.count)]
        for one, other in edges.pairs:
            self.neighbors[one].add(other)
            self.neighbors[other].add(one)
        self.out = [[] for _ in range(self.count)]
        for source, target in edges.arcs:
            self.out[source].append(target)
        self.triangles_of = None

    def answer(self, algorithm, parameters):
        return getattr(self, algorithm.replace("-", "_"))(**parameters)

    def bfs(self, source):
        """Edges on a shortest path; -1 for vertices that are not reached."""
        depths, queue = [-1] * self.count, deque([source])
        depths[source] = 0
        while queue:
            at = queue.popleft()
            for other in self.neighbors[at]:
                if depths[other] < 0:
                    depths[other] = depths[at] + 1
                    queue.append(other)
        return depths

    def pagerank(self, damping, tolerance, rounds):
        """Ranks with the sum 1. Every vertex has neighbors, so no rank is lost."""
        ranks = [1 / self.count] * self.count
        for _ in range(rounds):
            passed = [damping * rank / len(neighbors) for rank, neighbors in zip(ranks, self.neighbors)]
            new = [(1 - damping) / self.count + sum(passed[other] for other in neighbors) for neighbors in self.neighbors]
            change, ranks = sum(abs(one - other) for one, other in zip(ranks, new)), new
            if change <= tolerance:
                break
        return ranks

    def wcc(self):
        components = [-1] * self.count
        for first in range(self.count):
            if components[first] < 0:
                for at, depth in enumerate(self.bfs(first)):
                    if depth >= 0:
                        components[at] = first
        return components

    def scc(self):
        """Kosaraju's algorithm: in the reverse order of ends of a search, searches against the arcs find a component each."""
        order, is_found = [], [False] * self.count
        for first in range(self.count):
            if is_found[first]:
                continue
            is_found[first], path = True, [(first, iter(self.out[first]))]
            while path:
                at, rest = path[-1]
                new = next((other for other in rest if not is_found[other]), None)
                if new is None:
                    order.append(at)
                    path.pop()
                else:
                    is_found[new] = True
                    path.append((new, iter(self.out[new])))
        into = [[] for _ in range(self.count)]
        for source, targets in enumerate(self.out):
            for target in targets:
                into[target].append(source)
        components = [-1] * self.count
        for first in reversed(order):
            if components[first] < 0:
                components[first], stack = first, [first]
                while stack:
                    for other in into[stack.pop()]:
                        if components[other] < 0:
                            components[other] = first
                            stack.append(other)
        return components

    def triangle_counts(self):
        if self.triangles_of is None:
            self.triangles_of = [0] * self.count
            for one, other in self.pairs:
                for third in self.neighbors[one] & self.neighbors[other]:
                    self.triangles_of[third] += 1
        return self.triangles_of

    def triangles(self):
        return [sum(self.triangle_counts()) // 3]

    def lcc(self):
        degrees = map(len, self.neighbors)
        return [2 * n / (d * (d - 1)) if d > 1 else 0.0 for n, d in zip(self.triangle_counts(), degrees)]

    def k_core(self):
        """Vertices with the fewest neighbors left are taken away, level by level."""
        left = list(map(len, self.neighbors))
        cores, is_gone, level = [0] * self.count, [False] * self.count, 0
        at_level = {}
        for vertex, degree in enumerate(left):
            at_level.setdefault(degree, []).append(vertex)
        while level <= max(at_level, default=-1):
            for vertex in at_level.pop(level, []):
                if is_gone[vertex]:
                    continue
                queue = [vertex]
                is_gone[vertex] = True
                while queue:
                    at = queue.pop()
                    cores[at] = level
                    for other in self.neighbors[at]:
                        if is_gone[other]:
                            continue
                        left[other] -= 1
                        if left[other] <= level:
                            is_gone[other] = True
                            queue.append(other)
                        else:
                            at_level.setdefault(left[other], []).append(other)
            level += 1
        return cores

    def betweenness(self, sources):
        """Brandes' algorithm. A pair of vertices counts half for each of them that is a source."""
        values = [0.0] * self.count
        for source in sources:
            depths = self.bfs(source)
            order = sorted((at for at in range(self.count) if depths[at] >= 0), key=depths.__getitem__)
            paths, depends = [0] * self.count, [0.0] * self.count
            paths[source] = 1
            for at in order:
                for other in self.neighbors[at]:
                    if depths[other] == depths[at] + 1:
                        paths[other] += paths[at]
            for at in reversed(order):
                for other in self.neighbors[at]:
                    if depths[other] == depths[at] + 1:
                        depends[at] += paths[at] / paths[other] * (1 + depends[other])
                if at != source:
                    values[at] += depends[at] / 2
        return values

    def louvain(self):
        """There are many right answers: `difference` compares modularity."""
        return None

    def modularity(self, communities):
        inside = sum(communities[one] == communities[other] for one, other in self.pairs)
        degrees = Counter()
        for vertex, neighbors in enumerate(self.neighbors):
            degrees[communities[vertex]] += len(neighbors)
        edges = len(self.pairs)
        return inside / edges - sum((degree / (2 * edges)) ** 2 for degree in degrees.values())


def difference(algorithm, answer, expected, oracle):
    """What is wrong with an answer, or None."""
    if len(answer) != (1 if algorithm == "triangles" else oracle.count):
        return f"it has {len(answer)} numbers for {oracle.count} vertices"
    if algorithm == "louvain":
        modularity = oracle.modularity(answer)
        oracle.best_modularity = max(oracle.best_modularity, modularity)
        is_good = modularity >= MODULARITY_SHARE * oracle.best_modularity
        return None if is_good else f"its modularity is {modularity:.4f}, and another side's {oracle.best_modularity:.4f}"
    if algorithm == "pagerank":
        distance = sum(abs(one - other) for one, other in zip(answer, expected, strict=True))
        return None if distance <= RANKS_TOLERANCE else f"the sum of the differences of its ranks is {distance:.3g}"
    if algorithm in ("wcc", "scc"):
        return None if is_same_partition(answer, expected) else "its components are others"
    for vertex, (one, other) in enumerate(zip(answer, expected, strict=True)):
        if abs(one - other) > RELATIVE_TOLERANCE * max(1.0, abs(other)):
            return f"vertex {vertex} has {one}, not {other}"
    return None


def is_same_partition(one, other):
    """Whether two lists have equal elements at the same pairs of places."""
    pairs = set(zip(one, other, strict=True))
    return len(pairs) == len(set(one)) == len(set(other))

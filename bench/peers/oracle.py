"""Computes the expected answers with plain lists from the CSV files. A side is compared with them before it is timed.

The code is slow and obvious on purpose.
"""

import csv
from collections import Counter


class Oracle:
    """The graph as lists, by id."""

    def __init__(self, vertices_path, edges_path):
        with open(vertices_path, newline="") as file:
            rows = csv.reader(file)
            next(rows)
            people = [row for row in rows]
        if any(int(row[0]) != number for number, row in enumerate(people)):
            raise ValueError(f"the ids of {vertices_path} are not 0, 1, 2, …")
        self.born = [int(row[1]) for row in people]
        self.names = [row[2] for row in people]
        self.codes = Counter(int(row[3]) for row in people)
        self.cities = Counter(row[4] for row in people)
        self.ages = [int(row[5]) for row in people]
        self.by_name = {name: number for number, name in enumerate(self.names)}
        # By source: the targets and years of its edges.
        self.out = [[] for _ in people]
        with open(edges_path, newline="") as file:
            rows = csv.reader(file)
            next(rows)
            for source, target, since, _ in rows:
                self.out[int(source)].append((int(target), int(since)))
        self.edge_count = sum(map(len, self.out))

    def walks(self, start, hops):
        """The ends of all walks of this many edges, with the number of walks."""
        ends = Counter({start: 1})
        for _ in range(hops):
            following = Counter()
            for vertex, count in ends.items():
                for target, _ in self.out[vertex]:
                    following[target] += count
            ends = following
        return ends

    def within(self, start, hops):
        """The vertices at the end of 1 to `hops` edges, without the start."""
        seen, frontier = {start}, [start]
        for _ in range(hops):
            found = {target for vertex in frontier for target, _ in self.out[vertex]} - seen
            seen |= found
            frontier = list(found)
        return seen - {start}

    def answer(self, query, p):
        """The answer as a flat list, in the canonical order of the query's shape."""
        match query:
            case "constant":
                return [1]
            case "point":
                return canonical("bag", [self.born[p["who"]], self.names[p["who"]]])
            case "by name":
                return [self.born[self.by_name[p["name"]]]]
            case "by code":
                return [self.codes[p["code"]]]
            case "neighbors":
                return canonical("bag", [self.born[target] for target, _ in self.out[p["who"]]])
            case "recent neighbors":
                return [sum(since >= p["year"] for _, since in self.out[p["who"]])]
            case "reach":
                return [len(self.within(p["who"], 4))]
            case "count people":
                return [len(self.ages)]
            case "count knows":
                return [self.edge_count]
            case "sum":
                return [sum(self.ages)]
            case "top":
                return sorted(self.born, reverse=True)[:10]
            case "group":
                return canonical("map", [cell for pair in self.cities.items() for cell in pair])
            case "group edges":
                years = Counter(since for edges in self.out for _, since in edges if since >= p["year"])
                return canonical("map", [cell for pair in years.items() for cell in pair])
            case "age":
                return [self.ages[p["who"]]]
        hops, _, what = query.partition(" hop")
        ends = self.walks(p["who"], int(hops))
        return [len(ends) if what.endswith("distinct") else ends.total()]

    def after(self, passes):
        """The number of edges, and the ages that were set, after the passes of the writing cases.

        `passes` lists (case, passes) in the order of their last pass. What a case sets it sets again in every pass, so
        the last pass decides.
        """
        edges, ages = self.edge_count, {}
        for case, count in passes:
            for query, p in case.operations if count else ():
                if query == "insert":
                    edges += count
                elif query == "update":
                    ages[p["who"]] = p["age"]
        return edges, ages


def canonical(shape, flat):
    """The normal form of a flat answer, sorted if it is a map or a bag: equal answers are equal lists."""
    if shape == "values":
        return list(flat)
    if shape == "none":
        return []
    if shape == "bag":
        return sorted(flat, key=lambda item: (str(type(item)), item))
    if len(flat) % 2:
        raise ValueError(f"a map of {len(flat)} cells has a key without a value")
    pairs = sorted(zip(flat[::2], flat[1::2]))
    return [cell for pair in pairs for cell in pair]

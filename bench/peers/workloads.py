"""The queries in three notations, and the cases with the parameters of each operation.

The parameters are drawn once, from the seed of the graph, and written to `workloads.json`. Every side reads that file
and runs the same operations in the same order. A query means the same in each language, and is written as the manual
of that language writes it:

    gremlin   text for the embedded database; parameters are bindings
    python    the same as a traversal of gremlinpython, which is sent to the servers as bytecode
    cypher    for Ladybug, prepared; its patterns may use an edge twice (walks), like Gremlin's
"""

import json
import random

try:
    from gremlin_python.process.graph_traversal import __
    from gremlin_python.process.traversal import Order, P
    from gremlin_python.statics import long
except ImportError:  # the self-test and the embedded sides need no client
    __ = Order = P = None
    long = int

from graph import AGE_COUNT, CITY_COUNT, CODE_COUNT, YEARS


class Query:
    """One query, in each notation.

    `shape` says how its answer is compared: `values` in order, `bag` in any order, `map`, or `none` of a write.
    `cypher_again` is a second wording, for a side that answers the first one wrongly.
    """

    def __init__(self, shape, gremlin, python, cypher, cypher_again=None):
        self.shape, self.gremlin, self.python = shape, gremlin, python
        self.cypher, self.cypher_again = cypher, cypher_again


START = "MATCH (a:person {id: $who})"

QUERIES = {
    "constant": Query("values", "g.inject(1)", lambda g, p: g.inject(1), "RETURN 1"),
    "point": Query(
        "bag",
        "g.V(who).values('born', 'name')",
        lambda g, p: g.V(p["who"]).values("born", "name"),
        f"{START} RETURN a.born, a.name",
    ),
    "by name": Query(
        "values",
        "g.V().has('person', 'name', name).values('born')",
        lambda g, p: g.V().has("person", "name", p["name"]).values("born"),
        "MATCH (a:person) WHERE a.name = $name RETURN a.born",
    ),
    "by code": Query(
        "values",
        "g.V().has('person', 'code', code).count()",
        lambda g, p: g.V().has("person", "code", p["code"]).count(),
        "MATCH (a:person) WHERE a.code = $code RETURN count(*)",
    ),
    "neighbors": Query(
        "bag",
        "g.V(who).out('knows').values('born')",
        lambda g, p: g.V(p["who"]).out("knows").values("born"),
        f"{START}-[:knows]->(b:person) RETURN b.born",
    ),
    "recent neighbors": Query(
        "values",
        "g.V(who).outE('knows').has('since', gte(year)).inV().count()",
        lambda g, p: g.V(p["who"]).out_e("knows").has("since", P.gte(p["year"])).in_v().count(),
        f"{START}-[k:knows]->(b:person) WHERE k.since >= $year RETURN count(b)",
    ),
    "1 hop paths": Query(
        "values",
        "g.V(who).out('knows').count()",
        lambda g, p: g.V(p["who"]).out("knows").count(),
        f"{START}-[:knows]->(b:person) RETURN count(*)",
    ),
    "1 hop distinct": Query(
        "values",
        "g.V(who).out('knows').dedup().count()",
        lambda g, p: g.V(p["who"]).out("knows").dedup().count(),
        f"{START}-[:knows]->(b:person) RETURN count(DISTINCT b)",
    ),
    "2 hops paths": Query(
        "values",
        "g.V(who).out('knows').out('knows').count()",
        lambda g, p: g.V(p["who"]).out("knows").out("knows").count(),
        f"{START}-[:knows]->(:person)-[:knows]->(c:person) RETURN count(*)",
        f"{START}-[:knows*2..2]->(c:person) RETURN count(*)",
    ),
    "2 hops distinct": Query(
        "values",
        "g.V(who).out('knows').out('knows').dedup().count()",
        lambda g, p: g.V(p["who"]).out("knows").out("knows").dedup().count(),
        f"{START}-[:knows]->(:person)-[:knows]->(c:person) RETURN count(DISTINCT c)",
        f"{START}-[:knows*2..2]->(c:person) RETURN count(DISTINCT c)",
    ),
    "3 hops paths": Query(
        "values",
        "g.V(who).out('knows').out('knows').out('knows').count()",
        lambda g, p: g.V(p["who"]).out("knows").out("knows").out("knows").count(),
        f"{START}-[:knows]->(:person)-[:knows]->(:person)-[:knows]->(d:person) RETURN count(*)",
        f"{START}-[:knows*3..3]->(d:person) RETURN count(*)",
    ),
    "3 hops distinct": Query(
        "values",
        "g.V(who).out('knows').out('knows').out('knows').dedup().count()",
        lambda g, p: g.V(p["who"]).out("knows").out("knows").out("knows").dedup().count(),
        f"{START}-[:knows]->(:person)-[:knows]->(:person)-[:knows]->(d:person) RETURN count(DISTINCT d)",
        f"{START}-[:knows*3..3]->(d:person) RETURN count(DISTINCT d)",
    ),
    # With the barrier, the loop goes breadth first on every side, so dedup() keeps the shortest path to a vertex.
    "reach": Query(
        "values",
        "g.V(who).repeat(__.out('knows').dedup().barrier()).emit().times(4).not(__.hasId(who)).count()",
        lambda g, p: g.V(p["who"])
        .repeat(__.out("knows").dedup().barrier())
        .emit()
        .times(4)
        .not_(__.has_id(p["who"]))
        .count(),
        f"{START}-[:knows* SHORTEST 1..4]->(b:person) WHERE b.id <> $who RETURN count(*)",
    ),
    "count people": Query(
        "values",
        "g.V().hasLabel('person').count()",
        lambda g, p: g.V().has_label("person").count(),
        "MATCH (a:person) RETURN count(*)",
    ),
    "count knows": Query(
        "values",
        "g.E().hasLabel('knows').count()",
        lambda g, p: g.E().has_label("knows").count(),
        "MATCH (:person)-[k:knows]->(:person) RETURN count(*)",
    ),
    "group": Query(
        "map",
        "g.V().hasLabel('person').groupCount().by('city')",
        lambda g, p: g.V().has_label("person").group_count().by("city"),
        "MATCH (a:person) RETURN a.city, count(*)",
    ),
    "group edges": Query(
        "map",
        "g.E().hasLabel('knows').has('since', gte(year)).groupCount().by('since')",
        lambda g, p: g.E().has_label("knows").has("since", P.gte(p["year"])).group_count().by("since"),
        "MATCH (:person)-[k:knows]->(:person) WHERE k.since >= $year RETURN k.since, count(*)",
    ),
    "top": Query(
        "values",
        "g.V().hasLabel('person').order().by('born', desc).limit(10).values('born')",
        lambda g, p: g.V().has_label("person").order().by("born", Order.desc).limit(10).values("born"),
        "MATCH (a:person) RETURN a.born ORDER BY a.born DESC LIMIT 10",
    ),
    "sum": Query(
        "values",
        "g.V().hasLabel('person').values('age').sum()",
        lambda g, p: g.V().has_label("person").values("age").sum_(),
        "MATCH (a:person) RETURN sum(a.age)",
    ),
    "age": Query(
        "values",
        "g.V(who).values('age')",
        lambda g, p: g.V(p["who"]).values("age"),
        f"{START} RETURN a.age",
    ),
    # Writes return no results, and clients know that (`iterate()`). Later queries read their effects.
    "insert": Query(
        "none",
        "g.V(who).addE('knows').to(__.V(other)).property('since', year).iterate()",
        lambda g, p: g.V(p["who"]).add_e("knows").to(__.V(p["other"])).property("since", long(p["year"])),
        f"{START}, (b:person {{id: $other}}) CREATE (a)-[:knows {{since: $year}}]->(b)",
    ),
    "update": Query(
        "none",
        "g.V(who).property('age', age).iterate()",
        lambda g, p: g.V(p["who"]).property("age", long(p["age"])),
        f"{START} SET a.age = $age",
    ),
}


class Case:
    """One row of the table: a list of operations. An operation is the name of a query and its parameters."""

    def __init__(self, name, operations):
        self.name, self.operations = name, operations

    @property
    def writes(self):
        # The queries of a network (network.py) only read.
        return any(query in QUERIES and QUERIES[query].shape == "none" for query, _ in self.operations)


def cases(spec, names):
    """The cases, in the order in which they are measured. Cases that write come last. `names` is by id."""
    draw = random.Random(f"{spec.seed}/workloads")
    person = lambda: draw.randrange(spec.vertices)
    year = lambda: draw.choice(YEARS)

    def of(count, query, parameters=dict):
        return [(query, parameters()) for _ in range(count)]

    start = lambda: {"who": person()}
    insert = lambda: {"who": person(), "other": person(), "year": year()}
    update = lambda: {"who": person(), "age": draw.randrange(AGE_COUNT)}
    # All hops of one length have the same start vertices, so that their rows can be compared.
    starts, far_starts = [start() for _ in range(200)], [start() for _ in range(10)]
    hops = lambda query, chosen: [(query, parameters) for parameters in chosen]

    def mixed():
        chance = draw.random()
        if chance < 0.4:
            return "point", start()
        if chance < 0.8:
            return "1 hop paths", start()
        return ("insert", insert()) if chance < 0.9 else ("update", update())

    return [
        Case("a constant", of(200, "constant")),
        Case("point read: id, 2 properties", of(1000, "point", start)),
        Case("has(key, value), indexed", of(200, "by name", lambda: {"name": names[person()]})),
        Case("has(key, value), scanned", of(5, "by code", lambda: {"code": draw.randrange(CODE_COUNT)})),
        Case("neighbors' property", hops("neighbors", starts)),
        Case("neighbors by edge property", of(200, "recent neighbors", lambda: {"who": person(), "year": year()})),
        Case("1 hop, paths", hops("1 hop paths", starts)),
        Case("1 hop, distinct", hops("1 hop distinct", starts)),
        Case("2 hops, paths", hops("2 hops paths", starts)),
        Case("2 hops, distinct", hops("2 hops distinct", starts)),
        Case("3 hops, paths", hops("3 hops paths", far_starts)),
        Case("3 hops, distinct", hops("3 hops distinct", far_starts)),
        Case("reach within 4 hops", hops("reach", far_starts[:3])),
        Case("count of a vertex label", of(1, "count people")),
        Case("count of an edge label", of(1, "count knows")),
        Case("sum of a property", of(1, "sum")),
        Case("top 10 by a property", of(1, "top")),
        Case("group-by count, vertices", of(1, "group")),
        Case("group-by count, filtered edges", [("group edges", {"year": YEARS[0] + 10})]),
        Case("property update", of(200, "update", update)),
        Case("edge insert", of(200, "insert", insert)),
        Case("mixed: 80 % reads, 20 % writes", [mixed() for _ in range(200)]),
    ]


def as_json(spec, all_cases):
    """The content of `workloads.json`."""
    return {
        "graph": spec.as_json(),
        "queries": {
            name: {"shape": query.shape, "gremlin": query.gremlin, "cypher": query.cypher}
            for name, query in QUERIES.items()
        },
        "cases": {case.name: case.operations for case in all_cases},
    }


def write(spec, all_cases, path):
    path.write_text(json.dumps(as_json(spec, all_cases)))

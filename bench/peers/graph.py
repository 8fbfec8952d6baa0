"""The graph that all sides load: people who know one another, as two CSV files made from a seed.

A person's properties are functions of the seed alone:

    id     0 to N-1
    born   unique, so that the top ten have one order
    name   `p` and seven hexadecimal digits, unique
    code   one of CODE_COUNT integers, all equally likely
    city   one of CITY_COUNT names; some are many times as common as others
    age    0 to 99

The ends of an edge are drawn independently, both from one power law: the density at rank x of [0, 1) is proportional
to x ** (1 / SKEW - 1). So a person with many outgoing edges has many incoming ones, as in a social network: there are a
few hubs, and most people are below the mean. Parallel edges and loops are kept. `since` is a year.
"""

import json
import random

CODE_COUNT = 1_000
CITY_COUNT = 50
AGE_COUNT = 100
YEARS = range(2000, 2025)
SKEW = 2.5

# Headers as `mangrove load` and neo4j-admin read them. Ladybug skips them by an option, and TinkerGraph's script does
# too.
VERTEX_HEADER = "id:ID,born:long,name:string,code:long,city:string,age:long,:LABEL"
EDGE_HEADER = ":START_ID,:END_ID,since:long,:TYPE"


class Spec:
    """The size and the seed of a graph."""

    def __init__(self, vertices, edges, seed):
        if vertices < 10 or edges < 10:
            raise ValueError(f"a graph of {vertices} vertices and {edges} edges is too small; take 10 or more of each")
        self.vertices, self.edges, self.seed = vertices, edges, seed

    def as_json(self):
        return {"vertices": self.vertices, "edges": self.edges, "seed": self.seed, "format": 1}


def people(spec):
    """Yields (id, born, name, code, city, age)."""
    draw = random.Random(f"{spec.seed}/people")
    births = list(range(spec.vertices))
    draw.shuffle(births)
    names = list(range(spec.vertices))
    draw.shuffle(names)
    for number in range(spec.vertices):
        # The square makes the first cities more common than the others.
        city = int(CITY_COUNT * draw.random() ** 2)
        yield (
            number,
            1_000_000_000_000 + births[number],
            f"p{names[number]:07x}",
            draw.randrange(CODE_COUNT),
            f"city{city:02}",
            draw.randrange(AGE_COUNT),
        )


def knows(spec):
    """Yields (source, target, since)."""
    draw = random.Random(f"{spec.seed}/knows")
    ranked = list(range(spec.vertices))
    draw.shuffle(ranked)
    first, count = YEARS[0], len(YEARS)
    uniform = draw.random
    for _ in range(spec.edges):
        source = ranked[int(spec.vertices * uniform() ** SKEW)]
        target = ranked[int(spec.vertices * uniform() ** SKEW)]
        yield source, target, first + int(count * uniform())


def write(spec, folder):
    """Writes both files, unless the folder has them for this specification. Returns their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    vertices, edges, stamp = folder / "people.csv", folder / "knows.csv", folder / "graph.json"
    wanted = json.dumps(spec.as_json())
    if stamp.exists() and stamp.read_text() == wanted:
        return vertices, edges
    stamp.unlink(missing_ok=True)
    with open(vertices, "w", encoding="ascii") as out:
        out.write(VERTEX_HEADER + "\n")
        out.writelines(f"{','.join(map(str, person))},person\n" for person in people(spec))
    with open(edges, "w", encoding="ascii") as out:
        out.write(EDGE_HEADER + "\n")
        out.writelines(f"{source},{target},{since},knows\n" for source, target, since in knows(spec))
    # The stamp comes last, so that a run that is interrupted leaves none.
    stamp.write_text(wanted)
    return vertices, edges

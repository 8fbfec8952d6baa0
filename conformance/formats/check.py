"""Compares what a reader of another language finds in a checkpoint with what Gremlin answers.

A graph with several labels, deletions and ids that are given again gets topology. `read_neighbors.py`, which knows the format
alone, reads the edges of all vertices. They must be those that Gremlin shows, from both ends. Then a byte is changed in each
part of the files that the reader needs, and the reader must refuse them. `look_up.py` finds vertices by chosen ids and by the
values of indexes; these, too, must be those that Gremlin finds.

Usage: check.py MANGROVE
"""

import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import read_neighbors
from counted import Checks

READER = HERE / "read_neighbors.py"
LOOK_UP = HERE / "look_up.py"


def mangrove(*arguments):
    done = subprocess.run([sys.argv[1], *map(str, arguments)], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"mangrove {' '.join(map(str, arguments))}: {done.stderr}")
    return done.stdout


def query(data, script):
    """The results of a script, one JSON value a line."""
    return [json.loads(line) for line in mangrove("query", "--data", data, "--format", "jsonl", script).splitlines()]


def read(data, *vertices):
    return subprocess.run([sys.executable, READER, data, *map(str, vertices)], capture_output=True, text=True)


def lines_of(data):
    """What the reader finds, sorted."""
    done = read(data, "all")
    if done.returncode != 0:
        sys.exit(f"read_neighbors.py: {done.stderr}")
    return sorted(done.stdout.splitlines())


def expected_lines(data):
    """The same lines from the edges that Gremlin shows."""
    edges = query(data, "g.E().project('id', 'label', 'from', 'to').by(id).by(label).by(outV().id()).by(inV().id())")
    lines = []
    for edge in edges:
        edge_id, label, source, target = (edge[key] for key in ("id", "label", "from", "to"))
        lines.append(f"{source}\tout\t{label}\t{edge_id}\t{target}")
        lines.append(f"{target}\tin\t{label}\t{edge_id}\t{source}")
    return sorted(lines)


def look_up(data, *words):
    """What `look_up.py` finds: lines of fields."""
    done = subprocess.run([sys.executable, LOOK_UP, data, *map(str, words)], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"look_up.py: {done.stderr}")
    return [line.split("\t") for line in done.stdout.splitlines()]


def make_indexes(data):
    """Vertices with chosen ids and with values, and indexes of these."""
    mangrove("index", "create", "--data", data, "--label", "user", "--key", "age", "--ordered")
    mangrove("index", "create", "--data", data, "--key", "name")
    for number in range(30):
        chosen = number + 1_000 if number % 2 else f"'user {number}'"
        query(data, f"g.addV('user').property(id, {chosen}).property('age', {number * 7 % 11}).property('name', 'n{number % 4}')"
                    ".as('u').V().hasLabel('city').limit(3).addE('visits').from('u').iterate()")
    query(data, f"g.{inject(500)}.as('n').addV('user').property('age', select('n')).iterate()")


def check_indexes(checks, data, what):
    """Compares look-ups with Gremlin."""
    for number in (1, 2, 7, 12, 28, 29, 77):
        word, chosen = (number + 1_000,) * 2 if number % 2 else (f"text:user {number}", f"'user {number}'")
        expected = sorted(map(str, query(data, f"g.V({chosen}).bothE().id()")))
        found = [element for _, element in look_up(data, "id", word)]
        edges = sorted(line.split("\t")[3] for element in found for line in read(data, element).stdout.splitlines())
        exists = query(data, f"g.V({chosen}).count()") == [1]
        checks.equal(f"{what}: the vertex {word}", (len(found), edges), (int(exists), expected))
    for name in ("n0", "n3", "nobody"):
        count = query(data, f"g.V().has('name', '{name}').count()")[0]
        checks.equal(f"{what}: vertices named {name}", len(look_up(data, "equal", "name", name)), count)
    ages = query(data, "g.V().hasLabel('user').order().by('age').values('age')")
    scanned = look_up(data, "scan", "age")
    checks.equal(f"{what}: ages in order", [int(age) for age, _ in scanned], ages)
    # Of vertices whose id no user chose, Gremlin shows the number that is in the index.
    pairs = query(data, "g.V().hasLabel('user').hasNot('name').project('age', 'id').by('age').by(id)")
    checks.equal(f"{what}: vertices by age", {(str(pair["age"]), str(pair["id"])) for pair in pairs} - set(map(tuple, scanned)), set())


def inject(count):
    """A step that begins with so many rows."""
    return f"inject({','.join(map(str, range(count)))})"


MAKE = [
    f"g.{inject(60)}.addV('person').iterate()",
    f"g.{inject(7)}.addV('city::place').iterate()",
    "g.V().hasLabel('person').as('a').V().hasLabel('person').addE('knows').from('a').iterate()",
    "g.V().hasLabel('person').as('a').V().hasLabel('city').addE('lives').from('a').iterate()",
    "g.V().hasLabel('city').limit(1).as('a').addE('twin').to('a').iterate()",
]
# So few changes that there are deltas.
FEW = "g.E().hasLabel('knows').limit(2).drop().iterate()"
# Deletions, and new elements in their places: each script opens the graph anew, which makes the places free.
CHANGE = [
    "g.V().hasLabel('person').limit(5).drop().iterate()",
    "g.E().hasLabel('knows').limit(300).drop().iterate()",
    f"g.{inject(3)}.addV('person').as('a').V().hasLabel('person').addE('knows').from('a').iterate()",
    "g.V().hasLabel('city').limit(2).as('a').V().hasLabel('person').addE('knows').to('a').iterate()",
]
HUB = [
    "g.addV('hub').iterate()",
    f"g.{inject(40)}.V().hasLabel('hub').as('h').V().hasLabel('person').addE('links').from('h').iterate()",
]


def main():
    checks = Checks()
    with tempfile.TemporaryDirectory(dir="target") as folder:
        data, seed = Path(folder) / "graph", Path(folder) / "seed.csv"
        # Loading makes the directory. Ids that users chose are in no list, so this vertex gets no edges.
        seed.write_text("~id,~label\n1,seed\n")
        mangrove("load", seed, "--data", data)
        for script in MAKE:
            query(data, script)
        mangrove("checkpoint", "--data", data)
        checks.equal("a graph without topology is refused", "has no topology" in read(data, "all").stderr, True)
        mangrove("checkpoint", "--data", data, "--topology", "true")
        checks.equal("edges", lines_of(data), expected_lines(data))
        checks.equal("there are edges", len(lines_of(data)), 2 * (60 * 60 + 60 * 7 + 1))
        checks.equal("the first checkpoint has no deltas", covered(data, 4), False)
        query(data, FEW)
        mangrove("checkpoint", "--data", data)
        checks.equal("the checkpoint after a few changes has deltas", covered(data, 4), True)
        checks.equal("edges of blocks and deltas", lines_of(data), expected_lines(data))
        damage(checks, data, Path(folder) / "damaged")
        for script in CHANGE:
            query(data, script)
        mangrove("checkpoint", "--data", data)
        checks.equal("edges after deletions", lines_of(data), expected_lines(data))
        for script in HUB:
            query(data, script)
        mangrove("checkpoint", "--data", data)
        hub = query(data, "g.V().hasLabel('hub').outE('links').count()")[0]
        checks.equal("the hub has more edges than a part of a run", hub > 2_048, True)
        expected = expected_lines(data)
        checks.equal("edges of a hub", lines_of(data), expected)
        vertex = query(data, "g.V().hasLabel('hub').limit(1).id()")[0]
        of_hub = [line for line in expected if line.startswith(f"{vertex}\t")]
        checks.equal("edges of one vertex", sorted(read(data, vertex).stdout.splitlines()), of_hub)
        check_runs(checks, data)
        check_counts(checks, data)
        checks.equal("verify", "topology blocks, as the images have it" in mangrove("verify", "--data", data), True)
        damage(checks, data, Path(folder) / "damaged")
    print(f"{checks.passed} passed, {checks.failed} failed")
    sys.exit(checks.failed > 0)


def check_runs(checks, data):
    """Look-ups in new indexes, and after changes and deletions."""
    make_indexes(data)
    mangrove("checkpoint", "--data", data)
    check_indexes(checks, data, "new")
    for number in (1, 12):
        chosen = number + 1_000 if number % 2 else f"'user {number}'"
        query(data, f"g.V({chosen}).drop().iterate()")
        query(data, "g.V().has('user', 'age', gt(400)).limit(40).property('age', 3).iterate()")
        query(data, f"g.addV('user').property(id, {2_000 + number}).property('age', 5).property('name', 'n9').iterate()")
        mangrove("checkpoint", "--data", data)
        check_indexes(checks, data, f"after changes of {number}")
    checks.equal("verify of runs", "runs of look-up indexes, as the images have it" in mangrove("verify", "--data", data), True)


def check_counts(checks, data):
    """The counts of the checkpoint are those of Gremlin."""
    manifest = read_neighbors.newest_manifest(data)
    entry = [pack for pack in manifest["packs"] if read_neighbors.covers(pack, 5)][-1]
    pack = read_neighbors.Pack(data, entry)
    counts = json.loads(pack.block(*pack.blocks[5, 0, 0]))
    checks.equal("counts: vertices", sum(of["count"] for of in counts["vertices"]), query(data, "g.V().count()")[0])
    edges = [edges for of in counts["vertices"] for edges in of["edges"]]
    for direction in ("out", "in"):
        total = sum(of["count"] for of in edges if of["direction"] == direction)
        checks.equal(f"counts: edges, {direction}", total, query(data, "g.E().count()")[0])
    largest = max(of["largest_degree"] for of in edges if of["direction"] == "out")
    checks.equal("counts: the largest degree", largest, query(data, "g.V().local(outE('links').count()).max()")[0])


def packs_of(data):
    """The newest manifest, and its packs."""
    newest = max((data / "manifest").glob("*.json"), key=lambda path: int(path.stem))
    return newest, json.loads(newest.read_text())["manifest"]["packs"]


def covers(pack, kind):
    """True if a pack has blocks of a kind."""
    return any(part.startswith(f"{kind}:") for part in pack["covers"].split(","))


def covered(data, kind):
    """True if a pack of the newest manifest has blocks of a kind."""
    return any(covers(pack, kind) for pack in packs_of(data)[1])


def damage(checks, data, copy):
    """Changes a byte of the manifest, and of the directory and the trailer of every pack with topology."""
    newest, packs = packs_of(data)
    has_topology = [pack for pack in packs if covers(pack, 3) or covers(pack, 4)]
    names = {f"{pack['incarnation']:016x}-{pack['counter']:016x}" for pack in has_topology}
    packs = [path for path in (data / "pack").iterdir() if path.name[9:] in names]
    places = [(newest, newest.stat().st_size // 2)]
    places += [(path, path.stat().st_size - 30) for path in packs] + [(path, path.stat().st_size - 3) for path in packs]
    for path, offset in places:
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(data, copy)
        changed = copy / path.relative_to(data)
        content = bytearray(changed.read_bytes())
        content[offset] ^= 4
        changed.write_bytes(content)
        done = read(copy, "all")
        checks.equal(f"damage of {path.name} at {offset}", (done.returncode, done.stdout[:20]), (1, ""))


if __name__ == "__main__":
    main()

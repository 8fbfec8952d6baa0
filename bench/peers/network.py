"""The patterns of LSQB, aggregates and shortest paths on a social network (`peers.py --network FOLDER`).

The folder has the tables of LDBC's or LSQB's network, or those of `mangrove generate social --out`. They are written anew
with one table for each label, and without the properties that no query reads. All sides load the new tables. The expected
answers come from loops over lists of neighbors, which are slow and obvious on purpose.

Texts in Gremlin stand in `conformance/queries/sets/lsqb.toml`: of two forms of a pattern, the one that is written as the
benchmark writes it.
"""

import csv
import json
import pathlib
import random
import tomllib
from collections import Counter, defaultdict, deque

from workloads import Case, Query

SETS = pathlib.Path(__file__).resolve().parents[2] / "conformance/queries/sets"
PATTERNS = [f"q{number}" for number in range(1, 10)]
PATH_COUNT = 20

# The labels of LDBC's tables that are divided by the label of each row.
DIVIDED = {"Place": ["City", "Country", "Continent"], "Organisation": ["Company", "University"]}
# The properties that queries read, with their types in Cypher.
KEPT = {"length": "INT64", "browserUsed": "STRING"}
MESSAGES = ["Post", "Comment"]

CYPHER = {
    "q1": """MATCH (:Country)<-[:isPartOf]-(:City)<-[:isLocatedIn]-(:Person)<-[:hasMember]-(:Forum)-[:containerOf]->(:Post)
        <-[:replyOf]-(:Comment)-[:hasTag]->(:Tag)-[:hasType]->(:TagClass) RETURN count(*)""",
    "q2": """MATCH (a:Person)-[:knows]-(b:Person), (a)<-[:hasCreator]-(c:Comment)-[:replyOf]->(p:Post)-[:hasCreator]->(b)
        RETURN count(*)""",
    "q3": """MATCH (a:Person)-[:isLocatedIn]->(:City)-[:isPartOf]->(n:Country),
        (b:Person)-[:isLocatedIn]->(:City)-[:isPartOf]->(n), (c:Person)-[:isLocatedIn]->(:City)-[:isPartOf]->(n),
        (a)-[:knows]-(b)-[:knows]-(c)-[:knows]-(a) RETURN count(*)""",
    "q4": """MATCH (:Tag)<-[:hasTag]-(m:Post:Comment)-[:hasCreator]->(:Person), (m)<-[:likes]-(:Person),
        (m)<-[:replyOf]-(:Comment) RETURN count(*)""",
    "q5": """MATCH (s:Tag)<-[:hasTag]-(m:Post:Comment)<-[:replyOf]-(c:Comment)-[:hasTag]->(t:Tag) WHERE s <> t
        RETURN count(*)""",
    "q6": """MATCH (a:Person)-[:knows]-(:Person)-[:knows]-(c:Person)-[:hasInterest]->(:Tag) WHERE a <> c
        RETURN count(*)""",
    "q7": """MATCH (:Tag)<-[:hasTag]-(m:Post:Comment)-[:hasCreator]->(:Person) OPTIONAL MATCH (m)<-[:likes]-(:Person)
        OPTIONAL MATCH (m)<-[:replyOf]-(:Comment) RETURN count(*)""",
    "q8": """MATCH (s:Tag)<-[:hasTag]-(m:Post:Comment)<-[:replyOf]-(c:Comment)-[:hasTag]->(t:Tag)
        WHERE NOT (c)-[:hasTag]->(s) AND s <> t RETURN count(*)""",
    "q9": """MATCH (a:Person)-[:knows]-(:Person)-[:knows]-(c:Person)-[:hasInterest]->(:Tag)
        WHERE NOT (a)-[:knows]-(c) AND a <> c RETURN count(*)""",
}

AGGREGATES = {
    # The mean is cut off, since a side passes on integers and strings.
    "greatest, sum and count": Query(
        "values",
        "g.V().hasLabel('Comment').values('length').union(max(), sum(), count())",
        None,
        "MATCH (m:Comment) RETURN max(m.length), sum(m.length), count(m.length)",
    ),
    "group count by a text": Query(
        "map",
        "g.V().hasLabel('Comment').groupCount().by('browserUsed')",
        None,
        "MATCH (m:Comment) RETURN m.browserUsed, count(*)",
    ),
    "first ten numbers": Query(
        "values",
        "g.V().hasLabel('Comment').order().by('length').limit(10).values('length')",
        None,
        "MATCH (m:Comment) RETURN m.length ORDER BY m.length LIMIT 10",
    ),
}
MOST_LIKES = Query(
    "values",
    "g.V().hasLabel('Post').order().by(__.in('likes').count(), desc).limit(10).map(__.in('likes').count())",
    None,
    "MATCH (p:Post)<-[:likes]-(:Person) WITH p, count(*) AS likes ORDER BY likes DESC LIMIT 10 RETURN likes",
)
SHORTEST = Query(
    "values",
    "g.V().has('Person', 'id', a).repeat(both('knows').simplePath()).until(has('id', b)).limit(1).path().count(local)",
    None,
    "MATCH p = (:Person {id: $a})-[:knows* SHORTEST 1..30]-(:Person {id: $b}) RETURN length(p) + 1",
)


def gremlin_of(name):
    """The text of a pattern in Gremlin."""
    with open(SETS / "lsqb.toml", "rb") as file:
        texts = {query["name"]: query["text"].strip() for query in tomllib.load(file)["query"]}
    return texts.get(f"{name} literal", texts.get(name))


class Network:
    """The tables of a network, as lists."""

    def __init__(self, folder):
        # By label: the ids, and the kept properties of each id.
        self.ids, self.properties, self.keys = defaultdict(list), defaultdict(dict), {}
        # By label of the source, label of edges, and label of the target: pairs of ids.
        self.edges = defaultdict(list)
        label_of = {}
        tables = sorted(pathlib.Path(folder).glob("*.csv"), key=lambda path: (path.stem.count("_"), path.stem))
        for path in tables:
            parts = path.stem.split("_")
            if len(parts) not in (1, 3):
                continue
            with open(path, newline="") as file:
                rows = csv.reader(file, delimiter="|", quoting=csv.QUOTE_NONE)
                header = [field.split(":")[0] or field for field in next(rows)]
                if len(parts) == 1:
                    self.read_vertices(parts[0], header, rows, label_of)
                else:
                    source, label, target = parts
                    for row in rows:
                        ends = label_of.get((source, row[0]), source), label, label_of.get((target, row[1]), target)
                        self.edges[ends].append((int(row[0]), int(row[1])))

    def read_vertices(self, name, header, rows, label_of):
        kept = [(at, key) for at, key in enumerate(header) if key in KEPT and name in MESSAGES]
        for row in rows:
            label = name
            if name in DIVIDED:
                (label,) = set(row[header.index(":LABEL")].split(";")) & set(DIVIDED[name])
                label_of[name, row[0]] = label
            identity = int(row[0])
            self.ids[label].append(identity)
            self.keys[label] = [key for _, key in kept]
            if kept:
                values = {key: int(row[at]) if KEPT[key] == "INT64" else row[at] for at, key in kept}
                self.properties[label][identity] = values

    def write(self, folder):
        """Writes the tables that all sides load."""
        folder.mkdir(parents=True, exist_ok=True)
        for old in folder.glob("*.csv"):
            old.unlink()
        for label, ids in self.ids.items():
            keys = self.keys[label]
            types = {"INT64": "long", "STRING": "string"}
            header = "|".join([f"id:ID({label})", *(f"{key}:{types[KEPT[key]]}" for key in keys)])
            properties = self.properties[label]
            rows = ("|".join([str(i), *(str(properties[i][key]) for key in keys)]) for i in ids)
            (folder / f"{label}.csv").write_text("\n".join([header, *rows]) + "\n")
        for (source, label, target), pairs in self.edges.items():
            rows = (f"{a}|{b}" for a, b in pairs)
            header = f":START_ID({source})|:END_ID({target})"
            (folder / f"{source}_{label}_{target}.csv").write_text("\n".join([header, *rows]) + "\n")

    def neighbors(self, label, sources=None, targets=None, reverse=False):
        """The neighbors of each vertex, as pairs of a label and an id, along edges of a label between labels."""
        found = defaultdict(list)
        for (source, edges, target), pairs in self.edges.items():
            if edges == label and (not sources or source in sources) and (not targets or target in targets):
                for a, b in pairs:
                    if reverse:
                        found[target, b].append((source, a))
                    else:
                        found[source, a].append((target, b))
        return found


class NetworkOracle:
    """The expected answers."""

    def __init__(self, network):
        self.network = network
        outward = lambda *arguments, **named: network.neighbors(*arguments, **named)
        self.knows = defaultdict(list)
        for a, b in network.edges["Person", "knows", "Person"]:
            self.knows[a].append(b)
            self.knows[b].append(a)
        interests = outward("hasInterest")
        self.interest = {person: len(interests["Person", person]) for person in network.ids["Person"]}
        self.tags = outward("hasTag", sources=MESSAGES)
        self.creators = outward("hasCreator", sources=MESSAGES)
        self.likes = outward("likes", targets=MESSAGES, reverse=True)
        self.replies = outward("replyOf", reverse=True)
        country = {a: b for a, b in network.edges["City", "isPartOf", "Country"]}
        self.country = {a: country.get(b) for a, b in network.edges["Person", "isLocatedIn", "City"]}
        self.friends = {person: set(others) for person, others in self.knows.items()}

    def messages(self):
        return ((label, identity) for label in MESSAGES for identity in self.network.ids[label])

    def answer(self, query, p):
        """The answer as a flat list, in the canonical order of the query's shape."""
        if query == "shortest path":
            return self.shortest(p["a"], p["b"])
        if query == "most likes":
            posts = [("Post", identity) for identity in self.network.ids["Post"]]
            return sorted((len(self.likes[post]) for post in posts), reverse=True)[:10]
        if query in AGGREGATES:
            comments = self.network.properties["Comment"].values()
            lengths = [comment["length"] for comment in comments]
            match query:
                case "greatest, sum and count":
                    return [max(lengths), sum(lengths), len(lengths)]
                case "first ten numbers":
                    return sorted(lengths)[:10]
            counts = Counter(comment["browserUsed"] for comment in comments)
            return [cell for pair in sorted(counts.items()) for cell in pair]
        return [getattr(self, query)()]

    def shortest(self, a, b):
        """The number of vertices on a shortest path, in a list; an empty list if there is none."""
        distance, waiting = {a: 1}, deque([a])
        while waiting:
            person = waiting.popleft()
            if person == b and person != a:
                return [distance[person]]
            for friend in self.knows[person]:
                if friend not in distance:
                    distance[friend] = distance[person] + 1
                    waiting.append(friend)
        return []

    def q1(self):
        edges = self.network.edges
        counts = Counter(person for person, country in self.country.items() if country is not None)
        steps = [
            [(b, a) for a, b in edges["Forum", "hasMember", "Person"]],
            edges["Forum", "containerOf", "Post"],
            [(b, a) for a, b in edges["Comment", "replyOf", "Post"]],
            edges["Comment", "hasTag", "Tag"],
            edges["Tag", "hasType", "TagClass"],
        ]
        for pairs in steps:
            following = Counter()
            for a, b in pairs:
                if a in counts:
                    following[b] += counts[a]
            counts = following
        return sum(counts.values())

    def q2(self):
        count = 0
        for comment, post in self.network.edges["Comment", "replyOf", "Post"]:
            for _, a in self.creators["Comment", comment]:
                count += sum(self.knows[a].count(b) for _, b in self.creators["Post", post])
        return count

    def q3(self):
        count = 0
        for a, others in self.knows.items():
            for b in others:
                if self.country.get(a) is not None and self.country[a] == self.country.get(b):
                    for c in self.knows[b]:
                        if self.country.get(c) == self.country[a]:
                            count += self.knows[c].count(a) if a in self.friends[c] else 0
        return count

    def q4(self):
        size = lambda lists, message: len(lists[message])
        lists = [self.tags, self.creators, self.likes, self.replies]
        return sum(
            size(lists[0], m) * size(lists[1], m) * size(lists[2], m) * size(lists[3], m) for m in self.messages()
        )

    def q5(self):
        return sum(1 for _ in self.pairs_of_tags())

    def pairs_of_tags(self):
        """The tags of messages and of their replies that differ, with the reply."""
        for message in self.messages():
            for reply in self.replies[message]:
                for tag in self.tags[message]:
                    for other in self.tags[reply]:
                        if tag != other:
                            yield tag, reply

    def q6(self):
        return sum(self.interest[c] for _, c in self.friends_of_friends())

    def friends_of_friends(self):
        for others in self.knows.values():
            for a in others:
                for c in others:
                    if a != c:
                        yield a, c

    def q7(self):
        at_least_one = lambda lists, message: max(1, len(lists[message]))
        return sum(
            len(self.tags[m]) * len(self.creators[m]) * at_least_one(self.likes, m) * at_least_one(self.replies, m)
            for m in self.messages()
        )

    def q8(self):
        return sum(1 for tag, reply in self.pairs_of_tags() if tag not in self.tags[reply])

    def q9(self):
        return sum(self.interest[c] for a, c in self.friends_of_friends() if c not in self.friends[a])


def queries(network):
    """The queries that the network has data for, by name."""
    found = {name: Query("values", gremlin_of(name), None, CYPHER[name]) for name in PATTERNS}
    found["most likes"], found["shortest path"] = MOST_LIKES, SHORTEST
    if network.keys.get("Comment"):
        found.update(AGGREGATES)
    return found


def cases(network, asked):
    """The cases, in the order in which they are measured."""
    draw = random.Random("paths")
    people = sorted(network.ids["Person"])
    pairs = [dict(zip("ab", draw.sample(people, 2))) for _ in range(PATH_COUNT)]
    once = [Case(name, [(name, {})]) for name in asked if name != "shortest path"]
    return [*once, Case(f"shortest paths of {PATH_COUNT} pairs", [("shortest path", pair) for pair in pairs])]


def write_workloads(asked, all_cases, path):
    """Writes the queries and the cases for the sides."""
    texts = {name: {"shape": q.shape, "gremlin": q.gremlin, "cypher": q.cypher} for name, q in asked.items()}
    path.write_text(json.dumps({"queries": texts, "cases": {case.name: case.operations for case in all_cases}}))

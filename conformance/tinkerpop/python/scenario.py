"""Runs one scenario against a server."""

import re

from gremlin_python.driver.protocol import GremlinServerError

from notation import Elements, Notation, Predicate, Unsupported, branches, canonical
from wire import connect

GRAPHS = ("modern", "classic", "crew", "grateful", "sink", "empty")

# Every scenario is short. A scenario that takes this long hangs.
TIMEOUT_MILLIS = 30_000


class Failed(Exception):
    """A scenario that deviates from its file; the message has the deviation."""


class Server:
    """The traversal sources of a server, one for each of TinkerPop's graphs."""

    def __init__(self, url, serializer):
        self.clients = {name: connect(url, "ggraph" if name == "empty" else f"g{name}", serializer) for name in GRAPHS}
        self.known = {}

    def submit(self, graph, text):
        """All results of a script, each with its type (`wire`)."""
        request = self.clients[graph].submit(text, request_options={"evaluationTimeout": TIMEOUT_MILLIS})
        return request.all().result()

    def notation(self, graph):
        """The notation for a graph. The elements of read-only graphs are looked up once; those of the empty graph are
        looked up each time, because scenarios write it."""
        if graph == "empty":
            return Notation(self.elements(graph))
        if graph not in self.known:
            self.known[graph] = Notation(self.elements(graph))
        return self.known[graph]

    def elements(self, graph):
        """The ids of a graph's elements, by their names in scenarios. Elements without names are left out."""
        vertices = {}
        for name, found in self.names(graph, 'g.V().has("name").project("k", "v").by(values("name")).by(id())', "kv"):
            vertices[name] = canonical(found)
        edges = {}
        query = ('g.E().project("o", "l", "i", "v").by(outV().values("name")).by(label()).by(inV().values("name"))'
                 ".by(id())")
        for source, label, target, found in self.names(graph, query, "oliv"):
            edges[f"{source}-{label}->{target}"] = canonical(found)
        return Elements(vertices, edges)

    def names(self, graph, query, keys):
        """The rows of a projection that have all of these keys."""
        rows = (dict(row[1]) for row in self.submit(graph, query))
        return [tuple(row[key] for key in keys) for row in rows if all(key in row for key in keys)]

    def close(self):
        """Closes the connections."""
        for client in self.clients.values():
            client.close()


class Run:
    """The state of a scenario that runs."""

    def __init__(self, server, needs_computer):
        self.server = server
        self.graph = None
        self.raw_parameters = []
        self.raw_side_effects = []
        self.needs_computer = needs_computer
        self.text = None
        self.result = None
        self.error = None

    def step(self, step):
        """Runs one step, by the first of the patterns that matches."""
        for pattern, action in STEPS:
            found = re.fullmatch(pattern, step.text, re.DOTALL)
            if found:
                action(self, step, *found.groups())
                return
        raise Unsupported(f"the runner has no step `{step.text}`")

    def the_graph(self, _step, name):
        """Chooses the graph; the empty one is cleared."""
        self.graph = name
        if name == "empty":
            self.server.submit(name, "g.V().drop()")

    def initializer(self, step):
        """Fills the empty graph."""
        self.server.submit(self.graph, one_line(step.doc))

    def parameter(self, _step, name, value):
        """Binds a name in the traversal to a value. The text form has no lambdas, which the older files use."""
        if re.match(r'"c\[', value):
            raise Skipped
        self.raw_parameters.append((name, unquoted(value)))

    def predicate(self, _step, name, predicate, value):
        """Binds a name in the traversal to a predicate, as older files do."""
        self.raw_parameters.append((name, Predicate(predicate, unquoted(value))))

    def side_effect(self, _step, name, value):
        """Adds a side effect to the source of the traversal."""
        self.raw_side_effects.append((name, unquoted(value)))

    def traversal(self, step):
        """Sets the traversal."""
        self.text = self.complete(one_line(step.doc))

    def complete(self, text):
        """The traversal, with its parameters and side effects as literals."""
        notation = self.server.notation(self.graph)
        values = {name: notation.gremlin(value) for name, value in self.raw_parameters}
        if values:
            names = "|".join(sorted(map(re.escape, values), key=len, reverse=True))
            token = rf'"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])*\'|(?<![\w.])(?:{names})(?!\w)'
            text = re.sub(token, lambda found: values.get(found[0], found[0]), text)
        if self.needs_computer:
            text = f'g.withComputer(){text.removeprefix("g")}'
        for name, value in self.raw_side_effects:
            text = f'g.withSideEffect("{name}", {notation.gremlin(value)}){text.removeprefix("g")}'
        return text

    def iterate(self, _step, how):
        """Runs the traversal. `next` unfolds the first result, which is a collection."""
        try:
            results = self.server.submit(self.graph, self.text)
        except GremlinServerError as error:
            self.error = str(error).removeprefix(f"{error.status_code}: ")
            return
        self.result = [canonical(result) for result in results]
        if how == "next":
            self.result = members(self.result)

    def the_result(self):
        """The results, if the traversal did not fail."""
        if self.error is not None:
            raise Failed(self.error)
        return self.result

    def rows(self, step, header="result"):
        """The expected values of the table."""
        notation = self.server.notation(self.graph)
        table = step.table or []
        if table[:1] != [[header]]:
            raise Unsupported(f"the runner reads tables of one column `{header}`")
        return [notation.expected(row[0]) for row in table[1:]]

    def unordered(self, step):
        """Expects all of these in any order."""
        expect(sorted(self.the_result(), key=repr), sorted(self.rows(step), key=repr))

    def ordered(self, step):
        """Expects all of these in this order."""
        expect(self.the_result(), self.rows(step))

    def some_of(self, step):
        """Expects only values among these."""
        allowed = self.rows(step)
        for result in self.the_result():
            if result not in allowed:
                raise Failed(f"got {show(result)}, which is not among what was expected")

    def empty(self, _step):
        """Expects no result."""
        expect(self.the_result(), [])

    def count(self, _step, count):
        """Expects this number of results."""
        if len(self.the_result()) != int(count):
            raise Failed(f"got {len(self.the_result())} results instead of {count}")

    def graph_count(self, _step, count, text):
        """Expects this number of results of a traversal, after the scenario's own traversal."""
        self.the_result()
        [(_, found)] = self.server.submit(self.graph, self.complete(text.replace('\\"', '"')) + ".count()")
        if found != int(count):
            raise Failed(f"there are {found} instead of {count} of {text}")

    def raises(self, _step, where=None, text=None):
        """Expects an error, optionally with a text at a place in its message. Upper and lower case are equal."""
        if self.error is None:
            raise Failed("there was no error")
        found, wanted = self.error.casefold(), (text or "").replace('\\"', '"').casefold()
        fits = {None: True, "containing": wanted in found, "starting": found.startswith(wanted),
                "ending": found.endswith(wanted)}
        if not fits[where]:
            raise Failed(f"the error is `{self.error}` instead of one {where} `{text}`")

    def tree(self, step):
        """Expects a tree, which is drawn by indentation."""
        notation = self.server.notation(self.graph)
        expect(self.the_result(), [("tree", branches_of(step.doc, notation))])

    def subgraph(self, step):
        """Expects a graph with these vertices or edges."""
        [(word, found)] = self.the_result()
        if word != "graph":
            raise Failed(f"got a {word} instead of a graph")
        kind = step.table[0][0]
        expected = sorted((each[1] for each in self.rows(step, kind)), key=repr)
        expect(list(found[0 if kind == "vertices" else 1]), expected)

    def skip(self, _step, *_details):
        """Skips a scenario that its file calls unsupported."""
        raise Skipped


class Skipped(Exception):
    """The scenario is not to be run."""


STEPS = [
    (r"the (\w+) graph", Run.the_graph),
    (r"the graph initializer of", Run.initializer),
    (r"using the parameter (\w+) defined as (.*)", Run.parameter),
    (r"using the parameter (\w+) of P\.(\w+)\((.*)\)", Run.predicate),
    (r"using the side effect (\w+) defined as (.*)", Run.side_effect),
    (r"the traversal of", Run.traversal),
    (r"iterated (?:to )?(list|next)", Run.iterate),
    (r"the result should be unordered", Run.unordered),
    (r"the result should be ordered", Run.ordered),
    (r"the result should be of", Run.some_of),
    (r"the result should be empty", Run.empty),
    (r"the result should have a count of (\d+)", Run.count),
    (r'the graph should return (\d+) for count of "(.*)"', Run.graph_count),
    (r"the traversal will raise an error", Run.raises),
    (r'the traversal will raise an error with message (containing|starting|ending) text of "(.*)"', Run.raises),
    (r"the result should be a tree with a structure of", Run.tree),
    (r"the result should be a subgraph with the following", Run.subgraph),
    (r"an unsupported test", Run.skip),
    (r"nothing should happen because", Run.skip),
]


def run(server, scenario):
    """Runs a scenario. An exception means that it did not pass."""
    state = Run(server, "@GraphComputerOnly" in scenario.tags)
    for step in scenario.steps:
        state.step(step)


def members(results):
    """The members of the first result; trees and graphs stay whole."""
    if not results:
        return []
    word, inner = results[0]
    return list(inner) if word in ("list", "set", "path", "map") else [results[0]]


def branches_of(doc, notation):
    """The branches of a drawn tree, in the form of `notation.branches`."""
    root = []
    open_at = [(-1, root)]
    for line in doc.splitlines():
        found = re.fullmatch(r"( *)\|--(.*)", line)
        if not found:
            continue
        depth = len(found[1])
        while open_at[-1][0] >= depth:
            open_at.pop()
        below = []
        open_at[-1][1].append((notation.expected(found[2].strip()), below))
        open_at.append((depth, below))
    return sorted_branches(root)


def sorted_branches(inner):
    """The branches in the order of `notation.branches`."""
    return tuple(sorted(((key, sorted_branches(below)) for key, below in inner), key=repr))


def expect(got, expected):
    """Fails with the first difference."""
    if got != expected:
        missing = [each for each in expected if each not in got]
        extra = [each for each in got if each not in expected]
        if missing or extra:
            raise Failed(f"missing {show(missing)}, not expected {show(extra)}")
        raise Failed(f"got {show(got)} instead of {show(expected)}")


def show(values):
    """Values as text for a message."""
    text = str(values)
    return text if len(text) < 300 else text[:300] + "…"


def one_line(text):
    """A traversal of several lines as one line."""
    return " ".join(line.strip() for line in text.splitlines()).strip()


def unquoted(text):
    """The text between quotes."""
    return text[1:-1].replace('\\"', '"')

"""Queries that need more than the server has: depth, planning time, run time.

Queries that are too deep or too long are refused at once, with an error that names the limit. Queries that only run
long end soon after they are to end: by their time limit, by a kill, or because their client left. Each scenario returns
what is wrong, or None.
"""

import http.client
import json
import time

SETTINGS = {"worker_count_max": 32, "query_memory_limit": "1GiB", "message_bytes_max": "8MiB", "body_bytes_max": "8MiB"}

# The processor time that the server may still spend on a query after its end is due, in seconds. Linux counts in
# hundredths, and reading the count takes time, too.
END_SECONDS = 0.15

# Further seconds for each GiB that the server holds at that moment: a query's values are freed one by one.
FREEING_SECONDS = 0.5

# The moments at which a query is ended, in seconds. A query that ends too late is run again and ended at the next
# moment: a table that doubles its size just then, or other load, delays an end once, but a query that cannot be stopped
# is late each time.
MOMENTS = (1, 1.4, 1.8)

# The processor time that the server may spend on a request before it refuses it, parsing included, in seconds.
REFUSAL_SECONDS = 1

VERTICES = 20_000


class Asked:
    """A request over HTTP on a connection of its own, so that the client can give it up."""

    def __init__(self, server, script, millis=60_000):
        self.connection = http.client.HTTPConnection(*server.address, timeout=120)
        body = json.dumps({"gremlin": script, "evaluationTimeout": millis})
        self.connection.request("POST", "/gremlin", body, {"Content-Type": "application/json"})

    def answer(self):
        """The status code of the answer, and the end of its body."""
        response = self.connection.getresponse()
        try:
            body = response.read()
        except http.client.IncompleteRead as broken:
            # If a query fails after its answer began, the answer ends incomplete.
            body = broken.partial
        return response.status, body.decode(errors="replace")[-400:]

    def give_up(self):
        self.connection.close()


def refused(server, script, words):
    """Sends a script that the server must refuse with these words. Returns what is wrong, or None."""
    before = server.cpu()
    status, text = Asked(server, script).answer()
    seconds = server.cpu() - before
    if words not in text:
        return f"{script[:60]} is answered {status} {text[-300:]!r} instead of an error that says {words!r}"
    return f"{script[:60]} is refused after {seconds:.1f} s of work" if seconds > REFUSAL_SECONDS else None


def first(outcomes):
    """The first of these outcomes that is wrong, or None."""
    return next((outcome for outcome in outcomes if outcome), None)


def deep_values(server, _chance, _scale):
    """Values nested thousands deep, made in different ways."""
    deep = "collections of collections more than 256 deep"
    return first([
        refused(server, "g.inject(1)" + ".fold()" * 4000, deep),
        refused(server, "g.inject(1)" + ".project('a').by()" * 4000, deep),
        refused(server, "g.inject(1)" + ".group()" * 4000, deep),
        refused(server, "g.inject(1)" + ".path()" * 4000, deep),
        refused(server, "g.inject(1).repeat(local(fold())).times(4000)", "nests more than 256 deep"),
        refused(server, "g.withSack([]).inject(1).repeat(sack(assign).by(sack().fold())).times(4000).sack()",
                "nests more than 256 deep"),
        refused(server, "g.inject(1).repeat(sideEffect(cap('x').aggregate('x'))).times(4000).cap('x')",
                "of which are repeated"),
        refused(server, "x = 1; " + "x = g.inject(x)" + ".fold()" * 200 + ".next(); "
                + ("x = g.inject(x)" + ".fold()" * 200 + ".next(); ") * 30 + "x", "nests more than 256 deep"),
        refused(server, "g.inject(1)" + ".project('a','b').by().by()" * 40, "of which are repeated"),
        refused(server, "g.inject(1).math('1" + "+1" * 200_000 + "')", "operands"),
    ])


def long_traversals(server, _chance, _scale):
    """Traversals of tens of thousands of steps are refused before they are planned."""
    long = "steps; split it"
    names = ",".join(f"'n{n}'" for n in range(80_000))
    return first(
        [refused(server, "g.V()" + step * 80_000, long)
         for step in [".has('a','b')", ".outE().inV()", ".out()", ".where(has('a'))", ".as('a')"]] + [
            refused(server, f"g.V().project({names})", long),
            refused(server, "g.V()" + "".join(f".as('n{n}')" for n in range(5_000)), "labels"),
            refused(server, "g.V().math('" + "+".join(f"v{n}" for n in range(900)) + "').by(__" + ".out()" * 9_000 + ".count())",
                    "when it is planned"),
            refused(server, "g.withStrategies(new SubgraphStrategy(vertices: __" + ".has('a')" * 4_000 + ")).V()"
                    + ".out()" * 4_000, "when it is planned"),
        ])


def longest_traversals(server, _chance, _scale):
    """The longest traversals that are allowed are planned with little work."""
    wrong = []
    for name, script in longest().items():
        before = server.cpu()
        Asked(server, script).answer()
        seconds = server.cpu() - before
        print(f"       {name:20}{seconds * 1000:.0f} ms", flush=True)
        if seconds > REFUSAL_SECONDS:
            wrong.append(f"{name} {seconds:.1f} s")
    return "too long: " + "; ".join(wrong) if wrong else None


def longest(size=16_000):
    """Traversals of about this many steps; in each, some part of the planner has to visit steps more than once."""
    def chain(step, of=1):
        return "g.V()" + step * (size // of)

    labels = [f"n{n}" for n in range(size // 3)]
    return {
        "conditions": chain(".has('a','b')"),
        "tests": chain(".where(has('a').has('b'))", 3),
        "walking tests": chain(".where(out().out())", 3) + ".count()",
        "edges": chain(".outE().inV()", 2),
        "hops": chain(".out()") + ".count()",
        "distinct": chain(".out()") + ".dedup()",
        "closings": "g.V().as('x')" + ".out().where(both().where(eq('x')))" * (size // 5),
        "comparisons": "g.V().as('x')" + ".out().where(eq('x'))" * (size // 2),
        "labels": "g.V()" + "".join(f".out().as('{l}')" for l in labels) + "".join(f".select('{l}')" for l in labels),
        "side effects": "g.V()" + "".join(f".aggregate('{l}')" for l in labels),
        "loops": "g.V()" + ".repeat(out()).emit().dedup()" * (size // 4),
        "infix": "g.V()" + ".has('a').and().has('b')" * (size // 3),
        "properties": "g.V().limit(0).addV()" + "".join(f".property('{l}',1)" for l in labels),
        "projected": "g.V().project(" + ",".join(f"'{l}'" for l in labels) + ")",
        "patterns": "g.V()" + (".match(" + ",".join(f"__.as('a{n}').out().as('a{n + 1}')" for n in reversed(range(250)))
                              + ")") * (size // 1000),
        "nested tests": "g.V()" + ".where(out()" * 55 + ".out()" * (size - 200) + ")" * 55,
        "nested maps": "g.V()" + ".map(out()" * 55 + ".out()" * (size - 200) + ")" * 55,
        "nested groups": "g.V()" + ".group().by(__.out()" * 50 + ".out()" * (size - 200) + ".count()" + ")" * 50,
        "nested loops": "g.V()" + ".repeat(out()" * 40 + ".out()" * (size - 200) + ").times(2)" * 40,
        "connectives": "g.V()" + ".where(__.and(out(),out()" * 25 + ".out()" * (size - 200) + "))" * 25,
        "sums": "g.V()" + ".values('a').sum()" * (size // 2),
    }


# Each of these runs for a minute or more, mostly in one kind of step.
HOSTILE = {
    "order of numbers": "g.V().V().limit(4000000).order().by('i',desc).by('t').count()",
    "order of texts": "g.V().V().limit(6000000).order().by('t').by('i').fold().count(local)",
    "tree": "g.V().V().limit(2000000).tree().count(local)",
    "group": "g.V().V().V().group().by('i').by(count()).count(local)",
    "group of lists": "g.V().V().limit(8000000).group().by('i').count(local)",
    "groups in local": "g.V().V().V().local(group('x').by('i')).count()",
    "counts in local": "g.V().V().V().local(groupCount('x').by('t')).count()",
    "trees in local": "g.V().V().local(tree('x')).count()",
    "dedup": "g.V().as('a').V().as('b').dedup('a','b').count()",
    "loop": "g.V().repeat(both().simplePath()).times(60).count()",
    "products": "g.V().V().V().V().filter(values('i').is(-1)).count()",
    "match": "g.V().match(__.as('a').both().as('b'),__.as('b').both().as('c'),__.as('c').both().as('d'),"
             "__.as('d').both().as('e'),__.as('e').both().as('a')).count()",
    "nested local": "g.V().local(V().local(V().has('i',-1).count()).sum()).count()",
    "first of many": "g.V().V().local(V().has('t',gt('x')).limit(1)).count()",
    "paths": "g.V().V().V().path().limit(20000000).fold().count(local)",
    "long texts": "g.V().V().values('t').fold().conjoin(',').length()",
}


def prepare(server):
    """Loads a graph on which these queries run long."""
    for script in [
        f"g.inject(1..{VERTICES}).unfold().as('n').addV('n').property('i',select('n')).property('t',select('n').asString()"
        ".concat(' is the number of this vertex'))",
        "g.V().as('v').local(__.V().limit(10)).addE('e').from('v').count()",
    ]:
        status, text = Asked(server, script).answer()
        if status != 200:
            return f"{status} {text}"
    return None


def running(server):
    """The running queries, as the server lists them."""
    connection = http.client.HTTPConnection(*server.address, timeout=30)
    connection.request("POST", "/gremlin/status", "", {"Content-Type": "application/x-www-form-urlencoded"})
    queries = json.loads(connection.getresponse().read())["queries"]
    connection.close()
    return queries


def by_limit(server, script, after):
    """The processor time of the server from a query's time limit until the answer. None if the query ended otherwise."""
    asked = Asked(server, script, round(1000 * after))
    time.sleep(after)
    before = server.cpu()
    _, text = asked.answer()
    return server.cpu() - before if "time limit" in text else None


def by_kill(server, script, after):
    """The processor time of the server from a kill until the answer. None if the query had ended before."""
    asked = Asked(server, script)
    time.sleep(after)
    found = running(server)
    for query in found:
        connection = http.client.HTTPConnection(*server.address, timeout=30)
        connection.request("POST", "/gremlin/status", f"cancelQuery=true&queryId={query['queryId']}",
                           {"Content-Type": "application/x-www-form-urlencoded"})
        connection.getresponse().read()
        connection.close()
    before = server.cpu()
    asked.answer()
    return server.cpu() - before if found else None


def by_leaving(server, script, after):
    """The processor time of the server from the moment at which the client leaves until the query is gone. None if the
    query had ended before."""
    asked = Asked(server, script)
    time.sleep(after)
    if not running(server):
        return None
    before, begin = server.cpu(), time.monotonic()
    asked.give_up()
    while running(server) and time.monotonic() - begin < 60:
        time.sleep(0.01)
    return server.cpu() - before


def ended(server, way, script, idle):
    """Ends a query in one of three ways, at different moments. Returns the processor time that the end took, and True
    if that is too long each time.

    The time is None if the query ended before that moment, or ran out of memory, so that its end says nothing. `idle`
    is the memory of the server before, in MiB."""
    for after in MOMENTS:
        server.reset_peak()
        seconds = way(server, script, after)
        held = (server.peak() - idle) / 1024
        if seconds is None or seconds <= END_SECONDS + FREEING_SECONDS * held:
            return seconds, False
    return seconds, True


def ends_in_time(server, _chance, _scale):
    """Every hostile query ends soon after its end is due, in each of three ways."""
    wrong = prepare(server)
    if wrong:
        return wrong
    late, idle = [], server.rss()
    for name, script in HOSTILE.items():
        took = {}
        for way in (by_limit, by_kill, by_leaving):
            took[way.__name__], is_late = ended(server, way, script, idle)
            if is_late:
                late.append(f"{name} {way.__name__} {took[way.__name__]:.2f} s")
        shown = ", ".join(f"{way} {'-' if s is None else f'{s * 1000:.0f} ms'}" for way, s in took.items())
        print(f"       {name:20}{shown}", flush=True)
    return ("too late: " + "; ".join(late)) if late else None


SCENARIOS = [deep_values, long_traversals, longest_traversals, ends_in_time]

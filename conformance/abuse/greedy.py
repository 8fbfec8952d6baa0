"""Short queries that would take memory or time without end inside one call of an operator.

The server's limits are small. Each query ends by name, within its time and about within its memory: what a query is charged
for is what it holds, and a batch of a megabyte on its way is beside it."""

import contextlib
import threading
import time

from wire import Ended, Socket, http

MEMORY_MIB = 256
SECONDS = 2

SETTINGS = {
    "worker_count_max": 8,
    "query_memory_limit": f"{MEMORY_MIB}MiB",
    "evaluation_timeout": f"{SECONDS}s",
    "result_count_max": 1_000_000,
}

# So much later than its limit a query may end: it looks at the clock in time, but shares the machine with what asks.
LATE_SECONDS = 0.5

# Memory beside that of the query: its answer on the way, a text that grows beside the one it becomes, and the allocator.
BESIDE_MIB = 256

# How often a query is asked that ends too late, or lets others wait: a machine with other work delays an answer now and then,
# and what cannot be stopped is late each time.
ATTEMPTS = 3

# How long an answer is waited for.
PATIENCE = 20

# How late an answer to another client may be while such a query runs.
HEALTH_SECONDS = 0.5

X = "x" * 1000
MILLION = "constant(x).replace('x',x)"
# A text of 32 MiB, and 128 rows that share it.
LONG = f"g.inject(1).map({MILLION}).repeat(as('s').concat(select('s'))).times(5)"
LONG_ROWS = f"{LONG}.repeat(union(identity(),identity())).times(7)"
ROWS = "g.inject(1).repeat(union(identity(),identity())).times(11)"

QUERIES = {
    "replaced_texts": f"{ROWS}.limit(1024).constant(x).fold().replace(Scope.local,'x',x)",
    "texts_of_texts": f"{ROWS}.{MILLION}.fold().asString().length()",
    "formatted": "g.inject(1).map(%s).as('t').format('%s')" % (MILLION, "%{t}" * 300),
    "counted_texts": f"{ROWS}.fold().index().unfold().asString().concat({MILLION}).groupCount().count(local)",
    "maps_in_sacks": "g.withSack([:]).inject(1).repeat(union(identity(),identity())).times(15).fold()"
                     ".index().with(WithOptions.indexer,WithOptions.map).as('m')"
                     ".repeat(sack(addAll).by(select('m'))).times(1000000).count()",
    "lists_in_sacks": "g.withSack(['a']).inject(1).repeat(sack(addAll).by(sack())).times(40).sack().count(local)",
    "products": f"{ROWS}.fold().as('l').product(select('l')).product(select('l')).count(local)",
    "squares": "g.withSack(100000000000000000000000000000000).inject(1).repeat(sack(mult).by(sack())).times(60).sack()",
    "digits": "g.inject(1).constant('9').repeat(as('s').concat(select('s'))).times(22).asNumber()",
    "characters": f"{LONG}.split('').count(local)",
    "split_to_nothing": f"{LONG_ROWS}.split('x').count(local).sum()",
    "replaced_by_nothing": f"{LONG_ROWS}.replace('x','').length().sum()",
    "trimmed_to_nothing": f"{LONG_ROWS}.toUpper().replace('X',' ').trim().length().sum()",
    "kept_results": f"{ROWS}.addV('a').V().as('a').V().as('b').V().path()",
    "one_large_result": f"g.inject(1).{MILLION}.repeat(union(identity(),identity())).times(16).fold()",
    "unfolded": f"{ROWS}.fold().as('l').unfold().map(select('l')).unfold().map(select('l')).unfold().fold().count(local)",
}


def slowest_health(server, stop):
    """The longest that an answer of /health took."""
    slowest = [0.0]

    def ask():
        while not stop.is_set():
            begin = time.monotonic()
            with contextlib.suppress(OSError):
                http(server.address, "GET /health HTTP/1.1")
            slowest[0] = max(slowest[0], time.monotonic() - begin)
            time.sleep(0.02)

    thread = threading.Thread(target=ask)
    thread.start()
    return thread, slowest


def asked(server, script):
    """What is wrong with how a query ends, and whether it is only that something took too long."""
    server.reset_peak()
    before, stop = server.rss(), threading.Event()
    watcher, slowest = slowest_health(server, stop)
    begin = time.monotonic()
    try:
        with Socket(server.address, timeout=PATIENCE) as client:
            code, results, message = client.ask(script, bindings={"x": X})
    except (Ended, OSError) as error:
        return f"no answer after {time.monotonic() - begin:.1f} s: {error!r}", False
    finally:
        took = time.monotonic() - begin
        stop.set()
        watcher.join()
    grown = server.peak() - before
    if code not in (500, 597, 598) or not any(word in message for word in ("limit", "more than", "at most")):
        return f"status {code} after {took:.1f} s, {len(results)} results: {message[:200]}", False
    if grown > MEMORY_MIB + BESIDE_MIB:
        return f"it took {grown:.0f} MiB: {message[:200]}", False
    if took > SECONDS + LATE_SECONDS:
        return f"it took {took:.1f} s: {message[:200]}", True
    if slowest[0] > HEALTH_SECONDS:
        return f"/health took {slowest[0]:.2f} s", True
    return None, False


def greedy(name, script):
    """A scenario: the query ends by name within its limits, and others are answered meanwhile."""

    def act(server):
        for _ in range(ATTEMPTS):
            wrong, is_late = asked(server, script)
            if not is_late:
                break
        return wrong

    act.__name__ = name
    return act


SCENARIOS = [greedy(name, script) for name, script in QUERIES.items()]

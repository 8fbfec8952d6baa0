"""Short queries that would take unbounded memory or time within one call of an operator.

The server's limits are small. Each query must end with an error that names a limit, within its time and roughly
within its memory: a query is charged for values that it holds, and not for a batch of a megabyte on its way."""

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

# The largest delay of a query's end after its time limit, in seconds. The server shares the machine with this client.
LATE_SECONDS = 0.5

# Memory beyond the query's limit: its answer on the way, a growing text beside its copy, and the allocator.
BESIDE_MIB = 256

# Attempts at a query that ends too late or delays others: a machine with other load delays some answers, but a query
# that cannot be stopped is late each time.
ATTEMPTS = 3

# The client's timeout, in seconds.
PATIENCE = 20

# The largest time of an answer to another client while such a query runs, in seconds.
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
    """Measures the longest time of an answer of /health."""
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
    """Runs a query. Returns what is wrong, and True if that is only a delay."""
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
    """Makes a scenario: the query ends with a limit's error within its limits, and other clients get answers
    meanwhile."""

    def act(server):
        for _ in range(ATTEMPTS):
            wrong, is_late = asked(server, script)
            if not is_late:
                break
        return wrong

    act.__name__ = name
    return act


SCENARIOS = [greedy(name, script) for name, script in QUERIES.items()]

"""Forty hostile queries at once, with little memory: the server survives and answers others, and every query ends in
time.

The process has an address space of 4 GiB (`RLIMIT_AS`, set as by `prlimit --as`) and a memory budget of 2 GiB. Each
query alone would take minutes, or all memory. A query that exceeds its memory ends early. The others end at their time
limits, some of them at the same moment.
"""

import json
import re
import selectors
import socket
import threading
import time

import greedy
import queries
from wire import http

ADDRESS_SPACE = 4 << 30
BUDGET_MIB = 2048

SETTINGS = {"worker_count_max": 64, "memory_budget": f"{BUDGET_MIB}MiB", "query_memory_limit": "1GiB"}

# The largest delay of an answer: that of a query after its time limit, and that of /health to another client. The short
# form may run on a machine with other load; even then, a query that waits for its turn is far from as late as one that
# never ends.
LATE_SECONDS = {"short": 1.0, "whole": 0.1}

# A machine with other load delays some answers; a query that cannot be stopped is late each time.
ATTEMPTS = 3

# Time limits in milliseconds, which the queries have in rotation: eight queries end at each of these moments.
LIMITS = (1000, 1250, 1500, 1500, 2000)

MORE = {
    "shared doubles": "g.inject(1)" + ".project('a','b').by().by()" * 34 + ".dedup().count()",
    "order of doubles": "g.inject(1)" + ".project('a','b').by().by()" * 23 + ".fold().order(local).count(local)",
    "all pairs": "g.V().as('a').V().as('b').where('a',neq('b')).by('t').count()",
    "kept in a side effect": "g.V().V().aggregate('x').by('t').count()",
    "groups of groups": "g.V().V().group().by('i').by(group().by('t').by(count())).count(local)",
    "long walk": "g.V().repeat(both()).times(200).count()",
    "distinct paths": "g.V().repeat(out()).times(6).path().dedup().count()",
    "results": "g.V().V().V().values('t')",
}


def crowd():
    """Forty queries, by name."""
    return {**queries.HOSTILE, **{f"greedy {name}": script for name, script in greedy.QUERIES.items()}, **MORE}


def post(address, script, millis):
    """Sends a query. Returns the connection for its answer."""
    body = json.dumps({"gremlin": script, "evaluationTimeout": millis, "bindings": {"x": greedy.X}}).encode()
    stream = socket.create_connection(address, timeout=60)
    head = f"POST /gremlin HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: {len(body)}\r\n\r\n"
    stream.sendall(head.encode() + body)
    stream.setblocking(False)
    return stream


def is_whole(text):
    """Returns True if an answer is complete. If its query fails after the answer began, it ends incomplete."""
    return text.endswith("\r\n0\r\n\r\n") or "Content-Length: " in text or "content-length: " in text


class Answers:
    """Reads many connections, and records when each one ends; keeps the end of each answer."""

    def __init__(self):
        self.selector, self.ends = selectors.DefaultSelector(), {}

    def expect(self, name, stream, limit):
        """Begins to read the answer of a query with this name and time limit, in seconds."""
        self.selector.register(stream, selectors.EVENT_READ, [name, limit, time.monotonic(), b""])

    def wait(self, seconds):
        """Waits for all answers. Returns for each name the time of its end after its limit (negative: before), and
        the end of its text."""
        until = time.monotonic() + seconds
        while self.selector.get_map() and time.monotonic() < until:
            for key, _ in self.selector.select(0.5):
                self.read(key)
        for key in list(self.selector.get_map().values()):
            self.ends[key.data[0]] = (float("inf"), "no end")
            key.fileobj.close()
        return self.ends

    def read(self, key):
        name, limit, begin, text = key.data
        try:
            part = key.fileobj.recv(1 << 16)
        except BlockingIOError:
            return
        except ConnectionError:
            part = b""
        key.data[3] = (text + part)[-2000:]
        if not part:
            self.ends[name] = (time.monotonic() - begin - limit, key.data[3].decode(errors="replace"))
            self.selector.unregister(key.fileobj)
            key.fileobj.close()


def once(server, late_max):
    """Runs the forty queries at once. Returns what is wrong, and True if that is only a delay."""
    stop = threading.Event()
    watcher, slowest = greedy.slowest_health(server, stop)
    server.reset_peak()
    answers = Answers()
    for number, (name, script) in enumerate(crowd().items()):
        millis = LIMITS[number % len(LIMITS)]
        answers.expect(name, post(server.address, script, millis), millis / 1000)
    ends = answers.wait(60)
    stop.set()
    watcher.join()
    if not server.is_alive():
        return "the server is gone", False
    by_time = sum("time limit" in text for _, text in ends.values())
    late = sorted(((late, name) for name, (late, _) in ends.items()), reverse=True)
    print(f"       {len(ends)} queries, {by_time} ended by time; the latest {late[0][1]}, {late[0][0] * 1000:.0f} ms after its limit; "
          f"/health {slowest[0] * 1000:.0f} ms; {server.peak():.0f} MiB", flush=True)
    unnamed = [f"{name}: {re.sub(chr(10), ' ', text)[-200:]}" for name, (_, text) in ends.items()
               if is_whole(text) and not re.search("limit|more than|at most|budget", text)]
    if unnamed:
        return "; ".join(unnamed), False
    if server.peak() > BUDGET_MIB:
        return f"the server took {server.peak():.0f} MiB", False
    # Equal delays of all queries mean that none ended: those without an end have an infinite delay.
    if not late or late[-1][0] == late[0][0]:
        return "no query ended at a moment of its own", False
    over = [f"{name} {seconds * 1000:.0f} ms" for seconds, name in late if seconds > late_max]
    if over:
        return "too late: " + ", ".join(over), True
    if slowest[0] > late_max:
        return f"/health took {slowest[0]:.2f} s", True
    return None, False


def forty_at_once(server, whole):
    wrong = queries.prepare(server)
    if wrong:
        return wrong
    for _ in range(ATTEMPTS):
        wrong, is_late = once(server, LATE_SECONDS["whole" if whole else "short"])
        if not is_late:
            break
    return wrong


SCENARIOS = [forty_at_once]

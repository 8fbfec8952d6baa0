"""Transactions of several concurrent clients over the wire, for the checks of isolation."""

import random
from concurrent.futures import ThreadPoolExecutor
from threading import local

from gremlin_python.driver.driver_remote_connection import DriverRemoteConnection
from gremlin_python.driver.protocol import GremlinServerError
from gremlin_python.process.anonymous_traversal import traversal

from checks import expect

CONFLICT = 596
LEVELS = {"serializable": "ggraph", "snapshot": "gsigraph"}  # the server's sources of the one writable graph


class Running:
    """An open transaction: use `run`, then `commit` or `rollback`. A conflict rolls it back."""

    def __init__(self, remote):
        self.tx = traversal().with_(remote).tx()
        self.g = self.tx.begin()
        self.over = False
        self.committed = False

    def run(self, body):
        """The result of `body(g)`; None after a conflict."""
        if self.over:
            return None
        try:
            return body(self.g)
        except GremlinServerError as e:
            expect(e.status_code == CONFLICT, f"status {e.status_code}, expected a conflict: {e}")
            self.rollback()
            return None

    def commit(self):
        """Returns True if the transaction committed. The driver raises an error only when the answer is read."""
        if self.over:
            return self.committed
        self.over = True
        try:
            self.tx.commit().all().result()
            self.committed = True
        except GremlinServerError as e:
            expect(e.status_code == CONFLICT, f"status {e.status_code} at commit, expected a conflict: {e}")
        return self.committed

    def rollback(self):
        """Rolls the transaction back, unless it has ended."""
        if not self.over:
            self.over = True
            self.tx.rollback().all().result()


class Clients:
    """Connections to one server, kept until `close`: one for each thread and source."""

    def __init__(self, url):
        self.url = url
        self.of_thread = local()
        self.remotes = []

    def remote(self, source):
        """This thread's connection."""
        mine = self.of_thread.__dict__.setdefault("remotes", {})
        if source not in mine:
            mine[source] = DriverRemoteConnection(self.url, source)
            self.remotes.append(mine[source])
        return mine[source]

    def begin(self, source):
        """Begins a transaction."""
        return Running(self.remote(source))

    def once(self, source, body):
        """Runs `body(g)` in a transaction. Returns its result, or None if a conflict aborted it."""
        tx = self.begin(source)
        value = tx.run(body)
        return value if tx.commit() else None

    def until_committed(self, source, body):
        """Runs `body(g)` in transactions until one commits."""
        for _ in range(1_000):
            tx = self.begin(source)
            value = tx.run(body)
            if tx.commit():
                return value
        raise AssertionError("a transaction did not commit in a thousand attempts")

    def jobs(self, count, job, threads=8):
        """The results of `job(number, random)` for all numbers. The random choices are the same in every run."""
        with ThreadPoolExecutor(threads) as pool:
            return list(pool.map(lambda number: job(number, random.Random(number)), range(count)))

    def close(self):
        """Closes every connection."""
        for remote in self.remotes:
            remote.close()

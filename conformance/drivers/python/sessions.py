"""Transactions over the wire: the guarantees of `g.tx()`, observed from other connections."""

import uuid

from gremlin_python.driver.client import Client
from gremlin_python.driver.driver_remote_connection import DriverRemoteConnection
from gremlin_python.driver.protocol import GremlinServerError

from cases import WRITABLE_SOURCE, source_over
from checks import Check, expect, expect_error

CONFLICT = 596


def raised(action):
    """The server's error for `action`."""
    try:
        result = action()
    except GremlinServerError as e:
        return e
    raise AssertionError(f"no error; the answer was {result!r}")


def expect_conflict(error, reason):
    """The error must be a conflict with this reason, by its code, its message and its attributes."""
    expect(error.status_code == CONFLICT, f"status {error.status_code}: {error}")
    expect("again" in str(error), f"the message does not name the way out: {error}")
    attributes = error.status_attributes
    expect(attributes.get("reason") == reason, f"the reason is {attributes.get('reason')!r}, expected {reason!r}")
    expect(attributes.get("exceptions") == ["mangrove.Conflict"], f"exceptions are {attributes.get('exceptions')}")


class Sessions:
    """The checks, each over an empty graph and with connections of its own."""

    def __init__(self, server):
        self.server = server

    def remote(self):
        """A new connection to the writable graph."""
        return DriverRemoteConnection(self.server.url, WRITABLE_SOURCE, message_serializer=self.server.serializer())

    def count(self):
        """The number of vertices that another connection sees."""
        return self.server.submit("g.V().count()", WRITABLE_SOURCE)[0]

    def commit_publishes(self):
        """Before the commit no write is visible to others; after it, all are."""
        remote = self.remote()
        tx = source_over(remote).tx()
        g = tx.begin()
        g.add_v("person").property("name", "ada").iterate()
        g.add_v("person").property("name", "grace").iterate()
        expect(g.V().count().next() == 2, "a transaction sees its own writing")
        expect(self.count() == 0, "uncommitted vertices are visible from another connection")
        tx.commit().all().result()
        expect(self.count() == 2, "committed vertices are not visible from another connection")
        remote.close()

    def rollback_discards(self):
        """After a rollback the graph is unchanged."""
        remote = self.remote()
        tx = source_over(remote).tx()
        g = tx.begin()
        g.add_v("person").iterate()
        tx.rollback().all().result()
        expect(self.count() == 0, "a rolled back vertex is visible")
        remote.close()

    def snapshot_is_stable(self):
        """A transaction reads one snapshot of the graph, whatever others commit meanwhile."""
        remote = self.remote()
        tx = source_over(remote).tx()
        g = tx.begin()
        expect(g.V().count().next() == 0, "the graph is empty at first")
        self.server.submit("g.addV('person')", WRITABLE_SOURCE)
        expect(g.V().count().next() == 0, "a transaction sees what began and committed after it")
        tx.rollback().all().result()
        expect(self.count() == 1, "the other connection's vertex is lost")
        remote.close()

    def conflict_is_reported(self):
        """Of two transactions that write one property, one ends with a conflict, and its error says so."""
        self.server.submit("g.addV('account').property('balance', 10)", WRITABLE_SOURCE)
        first_remote, second_remote = self.remote(), self.remote()
        first, second = source_over(first_remote).tx(), source_over(second_remote).tx()
        g1, g2 = first.begin(), second.begin()
        g1.V().has("balance", 10).property("balance", 11).iterate()

        def second_writes():
            g2.V().has("balance", 10).property("balance", 12).iterate()
            second.commit().all().result()

        first_failed = second_failed = False
        try:
            second_writes()
        except GremlinServerError:
            second_failed = True
        try:
            first.commit().all().result()
        except GremlinServerError:
            first_failed = True
        expect(first_failed != second_failed, "exactly one of two conflicting transactions must fail")
        balance = self.server.submit("g.V().values('balance')", WRITABLE_SOURCE)
        expect(balance == [12 if first_failed else 11], f"the balance is {balance}")
        first_remote.close()
        second_remote.close()

    def conflict_has_a_status(self):
        """The second writer learns of the conflict at once: status 596, a message with the way out, and the reason
        as an attribute."""
        self.server.submit("g.addV('account').property('balance', 10)", WRITABLE_SOURCE)
        first_remote, second_remote = self.remote(), self.remote()
        first, second = source_over(first_remote).tx(), source_over(second_remote).tx()
        g1, g2 = first.begin(), second.begin()
        try:
            g1.V().property("balance", 11).iterate()
            error = raised(lambda: g2.V().property("balance", 12).iterate())
            after = raised(lambda: g2.V().count().next())
        finally:
            second.rollback().all().result()
            first.commit().all().result()
            first_remote.close()
            second_remote.close()
        expect_conflict(error, "write_conflict")
        expect(after.status_code == CONFLICT, f"an aborted transaction answers: {after}")

    def refused_commit_raises_when_read(self):
        """`commit()` itself raises no error; reading its result does. The transaction's writes are undone."""
        self.server.submit("g.addV('account').property('balance', 10)", WRITABLE_SOURCE)
        remote = self.remote()
        tx = source_over(remote).tx()
        g = tx.begin()
        expect(g.V().values("balance").next() == 10, "the balance is 10 at first")
        g.add_v("note").iterate()
        self.server.submit("g.V().property('balance', 11)", WRITABLE_SOURCE)
        answer = tx.commit()
        error = raised(lambda: answer.all().result())
        remote.close()
        expect_conflict(error, "read_conflict")
        labels = self.server.submit("g.V().label()", WRITABLE_SOURCE)
        expect(labels == ["account"], f"a refused transaction left {labels}")

    def error_leaves_the_session_usable(self):
        """After a query fails in a transaction, the client can roll back and begin a new one."""
        remote = self.remote()
        tx = source_over(remote).tx()
        g = tx.begin()
        g.add_v("person").property("name", "ada").iterate()
        expect_error(lambda: g.V().values("name").sum_().to_list(), {500, 597})
        tx.rollback().all().result()
        expect(self.count() == 0, "the transaction was rolled back, yet its vertex is visible")
        again = source_over(remote).tx()
        again.begin().add_v("person").iterate()
        again.commit().all().result()
        expect(self.count() == 1, "a transaction after a failed one did not commit")
        remote.close()

    def half_a_request_is_never_committed(self):
        """A request that fails after its first write rolls its transaction back; one that fails before leaves it as
        it was."""
        self.server.submit("g.addV('account').property(T.id, 1).property('name', 'ada').property('balance', 10)", WRITABLE_SOURCE)
        remote = self.remote()
        tx = source_over(remote).tx()
        g = tx.begin()
        g.V(1).property("balance", 11).iterate()
        expect_error(lambda: g.V().values("name").sum_().to_list(), {500, 597})
        expect(g.V(1).values("balance").next() == 11, "a failed read took the transaction's writes along")
        expect_error(lambda: g.V(1).property("balance", 0).values("name").sum_().iterate(), {500, 597})
        for later in (lambda: g.V().count().next(), lambda: tx.commit().all().result()):
            error = raised(later)
            expect(error.status_code == 597, f"status {error.status_code}: {error}")
            expect("number" in str(error) and "roll back" in str(error), f"the message lacks the cause or the way out: {error}")
            expect(error.status_attributes.get("reason") == "failed", f"attributes are {error.status_attributes}")
        again = source_over(remote).tx()
        again.begin().V(1).property("balance", 12).iterate()
        again.commit().all().result()
        balance = self.server.submit("g.V().values('balance')", WRITABLE_SOURCE)
        expect(balance == [12], f"the balance is {balance}")
        remote.close()

    def script_session(self):
        """Scripts of one session share a transaction; `g.tx().commit()` ends it."""
        client = Client(self.server.url, WRITABLE_SOURCE, message_serializer=self.server.serializer(),
                        session=f"scripts-{uuid.uuid4()}")
        options = {"language": "gremlin-lang"}

        def submit(text):
            return client.submit(text, request_options=options).all().result()

        submit("g.addV('person')")
        expect(submit("g.V().count()") == [1], "the session does not see its own vertex")
        expect(self.count() == 0, "an uncommitted vertex of a script session is visible")
        submit("g.tx().commit()")
        expect(self.count() == 1, "a script's g.tx().commit() did not commit")
        client.close()

    def close_rolls_back(self):
        """Closing a session without a commit rolls back its writes."""
        client = Client(self.server.url, WRITABLE_SOURCE, message_serializer=self.server.serializer(),
                        session=f"closed-{uuid.uuid4()}")
        client.submit("g.addV('person')", request_options={"language": "gremlin-lang"}).all().result()
        client.close()
        expect(self.count() == 0, "closing a session committed it")

    def lost_connection_rolls_back(self):
        """If a client vanishes, its writes are rolled back and its claims are released."""
        self.server.submit("g.addV('account').property('balance', 10)", WRITABLE_SOURCE)
        client = Client(self.server.url, WRITABLE_SOURCE, message_serializer=self.server.serializer(),
                        session=f"vanishes-{uuid.uuid4()}")
        client.submit("g.V().property('balance', 99)", request_options={"language": "gremlin-lang"}).all().result()
        connection = client._pool.get(True)  # no public way to drop a connection without closing its session
        connection.close()
        for _ in range(50):
            try:
                self.server.submit("g.V().property('balance', 11)", WRITABLE_SOURCE)
                break
            except GremlinServerError:  # the server has not noticed yet: the claim is still held
                continue
        balance = self.server.submit("g.V().values('balance')", WRITABLE_SOURCE)
        expect(balance == [11], f"the balance is {balance}")

    def checks(self):
        """All checks."""
        def emptied(method):
            def run():
                self.server.empty(WRITABLE_SOURCE)
                method()
            return run

        methods = [self.commit_publishes, self.rollback_discards, self.snapshot_is_stable, self.conflict_is_reported,
                   self.conflict_has_a_status, self.refused_commit_raises_when_read,
                   self.error_leaves_the_session_usable, self.half_a_request_is_never_committed, self.script_session, self.close_rolls_back,
                   self.lost_connection_rolls_back]
        return [Check("session", m.__name__.replace("_", " "), emptied(m)) for m in methods]

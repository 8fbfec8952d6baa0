"""The classic anomalies over the wire: scripted interleavings of `g.tx()` transactions, at both levels.

Each script takes a traversal source, and fails if it sees an anomaly that the level forbids. A script that returns a
value returns true if it saw the anomaly that snapshot isolation allows. The anomaly must be seen there, and never at
serializable.
"""

from gremlin_python.driver.protocol import GremlinServerError
from gremlin_python.process.anonymous_traversal import traversal
from gremlin_python.process.graph_traversal import __
from gremlin_python.process.traversal import Direction, Merge, P, T

from checks import Check, expect
from wire_transactions import LEVELS, Clients

CONFLICT = 596


def read(n):
    """Reads the value of an account."""
    return lambda g: g.V(n).values("value").next()


def write(n, value):
    """Sets the value of an account."""
    return lambda g: g.V(n).property("value", value).iterate()


def count(*args, **kwargs):
    """Counts vertices with a property."""
    return lambda g: g.V().has(*args, **kwargs).count().next()


def add(**properties):
    """Adds a vertex with properties."""
    def run(g):
        traversal = g.add_v("item")
        for key, value in properties.items():
            traversal = traversal.property(key, value)
        traversal.iterate()
    return run


# Reads of predicates that hold for no element, and writes that make them hold. Each has two instances, so that two
# transactions can write what the other reads.
PHANTOMS = {
    "label scan": (lambda n: lambda g: g.V().has_label(f"kind{n}").count().next(),
                   lambda n: lambda g: g.add_v(f"kind{n}").iterate()),
    "unindexed has": (lambda n: count("plain", n), lambda n: add(plain=n)),
    "unindexed range": (lambda n: count("rank", P.between(10 * n, 10 * n + 9)), lambda n: add(rank=10 * n + 5)),
    "adjacency list": (lambda n: lambda g: g.V(n).out("likes").count().next(),
                       lambda n: lambda g: g.V(n).add_e("likes").to(__.V(3)).iterate()),
    "absent id": (lambda n: lambda g: g.V(100 + n).count().next(),
                  lambda n: lambda g: g.add_v("item").property(T.id, 100 + n).iterate()),
    "property of a vertex": (lambda n: lambda g: g.V(n).values("extra").count().next(),
                             lambda n: lambda g: g.V(n).property("extra", 1).iterate()),
}


class Anomalies:
    """The checks. Each runs on a graph of three accounts with value 0."""

    def __init__(self, server):
        self.server = server
        self.clients = Clients(server.url)

    def reset(self):
        """Creates three accounts."""
        self.server.empty(LEVELS["serializable"])
        script = "g" + "".join(f".addV('account').property(id, {n}).property('value', 0)" for n in (1, 2, 3))
        self.server.submit(script, LEVELS["serializable"])

    def know(self, *writes):
        """Adds the names of labels and keys in these writes to the catalog, and rolls the writes back."""
        tx, = self.begin(LEVELS["snapshot"], 1)
        for write_ in writes:
            tx.run(write_)
        tx.rollback()

    def begin(self, source, how_many):
        """Begins this many transactions."""
        return [self.clients.begin(source) for _ in range(how_many)]

    def values(self):
        """The committed values of the first two accounts."""
        return self.server.submit("g.V(1, 2).order().by(id).values('value')", LEVELS["serializable"])

    def dirty_write(self, source):
        """Two transactions write both accounts, one after the other: both accounts get the values of one."""
        one, two = self.begin(source, 2)
        one.run(write(1, 1))
        two.run(write(1, 2))
        one.run(write(2, 1))
        two.run(write(2, 2))
        expect(one.commit() and not two.commit(), "the first to write must commit, the second must not")
        expect(self.values() == [1, 1], f"a mixture of two transactions: {self.values()}")

    def dirty_and_aborted_read(self, source):
        """An uncommitted write is not read, and a write that is rolled back is never read."""
        one, two = self.begin(source, 2)
        one.run(write(1, 1))
        expect(two.run(read(1)) == 0, "a dirty read")
        one.rollback()
        expect(two.run(read(1)) == 0, "an aborted read")
        expect(two.commit(), "a read-only transaction must commit")

    def intermediate_read(self, source):
        """Only the last of a transaction's writes to a value is read."""
        one, two = self.begin(source, 2)
        one.run(write(1, 50))
        expect(two.run(read(1)) == 0, "an intermediate read")
        one.run(write(1, 51))
        expect(one.commit(), "the writer must commit")
        expect(two.run(read(1)) == 0, "a transaction reads one state")
        two.rollback()

    def fuzzy_read(self, source):
        """A value read again is the same."""
        one, two = self.begin(source, 2)
        expect(one.run(read(1)) == 0, "the account holds nothing yet")
        two.run(write(1, 1))
        expect(two.commit(), "the writer must commit")
        expect(one.run(read(1)) == 0, "a fuzzy read")
        expect(one.commit(), "a read-only transaction must commit")

    def lost_update(self, source):
        """Of two transactions that read and add, one commits; the client of the other learns of the conflict."""
        for commit_first in (False, True):
            self.reset()
            one, two = self.begin(source, 2)
            seen = [one.run(read(1)), two.run(read(1))]
            one.run(write(1, seen[0] + 1))
            if commit_first:
                expect(one.commit(), "the first must commit")
            two.run(write(1, seen[1] + 1))
            expect(one.commit() and not two.commit(), "one update is lost")

    def read_skew(self, source):
        """Two accounts are read in one snapshot."""
        one, two = self.begin(source, 2)
        expect(one.run(read(1)) == 0, "the account holds nothing yet")
        two.run(write(1, 1))
        two.run(write(2, 1))
        expect(two.commit(), "the writer must commit")
        expect(one.run(read(2)) == 0 or not one.commit(), "read skew")
        one.rollback()

    def circular_information_flow(self, source):
        """Two transactions do not both read the other's write."""
        one, two = self.begin(source, 2)
        one.run(write(1, 1))
        two.run(write(2, 1))
        seen = [one.run(read(2)), two.run(read(1))]
        both = one.commit() and two.commit()
        expect(not (both and seen == [1, 1]), "each read the other's write")

    def long_fork(self, source):
        """Two readers do not see two writers in opposite orders."""
        one, two, first = self.begin(source, 3)
        one.run(write(1, 1))
        two.run(write(2, 1))
        one.commit()
        second = self.clients.begin(source)
        two.commit()
        states = [(reader.run(read(1)), reader.run(read(2))) for reader in (first, second)]
        committed = first.commit() and second.commit()
        expect(not (committed and {(0, 1), (1, 0)} <= set(states)), f"a long fork: {states}")

    def dangling_edge(self, source):
        """An edge does not outlive its ends."""
        for add_first in (False, True):
            self.reset()
            adder, deleter = self.begin(source, 2)
            steps = [lambda: adder.run(lambda g: g.V(1).add_e("knows").to(__.V(2)).iterate()),
                     lambda: deleter.run(lambda g: g.V(2).drop().iterate())]
            for step in steps if add_first else reversed(steps):
                step()
            outcome = [adder.commit(), deleter.commit()]
            expect(sum(outcome) == 1, f"adding an edge and deleting its end: {outcome}")
            ends = self.server.submit("g.E().bothV().count()", LEVELS["serializable"])
            expect(ends == [2 if outcome[0] else 0], f"edges have {ends} ends")

    def predicate_many_preceders(self, source):
        """A predicate gives the same result when it is read again."""
        for name, (reads, writes) in PHANTOMS.items():
            self.reset()
            self.know(writes(1))
            one, two = self.begin(source, 2)
            expect(one.run(reads(1)) == 0, f"{name}: holds for nothing yet")
            two.run(writes(1))
            expect(two.commit(), f"{name}: the writer must commit")
            expect(one.run(reads(1)) == 0, f"{name}: a phantom")
            expect(one.commit(), "a read-only transaction must commit")

    def write_skew(self, source):
        """Each transaction reads the account that the other writes."""
        one, two = self.begin(source, 2)
        one.run(read(1))
        two.run(read(2))
        one.run(write(2, 1))
        two.run(write(1, 1))
        outcome = [one.commit(), two.commit()]
        expect(any(outcome), "neither of two went through")
        return all(outcome)

    def write_skew_over_predicates(self, source):
        """Each transaction reads a predicate that the other changes."""
        seen = []
        for name, (reads, writes) in PHANTOMS.items():
            self.reset()
            self.know(writes(1), writes(2))
            one, two = self.begin(source, 2)
            one.run(reads(1))
            two.run(reads(2))
            one.run(writes(2))
            two.run(writes(1))
            outcome = [one.commit(), two.commit()]
            expect(any(outcome), f"{name}: neither of two went through")
            seen.append(all(outcome))
        expect(len(set(seen)) == 1, f"seen over some predicates only: {dict(zip(PHANTOMS, seen))}")
        return seen[0]

    def read_only_transaction_anomaly(self, source):
        """A reader makes two writers' history an anomaly: it sees the second but not the first, which comes before
        it."""
        one, two = self.begin(source, 2)
        expect((one.run(read(1)), one.run(read(2))) == (0, 0), "the accounts hold nothing yet")
        two.run(read(2))
        two.run(write(2, 20))
        expect(two.commit(), "the second must commit")
        reader = self.clients.begin(source)
        expect((reader.run(read(1)), reader.run(read(2))) == (0, 20), "the reader sees the second")
        expect(reader.commit(), "a read-only transaction must commit")
        one.run(write(1, -11))
        return one.commit()

    def upserts_at_once(self):
        """Of many clients that merge the same vertex or edge in requests of their own, one creates it."""
        rounds, threads = 10, 8
        source = LEVELS["serializable"]

        def job(number, _):
            g = traversal().with_(self.clients.remote(source))
            name = f"n{number % rounds}"
            vertex = g.merge_v({T.label: "merged", "name": name})
            edge = g.V().has("merged", "name", name).as_("v").merge_e(
                {T.label: "to", Direction.OUT: Merge.out_v, Direction.IN: 1}).option(Merge.out_v, __.select("v"))
            for one in (vertex, edge):
                self.insist(one)

        self.clients.jobs(rounds * threads, job, threads)
        found = [self.clients.begin(source).run(lambda g: g.V().has_label("merged").count().next()),
                 self.clients.begin(source).run(lambda g: g.V(1).in_("to").dedup().count().next()),
                 self.clients.begin(source).run(lambda g: g.V(1).in_("to").count().next())]
        expect(found == [rounds] * 3, f"{rounds} vertices and edges were merged, and there are {found}")

    @staticmethod
    def insist(traversal_):
        """Runs a traversal, and repeats it if the server gave up after conflicts."""
        for _ in range(100):
            try:
                return traversal_.clone().iterate()
            except GremlinServerError as e:
                if e.status_code != CONFLICT:
                    raise
        raise AssertionError("a hundred attempts in a row met a conflict")

    def checks(self):
        """All scripts, at both levels."""
        forbidden = [self.dirty_write, self.dirty_and_aborted_read, self.intermediate_read, self.fuzzy_read,
                     self.lost_update, self.read_skew, self.circular_information_flow, self.long_fork,
                     self.dangling_edge, self.predicate_many_preceders]
        allowed_at_snapshot = [self.write_skew, self.write_skew_over_predicates, self.read_only_transaction_anomaly]

        def check(level, method):
            def run():
                self.reset()
                seen = method(LEVELS[level])
                if method in allowed_at_snapshot:
                    expect(seen == (level == "snapshot"), f"seen: {seen}")
            return Check(f"anomalies at {level}", method.__name__.replace("_", " "), run)

        def upserts():
            self.reset()
            self.upserts_at_once()

        return [check(level, method) for level in LEVELS for method in forbidden + allowed_at_snapshot] + [
            Check("upserts", "eight at once make one", upserts)]

    def close(self):
        """Closes every connection."""
        self.clients.close()

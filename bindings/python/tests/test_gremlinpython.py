"""gremlinpython's own ``g`` over the embedded database: the same answers as over a socket."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any, Iterator
from uuid import UUID

import pytest

import mangrove

pytest.importorskip("gremlin_python")

from gremlin_python.driver.driver_remote_connection import DriverRemoteConnection  # noqa: E402
from gremlin_python.process.anonymous_traversal import traversal  # noqa: E402
from gremlin_python.process.graph_traversal import __  # noqa: E402
from gremlin_python.process.traversal import Cardinality, Order, P, T, TextP  # noqa: E402
from gremlin_python.statics import bigdecimal, bigint, long  # noqa: E402


@pytest.fixture
def g(people: mangrove.Database) -> Iterator[Any]:
    with mangrove.remote(people) as connection:
        yield traversal().with_(connection)


#: Traversals whose answers are compared with those of a server over a socket.
TRAVERSALS = [
    lambda g: g.V().order().by(T.id),
    lambda g: g.E().order().by(T.id),
    lambda g: g.V().order().by(T.id).element_map(),
    lambda g: g.V().order().by(T.id).value_map(True),
    lambda g: g.V(1).out("knows").order().by("name", Order.desc).values("name"),
    lambda g: g.V(1).out_e().in_v().path(),
    lambda g: g.V().group_count().by("name"),
    lambda g: g.V().properties(),
    lambda g: g.E().properties(),
    lambda g: g.V().has("name", P.within("ada", "bob")).has("name", TextP.starting_with("a")).count(),
    lambda g: g.inject(1, long(2), 1.5, "x", None, True, [1, "a"], {"a": 1}, {1, 2}),
    lambda g: g.inject(datetime(2020, 1, 1, tzinfo=timezone.utc), UUID(int=5), bigdecimal("1.5"), b"ab", bigint(2**70)),
    lambda g: g.V(1).repeat(__.out()).until(__.not_(__.out())).path().by("name"),
    lambda g: g.with_("evaluationTimeout", 10_000).V().count(),
]


@pytest.mark.parametrize("make", TRAVERSALS)
def test_answers_are_those_of_a_server(people: mangrove.Database, g: Any, make: Any) -> None:
    with mangrove.serve(people) as server:
        connection = DriverRemoteConnection(server.url, "g")
        try:
            expected = make(traversal().with_(connection)).to_list()
        finally:
            connection.close()
    found = make(g).to_list()
    assert found == expected and [type(one) for one in found] == [type(one) for one in expected]
    assert [str(one) for one in found] == [str(one) for one in expected]


def test_results_are_found_as_they_are_read(g: Any, people: mangrove.Database) -> None:
    endless = g.V(1).repeat(__.both("knows")).emit().values("name")
    assert endless.next() in ("bob", "cyd")
    del endless
    assert g.V().count().next() == 3
    assert not g.V().has("name", "nobody").has_next()
    assert g.V().has("name", "ada").promise().result().to_list()[0].id == 1


def test_transactions(g: Any, people: mangrove.Database) -> None:
    tx = g.tx()
    gtx = tx.begin()
    gtx.add_v("person").property("name", "dan").iterate()
    assert gtx.V().count().next() == 4 and g.V().count().next() == 3
    tx.rollback()
    assert g.V().count().next() == 3
    tx = g.tx()
    gtx = tx.begin()
    gtx.V(1).property(Cardinality.single, "age", 37).iterate()
    tx.commit()
    assert people.query("g.V(1).values('age')").one() == 37
    assert not tx.is_open()


def test_errors_are_those_of_the_database(g: Any) -> None:
    with pytest.raises(mangrove.RequestError, match="DuplicateId|exists"):
        g.add_v("person").property(T.id, 1).iterate()
    with pytest.raises(mangrove.RequestError):
        g.V().map(lambda: "it.get()").iterate()


def test_a_closed_connection_says_so(people: mangrove.Database) -> None:
    connection = mangrove.remote(people)
    g = traversal().with_(connection)
    tx = g.tx()
    tx.begin().add_v("x").iterate()
    connection.close()
    with pytest.raises(mangrove.ClosedError, match="connection is closed"):
        g.V().to_list()
    assert people.query("g.V().count()").one() == 3

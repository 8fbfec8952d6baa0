"""Queries, results, transactions and errors."""

from __future__ import annotations

import pathlib
import pickle
import threading
from typing import Any

import pytest

import mangrove


def test_results_are_read_in_several_ways(people: mangrove.Database) -> None:
    text = "g.V().hasLabel('person').order().by('name').values('name')"
    assert people.query(text).all() == ["ada", "bob", "cyd"]
    assert list(people.query(text)) == ["ada", "bob", "cyd"]
    results = people.query(text)
    assert results.fetchmany(2) == ["ada", "bob"]
    assert next(results) == "cyd"
    assert results.fetchmany(2) == [] and list(results) == []
    assert people.query(text).first() == "ada"
    assert people.query("g.V().has('name', 'nobody')").first() is None
    assert people.query("g.V().count()").one() == 3
    with pytest.raises(mangrove.RequestError, match="no result"):
        people.query("g.V().has('name', 'nobody')").one()
    with pytest.raises(mangrove.RequestError, match="more than one"):
        people.query(text).one()


def test_a_result_that_occurs_often_is_there_as_often(db: mangrove.Database) -> None:
    db.query("g.addV('hub')")
    for _ in range(10):
        db.query("g.addV('leaf').as('l').V().hasLabel('hub').as('h').addE('to').from('l')")
    text = "g.V().hasLabel('leaf').out().label()"
    assert db.query(text).all() == ["hub"] * 10
    results = db.query(text)
    taken = results.fetchmany(4) + results.fetchmany(2) + [next(results)]
    assert taken == ["hub"] * 7 and list(results) == ["hub"] * 3


def test_results_that_are_closed_are_over(people: mangrove.Database) -> None:
    results = people.query("g.V()")
    with results:
        next(results)
    assert results.all() == []


def test_parameters_and_prepared_queries(people: mangrove.Database) -> None:
    assert people.query("g.V().has('name', n).values('age')", {"n": "ada"}).one() == 36
    find = people.prepare("g.V().has('name', n).values('name')")
    assert [find(n=name).one() for name in ("ada", "bob")] == ["ada", "bob"]
    with people.transaction() as tx:
        assert tx.query(find, n="cyd").one() == "cyd"
    assert "has('name'" in find.text and repr(find).startswith("Prepared(")
    with pytest.raises(mangrove.RequestError, match="`n` has no value"):
        find()


def test_scripts(db: mangrove.Database) -> None:
    script = "a = g.addV('person').property('name', 'ada').next()\ng.V(a).values('name')"
    assert db.query(script).all() == ["ada"]
    with db.transaction() as tx:
        assert tx.query("b = g.addV('x').next(); g.V(b).label()").one() == "x"
    with pytest.raises(mangrove.RequestError, match="line 2"):
        db.query("g.V()\ng.V().out(")


def test_errors_have_a_class_for_each_remedy(people: mangrove.Database) -> None:
    with pytest.raises(mangrove.RequestError) as caught:
        people.query("g.V().outt()")
    assert caught.value.kind == "Unsupported" and isinstance(caught.value, ValueError)
    assert "outt" in str(caught.value)
    with pytest.raises(mangrove.RequestError) as duplicate:
        people.query("g.addV('person').property(T.id, 1)")
    assert duplicate.value.kind == "DuplicateId"
    copy = pickle.loads(pickle.dumps(duplicate.value))
    assert (type(copy), str(copy), copy.kind) == (mangrove.RequestError, str(duplicate.value), "DuplicateId")
    slow = people.options(timeout=0.05)
    with pytest.raises(mangrove.RetryLaterError) as late:
        slow.query("g.V().repeat(both()).times(60).path().count()").all()
    assert late.value.kind in ("Timeout", "MemoryLimit")
    small = people.options(memory_limit=100_000)
    with pytest.raises(mangrove.RetryLaterError) as large:
        small.query("g.inject(1).repeat(union(identity(), identity())).times(22).map(constant('x')).fold()").all()
    assert large.value.kind == "MemoryLimit"
    assert people.query("g.V().count()").one() == 3


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"timeout": 0}, "timeout is 0; it is a number of seconds above 0"),
        ({"timeout": float("nan")}, "timeout is NaN"),
        ({"isolation": "chaos"}, "isolation is 'chaos'; it is 'serializable' or 'snapshot'"),
    ],
)
def test_wrong_options_say_what_is_allowed(db: mangrove.Database, options: dict[str, Any], message: str) -> None:
    with pytest.raises(mangrove.RequestError, match=message):
        db.options(**options)


def test_a_transaction_takes_effect_as_a_whole(db: mangrove.Database) -> None:
    with db.transaction() as tx:
        tx.query("g.addV('a')")
        assert tx.query("g.V().count()").one() == 1
        assert db.query("g.V().count()").one() == 0
    assert db.query("g.V().count()").one() == 1
    with pytest.raises(ZeroDivisionError):
        with db.transaction() as tx:
            tx.query("g.addV('a')")
            1 / 0
    assert db.query("g.V().count()").one() == 1
    tx = db.transaction()
    tx.query("g.addV('a')")
    tx.rollback()
    assert not tx.is_open and db.query("g.V().count()").one() == 1
    with pytest.raises(mangrove.ClosedError, match="the transaction has ended"):
        tx.query("g.V()")
    with pytest.raises(mangrove.ClosedError):
        tx.commit()
    with db.transaction(read_only=True) as tx, pytest.raises(mangrove.RequestError, match="read-only"):
        tx.query("g.addV('a')")


def test_a_transaction_that_ends_ends_its_results(people: mangrove.Database) -> None:
    with people.transaction() as tx:
        results = tx.query("g.V().values('name')")
        tx.query("g.addV('x')")
    with pytest.raises(mangrove.ClosedError, match="the transaction ended before all results were read"):
        results.all()
    assert people.query("g.V().count()").one() == 4


def test_a_failed_query_ends_a_transaction_that_has_written(people: mangrove.Database) -> None:
    with pytest.raises(mangrove.RequestError) as caught:
        with people.transaction() as tx:
            tx.query("g.addV('x')")
            tx.query("g.addV('y').property(T.id, 1)")
    assert caught.value.kind == "DuplicateId"
    assert people.query("g.V().count()").one() == 3


def test_conflicts_are_told_and_retried(db: mangrove.Database) -> None:
    db.query("g.addV('counter').property('n', 0)")
    one, two = db.transaction(), db.transaction()
    one.query("g.V().property('n', 1)")
    with pytest.raises(mangrove.ConflictError):
        two.query("g.V().property('n', 2)")
        two.commit()
    one.commit()

    @db.transactional(attempts=1_000)
    def add(tx: mangrove.Transaction, count: int) -> None:
        n = tx.query("g.V().values('n')").one()
        tx.query("g.V().property('n', n)", n=n + count)

    threads = [threading.Thread(target=lambda: [add(1) for _ in range(25)]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert db.query("g.V().values('n')").one() == 101
    with pytest.raises(ValueError, match="attempts is 0"):
        db.run_in_transaction(add, attempts=0)


def test_threads_share_results(db: mangrove.Database) -> None:
    db.query("g.inject(0).repeat(union(identity(), identity())).times(14).as('x').addV('n')")
    count = db.query("g.V().count()").one()
    results = db.query("g.V().id()")
    found: list[Any] = []

    def read() -> None:
        for result in results:
            found.append(result)

    threads = [threading.Thread(target=read) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == count == len(set(found)) == 1 << 14


def test_a_directory_keeps_the_graph(tmp_path: pathlib.Path) -> None:
    place = tmp_path / "graph"
    with mangrove.open(place) as db:
        db.query("g.addV('person').property('name', 'ada')")
        assert db.location == str(place)
    with mangrove.open(place, read_only=True) as db:
        assert db.query("g.V().values('name')").one() == "ada"
        with pytest.raises(mangrove.RetryLaterError) as caught:
            db.query("g.addV('x')")
        assert caught.value.kind == "ReadOnly"
    with pytest.raises(mangrove.RequestError, match="is a file"):
        (tmp_path / "file").write_text("x")
        mangrove.open(tmp_path / "file")
    with pytest.raises(mangrove.RequestError, match="no database"):
        mangrove.open(tmp_path / "nothing", read_only=True)


def test_a_home_of_objects_keeps_the_graph(tmp_path: pathlib.Path) -> None:
    with mangrove.open(f"file:{tmp_path}/home") as db:
        db.query("g.addV('person').property('name', 'ada')")
    with mangrove.open(f"file:{tmp_path}/home") as db:
        assert db.query("g.V().values('name')").one() == "ada"


def test_closing_ends_what_is_open(tmp_path: pathlib.Path) -> None:
    db = mangrove.open(tmp_path / "graph")
    db.query("g.addV('a')")
    results, tx = db.query("g.V()"), db.transaction()
    tx.query("g.addV('b')")
    quick = db.options(timeout=1)
    db.close()
    assert db.is_closed and quick.is_closed and not tx.is_open
    for use in (lambda: db.query("g.V()"), results.all, lambda: tx.query("g.V()"), lambda: quick.query("g.V()")):
        with pytest.raises(mangrove.ClosedError):
            use()
    db.close()
    with mangrove.open(tmp_path / "graph") as again:
        assert again.query("g.V().label()").all() == ["a"]


def test_a_memory_limit_refuses_what_does_not_fit() -> None:
    with mangrove.open(memory_limit=32 << 20) as db:
        with pytest.raises(mangrove.RetryLaterError) as caught:
            for _ in range(100):
                db.query("g.inject(0).repeat(union(identity(), identity())).times(14).addV('n').property('text', x)", x="x" * 100)
        assert caught.value.kind == "MemoryLimit"
        assert db.query("g.V().limit(1).count()").one() == 1


def test_explain_profile_counts_and_repr(people: mangrove.Database) -> None:
    assert "people" not in people.explain("g.V().has('name', 'ada')")
    table = people.profile("g.V().has('name', n).out('knows')", n="ada")
    assert "operator" in table and "rows out" in table
    assert people.counts() == (3, 2)
    assert repr(people) == "<mangrove.Database ':memory:'>"


def test_another_program_looks_in(people: mangrove.Database) -> None:
    import json
    import urllib.request

    def ask(port: int, text: str) -> Any:
        request = urllib.request.Request(
            f"http://127.0.0.1:{port}/gremlin", json.dumps({"gremlin": text}).encode(), {"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(request) as answer:
            return json.load(answer)["result"]["data"]

    with mangrove.serve(people) as server:
        assert server.url == f"ws://127.0.0.1:{server.port}/gremlin"
        answer = ask(server.port, "g.addV('person').property('name', 'dan').values('name')")
        assert "dan" in json.dumps(answer)
        assert people.query("g.V().has('name', 'dan').count()").one() == 1
    with pytest.raises(OSError):
        ask(server.port, "g.V()")
    assert people.query("g.V().count()").one() == 4
    with pytest.raises(mangrove.RequestError, match="allow_remote"):
        mangrove.serve(people, host="0.0.0.0")

"""Values in both directions."""

from __future__ import annotations

import pickle
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest

import mangrove

IST = timezone(timedelta(hours=5, minutes=30))


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        False,
        0,
        -1,
        2**63 - 1,
        -(2**63),
        2**63,
        -(10**5000),
        1.5,
        float("inf"),
        "",
        "žluťoučký \U0001f34f",
        b"",
        b"\x00\xff",
        Decimal("1.10"),
        Decimal("-1E+40"),
        UUID("12345678-1234-5678-1234-567812345678"),
        datetime(2020, 2, 29, 12, 30, 15, 123456, tzinfo=timezone.utc),
        datetime(1, 1, 1, tzinfo=timezone.utc),
        datetime(1969, 12, 31, 23, 59, 59, 999999, tzinfo=IST),
        timedelta(days=-1, microseconds=1),
        timedelta(days=400, seconds=5),
        [],
        [1, "a", None, [2.5]],
        {"a": 1, "b": [1, 2]},
        {1: "a", "x": {"y": None}},
        {1, 2, 3},
        set(),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_value_comes_back_as_it_went(db: mangrove.Database, value: Any) -> None:
    found = db.query("g.inject(1).constant(x)", x=value).one()
    assert found == value
    assert type(found) is type(value)
    if isinstance(value, datetime):
        assert found.utcoffset() == value.utcoffset()


def test_a_value_is_stored_in_a_property_as_it_is(db: mangrove.Database) -> None:
    values = {"i": 2**40, "f": 0.1, "s": "x", "b": b"\x01", "d": Decimal("0.5"), "t": datetime(2020, 1, 1, tzinfo=IST), "l": [1, "a"]}
    for key, value in values.items():
        db.query("g.addV('thing').property('kind', key).property('value', value)", key=key, value=value)
    for key, value in values.items():
        assert db.query("g.V().has('kind', key).values('value')", key=key).one() == value


def test_objects_of_other_kinds_are_taken_by_what_they_mean(db: mangrove.Database) -> None:
    def back(value: Any) -> Any:
        return db.query("g.inject(1).constant(x)", x=value).one()

    assert back((1, (2, 3))) == [1, [2, 3]]
    assert back(frozenset([1])) == {1}
    assert back(bytearray(b"ab")) == b"ab"
    assert back(datetime(2020, 1, 1, 5)) == datetime(2020, 1, 1, 5, tzinfo=timezone.utc)
    assert back(date(2020, 1, 1)) == datetime(2020, 1, 1, tzinfo=timezone.utc)
    assert back(date(1969, 12, 31)) == datetime(1969, 12, 31, tzinfo=timezone.utc)


def test_arrays_and_numbers_of_numpy(db: mangrove.Database) -> None:
    np = pytest.importorskip("numpy")

    def back(value: Any) -> Any:
        return db.query("g.inject(1).constant(x)", x=value).one()

    assert back(np.float32(0.5)) == 0.5
    assert back(np.int16(7)) == 7
    assert back(np.bool_(True)) is True
    assert back(np.array([0.5, 0.25], dtype=np.float32)) == [0.5, 0.25]
    assert back(np.array([[1, 2], [3, 4]])) == [[1, 2], [3, 4]]
    assert back(np.datetime64("2020-01-01T00:00:00")) == datetime(2020, 1, 1, tzinfo=timezone.utc)
    with pytest.raises(mangrove.RequestError, match="complex"):
        back(np.array([1j]))


def test_what_is_no_value_is_refused_by_name(db: mangrove.Database) -> None:
    with pytest.raises(mangrove.RequestError, match="the parameter `x`: a object is no value of the database; it takes None, bool"):
        db.query("g.inject(x)", x=object())
    deep: list[Any] = []
    for _ in range(300):
        deep = [deep]
    with pytest.raises(mangrove.RequestError, match="at most 256 levels of collections"):
        db.query("g.inject(x)", x=deep)
    endless: list[Any] = []
    endless.append(endless)
    with pytest.raises(mangrove.RequestError, match="at most 256 levels"):
        db.query("g.inject(x)", x=endless)
    with pytest.raises(mangrove.RequestError, match="given twice"):
        db.query("g.inject(x)", {"x": 1}, x=2)
    with pytest.raises(mangrove.RequestError, match="the name of a parameter is a str"):
        db.query("g.inject(x)", {1: 1})  # type: ignore[dict-item]


def test_moments_that_python_has_not_are_an_error(db: mangrove.Database) -> None:
    with pytest.raises(mangrove.RequestError, match="outside of the years 1 to 9999"):
        db.query("g.inject(datetime('+20000-01-01T00:00:00Z'))").one()


def test_elements(people: mangrove.Database) -> None:
    ada = people.query("g.V(1)").one()
    assert isinstance(ada, mangrove.Vertex)
    assert (ada.id, ada.label, ada.properties) == (1, "person", {"name": "ada", "age": 36})
    assert ada["name"] == "ada" and ada.get("nothing") is None and ada.get("nothing", 0) == 0
    with pytest.raises(KeyError):
        ada["nothing"]
    assert repr(ada) == "Vertex(1, 'person', name='ada', age=36)"
    edge = people.query("g.E(10)").one()
    assert (edge.id, edge.label, edge.source.id, edge.target.id, edge["since"]) == (10, "knows", 1, 2, 2001)
    assert repr(edge) == "Edge(10, 'knows', 1 -> 2, since=2001)"
    assert edge.source == ada and ada != edge and len({ada, edge.source}) == 1
    assert people.query("g.V(v).out('knows').count()", v=ada).one() == 2
    assert people.query("g.E(e).inV().values('name')", e=edge).one() == "bob"
    assert people.query("g.V().is(within(vs)).count()", vs=[ada, edge.target]).one() == 2
    copy = pickle.loads(pickle.dumps([ada, edge]))
    assert copy == [ada, edge] and copy[0].properties == ada.properties and copy[1].source.id == 1


def test_properties_of_elements(people: mangrove.Database) -> None:
    people.query("g.V(1).property(list, 'mail', 'a@x', 'since', 2020).property(list, 'mail', 'b@x')")
    ada = people.query("g.V(1)").one()
    assert ada["mail"] == ["a@x", "b@x"]
    assert ada.meta == {"mail": [{"since": 2020}, {}]}
    first = people.query("g.V(1).properties('mail')").first()
    assert (first.key, first.value, first.meta) == ("mail", "a@x", {"since": 2020})
    assert repr(first) == "VertexProperty('mail', 'a@x', since=2020)"
    since = people.query("g.E(10).properties()").one()
    assert (since.key, since.value) == ("since", 2001)
    assert since == people.query("g.E(10).properties()").one() and hash(since)


def test_paths_trees_subgraphs_and_maps(people: mangrove.Database) -> None:
    path = people.query("g.V(1).as('a').out('knows').hasId(2).as('b').path().by('name')").one()
    assert list(path) == ["ada", "bob"] and path.labels == [["a"], ["b"]] and path[-1] == "bob" and len(path) == 2
    assert people.query("g.V(1).out().tree().by('name')").one() == {"ada": {"bob": {}, "cyd": {}}}
    subgraph = people.query("g.E().subgraph('s').cap('s')").one()
    assert len(subgraph.vertices) == 3 and len(subgraph.edges) == 2
    assert people.query("g.V(1).elementMap()").one() == {"id": 1, "label": "person", "name": "ada", "age": 36}
    found = people.query("g.E(10).elementMap()").one()
    assert found["IN"] == {"id": 2, "label": "person"} and found["OUT"]["id"] == 1
    assert people.query("g.V().group().by(values('name').fold()).by(count())").one() == {("ada",): 1, ("bob",): 1, ("cyd",): 1}


def test_a_key_that_is_called_id_hides_no_id(db: mangrove.Database) -> None:
    db.query("g.addV('person').property(T.id, 7).property('id', 'mine')")
    assert db.query("g.V().elementMap()").one() == {"~id": 7, "label": "person", "id": "mine"}

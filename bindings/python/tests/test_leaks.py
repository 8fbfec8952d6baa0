"""Memory stays level over many queries of every kind: a million in the long form of the tests, some ten thousand in the short one."""

from __future__ import annotations

import gc
import os
import pathlib
from typing import Callable

import pytest

import mangrove

IS_FULL = bool(os.environ.get("MANGROVE_TEST_FULL"))
#: The queries of one kind.
COUNT = 200_000 if IS_FULL else 4_000
#: What the process may have grown by after them, in bytes: the noise of allocators, whatever the number of queries.
GROWTH_MAX = 6 << 20


def resident_bytes() -> int:
    pages = int(pathlib.Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def elements(db: mangrove.Database, number: int) -> None:
    db.query("g.V(x).out('knows')", x=number % 3).all()


def half_read(db: mangrove.Database, number: int) -> None:
    next(db.query("g.V().repeat(both()).emit()"))


def failing(db: mangrove.Database, number: int) -> None:
    with pytest.raises(mangrove.RequestError):
        db.query("g.V().values('name').sum()").all()


def writing(db: mangrove.Database, number: int) -> None:
    with db.transaction() as tx:
        tx.query("g.V(1).property('n', x)", x=number)
        if number % 2:
            tx.rollback()


def columns(db: mangrove.Database, number: int) -> None:
    db.query("g.V().project('a').by('name')").table()


@pytest.mark.parametrize("use", [elements, half_read, failing, writing, columns])
@pytest.mark.skipif(not pathlib.Path("/proc/self/statm").exists(), reason="the system does not tell how much memory a process has")
def test_memory_stays_level(people: mangrove.Database, use: Callable[[mangrove.Database, int], None]) -> None:
    for number in range(COUNT // 4):
        use(people, number)
    gc.collect()
    before = resident_bytes()
    for number in range(COUNT):
        use(people, number)
    gc.collect()
    grown = resident_bytes() - before
    print(f"{use.__name__}: {COUNT:,} queries, {grown:,} bytes more")
    assert grown < GROWTH_MAX, f"{COUNT:,} queries left {grown:,} bytes"

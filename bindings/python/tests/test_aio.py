"""The database for asyncio."""

from __future__ import annotations

import asyncio
import time
from typing import Any, Coroutine

import pytest

import mangrove
import mangrove.aio

from test_process import ENDLESS, ENDLESS_WRITE, fill


def run(work: Coroutine[Any, Any, Any]) -> Any:
    return asyncio.run(work)


def test_queries_and_transactions() -> None:
    async def main() -> None:
        async with mangrove.aio.open() as db:
            await db.query("g.addV('person').property('name', n)", n="ada")
            async with db.transaction() as tx:
                await tx.query("g.addV('person').property('name', 'bob')")
                assert await tx.query("g.V().count()") == [2]
            with pytest.raises(ZeroDivisionError):
                async with db.transaction() as tx:
                    await tx.query("g.addV('person')")
                    1 / 0
            assert [name async for name in db.stream("g.V().values('name').order()")] == ["ada", "bob"]

    run(main())


def test_the_loop_goes_on_and_a_cancelled_task_ends_its_query() -> None:
    async def main() -> None:
        async with mangrove.aio.open(threads=1) as db:
            fill(db.database)
            for endless in (ENDLESS, ENDLESS_WRITE):
                task = asyncio.create_task(db.query(endless))
                begun = time.monotonic()
                await asyncio.sleep(0.2)
                assert time.monotonic() - begun < 1, "the loop went on"
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task
                # The only thread is free again.
                assert await asyncio.wait_for(db.query("g.V().count()"), 5) == [32]
            assert await db.query("g.V().has('x', 1).count()") == [0]

    run(main())


def test_what_is_not_open_says_so() -> None:
    async def main() -> None:
        db = mangrove.aio.open()
        with pytest.raises(RuntimeError, match="not open"):
            await db.query("g.V()")
        with pytest.raises(RuntimeError, match="has not begun"):
            await db.transaction().query("g.V()")

    run(main())

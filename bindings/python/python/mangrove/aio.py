"""The database for ``asyncio``: the same methods, to be awaited. The event loop goes on while a query runs.

>>> import asyncio, mangrove.aio
>>> async def main():
...     async with mangrove.aio.open() as db:
...         await db.query("g.addV('person').property('name', 'ada')")
...         return [name async for name in db.stream("g.V().values('name')")]
>>> asyncio.run(main())
['ada']

A task that is cancelled ends its query.
"""

from __future__ import annotations

import asyncio
import functools
import os
from concurrent.futures import ThreadPoolExecutor
from typing import Any, AsyncIterator, Callable, Optional, TypeVar, Union

from . import _mangrove
from ._database import Database, Isolation
from ._open import open as open_now

__all__ = ["AsyncDatabase", "AsyncTransaction", "open"]

_Result = TypeVar("_Result")

#: Results that a stream fetches at a time.
_BATCH = 1_024


def open(  # noqa: A001 - as in the package
    location: Union[str, "os.PathLike[str]"] = ":memory:",
    *,
    read_only: bool = False,
    memory_limit: Optional[int] = None,
    threads: int = 8,
) -> "AsyncDatabase":
    """A database that is opened by ``async with`` (or ``await db.connect()``). Up to ``threads`` queries run at a time."""
    opened = functools.partial(open_now, location, read_only=read_only, memory_limit=memory_limit)
    return AsyncDatabase(opened, threads)


class AsyncDatabase:
    """A database whose methods are awaited."""

    def __init__(self, opened: Callable[[], Database], threads: int = 8) -> None:
        self._open = opened
        self._database: Optional[Database] = None
        self._executor = ThreadPoolExecutor(max_workers=threads, thread_name_prefix="mangrove-aio")

    @property
    def database(self) -> Database:
        """The database itself."""
        if self._database is None:
            raise RuntimeError("the database is not open; use `async with`, or await connect()")
        return self._database

    async def connect(self) -> "AsyncDatabase":
        """Opens the database."""
        self._database = await self._run(self._open)
        return self

    async def _run(self, work: Callable[[], _Result]) -> _Result:
        return await asyncio.get_running_loop().run_in_executor(self._executor, work)

    async def _cancellable(self, canceller: _mangrove.Canceller, work: Callable[[], _Result]) -> _Result:
        """Runs ``work``. If the task is cancelled meanwhile, ends the queries of the canceller."""
        try:
            return await self._run(work)
        except asyncio.CancelledError:
            canceller.cancel()
            raise

    async def query(self, query: Union[str, _mangrove.Prepared], params: Optional[dict[str, Any]] = None, /, **named: Any) -> list[Any]:
        """Runs a query in a transaction of its own, and returns all results."""
        canceller = _mangrove.Canceller()
        database = self.database._with_options(canceller=canceller)
        return await self._cancellable(canceller, lambda: database.query(query, params, **named).all())

    async def stream(
        self, query: Union[str, _mangrove.Prepared], params: Optional[dict[str, Any]] = None, /, **named: Any
    ) -> AsyncIterator[Any]:
        """Runs a query, and gives its results as they are found."""
        canceller = _mangrove.Canceller()
        database = self.database._with_options(canceller=canceller)
        results = await self._cancellable(canceller, lambda: database.query(query, params, **named))
        try:
            while True:
                batch = await self._cancellable(canceller, lambda: results.fetchmany(_BATCH))
                if not batch:
                    return
                for result in batch:
                    yield result
        finally:
            results.close()

    def transaction(self, *, isolation: Optional[Isolation] = None, read_only: bool = False) -> "AsyncTransaction":
        """A transaction, for ``async with``: committed at the end, rolled back if an exception leaves the block."""
        return AsyncTransaction(self, isolation, read_only)

    async def close(self) -> None:
        """Closes the database."""
        if self._database is not None:
            await self._run(self._database.close)
        self._executor.shutdown(wait=False)

    async def __aenter__(self) -> "AsyncDatabase":
        return await self.connect()

    async def __aexit__(self, *exception: Any) -> None:
        await self.close()


class AsyncTransaction:
    """A transaction whose methods are awaited."""

    def __init__(self, database: AsyncDatabase, isolation: Optional[Isolation], read_only: bool) -> None:
        self._owner = database
        self._isolation: Optional[Isolation] = isolation
        self._read_only = read_only
        self._transaction: Optional[_mangrove.Transaction] = None
        # One for all queries: the block ends with the task.
        self._canceller = _mangrove.Canceller()

    @property
    def transaction(self) -> _mangrove.Transaction:
        """The transaction itself."""
        if self._transaction is None:
            raise RuntimeError("the transaction has not begun; use `async with`")
        return self._transaction

    async def query(self, query: Union[str, _mangrove.Prepared], params: Optional[dict[str, Any]] = None, /, **named: Any) -> list[Any]:
        """Runs a query in the transaction, and returns all results."""
        transaction = self.transaction
        return await self._owner._cancellable(self._canceller, lambda: transaction.query(query, params, **named).all())

    async def commit(self) -> None:
        """Makes all writes visible."""
        await self._owner._run(self.transaction.commit)

    async def rollback(self) -> None:
        """Takes back all writes."""
        await self._owner._run(self.transaction.rollback)

    async def __aenter__(self) -> "AsyncTransaction":
        database = self._owner.database._with_options(canceller=self._canceller)
        self._transaction = await self._owner._run(
            lambda: database.transaction(isolation=self._isolation, read_only=self._read_only)
        )
        return self

    async def __aexit__(self, exception_type: Any, *exception: Any) -> None:
        if self.transaction.is_open:
            await (self.commit() if exception_type is None else self.rollback())

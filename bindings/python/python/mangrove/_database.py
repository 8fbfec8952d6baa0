"""The database: what the native class does, and what is written in Python on top of it."""

from __future__ import annotations

import functools
import random
import time
from typing import Any, Callable, Literal, Optional, TypeVar

from . import _mangrove
from ._errors import ConflictError

Isolation = Literal["serializable", "snapshot"]

_Result = TypeVar("_Result")
_Function = TypeVar("_Function", bound=Callable[..., Any])

#: The longest wait before a transaction is run again, in seconds.
_WAIT_MAX = 0.064


class Database(_mangrove.Database):
    """A database in this process.

    ``location`` is ``":memory:"``, a directory, ``s3://BUCKET/DIRECTORY``, or ``file:DIRECTORY`` for a home of objects in a directory.
    A directory can be open in one process at a time. ``memory_limit`` is the number of bytes that the graph, its queries and its
    loads may use together.

    Handles can be used from any thread. The interpreter's lock is released while the database works.
    """

    __slots__ = ()

    def options(
        self,
        *,
        timeout: Optional[float] = None,
        memory_limit: Optional[int] = None,
        threads: Optional[int] = None,
        isolation: Optional[Isolation] = None,
        retries: Optional[int] = None,
    ) -> Database:
        """Another handle of the same database, whose queries have these options.

        ``timeout`` is in seconds, ``memory_limit`` in bytes that one query may hold. ``threads`` is the most threads that work on a
        query. ``isolation`` and ``retries`` are those of queries that write in a transaction of their own.

        >>> import mangrove
        >>> db = mangrove.open()
        >>> quick = db.options(timeout=0.5, threads=1)
        >>> quick.query("g.V().count()").one()
        0
        """
        return type(self)(_handle=self._with_options(timeout, memory_limit, threads, isolation, retries))

    def run_in_transaction(
        self,
        function: Callable[..., _Result],
        *arguments: Any,
        isolation: Optional[Isolation] = None,
        attempts: int = 10,
        **named: Any,
    ) -> _Result:
        """Calls ``function(tx, *arguments, **named)`` in a transaction, and commits it.

        After a conflict with another transaction, all of it is run again, up to ``attempts`` times. So the function should have no
        effects outside of its transaction.

        >>> import mangrove
        >>> db = mangrove.open()
        >>> def count_and_add(tx):
        ...     count = tx.query("g.V().count()").one()
        ...     tx.query("g.addV('item').property('number', n)", n=count)
        ...     return count
        >>> [db.run_in_transaction(count_and_add) for _ in range(3)]
        [0, 1, 2]
        """
        if attempts < 1:
            raise ValueError(f"attempts is {attempts}; it is 1 or more")
        for attempt in range(1, attempts + 1):
            try:
                with self.transaction(isolation=isolation) as tx:
                    return function(tx, *arguments, **named)
            except ConflictError:
                if attempt == attempts:
                    raise
                # A random part of a time that doubles, so that two transactions that met once do not meet again.
                time.sleep(random.random() * min(_WAIT_MAX, 0.001 * 2**attempt))
        raise AssertionError("the loop returns or raises")

    def transactional(
        self, *, isolation: Optional[Isolation] = None, attempts: int = 10
    ) -> Callable[[Callable[..., _Result]], Callable[..., _Result]]:
        """A decorator: each call of the function is a transaction, which is the first argument of the function.

        See :meth:`run_in_transaction`.

        >>> import mangrove
        >>> db = mangrove.open()
        >>> @db.transactional()
        ... def add_person(tx, name):
        ...     return tx.query("g.addV('person').property('name', name)", name=name).one()
        >>> add_person("ada")["name"]
        'ada'
        """

        def decorate(function: Callable[..., _Result]) -> Callable[..., _Result]:
            @functools.wraps(function)
            def run(*arguments: Any, **named: Any) -> _Result:
                def call(tx: _mangrove.Transaction) -> _Result:
                    return function(tx, *arguments, **named)

                return self.run_in_transaction(call, isolation=isolation, attempts=attempts)

            return run

        return decorate

    def __repr__(self) -> str:
        return f"<mangrove.Database {self.location!r}{' (closed)' if self.is_closed else ''}>"

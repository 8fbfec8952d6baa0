"""What the tests share."""

from __future__ import annotations

import signal
from typing import Iterator

import pytest

import mangrove


@pytest.fixture(autouse=True)
def ctrl_c() -> Iterator[None]:
    """Ctrl-C raises ``KeyboardInterrupt``, also if a shell runs the tests in its background, where Python ignores the signal."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def db() -> Iterator[mangrove.Database]:
    """An empty graph in memory."""
    with mangrove.open() as opened:
        yield opened


@pytest.fixture
def people(db: mangrove.Database) -> mangrove.Database:
    """Three people: ada knows bob and cyd, since 2001 and 2002."""
    db.query(
        """
        g.addV('person').property(T.id, 1).property('name', 'ada').property('age', 36).as('a')
         .addV('person').property(T.id, 2).property('name', 'bob').as('b')
         .addV('person').property(T.id, 3).property('name', 'cyd').as('c')
         .addE('knows').from('a').to('b').property(T.id, 10).property('since', 2001)
         .addE('knows').from('a').to('c').property(T.id, 11).property('since', 2002)
        """
    )
    return db


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Ends with the line that `make test` adds up."""
    counts = {outcome: len(terminalreporter.stats.get(outcome, [])) for outcome in ("passed", "failed", "error")}
    terminalreporter.write_line(f"{counts['passed']} passed, {counts['failed'] + counts['error']} failed")

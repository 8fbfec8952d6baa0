"""Loads that end before their time: Ctrl-C, and a progress function that raises an exception. The graph is as empty as before."""

from __future__ import annotations

import os
import pathlib
import signal
import threading
import time
from typing import Callable

import numpy
import pyarrow as pa
import pytest

import mangrove

#: Rows of a load that takes several seconds.
MANY = 20_000_000


def large_table() -> mangrove.Vertices:
    """People whose load takes several seconds."""
    return mangrove.Vertices("person", pa.table({"id": numpy.arange(MANY)}), id="id")


def slow_file(folder: pathlib.Path) -> pathlib.Path:
    """A file whose types are inferred before it is read: several seconds of work."""
    path = folder / "person.csv"
    with open(path, "w") as file:
        file.write("id:ID,name,age\n")
        for number in range(2_000_000):
            file.write(f"{number},person {number},{number % 90}\n")
    return path


def interrupted(use: Callable[[], object]) -> None:
    """Runs a load that Ctrl-C ends."""
    timer = threading.Timer(0.2, lambda: os.kill(os.getpid(), signal.SIGINT))
    timer.start()
    begun = time.monotonic()
    try:
        with pytest.raises(KeyboardInterrupt):
            use()
        assert time.monotonic() - begun < 10
    finally:
        timer.cancel()


def test_ctrl_c_ends_a_load_of_tables(db: mangrove.Database) -> None:
    interrupted(lambda: db.load(large_table()))
    assert db.query("g.V().count()").one() == 0
    db.load(mangrove.Vertices("person", pa.table({"id": [1, 2]}), id="id"))
    assert db.query("g.V().count()").one() == 2


def test_ctrl_c_ends_an_upsert_of_tables(db: mangrove.Database) -> None:
    interrupted(lambda: db.load(large_table(), upsert=True))
    # The batches that were committed stay.
    count = db.query("g.V().count()").one()
    assert db.load(mangrove.Vertices("person", pa.table({"id": [1, MANY]}), id="id"), upsert=True).created == (1 if count else 2)


def test_ctrl_c_ends_a_load_of_files(db: mangrove.Database, tmp_path: pathlib.Path) -> None:
    path = slow_file(tmp_path)
    interrupted(lambda: db.load_files(path))
    assert db.query("g.V().count()").one() == 0
    assert db.load_files(path).vertices == 2_000_000


def test_a_progress_function_that_raises_ends_the_load(db: mangrove.Database) -> None:
    def tell(*given: object) -> None:
        raise RuntimeError("no more")

    with pytest.raises(RuntimeError, match="no more"):
        db.load(large_table(), progress=tell)
    assert db.query("g.V().count()").one() == 0

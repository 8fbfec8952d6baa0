"""What an interpreter does to its process: forks, kills, a second process, Ctrl-C. Nothing is lost, and every error says what to do."""

from __future__ import annotations

import os
import pathlib
import signal
import subprocess
import sys
import textwrap
import threading
import time
from typing import Callable

import pytest

import mangrove

#: A query that has no end, and one that has none after it has written.
ENDLESS = "g.inject(1).repeat(identity()).until(is(2))"
ENDLESS_WRITE = "g.V().property('x', 1).repeat(identity()).until(hasLabel('nothing'))"


def program(text: str, *arguments: str) -> subprocess.Popen[str]:
    """Another interpreter that runs a program."""
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(text), *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def fill(db: mangrove.Database) -> None:
    """Adds 32 vertices."""
    db.query("g.inject(0).repeat(union(identity(), identity())).times(5).addV('n')")


@pytest.mark.parametrize("use", [
    lambda db: db.query(ENDLESS).one(),
    lambda db: db.query(ENDLESS_WRITE),
    lambda db: [None for _ in db.query(ENDLESS)],
    lambda db: db.query("g.V().V().V().V().V().V().path().count()").all(),
])
def test_ctrl_c_ends_a_query_and_leaves_the_database_usable(db: mangrove.Database, use: Callable[[mangrove.Database], object]) -> None:
    fill(db)
    timer = threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT))
    timer.start()
    begun = time.monotonic()
    try:
        with pytest.raises(KeyboardInterrupt):
            use(db)
        assert time.monotonic() - begun < 5
    finally:
        timer.cancel()
    assert db.query("g.V().count()").one() == 32
    assert db.query("g.V().has('x', 1).count()").one() == 0


def test_a_handler_of_a_signal_runs_while_a_query_runs(db: mangrove.Database) -> None:
    fill(db)
    seen = []
    before = signal.signal(signal.SIGUSR1, lambda number, frame: seen.append(number))
    try:
        timer = threading.Timer(0.2, lambda: os.kill(os.getpid(), signal.SIGUSR1))
        timer.start()
        with pytest.raises(mangrove.RetryLaterError):
            db.options(timeout=1.0).query(ENDLESS).one()
        assert seen == [signal.SIGUSR1]
    finally:
        signal.signal(signal.SIGUSR1, before)


def test_results_are_cancelled_from_another_thread(db: mangrove.Database) -> None:
    fill(db)
    results = db.query(ENDLESS)
    threading.Timer(0.2, results.cancel).start()
    with pytest.raises(mangrove.RetryLaterError) as caught:
        results.all()
    assert caught.value.kind == "Cancelled"


def in_a_thread(work: Callable[[], object]) -> tuple[threading.Thread, list[Exception]]:
    """A thread that has begun to work, and the error that it ends with."""
    errors: list[Exception] = []

    def run() -> None:
        try:
            work()
        except Exception as error:
            errors.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    time.sleep(0.2)
    return thread, errors


@pytest.mark.parametrize("use", [
    lambda db: db.query(ENDLESS).all(),
    lambda db: db.query(ENDLESS).table(),
    lambda db: db.query(ENDLESS_WRITE),
    lambda db: db.transaction().query(ENDLESS_WRITE),
    lambda db: db.transaction().query(ENDLESS).all(),
])
def test_a_database_that_is_closed_ends_the_queries_of_other_threads(
    db: mangrove.Database, use: Callable[[mangrove.Database], object]
) -> None:
    fill(db)
    thread, errors = in_a_thread(lambda: use(db))
    db.close()
    thread.join()
    assert isinstance(errors[0], mangrove.ClosedError), errors
    with pytest.raises(mangrove.ClosedError):
        db.query("g.V()")


@pytest.mark.parametrize("end", [lambda tx: tx.commit(), lambda tx: tx.rollback()])
def test_a_transaction_that_ends_ends_its_results_in_other_threads(
    db: mangrove.Database, end: Callable[[mangrove.Transaction], object]
) -> None:
    tx = db.transaction()
    tx.query("g.addV('n')")
    results = tx.query(ENDLESS)
    thread, errors = in_a_thread(results.all)
    end(tx)
    thread.join()
    assert isinstance(errors[0], mangrove.ClosedError) and "the transaction ended" in str(errors[0]), errors


def test_results_that_are_closed_end_no_other_query_of_their_handle(db: mangrove.Database) -> None:
    fill(db)
    handle = db.options(timeout=60)
    first, second = handle.query("g.V()"), handle.query("g.V()")
    first.close()
    assert len(second.all()) == 32


def test_other_threads_run_while_a_query_runs(db: mangrove.Database) -> None:
    fill(db)
    ticks = []
    ended = threading.Event()

    def count() -> None:
        while not ended.wait(0.01):
            ticks.append(db.query("g.V().limit(1).count()").one())

    thread = threading.Thread(target=count)
    thread.start()
    with pytest.raises(mangrove.RetryLaterError):
        db.options(timeout=0.5).query(ENDLESS).one()
    ended.set()
    thread.join()
    assert len(ticks) >= 5


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_is_refused_and_harms_nothing(tmp_path: pathlib.Path) -> None:
    db = mangrove.open(tmp_path / "graph")
    db.query("g.addV('person')")
    find, results, tx = db.prepare("g.V()"), db.query("g.V()"), db.transaction()
    tx.query("g.addV('person')")
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        # No assertion may leave this block: the child would go on with the parent's tests.
        said = []
        for use in (lambda: db.query("g.V()"), find, results.all, tx.commit, db.close, lambda: mangrove.serve(db)):
            try:
                use()
                said.append("done")
            except mangrove.ClosedError as error:
                said.append("forked" if "open the database after the fork" in str(error) else str(error))
            except BaseException as error:  # noqa: BLE001 - the parent looks at it
                said.append(repr(error))
        with mangrove.open() as own:
            said.append(str(own.query("g.inject(1).count()").one()))
        del find, results, tx, db
        os.write(write, "|".join(said).encode())
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as pipe:
        said = pipe.read().split("|")
    assert os.waitpid(child, 0)[1] == 0
    assert said == ["forked"] * 6 + ["1"]
    tx.commit()
    assert db.query("g.V().count()").one() == 2
    db.close()
    with mangrove.open(tmp_path / "graph") as again:
        assert again.query("g.V().count()").one() == 2


def test_processes_that_are_spawned_open_their_own_graphs(tmp_path: pathlib.Path) -> None:
    with mangrove.open(tmp_path / "graph") as db:
        db.query("g.addV('person')")
        other = program(
            """
            import sys, mangrove
            try:
                mangrove.open(sys.argv[1])
            except mangrove.ClosedError as error:
                print(error)
            """,
            str(tmp_path / "graph"),
        )
        out, err = other.communicate(timeout=60)
        assert f"process {os.getpid()} has the database" in out, err
        assert db.query("g.V().count()").one() == 1


def test_a_killed_process_loses_nothing_that_it_was_told_is_committed(tmp_path: pathlib.Path) -> None:
    place = str(tmp_path / "graph")
    for round in range(3):
        writer = program(
            """
            import sys, mangrove
            db = mangrove.open(sys.argv[1])
            number = db.query("g.V().count()").one()
            while True:
                db.query("g.addV('n').property('number', n)", n=number)
                print(number, flush=True)
                number += 1
            """,
            place,
        )
        assert writer.stdout is not None
        last = -1
        for line in writer.stdout:
            last = int(line)
            if last >= 40 * (round + 1):
                break
        writer.send_signal(signal.SIGKILL)
        rest = writer.stdout.read().split()
        writer.communicate()
        last = max([last, *map(int, rest)])
        with mangrove.open(place) as db:
            numbers = db.query("g.V().values('number').order()").all()
            assert numbers == list(range(len(numbers))) and len(numbers) in (last + 1, last + 2)


def test_an_interpreter_that_ends_closes_its_databases(tmp_path: pathlib.Path) -> None:
    ending = program(
        """
        import sys, mangrove
        db = mangrove.open(sys.argv[1])
        db.query("g.addV('a')")
        results, tx, server = db.query("g.V()"), db.transaction(), mangrove.serve(db)
        tx.query("g.addV('b')")
        """,
        str(tmp_path / "graph"),
    )
    out, err = ending.communicate(timeout=60)
    assert (ending.returncode, out, err) == (0, "", "")
    with mangrove.open(tmp_path / "graph") as db:
        assert db.query("g.V().label()").all() == ["a"]

"""The common part of all checks: their type, a runner and a report."""

import logging
import traceback
from dataclasses import dataclass
from typing import Callable

from gremlin_python.driver.protocol import GremlinServerError

# The client logs every error it receives; here most are expected.
logging.getLogger("gremlinpython").setLevel(logging.CRITICAL)


@dataclass
class Check:
    """A check. It passes if `run` returns normally."""
    group: str
    name: str
    run: Callable[[], None]


def expect(condition, message):
    """Asserts, also under `python -O`."""
    if not condition:
        raise AssertionError(message)


def expect_error(action, codes, *words):
    """`action` must fail with one of these status codes and a message that contains all of these words."""
    try:
        result = action()
    except GremlinServerError as e:
        expect(e.status_code in codes, f"status {e.status_code}, expected one of {sorted(codes)}; message: {e}")
        for word in words:
            expect(word.lower() in str(e).lower(), f"the message does not name {word!r}: {e}")
        return
    raise AssertionError(f"no error; the answer was {result!r}")


def run_all(checks, verbose=False):
    """Runs the checks, prints a table, and returns the numbers of passed and failed ones."""
    width = max(len(f"{c.group}  {c.name}") for c in checks)
    failed = 0
    for check in checks:
        title = f"{check.group}  {check.name}"
        try:
            check.run()
        except Exception as e:  # noqa: BLE001: whatever the client raises is this check's failure
            failed += 1
            reason = str(e).splitlines() or [type(e).__name__]
            print(f"{title:<{width}}  FAILED  {type(e).__name__}: {reason[0][:300]}")
            if verbose:
                traceback.print_exc()
        else:
            print(f"{title:<{width}}  passed")
    return len(checks) - failed, failed

"""Runs the traversals of traversals.json, sessions, services, isolation and bad input against a server, and prints a table.

The server must offer the traversal sources gmodern, gcrew, ggrateful (TinkerPop's graphs of these names) and
ggraph (empty and writable), the last one once more as gsigraph, at snapshot isolation. Nothing is started here.
The exit code is 0 only if everything passed.
"""

import argparse
import json
import sys

from acid import Acid
from anomalies import Anomalies
from bad_input import BadInput
from canonical import answer
from cases import Server, load
from checks import Check, expect, run_all
from services import Services
from sessions import Sessions


def case_check(server, case, form):
    """The check that one traversal in one notation gives its answer."""
    def run():
        results = server.run_bytecode(case) if form == "bytecode" else server.run_script(case)
        got = answer(results, case.ordered)
        expect(got == case.expected, f"got {json.dumps(got)[:200]}, expected {json.dumps(case.expected)[:200]}")
    return Check(form, case.name, run)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--url", default="ws://127.0.0.1:8182/gremlin", help="the server (default: %(default)s)")
    parser.add_argument("--only", metavar="WORD", help="only checks with this word in their group or name")
    parser.add_argument("--memory-limited", action="store_true",
                        help="the server was started with a memory limit for a query: check that it holds")
    parser.add_argument("--verbose", action="store_true", help="a traceback with every failure")
    options = parser.parse_args()

    server = Server(options.url)
    checks = [case_check(server, case, form) for form in ("bytecode", "script") for case in load()[1]]
    checks += Sessions(server).checks()
    checks += Services(server).checks()
    isolation = [Anomalies(server), Acid(server)]
    for checked in isolation:
        checks += checked.checks()
    checks += BadInput(server, options.memory_limited).checks()
    if options.only:
        checks = [c for c in checks if options.only in f"{c.group}  {c.name}"]
    if not checks:
        sys.exit(f"no check has {options.only!r} in its group or name")
    passed, failed = run_all(checks, options.verbose)
    for connections in [*isolation, server]:
        connections.close()
    print(f"{passed} passed, {failed} failed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()

"""Runs all checks against a server, and prints a table: traversals of traversals.json, sessions, profiles, services,
isolation, bad input.

The server must have the traversal sources gmodern, gcrew, ggrateful (TinkerPop's graphs of these names) and ggraph
(empty and writable), and gsigraph (the graph of ggraph at snapshot isolation). This program starts no server. The exit
code is 0 only if all checks passed.
"""

import argparse
import json
import sys

from acid import Acid
from anomalies import Anomalies
from bad_input import BadInput
from canonical import answer, in_graphson2, sort_key
from cases import SERIALIZERS, Server, load
from checks import Check, expect, run_all
from page import Page
from profiles import Profiles
from scripts import Scripts
from services import Services
from sessions import Sessions


def case_check(server, case, form, serializer):
    """A check that compares the answer of one traversal in one notation."""
    def run():
        run_as = {"bytecode": server.run_bytecode, "script": server.run_script, "http": server.run_http}
        results = run_as[form](case)
        got, expected = answer(results, case.ordered), case.expected
        if serializer == "graphson2":
            got, expected = in_graphson2(got), in_graphson2(expected)
            if not case.ordered:
                got, expected = sorted(got, key=sort_key), sorted(expected, key=sort_key)
        expect(got == expected, f"got {json.dumps(got)[:200]}, expected {json.dumps(expected)[:200]}")
    return Check(f"{serializer}, {form}", case.name, run)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--url", default="ws://127.0.0.1:8182/gremlin", help="the server (default: %(default)s)")
    parser.add_argument("--serializer", choices=SERIALIZERS, action="append",
                        help="what the client writes and reads; several may be named (default: graphbinary)")
    parser.add_argument("--only-language", action="store_true",
                        help="only the traversals, the sessions and profiles: what depends on the client and its serializer")
    parser.add_argument("--only", metavar="WORD", help="only checks with this word in their group or name")
    parser.add_argument("--memory-limited", action="store_true",
                        help="the server was started with a memory limit for a query: check that it holds")
    parser.add_argument("--verbose", action="store_true", help="a traceback with every failure")
    options = parser.parse_args()

    checks, connections = [], []
    for name in options.serializer or ["graphbinary"]:
        server = Server(options.url, name)
        connections.append(server)
        checks += [case_check(server, case, form, name) for form in ("bytecode", "script", "http")
                   for case in load()[1]]
        checks += Sessions(server).checks()
        checks += Profiles(server, name).checks()
    if not options.only_language:
        server = Server(options.url)
        checks += Services(server).checks()
        checks += Scripts(server).checks()
        checks += Page(server).checks()
        isolation = [Anomalies(server), Acid(server)]
        for checked in isolation:
            checks += checked.checks()
        checks += BadInput(server, options.memory_limited).checks()
        connections += [*isolation, server]
    if options.only:
        checks = [c for c in checks if options.only in f"{c.group}  {c.name}"]
    if not checks:
        sys.exit(f"no check has {options.only!r} in its group or name")
    passed, failed = run_all(checks, options.verbose)
    for opened in connections:
        opened.close()
    print(f"{passed} passed, {failed} failed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()

"""The cell magic ``%%gremlin`` of notebooks: ``%load_ext mangrove``."""

from __future__ import annotations

import argparse
import shlex
from typing import Any

from . import _mangrove
from ._errors import RequestError


class _Parser(argparse.ArgumentParser):
    """Refuses a wrong line by an exception instead of ending the interpreter."""

    def error(self, message: str) -> Any:
        raise RequestError(f"%%gremlin: {message}\n{self.format_usage()}", "InvalidArgument")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="%%gremlin", add_help=False, description="Runs the cell as a query in Gremlin.")
    parser.add_argument("database", nargs="?", default="db", help="the variable with the database; db by default")
    parser.add_argument("-o", "--out", metavar="NAME", help="the variable that gets the list of results; then none are shown")
    parser.add_argument(
        "-p", "--param", metavar="NAME[=EXPRESSION]", action="append", default=[], help="a parameter: a variable, or an expression"
    )
    parser.add_argument("--explain", action="store_true", help="show the plan instead")
    parser.add_argument("--profile", action="store_true", help="run it, and show what each operator did")
    return parser


def load(shell: Any) -> None:
    """Registers the magic."""
    shell.register_magic_function(lambda line, cell: gremlin(shell, line, cell), "cell", "gremlin")


def gremlin(shell: Any, line: str, cell: str) -> Any:
    """Runs a cell. Its results are what the cell shows."""
    given = _parser().parse_args(shlex.split(line))
    database = shell.user_ns.get(given.database)
    if not isinstance(database, (_mangrove.Database, _mangrove.Transaction)):
        raise RequestError(
            f"%%gremlin: the variable {given.database} has no open database; {given.database} = mangrove.open(…), or name another "
            "variable: %%gremlin NAME",
            "InvalidArgument",
        )
    parameters = {}
    for text in given.param:
        name, _, expression = text.partition("=")
        parameters[name.strip()] = shell.ev(expression or name)
    if given.explain or given.profile:
        if not isinstance(database, _mangrove.Database):
            raise RequestError("%%gremlin: a plan is shown by a database, not by a transaction", "InvalidArgument")
        print(database.explain(cell.strip()) if given.explain else database.profile(cell.strip(), parameters))
        return None
    results = database.query(cell.strip(), parameters)
    if given.out is None:
        return results
    shell.user_ns[given.out] = results.all()
    return None

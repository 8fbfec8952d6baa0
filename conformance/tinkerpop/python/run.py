"""Runs TinkerPop's feature files against a server, and prints a table of what passed by group of steps.

Which scenarios do not pass, and why, stands in exceptions.txt: `feature scenario` and, behind ` -- `, the reason. The
exit code is 0 only if every scenario that is not there passes, and none that is there does: what has begun to pass
must be taken off the list, so that it keeps passing. Nothing is started here.
"""

import argparse
import collections
import pathlib
import sys

from features import read_all
from notation import Unsupported
from scenario import Failed, Server, Skipped, run

# TinkerPop's own filter for a graph without a computer that keeps no nulls in properties.
LEFT_OUT = {"@GraphComputerOnly", "@AllowNullPropertyValues"}


def read_exceptions(path):
    """The reasons by the scenarios' keys."""
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    told = (line.split(" -- ", 1) for line in lines if line and not line.startswith("#"))
    return {key: reason for key, reason in told}


def outcome(server, scenario):
    """`passed`, `skipped`, or the reason why it failed."""
    try:
        run(server, scenario)
        return "passed"
    except Skipped:
        return "skipped"
    except (Failed, Unsupported) as why:
        return f"failed: {why}"
    except Exception as error:  # A broken connection, an answer that cannot be read: tell it and go on.
        return f"failed: {type(error).__name__}: {error}"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--url", default="ws://127.0.0.1:8182/gremlin", help="the server (default: %(default)s)")
    parser.add_argument("--features", default="target/tinkerpop/features", help="the folder (default: %(default)s)")
    parser.add_argument("--only", metavar="WORD", help="only scenarios with this word in feature or name")
    parser.add_argument("--verbose", action="store_true", help="every scenario that failed, with the reason")
    parser.add_argument("--record", action="store_true", help="write what failed into exceptions.txt")
    options = parser.parse_args()

    scenarios = [s for s in read_all(options.features) if not s.tags & LEFT_OUT]
    if options.only:
        scenarios = [s for s in scenarios if options.only in s.key]
    if not scenarios:
        sys.exit("no scenario to run")
    listed = pathlib.Path(__file__).resolve().parents[1] / "exceptions.txt"
    exceptions = read_exceptions(listed)

    server = Server(options.url)
    outcomes = {}
    table = collections.defaultdict(collections.Counter)
    for scenario in scenarios:
        told = outcome(server, scenario)
        outcomes[scenario.key] = told
        table[scenario.feature][told.split(":")[0]] += 1
        if options.verbose and told.startswith("failed"):
            print(f"{scenario.key} -- {told.removeprefix('failed: ')}")
    server.close()

    failed = {key: told.removeprefix("failed: ") for key, told in outcomes.items() if told.startswith("failed")}
    print_table(table)
    if options.record:
        record(listed, exceptions, outcomes, failed)
        return
    broken = sorted(failed.keys() - exceptions.keys())
    for key in broken:
        print(f"failed: {key} -- {failed[key]}")
    mended = sorted(key for key in exceptions if outcomes.get(key) == "passed")
    for key in mended:
        print(f"passes now; take it off exceptions.txt: {key}")
    passed = sum(told == "passed" for told in outcomes.values())
    print(f"feature files: {passed} as they should, {len(failed) - len(broken)} known exceptions, "
          f"{sum(told == 'skipped' for told in outcomes.values())} unsupported by their own word")
    wrong = len(broken) + len(mended)
    print(f"{passed - len(mended)} passed, {wrong} failed")
    sys.exit(1 if wrong else 0)


def print_table(table):
    """Features where something failed, and the sums."""
    total = collections.Counter()
    for counts in table.values():
        total += counts
    for feature, counts in sorted(table.items()):
        if counts["failed"]:
            print(f"{feature:48} {counts['passed']:5} passed {counts['failed']:5} failed")
    print(f"{'all':48} {total['passed']:5} passed {total['failed']:5} failed {total['skipped']:5} skipped")


def record(path, exceptions, outcomes, failed):
    """Writes the list anew. Reasons that are there already stay; scenarios that did not run, too."""
    kept = {key: reason for key, reason in exceptions.items() if key not in outcomes or key in failed}
    reasons = {key: kept.get(key) or " ".join(reason.split())[:160] for key, reason in failed.items()}
    head = [line for line in (path.read_text(encoding="utf-8").splitlines() if path.exists() else [])
            if line.startswith("#")]
    body = [f"{key} -- {reason}" for key, reason in sorted({**kept, **reasons}.items())]
    path.write_text("\n".join(head + body) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

"""Runs TinkerPop's feature files against a server, and prints a table of the results by group of steps.

This runner runs the text form itself. For bytecode it starts TinkerPop's own runner (java/Features.java), and for Go
the Go client's, and only compares their outcomes. exceptions.py reads the lists of scenarios that do not pass, with
their reasons. The exit code is 0 only if the outcome of every scenario is as listed. The program starts nothing else.
"""

import argparse
import collections
import logging
import subprocess
import sys
import urllib.parse

import godog
from exceptions import FORMS, SERIALIZERS, Exceptions
from features import read_all
from notation import Unsupported
from scenario import Failed, Server, Skipped, run

# TinkerPop's own filter for a graph that stores no null properties.
LEFT_OUT = {"@AllowNullPropertyValues"}


def outcome(server, scenario):
    """`passed`, `skipped`, or `failed: ` and the reason."""
    try:
        run(server, scenario)
        return "passed"
    except Skipped:
        return "skipped"
    except (Failed, Unsupported) as why:
        return f"failed: {why}"
    except Exception as error:  # such as a broken connection: it is reported, and the run continues
        return f"failed: {type(error).__name__}: {error}"


def as_text(options, scenarios):
    """The outcome of each scenario, as text with this runner."""
    server = Server(options.url, options.serializer)
    for scenario in scenarios:
        yield scenario.key, outcome(server, scenario)
    server.close()


def as_bytecode(options, scenarios):
    """The outcome of each scenario, as bytecode with TinkerPop's own runner."""
    with open(f"{options.runner}/classpath", encoding="utf-8") as file:
        path = f"{options.runner}:{file.read().strip()}"
    address = urllib.parse.urlsplit(options.url)
    files = sorted({f"{options.features}/{scenario.feature}.feature" for scenario in scenarios})
    command = ["java", "-cp", path, "Features", address.hostname, str(address.port), options.serializer, *files]
    wanted = {scenario.key for scenario in scenarios}
    with open(f"{options.runner}/log", "w", encoding="utf-8") as log:
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True, encoding="utf-8") as process:
            for line in process.stdout:
                fields = line.rstrip("\n").split("\t")
                key = " ".join(fields[:2])
                if len(fields) == 4 and key in wanted:
                    wanted.remove(key)
                    yield key, fields[2] if fields[2] != "failed" else f"failed: {fields[3]}"
    for key in wanted:
        yield key, f"failed: the runner reported no outcome; see {options.runner}/log"


def with_go(options, scenarios):
    """The outcome of each scenario with the Go client's own runner, which runs all of them."""
    told = godog.run(f"{options.runner}/runner", options.url, options.features, f"{options.runner}/log")
    for scenario in scenarios:
        if not scenario.tags & godog.LEFT_OUT:
            yield scenario.key, told.get(scenario.key, f"failed: the runner reported no outcome; see {options.runner}/log")


RUNNERS = {"text": as_text, "bytecode": as_bytecode, "go": with_go}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--url", default="ws://127.0.0.1:8182/gremlin", help="the server (default: %(default)s)")
    parser.add_argument("--line", default="3.8.1", help="the TinkerPop version (default: %(default)s)")
    parser.add_argument("--form", choices=FORMS, default=FORMS[0], help="the form of traversals (default: %(default)s)")
    parser.add_argument("--serializer", choices=SERIALIZERS, default=SERIALIZERS[0],
                        help="the serializer (default: %(default)s)")
    parser.add_argument("--features", help="the folder with the files (default: where run.sh puts those of the version)")
    parser.add_argument("--runner", metavar="FOLDER", help="the folder with the compiled runner for bytecode or for Go")
    parser.add_argument("--only", metavar="WORD", action="append",
                        help="run only scenarios with this word (or one of these) in feature or name")
    parser.add_argument("--verbose", action="store_true", help="print every scenario that failed, with the reason")
    parser.add_argument("--record", action="store_true", help="write failed scenarios to the list of exceptions")
    options = parser.parse_args()
    options.features = options.features or f"target/tinkerpop-{options.line}/features"
    if options.form != "text" and not options.runner:
        sys.exit("--runner is missing; run.sh compiles the runner and sets it")

    scenarios = [s for s in read_all(options.features) if not s.tags & LEFT_OUT]
    if options.only:
        scenarios = [s for s in scenarios if any(word in s.key for word in options.only)]
    if not scenarios:
        sys.exit("no scenario matches")

    # The client logs every error, and many scenarios expect one.
    logging.disable(logging.ERROR)
    outcomes = {}
    table = collections.defaultdict(collections.Counter)
    for key, told in RUNNERS[options.form](options, scenarios):
        outcomes[key] = told
        table[key.split(" ")[0]][told.split(":")[0]] += 1
        if options.verbose and told.startswith("failed"):
            print(f"{key} -- {told.removeprefix('failed: ')}")
    print_table(table)
    exceptions = Exceptions(options.line, options.form, options.serializer)
    if options.record:
        exceptions.record(outcomes)
    elif exceptions.judge(outcomes):
        sys.exit(1)


def print_table(table):
    """Prints the features with failures, and the sums."""
    total = collections.Counter()
    for counts in table.values():
        total += counts
    for feature, counts in sorted(table.items()):
        if counts["failed"]:
            print(f"{feature:48} {counts['passed']:5} passed {counts['failed']:5} failed")
    print(f"{'all':48} {total['passed']:5} passed {total['failed']:5} failed {total['skipped']:5} skipped")


if __name__ == "__main__":
    main()

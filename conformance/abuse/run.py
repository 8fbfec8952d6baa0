#!/usr/bin/env python3
"""Attacks a server from outside: hostile clients (hostile.py), hostile queries (queries.py), greedy queries
(greedy.py), forty of both at once (crowd.py) and long runs (long.py). Needs only Python and Linux.

    run.py MANGROVE [hostile] [queries] [greedy] [crowd] [long] [--whole] [--only NAME] [--seed N]

The short form takes about four minutes; CI runs it. `--whole` takes about twenty, and prints figures of the long runs.
The last line is `N passed, N failed`.
"""

import argparse
import random
import resource
import shutil
import subprocess
import sys
import tempfile
import time

import crowd
import greedy
import hostile
import long
import queries
from server import Server
from wire import good

# The time within which a well-behaved client must get its answers, in seconds.
GOOD_SECONDS = 10


def check(name, server, act, secured=None):
    """Runs a scenario. Then the server must answer a well-behaved client, and hold as much memory and as many files
    as before."""
    fds, rss = server.fds(), server.rss()
    begin = time.monotonic()
    wrong = act()
    wrong = wrong or (None if server.is_alive() else "the server is gone")
    if server.is_alive():
        wrong = wrong or good(server.address, GOOD_SECONDS, secured) or server.settles(fds)
        rest = f"memory {rss:.0f} -> {server.rss():.0f} MiB, files {fds} -> {server.fds()}"
    else:
        rest = ""
    print(f"{'FAILED' if wrong else 'ok':7}{name:28}{time.monotonic() - begin:6.1f} s  {rest}{'  ' + wrong if wrong else ''}",
          flush=True)
    return wrong is None


def start(options, settings, secured=None):
    server = Server(options.mangrove, **settings)
    good(server.address, GOOD_SECONDS, secured)
    return server.started()


def hostile_clients(options, only):
    server = start(options, hostile.SETTINGS)
    outcomes = []
    for number, scenario in enumerate(hostile.SCENARIOS):
        if only(scenario.__name__):
            chance = random.Random(options.seed * 1000 + number)
            outcomes.append(check(scenario.__name__, server, lambda: scenario(server, chance, 5 if options.whole else 1)))
            if not server.is_alive():
                server = start(options, hostile.SETTINGS)
    return outcomes + [ended(server)]


def greedy_queries(options, only):
    outcomes, server = [], None
    for scenario in greedy.SCENARIOS:
        if only(scenario.__name__):
            server = server if server and server.is_alive() else start(options, greedy.SETTINGS)
            outcomes.append(check(scenario.__name__, server, lambda: scenario(server)))
    return outcomes + ([ended(server)] if server else [])


def crowds(options, only):
    outcomes = []
    for scenario in crowd.SCENARIOS:
        if only(scenario.__name__):
            server = start(options, dict(crowd.SETTINGS, address_space=crowd.ADDRESS_SPACE))
            outcomes.append(check(scenario.__name__, server, lambda: scenario(server, options.whole)))
            outcomes.append(ended(server))
    return outcomes


def hostile_to_tls(options, only):
    if not only(hostile.tls_garbage.__name__):
        return []
    if not shutil.which("openssl"):
        print("left out: tls_garbage, because openssl is missing, which makes its certificate")
        return []
    with tempfile.TemporaryDirectory() as folder:
        key, certificate = f"{folder}/key.pem", f"{folder}/certificate.pem"
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost", "-keyout", key,
             "-out", certificate], check=True, capture_output=True)
        secured = lambda stream: hostile.trusting().wrap_socket(stream)
        server = start(options, dict(hostile.SETTINGS, tls_certificate=certificate, tls_key=key), secured)
        chance = random.Random(options.seed)
        act = lambda: hostile.tls_garbage(server, chance, 5 if options.whole else 1)
        return [check(hostile.tls_garbage.__name__, server, act, secured), ended(server)]


def long_runs(options, only):
    outcomes = []
    for run in long.RUNS:
        if not only(run.__name__):
            continue
        server = start(options, long.SETTINGS)
        outcomes.append(check(run.__name__, server, lambda: run(server, options.whole)))
        outcomes.append(ended(server))
    return outcomes


def hostile_queries(options, only):
    outcomes = []
    for scenario in queries.SCENARIOS:
        if only(scenario.__name__):
            server = start(options, queries.SETTINGS)
            outcomes.append(check(scenario.__name__, server, lambda: scenario(server, None, 5 if options.whole else 1)))
            outcomes.append(ended(server))
    return outcomes


def ended(server):
    wrong = server.stop()
    if wrong:
        print(f"FAILED the end of the server: {wrong}")
    return wrong is None


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("mangrove")
    parser.add_argument("parts", nargs="*", help="hostile, queries, greedy, crowd, long (default: all)")
    parser.add_argument("--whole", action="store_true", help="the long form")
    parser.add_argument("--only", help="run only scenarios whose name contains this text")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    # For thousands of connections, of this process and of the server, which inherits the limit.
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard if hard != resource.RLIM_INFINITY else 65536, hard))
    only = lambda name: options.only is None or options.only in name
    outcomes = []
    parts = [("hostile", hostile_clients), ("hostile", hostile_to_tls), ("queries", hostile_queries),
             ("greedy", greedy_queries), ("crowd", crowds), ("long", long_runs)]
    for part, run in parts:
        if not options.parts or part in options.parts:
            outcomes += run(options, only)
    print(f"{outcomes.count(True)} passed, {outcomes.count(False)} failed")
    return 1 if False in outcomes else 0


if __name__ == "__main__":
    sys.exit(main())

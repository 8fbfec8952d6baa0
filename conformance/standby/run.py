#!/usr/bin/env python3
"""Two servers of one graph: when the owner dies or hangs, the other one takes over, and clients that know both go on.

Usage: run.py MANGROVE [ADDRESS]   (ADDRESS: s3://BUCKET/DIRECTORY with AWS_… set; without it, a directory)

etcd runs on loopback, with its data in a temporary directory. In each round the owner is killed (SIGKILL), paused (SIGSTOP,
and continued after the other one has taken over), or asked to stop; another server is started in its place. Meanwhile:

- writers add vertices, each with a number of its own, at whichever server takes them;
- readers count at each server, also at one that goes on after a pause. A count is never below what was acknowledged before
  the question was sent, unless the server says that it follows.

At the end the graph has every acknowledged vertex, and none twice. The last line is `N passed, N failed`. The times without
service are shown; none of them is a limit.
"""

import base64
import json
import os
import pathlib
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request

ROUNDS = int(os.environ.get("MANGROVE_STANDBY_ROUNDS", "60" if os.environ.get("MANGROVE_TEST_FULL") else "6"))
SEED = int(os.environ.get("MANGROVE_FIRST", "1"))
# A round is over when the new owner has taken this many vertices.
TAKEN = 20
# Nothing waits longer than this, in seconds.
PATIENCE = 60
WRITERS, READERS = 3, 2


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def post(url, body, timeout=PATIENCE):
    request = urllib.request.Request(url, json.dumps(body).encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=timeout) as answer:
        return json.load(answer)


class Refused(Exception):
    """A server did not do what it was asked."""


def ask(port, gremlin, timeout=PATIENCE):
    """The results of a traversal."""
    try:
        answer = post(f"http://127.0.0.1:{port}/gremlin", {"gremlin": gremlin}, timeout)
    except urllib.error.HTTPError as error:
        raise Refused(error.read().decode(errors="replace")) from error
    except (OSError, ValueError) as error:
        raise Refused(str(error)) from error
    return answer["result"]["data"]


def numbers(data):
    """The numbers in the results, in whichever form of GraphSON they come."""
    if isinstance(data, dict):
        return numbers(data["@value"]) if "@value" in data else []
    if isinstance(data, list):
        return [number for item in data for number in numbers(item)]
    return [data] if isinstance(data, int) else []


class Server:
    def __init__(self, program, address, etcd, folder, name):
        self.name, self.port = name, free_port()
        self.log = (folder / f"{name}.log").open("w")
        command = [program, "serve", "--data", address, "--cluster", f"etcd://127.0.0.1:{etcd}"]
        command += ["--listen", f"127.0.0.1:{self.port}", "--checkpoint-log-size", "64KiB"]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=self.log)

    def health(self):
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/health", timeout=2) as answer:
                return json.load(answer)["status"]
        except (OSError, ValueError, KeyError):
            return None

    def end(self, how):
        self.process.send_signal(how)

    def gone(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()


class Clients:
    def __init__(self):
        self.lock = threading.Lock()
        self.servers, self.acknowledged, self.unknown = [], set(), set()
        self.next, self.over, self.failures, self.reads = 0, False, [], 0
        self.taken_at = []

    def write(self):
        while not self.over:
            with self.lock:
                number, servers = self.next, list(self.servers)
                self.next += 1
            random.shuffle(servers)
            for server in servers:
                try:
                    ask(server.port, f"g.addV('mark').property('n', {number}).count()", timeout=1.5)
                except Refused as refused:
                    # A server that follows has not done it. Of others it is not known.
                    if "follows another one" not in str(refused):
                        with self.lock:
                            self.unknown.add(number)
                        break
                else:
                    with self.lock:
                        self.acknowledged.add(number)
                        self.taken_at.append((time.monotonic(), server.name))
                    break
            else:
                time.sleep(0.05)

    def read(self):
        while not self.over:
            with self.lock:
                servers, acknowledged = list(self.servers), len(self.acknowledged)
            if not servers:
                continue
            server = random.choice(servers)
            follows = server.health() == "following"
            try:
                found = numbers(ask(server.port, "g.V().hasLabel('mark').count()", timeout=20))[0]
            except Refused:
                continue
            # A follower is a moment behind, and may have become the owner, or begun to follow, in between.
            if not follows and server.health() == "ok" and found < acknowledged:
                self.failures.append(f"{server.name} counted {found} after {acknowledged} were acknowledged")
            self.reads += 1
            time.sleep(random.random() * 0.05)


def wait_for(what, condition):
    until = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > until:
            raise SystemExit(f"0 passed, 1 failed\n{what}: not within {PATIENCE} s")
        time.sleep(0.02)


def main():
    program, folder = os.path.abspath(sys.argv[1]), pathlib.Path(tempfile.mkdtemp())
    address = sys.argv[2] if len(sys.argv) > 2 else f"file:{folder}/home"
    etcd = shutil.which("etcd")
    if not etcd:
        print("left out: election of an owner, because etcd is not installed (etcd-server on Debian)")
        return 0
    random.seed(SEED)
    port, peer = free_port(), free_port()
    urls = ["--listen-client-urls", f"http://127.0.0.1:{port}", "--advertise-client-urls", f"http://127.0.0.1:{port}"]
    urls += ["--listen-peer-urls", f"http://127.0.0.1:{peer}", "--initial-advertise-peer-urls", f"http://127.0.0.1:{peer}"]
    urls += ["--initial-cluster", f"default=http://127.0.0.1:{peer}"]
    log = (folder / "etcd.log").open("w")
    store = subprocess.Popen([etcd, "--data-dir", str(folder / "etcd"), *urls], stdout=log, stderr=log)
    clients, started, gaps, ends = Clients(), 0, {}, []
    threads = [threading.Thread(target=clients.write) for _ in range(WRITERS)]
    threads += [threading.Thread(target=clients.read) for _ in range(READERS)]

    def begin():
        nonlocal started
        started += 1
        server = Server(program, address, port, folder, f"server-{started}")
        with clients.lock:
            clients.servers.append(server)
        return server

    def owner():
        return next((server for server in clients.servers if server.health() == "ok"), None)

    try:
        key = base64.b64encode(b"/").decode()

        def answers():
            try:
                return post(f"http://127.0.0.1:{port}/v3/kv/range", {"key": key}, 2) is not None
            except (OSError, ValueError):
                return False

        wait_for("etcd", answers)
        begin()
        wait_for("the first owner", owner)
        begin()
        for thread in threads:
            thread.start()
        for _ in range(ROUNDS):
            wait_for("a follower", lambda: any(server.health() == "following" for server in clients.servers))
            time.sleep(random.random())
            old, how = owner(), random.choice(["killed", "paused", "paused", "stopped"])
            since = time.monotonic()
            old.end({"killed": signal.SIGKILL, "paused": signal.SIGSTOP, "stopped": signal.SIGTERM}[how])
            if how != "paused":
                with clients.lock:
                    clients.servers.remove(old)

            def taken():
                with clients.lock:
                    return [at for at, name in clients.taken_at if at > since and name != old.name]

            wait_for(f"a new owner after {old.name} was {how}", lambda: len(taken()) >= TAKEN)
            gaps.setdefault(how, []).append(taken()[0] - since)
            ends.append(how)
            if how == "paused":
                old.end(signal.SIGCONT)
                # It notices that it was taken over, and ends by itself.
                wait_for(f"the end of {old.name}", lambda: old.process.poll() is not None)
                with clients.lock:
                    clients.servers.remove(old)
            else:
                wait_for(f"the end of {old.name}", lambda: old.process.poll() is not None)
            begin()
        clients.over = True
        for thread in threads:
            thread.join()
        found = sorted(numbers(ask(owner().port, "g.V().hasLabel('mark').values('n')")))
        lost = clients.acknowledged - set(found)
        strange = set(found) - clients.acknowledged - clients.unknown
        failures = clients.failures[:5]
        failures += [f"lost: {sorted(lost)[:10]}"] if lost else []
        failures += [f"never sent, or refused: {sorted(strange)[:10]}"] if strange else []
        failures += ["a vertex is there twice"] if len(found) != len(set(found)) else []
        print(f"{len(clients.acknowledged)} vertices acknowledged, {len(clients.unknown)} of unknown outcome, {clients.reads} reads")
        for how, times in sorted(gaps.items()):
            print(f"{how} {len(times)} times: service back after {min(times):.2f} to {max(times):.2f} s")
        for failure in failures:
            print(failure)
        print(f"{0 if failures else 1} passed, {1 if failures else 0} failed")
        if failures:
            print(f"logs are in {folder}")
        return 1 if failures else 0
    finally:
        clients.over = True
        for server in clients.servers:
            server.gone()
        store.kill()
        store.wait()
        if not clients.failures:
            shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())

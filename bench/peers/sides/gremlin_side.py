"""Sides that are Gremlin servers: starts one, and sends it bytecode by the official Python client over one WebSocket.

Usage: gremlin_side.py mangrove LIMIT_SECONDS PROGRAM
       gremlin_side.py tinkergraph LIMIT_SECONDS JARS
"""

import json
import pathlib
import re
import socket
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from gremlin_python.driver.driver_remote_connection import DriverRemoteConnection
from gremlin_python.driver.protocol import GremlinServerError
from gremlin_python.process.anonymous_traversal import traversal as traversal_source

from sides.lines import Side, TimedOut, serve
from workloads import QUERIES

HERE = pathlib.Path(__file__).resolve().parents[1]
START_SECONDS_MAX = 180
HEAP = "4g"


class Gremlin(Side):
    """The common part of both servers: start, queries, stop."""

    def __init__(self, limit_seconds):
        self.limit_seconds = limit_seconds
        self.server = self.connection = self.g = None

    def start(self, command, log, is_up):
        """Starts a server and waits until `is_up` returns its URL."""
        with open(log, "w") as out:
            self.server = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT)
        deadline = time.monotonic() + START_SECONDS_MAX
        while (url := is_up()) is None:
            if self.server.poll() is not None:
                raise RuntimeError(f"the server ended with {self.server.returncode}; the end of its log:\n{tail(log)}")
            if time.monotonic() > deadline:
                raise RuntimeError(f"no server after {START_SECONDS_MAX} s; the end of its log:\n{tail(log)}")
            time.sleep(0.02)
        self.connection = DriverRemoteConnection(url, "g", pool_size=1)
        self.g = traversal_source().with_remote(self.connection)

    def ask(self, query, parameters):
        asked = QUERIES[query]
        try:
            traversal = asked.python(self.g, parameters)
            if asked.shape == "none":
                traversal.iterate()
                return []
            return traversal.to_list()
        except GremlinServerError as error:
            if error.status_code == 598:
                raise TimedOut(f"ended after {self.limit_seconds:g} s") from error
            raise

    def flatten(self, result):
        flat = []
        for item in result:
            if isinstance(item, dict):
                flat += [cell for entry in item.items() for cell in entry]
            else:
                flat.append(item)
        return flat

    def process(self):
        return self.server.pid

    def end(self):
        if self.connection is not None:
            self.connection.close()
            self.connection = None
        if self.server is not None:
            self.server.terminate()
            try:
                self.server.wait(20)
            except subprocess.TimeoutExpired:
                self.server.kill()
                self.server.wait()


class Mangrove(Gremlin):
    """`mangrove serve`, which loads the graph at its start."""

    def __init__(self, limit_seconds, program):
        super().__init__(limit_seconds)
        self.program = program

    def load(self, folder):
        log = folder / "mangrove-server.log"
        files = ["--load", folder / "people.csv", "--load", folder / "knows.csv"]
        limit = f"{int(self.limit_seconds * 1000)}ms"
        command = [self.program, "serve", "--listen", "127.0.0.1:0", "--evaluation-timeout", limit, *files]
        begin = time.perf_counter()
        self.start(command, log, lambda: address(log))
        seconds = time.perf_counter() - begin
        version = subprocess.run([self.program, "--version"], capture_output=True, text=True, check=True).stdout
        settings = {
            "where": "in memory; the load is the time from starting the program until it listens",
            "asked through": "gremlinpython, bytecode, one connection; source `g`",
            "index on name": self.create_index(),
        }
        return seconds, version.split()[-1], settings

    def create_index(self):
        """Creates the index. A server that cannot is measured without it, and the report says so."""
        try:
            service = self.g.call("mangrove.index.create").with_("label", "person").with_("key", "name")
            service.with_("kind", "hash").to_list()
        except GremlinServerError as error:
            return f"none, so it scans: this server refused to create one ({error})"
        return "hash"


class TinkerGraph(Gremlin):
    """The reference server on TinkerGraph. Its start-up script loads the graph and reports the time."""

    def __init__(self, limit_seconds, jars):
        super().__init__(limit_seconds)
        self.jars = pathlib.Path(jars)

    def load(self, folder):
        port, log, loaded = free_port(), folder / "tinkergraph-server.log", folder / "tinkergraph-loaded.json"
        loaded.unlink(missing_ok=True)
        settings = folder / "tinkergraph-server.yaml"
        template = (HERE / "tinkergraph/server.yaml").read_text()
        places = {"PORT": port, "TIMEOUT": int(self.limit_seconds * 1000), "HERE": HERE / "tinkergraph"}
        settings.write_text(re.sub(r"@([A-Z]+)@", lambda name: str(places[name[1]]), template))
        self.start(
            [
                "java", f"-Xms{HEAP}", f"-Xmx{HEAP}", "-cp", f"{HERE / 'tinkergraph'}:{self.jars}/*",
                f"-Dpeers.people={folder / 'people.csv'}", f"-Dpeers.knows={folder / 'knows.csv'}",
                f"-Dpeers.loaded={loaded}",
                "org.apache.tinkerpop.gremlin.server.GremlinServer", settings,
            ],
            log,
            lambda: f"ws://127.0.0.1:{port}/gremlin" if loaded.exists() and listens(port) else None,
        )  # fmt: skip
        told = json.loads(loaded.read_text())
        return told["seconds"], told["version"], {
            "where": f"in memory, heap -Xms{HEAP} -Xmx{HEAP}, Java {told['java']}, "
            "loaded by a compiled Groovy class in the server",
            "asked through": "gremlinpython, bytecode, one connection; source `g`, no transactions",
            "index on name": "TinkerGraph's hash index",
        }


def address(log):
    found = re.search(r"listens on (ws://\S+)", log.read_text())
    return found and found[1]


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def listens(port):
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
        return True
    except OSError:
        return False


def tail(log):
    return "\n".join(log.read_text(errors="replace").splitlines()[-15:])


if __name__ == "__main__":
    kind, limit_seconds, where = sys.argv[1:]
    side = {"mangrove": Mangrove, "tinkergraph": TinkerGraph}[kind]
    serve(side(float(limit_seconds), where))

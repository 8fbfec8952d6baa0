"""The traversals of traversals.json, and the ways in which a client sends them: as bytecode, as a script, and over
HTTP."""

import json
import urllib.request
from dataclasses import dataclass
from pathlib import Path

from gremlin_python.driver.client import Client
from gremlin_python.driver.driver_remote_connection import DriverRemoteConnection
from gremlin_python.driver.serializer import (
    GraphBinarySerializersV1, GraphSONSerializersV2d0, GraphSONSerializersV3d0)
from gremlin_python.process.anonymous_traversal import traversal
from gremlin_python.process.graph_traversal import __
from gremlin_python.process.traversal import (
    Barrier, Cardinality, Column, Direction, Merge, Operator, Order, P, Pick, Pop, Scope, T, TextP, WithOptions)
from gremlin_python.statics import long

DATA = Path(__file__).with_name("traversals.json")

# The names that Python traversals in the data may use, besides `g`.
SCOPE = {
    "__": __, "Barrier": Barrier, "Cardinality": Cardinality, "Column": Column, "Direction": Direction, "Merge": Merge,
    "Operator": Operator, "Order": Order, "P": P, "Pick": Pick, "Pop": Pop, "Scope": Scope, "T": T, "TextP": TextP,
    "WithOptions": WithOptions, "long": long,
}

# The client's serializers.
SERIALIZERS = {
    "graphbinary": GraphBinarySerializersV1, "graphson3": GraphSONSerializersV3d0, "graphson2": GraphSONSerializersV2d0,
}

# The only source whose graph is written; it is emptied before each traversal over it.
WRITABLE_SOURCE = "ggraph"


@dataclass
class Case:
    """One traversal of the data: statements in both notations; the answer is that of the last one."""
    name: str
    source: str
    steps: list
    python: list
    gremlin: list
    ordered: bool
    expected: list


def load(path=DATA):
    """The header and the cases."""
    document = json.loads(path.read_text())
    return document["header"], [Case(**entry) for entry in document["traversals"]]


def evaluate(source_text, g):
    """The results of one statement in Python notation. The text comes from this project's data file."""
    result = eval(source_text, {"__builtins__": {}, **SCOPE, "g": g})  # noqa: S307
    return result.to_list() if hasattr(result, "to_list") else None


def source_over(remote):
    """The traversal source over a connection; version 3.7 names the method differently."""
    start = traversal()
    return start.with_(remote) if hasattr(start, "with_") else start.with_remote(remote)


class Server:
    """Connections to one server: a pair (bytecode, script) for each traversal source in use."""

    def __init__(self, url, serializer="graphbinary"):
        self.url = url
        self.serializer = SERIALIZERS[serializer]
        self.remotes = {}
        self.clients = {}

    def source(self, name):
        """The traversal source `g` over the server's source of this name."""
        if name not in self.remotes:
            self.remotes[name] = DriverRemoteConnection(self.url, name, message_serializer=self.serializer())
        return source_over(self.remotes[name])

    def client(self, name):
        """A script client whose `g` is the server's source of this name."""
        if name not in self.clients:
            self.clients[name] = Client(self.url, name, message_serializer=self.serializer())
        return self.clients[name]

    def submit(self, text, source, **options):
        """All results of one script."""
        options.setdefault("language", "gremlin-lang")
        return self.client(source).submit(text, request_options=options).all().result()

    def empty(self, source):
        """Removes all elements of a writable graph."""
        self.submit("g.V().drop()", source)

    def run_bytecode(self, case):
        """Runs the case as bytecode."""
        if case.source == WRITABLE_SOURCE:
            self.empty(case.source)
        g = self.source(case.source)
        for statement in case.python:
            results = evaluate(statement, g)
        return results

    def run_script(self, case):
        """Runs the case as gremlin-lang text."""
        if case.source == WRITABLE_SOURCE:
            self.empty(case.source)
        for statement in case.gremlin:
            results = self.submit(statement, case.source)
        return results

    def run_http(self, case):
        """Runs the case as gremlin-lang text over HTTP, as browsers and graph-explorer send it."""
        if case.source == WRITABLE_SOURCE:
            self.empty(case.source)
        for statement in case.gremlin:
            results = self.post(statement, case.source)
        return results

    def post(self, text, source):
        """All results of one script over HTTP, in the serializer's media type."""
        serializer = self.serializer()
        address = self.url.replace("ws://", "http://").replace("wss://", "https://")
        body = {"gremlin": text, "aliases": {"g": source}, "language": "gremlin-lang"}
        headers = {"Accept": serializer.version.decode(), "Content-Type": "application/json"}
        request = urllib.request.Request(address, json.dumps(body).encode(), headers)
        with urllib.request.urlopen(request) as response:
            return serializer.deserialize_message(response.read())["result"]["data"]

    def close(self):
        """Closes all connections."""
        for connection in [*self.remotes.values(), *self.clients.values()]:
            connection.close()

"""Runs the magics of graph-notebook against a server, in IPython, as the cells of a notebook run them, without a
browser.

The server must have TinkerPop's `modern` graph as gmodern, and an empty, writable one as ggraph.

Usage: magics.py WS_URL
"""

import contextlib
import json
import re
import sys
import threading
import time
import warnings

warnings.filterwarnings("ignore")

from gremlin_python.driver.protocol import GremlinServerError  # noqa: E402
from gremlin_python.structure.graph import Edge, Path, Vertex  # noqa: E402
from IPython.core.interactiveshell import InteractiveShell  # noqa: E402
from IPython.utils.capture import capture_output  # noqa: E402

# The options that users have for databases other than Neptune.
SERIALIZERS = ("GraphBinaryMessageSerializerV1", "GraphSONMessageSerializerV3", "GraphSONMessageSerializerV2")


class Notebook:
    """A kernel with the magics, connected to a server."""

    def __init__(self, url, source, serializer):
        host, port = re.fullmatch(r"ws://(.*):(\d+)/gremlin", url).groups()
        self.shell = InteractiveShell()
        self.serializer = serializer
        with capture_output():
            self.shell.run_line_magic("load_ext", "graph_notebook.magics")
            self.shell.run_cell_magic("graph_notebook_config", "", json.dumps({
                "host": host,
                "port": int(port),
                "ssl": False,
                "gremlin": {"traversal_source": source, "username": "", "password": "", "message_serializer": serializer},
            }))

    def gremlin(self, cell, options=""):
        """The result that `%%gremlin` stores. Its display is also made, and must not fail."""
        self.shell.user_ns.pop("stored", None)
        with capture_output() as captured:
            self.shell.run_cell_magic("gremlin", f"--store-to stored {options}", cell)
        self.displayed = captured
        stored = self.shell.user_ns["stored"]
        if isinstance(stored, dict) and "error" in stored:
            raise AssertionError(stored["error"])
        return stored


def vertices(notebook):
    found = notebook.gremlin("g.V().hasLabel('person').order().by('age')")
    assert [v.id for v in found] == [2, 1, 4, 6] and all(isinstance(v, Vertex) for v in found), found
    assert found[0].label == "person", found[0]


def edges(notebook):
    (found,) = notebook.gremlin("g.E(9)", "-d label -de weight")
    assert isinstance(found, Edge) and (found.label, found.outV.id, found.inV.id) == ("created", 1, 3), found


def paths_are_drawn(notebook):
    mapped = notebook.gremlin("g.V(1).outE().inV().path().by(valueMap(true))", "-p v,oute,inv -g label -d name")
    found = notebook.gremlin("g.V(1).outE().inV().path()")
    for paths in (mapped, found):
        assert len(paths) == 3 and all(isinstance(path, Path) and len(path) == 3 for path in paths), paths
    # The tab with the drawing has nodes and edges only if ids and labels are where it expects them.
    from graph_notebook.network.gremlin.GremlinNetwork import GremlinNetwork
    network = GremlinNetwork()
    network.add_results(found)
    # It uses the ids of an edge's ends as text, and those of vertices as they are: a vertex with a number as id occurs
    # twice.
    nodes = {str(node) for node in network.graph.nodes}
    assert nodes == {"1", "2", "3", "4"} and len(network.graph.edges) == 3, (network.graph.nodes, network.graph.edges)


def element_maps(notebook):
    (found,) = notebook.gremlin("g.V(1).elementMap()")
    values = {str(getattr(key, "name", key)): value for key, value in found.items()}
    assert values == {"id": 1, "label": "person", "name": "marko", "age": 29}, values


def scalars_and_maps(notebook):
    assert notebook.gremlin("g.V().count()") == [6]
    assert notebook.gremlin("g.V().groupCount().by(label)") == [{"person": 4, "software": 2}]
    assert sorted(notebook.gremlin("g.V().values('name')"))[0] == "josh"


def projections(notebook):
    found = notebook.gremlin("g.V(1).project('name', 'made').by('name').by(out('created').values('name').fold())")
    assert found == [{"name": "marko", "made": ["lop"]}], found


def errors_are_shown(notebook):
    notebook.shell.user_ns.pop("stored", None)
    with capture_output():
        notebook.shell.run_cell_magic("gremlin", "--store-to stored", "g.V().dance()")
    assert "dance" in str(notebook.shell.user_ns["stored"]["error"]), notebook.shell.user_ns["stored"]


def writes(url, serializer):
    notebook = Notebook(url, "ggraph", serializer)
    notebook.gremlin("g.addV('noted').property('by', 'notebook').iterate()")
    assert notebook.gremlin("g.V().hasLabel('noted').values('by')") == ["notebook"]
    notebook.gremlin("g.V().hasLabel('noted').drop().iterate()")
    assert notebook.gremlin("g.V().hasLabel('noted').count()") == [0]


def client_of(url):
    from graph_notebook.neptune.client import ClientBuilder
    host, port = re.fullmatch(r"ws://(.*):(\d+)/gremlin", url).groups()
    return ClientBuilder().with_host(host).with_port(int(port)).with_tls(False) \
        .with_gremlin_traversal_source("gmodern").build()


def client_library(url):
    """The client library, as magics that send several queries use it."""
    client = client_of(url)
    assert client.gremlin_query("g.V(x).values('name')", bindings={"x": 1}) == ["marko"]
    answer = client.gremlin_http_query("gmodern.V().count()")
    assert answer.json()["result"]["data"]["@value"] == [{"@type": "g:Int64", "@value": 6}], answer.text
    try:
        client.gremlin_query("g.V().dance()")
    except GremlinServerError as error:
        assert error.status_code == 597, error
    else:
        raise AssertionError("no error")


def running_queries(url):
    """The requests of `%gremlin_status`: list running queries, show one, cancel it. The magic itself works only with
    Neptune hosts."""
    client = client_of(url)

    def status(**options):
        answer = client.gremlin_status(**options)
        answer.raise_for_status()
        return answer.json()

    def victim():
        with contextlib.suppress(GremlinServerError):
            client_of(url).gremlin_query("g.V().repeat(both()).times(60).path().dedup().count()")
            killed.append(False)
        killed.append(True)

    killed = []
    thread = threading.Thread(target=victim)
    thread.start()
    for _ in range(200):
        found = [query for query in status()["queries"] if "repeat" in query["queryString"]]
        if found:
            break
        time.sleep(0.05)
    (query,) = found
    assert query["queryEvalStats"]["elapsed"] >= 0 and not query["queryEvalStats"]["cancelled"], query
    assert status(query_id=query["queryId"])["queryString"] == query["queryString"]
    assert client.gremlin_cancel(query["queryId"]).json() == {"status": "200 OK", "payload": True}
    thread.join(20)
    assert killed == [True], killed
    assert not [query for query in status(include_waiting=True)["queries"] if "repeat" in query["queryString"]]


CELLS = (vertices, edges, paths_are_drawn, element_maps, scalars_and_maps, projections, errors_are_shown)


def main(url):
    checks = [(f"{serializer}: {cell.__name__}", lambda cell=cell, s=serializer: cell(Notebook(url, "gmodern", s)))
              for serializer in SERIALIZERS for cell in CELLS]
    checks += [(f"{serializer}: writes", lambda s=serializer: writes(url, s)) for serializer in SERIALIZERS]
    checks.append(("running queries", lambda: running_queries(url)))
    checks.append(("client library", lambda: client_library(url)))
    failed = 0
    for name, check in checks:
        try:
            check()
        except Exception as error:  # noqa: BLE001: whatever is raised is this check's failure
            failed += 1
            print(f"FAILED graph-notebook: {name}: {type(error).__name__}: {error}")
    print(f"graph-notebook's magics: {len(checks) - failed} passed, {failed} failed")
    return failed


if __name__ == "__main__":
    sys.exit(1 if main(sys.argv[1]) else 0)

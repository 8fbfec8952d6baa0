#!/usr/bin/env python3
"""Runs a server beside a collector of traces. Checks what the collector receives, and that requests do not depend on
it.

    check.py MANGROVE

The program must be built with the feature `otel`. The last line is `N passed, N failed`.
"""

import http.server
import json
import os
import pathlib
import queue
import re
import subprocess
import sys
import threading
import time

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest, ExportTraceServiceResponse
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "abuse"))
import wire  # noqa: E402

TRACE, CALLER = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"

outcomes = []


def check(name, found, expected=True):
    outcomes.append(found == expected)
    if found != expected:
        print(f"FAILED {name}: {found!r}, not {expected!r}")


class Collector(http.server.ThreadingHTTPServer):
    """A collector that accepts requests to /v1/traces, optionally slowly."""

    def __init__(self, seconds=0):
        super().__init__(("127.0.0.1", 0), Delivery)
        self.seconds, self.deliveries = seconds, queue.Queue()
        threading.Thread(target=self.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server_port}"

    def spans(self):
        """All received spans, each with its resource."""
        while not self.deliveries.empty():
            for resource in self.deliveries.get().resource_spans:
                for scope in resource.scope_spans:
                    for span in scope.spans:
                        yield resource.resource, span


class Delivery(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        time.sleep(self.server.seconds)
        kind = self.headers["Content-Type"]
        if (self.path, kind) != ("/v1/traces", "application/x-protobuf"):
            print(f"what came is {kind} for {self.path}")
            return self.send_error(404)
        message = ExportTraceServiceRequest()
        message.ParseFromString(body)
        self.server.deliveries.put(message)
        answer = ExportTraceServiceResponse().SerializeToString()
        self.send_response(200)
        self.send_header("Content-Type", "application/x-protobuf")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_):
        pass


class Server:
    def __init__(self, endpoint, **variables):
        environment = {name: value for name, value in os.environ.items() if not name.startswith(("OTEL_", "MANGROVE_"))}
        environment.update(variables, OTEL_EXPORTER_OTLP_ENDPOINT=endpoint)
        self.process = subprocess.Popen([sys.argv[1], "serve", "--listen", "127.0.0.1:0"], stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, env=environment)
        line = self.process.stdout.readline().decode()
        found = re.search(r"ws://([^/:]+):(\d+)", line)
        if not found:
            raise RuntimeError(f"the server did not start: {line} {self.process.stderr.read().decode()}")
        self.address = (found.group(1), int(found.group(2)))

    def ask(self, script, *headers):
        """Sends a query over HTTP and returns the status code."""
        body = json.dumps({"gremlin": script}).encode()
        headers = ["Content-Type: application/json", *headers]
        answer = wire.http(self.address, "POST /gremlin HTTP/1.1", body, headers)
        return int(answer.split(b" ")[1])

    def stop(self):
        """Ends the server. Returns its exit code, its log, and the time that it took to end."""
        begin = time.monotonic()
        self.process.terminate()
        _, log = self.process.communicate(timeout=60)
        return self.process.returncode, log.decode(errors="replace"), time.monotonic() - begin


def attributes(holder):
    return {pair.key: pair.value.string_value or pair.value.int_value for pair in holder.attributes}


def requests_are_spans():
    collector = Collector()
    server = Server(collector.url, OTEL_SERVICE_NAME="graphs", OTEL_RESOURCE_ATTRIBUTES="region=north")
    parent = f"traceparent: 00-{TRACE}-{CALLER}-01"
    check("status of a write", server.ask("g.addV('a')", parent), 200)
    check("status of a request that its caller does not trace", server.ask("g.V()", parent.replace("-01", "-00")), 200)
    check("status of a request with an invalid traceparent", server.ask("g.V()", f"traceparent: 00-{'0' * 32}-{CALLER}-01"), 200)
    check("status of a request that fails", server.ask("g.V().fail()"), 500)
    with wire.Socket(server.address) as client:
        check("status of a request over a WebSocket", client.ask("g.V().count()")[0], 200)
        check("status of a write in a session", client.ask("g.addV('b')", session="s", manageTransaction=True)[0], 200)
    code, log, _ = server.stop()
    check("the server ends with", code, 0)
    check("the log has an error", "ERROR" in log or "did not reach" in log, False)

    spans = list(collector.spans())
    resource = attributes(spans[0][0]) if spans else {}
    check("the service and its region", (resource.get("service.name"), resource.get("region")), ("graphs", "north"))
    check("the service has a version", bool(resource.get("service.version")))
    spans = [span for _, span in spans]
    for span in spans:
        if not 0 < span.start_time_unix_nano <= span.end_time_unix_nano <= time.time_ns():
            check(f"the times of {span.name}", (span.start_time_unix_nano, span.end_time_unix_nano), "in order")
    known = {span.span_id for span in spans}
    orphans = [span.name for span in spans if span.parent_span_id and span.parent_span_id not in known]
    check("spans whose parent was not received", orphans, ["request"])

    of_caller = {span.name: span for span in spans if span.trace_id.hex() == TRACE}
    check("spans in the caller's trace", sorted(of_caller), ["commit", "execute", "parse", "plan", "request"])
    if len(of_caller) == 5:
        root = of_caller["request"]
        check("the parent of the request", root.parent_span_id.hex(), CALLER)
        check("the kind of the request", root.kind, Span.SPAN_KIND_SERVER)
        about = attributes(root)
        check("the attributes of the request", (about.get("op"), about.get("status"), about.get("user")), ("http", 200, "anybody"))
        check("the request did not fail", root.status.code != Status.STATUS_CODE_ERROR)
        for name in ["parse", "plan", "execute"]:
            check(f"the parent of {name}", of_caller[name].parent_span_id, root.span_id)
        check("the parent of commit", of_caller["commit"].parent_span_id, of_caller["execute"].span_id)
        check("the graph", attributes(of_caller["execute"]).get("graph"), "main")

    roots = [span for span in spans if span.name == "request" and not span.parent_span_id]
    check("requests that begin a trace", len(roots), 4)
    if len(roots) != 4:
        print(f"the server's log:\n{log}")
    check("their traces", len({span.trace_id for span in roots}), 4)
    failed = [attributes(span)["status"] for span in roots if span.status.code == Status.STATUS_CODE_ERROR]
    check("the status codes of failed ones", failed, [597])
    check("their operations", sorted(attributes(span)["op"] for span in roots), ["eval", "http", "http", "session"])


def a_share_is_sent():
    collector = Collector()
    server = Server(collector.url, OTEL_TRACES_SAMPLER="parentbased_traceidratio", OTEL_TRACES_SAMPLER_ARG="0.25")
    with wire.Socket(server.address) as client:
        for _ in range(400):
            client.ask("g.inject(1)")
    check("with a share, the server ends with", server.stop()[0], 0)
    spans = list(collector.spans())
    traces = {span.trace_id for _, span in spans}
    # Five standard deviations of four hundred draws, in both directions.
    check(f"{len(traces)} of 400 traces are a quarter", 56 <= len(traces) <= 144)
    check("the name of the service", {attributes(resource).get("service.name") for resource, _ in spans}, {"mangrove"})


def no_request_waits_for_a_collector():
    """A collector that accepts nothing, and one that does not exist."""
    slow = Collector(seconds=3)
    for endpoint in [slow.url, "http://127.0.0.1:9"]:
        server = Server(endpoint, OTEL_BSP_SCHEDULE_DELAY="50", OTEL_BSP_MAX_QUEUE_SIZE="64")
        begin = time.monotonic()
        with wire.Socket(server.address) as client:
            codes = {client.ask("g.inject(1)")[0] for _ in range(200)}
        check(f"requests beside {endpoint}", codes, {200})
        check("the requests do not wait", time.monotonic() - begin < 3)
        code, log, seconds = server.stop()
        check("the server ends with", code, 0)
        check("the server ends soon", seconds < 12)
        check("the log says that traces are lost", bool(re.search("(WARN|ERROR).*(opentelemetry|traces)", log)))


def impossible_settings_are_refused():
    for variables, part in [
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "https://localhost:4318"}, "http://"),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://localhost:4317", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, "http/protobuf"),
    ]:
        done = subprocess.run([sys.argv[1], "serve", "--listen", "127.0.0.1:0"], env=dict(os.environ, **variables), timeout=30,
                              capture_output=True)
        check(f"{variables} ends with", (done.returncode, part in done.stderr.decode()), (1, True))


requests_are_spans()
a_share_is_sent()
no_request_waits_for_a_collector()
impossible_settings_are_refused()
print(f"{outcomes.count(True)} passed, {outcomes.count(False)} failed")
sys.exit(0 if all(outcomes) else 1)

"""Invalid requests: each gets a clear error with the right status code, and the server continues."""

import struct
import uuid

from gremlin_python.driver.aiohttp.transport import AiohttpTransport
from gremlin_python.driver.protocol import GremlinServerError
from gremlin_python.driver.serializer import GraphBinarySerializersV1

from checks import Check, expect, expect_error

MALFORMED_REQUEST, INVALID_ARGUMENTS, EVALUATION_ERROR, TIMEOUT, SERIALIZATION_ERROR = 498, 499, 597, 598, 599

NESTING = 10_000
OVERSIZED_BYTES = 12 * 1024 * 1024

# A query that does not end in practice: it has about 3^30 paths, and dedup() keeps each of them.
ENDLESS = "g.V().repeat(__.both()).times(30).path().dedup().count()"


class Frame:
    """A connection on which raw bytes are written and read."""

    def __init__(self, url):
        self.transport = AiohttpTransport(read_timeout=20, write_timeout=20)
        self.transport.connect(url)
        self.serializer = GraphBinarySerializersV1()

    def exchange(self, message):
        """Sends a message and returns its answer. Raises GremlinServerError if the answer is an error."""
        self.transport.write(message)
        answer = self.serializer.deserialize_message(self.transport.read())
        status = answer["status"]
        if status["code"] >= 400:
            raise GremlinServerError(status)
        return answer

    def request(self, op="eval", processor="", **args):
        """A well-formed request message."""
        return self.serializer.build_message(str(uuid.uuid4()), processor, op, args)

    def close(self):
        self.transport.close()


def nested_list(depth):
    """A null in this many lists in one another, in GraphBinary."""
    return struct.pack(">BBi", 0x09, 0, 1) * depth + struct.pack(">BB", 0xFE, 1)


class BadInput:
    """The checks. After each, the same server must answer a valid request."""

    def __init__(self, server, memory_limited=False):
        self.server = server
        self.memory_limited = memory_limited

    def script(self, text, source="gmodern", **options):
        return self.server.submit(text, source, **options)

    def exchange(self, build):
        """Sends the message that `build` makes, then a valid one over the same connection. Returns the first answer, or
        raises its error."""
        frame = Frame(self.server.url)
        try:
            return frame.exchange(build(frame))
        finally:
            good = frame.request(gremlin="g.V().count()", aliases={"g": "gmodern"}, language="gremlin-lang")
            answer = frame.exchange(good)
            expect(answer["result"]["data"] == [6], f"after the bad request the connection answers {answer}")
            frame.close()

    # Frames.

    def frame_of_noise(self):
        expect_error(lambda: self.exchange(lambda f: b"\x20application/vnd.graphbinary-v1.0\x81noise"),
                     {MALFORMED_REQUEST})

    def empty_frame(self):
        expect_error(lambda: self.exchange(lambda f: b""), {MALFORMED_REQUEST})

    def unknown_media_type(self):
        expect_error(lambda: self.exchange(lambda f: b"\x04text" + f.request()[33:]), {MALFORMED_REQUEST}, "text")

    def truncated_request(self):
        expect_error(lambda: self.exchange(lambda f: f.request(gremlin="g.V()")[:-3]), {MALFORMED_REQUEST})

    def a_length_beyond_the_frame(self):
        expect_error(lambda: self.exchange(lambda f: f.request()[:50] + b"\x7f\xff\xff\xff" + b"x"), {MALFORMED_REQUEST})

    def nested_10_000_deep_in_a_frame(self):
        def build(frame):
            message = bytearray(frame.request(gremlin=None))
            return bytes(message[:-2]) + nested_list(NESTING)
        expect_error(lambda: self.exchange(build), {MALFORMED_REQUEST}, "nest")

    def oversized_message(self):
        expect_error(lambda: self.exchange(lambda f: f.request(gremlin="g.inject('" + "x" * OVERSIZED_BYTES + "')")),
                     {MALFORMED_REQUEST}, "limit")

    # Requests.

    def unknown_op(self):
        expect_error(lambda: self.exchange(lambda f: f.request(op="dance")), {MALFORMED_REQUEST}, "dance")

    def unknown_processor(self):
        expect_error(lambda: self.exchange(lambda f: f.request(processor="dance")), {MALFORMED_REQUEST, INVALID_ARGUMENTS})

    def no_gremlin(self):
        expect_error(lambda: self.exchange(lambda f: f.request(aliases={"g": "gmodern"})),
                     {MALFORMED_REQUEST, INVALID_ARGUMENTS}, "gremlin")

    def gremlin_of_the_wrong_type(self):
        expect_error(lambda: self.exchange(lambda f: f.request(gremlin=7)), {MALFORMED_REQUEST, INVALID_ARGUMENTS}, "gremlin")

    def unknown_traversal_source(self):
        expect_error(lambda: self.script("g.V()", "gnowhere"), {INVALID_ARGUMENTS}, "gnowhere")

    def unknown_traversal_source_of_bytecode(self):
        expect_error(lambda: self.server.source("gnowhere").V().to_list(), {INVALID_ARGUMENTS}, "gnowhere")

    def unknown_language(self):
        expect_error(lambda: self.script("g.V()", language="cobol"), {INVALID_ARGUMENTS, EVALUATION_ERROR, 500}, "cobol")

    def session_without_an_id(self):
        expect_error(lambda: self.exchange(lambda f: f.request(processor="session", gremlin="g.V()")),
                     {INVALID_ARGUMENTS}, "session")

    # Queries.

    def syntax_error(self):
        expect_error(lambda: self.script("g.V().out("), {EVALUATION_ERROR}, "line 1")

    def unknown_step(self):
        expect_error(lambda: self.script("g.V().outt()"), {EVALUATION_ERROR}, "outt")

    def unknown_step_in_bytecode(self):
        g = self.server.source("gmodern")
        t = g.V()
        t.bytecode.add_step("outt")
        expect_error(t.to_list, {EVALUATION_ERROR, SERIALIZATION_ERROR}, "outt")

    def wrong_argument_type(self):
        expect_error(lambda: self.script("g.V().limit('many')"), {EVALUATION_ERROR})

    def wrong_argument_type_in_bytecode(self):
        t = self.server.source("gmodern").V()
        t.bytecode.add_step("limit", "many")
        expect_error(t.to_list, {EVALUATION_ERROR, SERIALIZATION_ERROR})

    def arithmetic_on_strings(self):
        expect_error(lambda: self.script("g.V().values('name').sum()"), {EVALUATION_ERROR})

    def missing_parameter(self):
        expect_error(lambda: self.script("g.V(wanted)"), {EVALUATION_ERROR}, "wanted")

    def closure(self):
        expect_error(lambda: self.script("g.V().map{it.get()}"), {EVALUATION_ERROR})

    def nested_10_000_deep(self):
        text = "g.V()" + ".where(__.out()" * NESTING + ")" * NESTING
        expect_error(lambda: self.script(text), {EVALUATION_ERROR}, "nest")

    def query_over_its_time_limit(self):
        expect_error(lambda: self.script(ENDLESS, evaluationTimeout=20), {TIMEOUT})

    def query_over_its_memory_limit(self):
        expect_error(lambda: self.script(ENDLESS, evaluationTimeout=120_000), {EVALUATION_ERROR}, "memory")

    def connection_dropped_during_a_query(self):
        frame = Frame(self.server.url)
        frame.transport.write(frame.request(gremlin=ENDLESS, aliases={"g": "gmodern"}, language="gremlin-lang"))
        frame.close()

    def checks(self):
        """All checks, in the order above."""
        def survived(method):
            def run():
                method()
                answer = self.script("g.V().count()")
                expect(answer == [6], f"afterwards the server answers {answer}")
            return run

        methods = [self.frame_of_noise, self.empty_frame, self.unknown_media_type, self.truncated_request,
                   self.a_length_beyond_the_frame, self.nested_10_000_deep_in_a_frame, self.oversized_message,
                   self.unknown_op, self.unknown_processor, self.no_gremlin, self.gremlin_of_the_wrong_type,
                   self.unknown_traversal_source, self.unknown_traversal_source_of_bytecode, self.unknown_language,
                   self.session_without_an_id, self.syntax_error, self.unknown_step, self.unknown_step_in_bytecode,
                   self.wrong_argument_type, self.wrong_argument_type_in_bytecode, self.arithmetic_on_strings,
                   self.missing_parameter, self.closure, self.nested_10_000_deep,
                   self.query_over_its_time_limit, self.connection_dropped_during_a_query]
        if self.memory_limited:
            methods.append(self.query_over_its_memory_limit)
        return [Check("bad input", m.__name__.replace("_", " "), survived(m)) for m in methods]

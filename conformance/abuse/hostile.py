"""Hostile clients, and how the server must react.

Each scenario is a function of the server, random numbers and a scale (1 in CI). It returns what is wrong, or None.
`run.py` checks afterwards that a well-behaved client gets answers, and that the server holds as much memory and as
many files as before. The settings are
short: seconds here are minutes by default.
"""

import contextlib
import socket
import ssl
import struct
import time

from wire import (
    BINARY, CLOSE, CONTINUATION, HANDSHAKE, PING, TEXT, Ended, Socket, connect, frame, http, random_bytes, read_to_end, request,
)

SETTINGS = {
    "connection_count_max": 300,
    "worker_count_max": 32,
    # These settings determine the memory that a client can make the server hold (READER_MIB, SENDER_MIB).
    "outgoing_count_max": 4,
    "in_flight_count_max": 8,
    "batch_bytes_max": "256KiB",
    "message_bytes_max": "1MiB",
    "body_bytes_max": "1MiB",
    "header_timeout": "1s",
    "body_timeout": "1s",
    "handshake_timeout": "1s",
    "write_stall_max": "2s",
    "ping_interval": "1s",
    "silence_max": "3s",
}

# The memory for a client that reads no answer: the queued messages (outgoing_count_max), the message being written and
# the message being made, each with batch_bytes_max as values and as bytes.
READER_MIB = (4 + 2) * 2 * 0.25

# The memory for a client that sends without end: the part of an incomplete message (four times message_bytes_max at
# most), and the requests in flight with their results and answers, each a few times the 27 KiB that are sent here.
SENDER_MIB = 4 + (8 + 4 + 2) * 4 * 0.027

# The time within which the server must end a connection by these settings, in seconds.
PATIENCE = 15


def status(answer):
    """The status code of an HTTP answer; 0 if there is none."""
    words = answer.split(b"\r\n")[0].split(b" ")
    return int(words[1]) if len(words) > 1 and words[1].isdigit() else 0


def ends(stream, drip=None):
    """Sends a byte now and then until the server ends the connection. Returns the answer, or None if the server does
    not end it."""
    stream.settimeout(0.1)
    answer, end = b"", time.monotonic() + PATIENCE
    while time.monotonic() < end:
        try:
            chunk = stream.recv(1 << 16)
            if not chunk:
                return answer
            answer += chunk
        except socket.timeout:
            if drip:
                with contextlib.suppress(OSError):
                    stream.sendall(drip)
        except ConnectionError:
            return answer
    return None


def all_end(server, count, begin, drip):
    """Opens connections that begin with these bytes and continue a byte at a time. The server must end all of them."""
    streams = [connect(server.address) for _ in range(count)]
    for stream in streams:
        stream.sendall(begin)
    answers = [ends(stream, drip) for stream in streams]
    for stream in streams:
        stream.close()
    return f"{answers.count(None)} of {count} connections were not ended" if None in answers else None


def slow_heads(server, random, scale):
    return all_end(server, 50 * scale, b"GET /health HTTP/1.1\r\nHost: localhost\r\nX: ", b"a")


def silent_connections(server, random, scale):
    return all_end(server, 100 * scale, b"", None)


def slow_bodies(server, random, scale):
    begin = b"POST /gremlin HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n\r\n{"
    with connect(server.address) as stream:
        stream.sendall(begin)
        answer = ends(stream, b" ")
    if answer is None or status(answer) != 408 or b"body_timeout" not in answer:
        return f"a slow body is answered {answer!r}"
    return all_end(server, 30 * scale, begin, b" ")


def slow_chunks(server, random, scale):
    begin = b"POST /gremlin HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
    return all_end(server, 30 * scale, begin, b"1\r\n \r\n")


def slow_handshakes(server, random, scale):
    return all_end(server, 50 * scale, HANDSHAKE[:-4], b"a")


def slow_frames(server, random, scale):
    text = frame(TEXT, b"x" * 1000)
    return all_end(server, 30 * scale, HANDSHAKE + text[:8], b"x")


def slow_fragments(server, random, scale):
    begin = HANDSHAKE + frame(TEXT, b"{", fin=False)
    return all_end(server, 30 * scale, begin, frame(CONTINUATION, b" ", fin=False))


def oversized_heads(server, random, scale):
    for line in [
        b"GET /" + b"a" * 200_000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET /health HTTP/1.1\r\nHost: localhost\r\nX: " + b"a" * 1_000_000 + b"\r\n\r\n",
        b"GET /health HTTP/1.1\r\nHost: localhost\r\n" + b"X: a\r\n" * 20_000 + b"\r\n",
    ]:
        with connect(server.address) as stream:
            with contextlib.suppress(OSError):
                stream.sendall(line)
            answer = ends(stream)
        if answer is None or status(answer) not in (0, 400, 414, 431):
            return f"a head of {len(line)} bytes is answered {answer!r}"
    return None


def oversized_bodies(server, random, scale):
    body = b'{"gremlin":"' + b"x" * (2 << 20) + b'"}'
    with connect(server.address) as stream:
        stream.sendall(b"POST /gremlin HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % len(body))
        with contextlib.suppress(OSError):
            stream.sendall(body)
        answer = ends(stream) or b""
    # A client that continues to write may lose the answer to the connection reset that follows it.
    if answer and (status(answer) != 413 or b"body_bytes_max" not in answer):
        return f"a body that is too large is answered {answer[:300]!r}"
    with connect(server.address) as stream:
        stream.sendall(b"POST /gremlin HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n")
        with contextlib.suppress(OSError):
            for _ in range(3 * scale):
                stream.sendall(b"100000\r\n" + b" " * (1 << 20) + b"\r\n")
        if ends(stream) is None:
            return "the server reads chunks without end"
    return None


def smuggled_requests(server, random, scale):
    """Two lengths for one body: a proxy before the server may believe the other one."""
    inner = b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"
    body = b"0\r\n\r\n" + inner
    for headers in [
        b"Content-Length: %d\r\nTransfer-Encoding: chunked\r\n" % len(body),
        b"Transfer-Encoding: chunked\r\nContent-Length: %d\r\n" % len(body),
        b"Content-Length: 5\r\nContent-Length: %d\r\n" % len(body),
        b"Content-Length: 5, %d\r\n" % len(body),
        b"Content-Length: +5\r\n",
        b"Content-Length: 0x5\r\n",
        b"Content-Length: -1\r\n",
        b"Content-Length: 99999999999999999999999\r\n",
        b"Transfer-Encoding: chunked, identity\r\n",
        b"Transfer-Encoding: xchunked\r\n",
        b"Transfer-Encoding : chunked\r\n",
        b"Transfer-Encoding: \x0bchunked\r\n",
        b" Transfer-Encoding: chunked\r\n",
        b"X: a\x00b\r\n",
        b"X: a\rTransfer-Encoding: chunked\r\n",
    ]:
        with connect(server.address) as stream:
            stream.sendall(b"POST /gremlin HTTP/1.1\r\nHost: localhost\r\n" + headers + b"\r\n" + body)
            answer = ends(stream)
        if answer is None:
            return f"{headers!r} keeps its connection"
        if answer.count(b"HTTP/1.1 ") > 1 and b'"status":"ok"' in answer:
            return f"{headers!r} lets another request through: {answer!r}"
    for chunk in [b"FFFFFFFFFFFFFFFFF\r\n", b"-1\r\n", b"5;" + b"x" * 100_000 + b"\r\n", b"5\nabcde\n", b"zz\r\n"]:
        with connect(server.address) as stream:
            with contextlib.suppress(OSError):
                stream.sendall(b"POST /gremlin HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n" + chunk)
            if ends(stream) is None:
                return f"a chunk {chunk[:40]!r} keeps its connection"
    return None


def strange_requests(server, random, scale):
    for bytes_ in [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(500),
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes(100),
        b"GET /health\r\n\r\n",
        b"GET /health HTTP/9.9\r\nHost: localhost\r\n\r\n",
        b"CONNECT localhost:80 HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"TRACE / HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET http://[::1 HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET /gremlin?gremlin=%ff%00 HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"POST /gremlin HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: 10\r\n\r\n",
        b"\r\n" * 1000 + b"GET / HTTP/1.1\r\n\r\n",
        b"\x00" * 100_000,
        random_bytes(random, 100_000),
    ]:
        with connect(server.address) as stream:
            with contextlib.suppress(OSError):
                stream.sendall(bytes_)
            if ends(stream) is None:
                return f"{bytes_[:60]!r} keeps its connection"
    return None


def pipelined_http(server, random, scale):
    count = 1_000
    with connect(server.address) as stream:
        line = b"GET /gremlin?gremlin=g.inject(%d) HTTP/1.1\r\nHost: localhost\r\n"
        lines = [line % n + (b"\r\n" if n < count - 1 else b"Connection: close\r\n\r\n") for n in range(count)]
        stream.sendall(b"".join(lines))
        answer = read_to_end(stream)
    found = answer.count(b"HTTP/1.1 200")
    return f"{found} of {count} requests on one connection were answered" if found != count else None


def slow_http_readers(server, random, scale):
    """Each client requests a gigabyte and reads none of it."""
    body = b'{"gremlin":"g.inject(1).repeat(union(identity(),identity())).times(17).constant(x)","bindings":{"x":"%s"}}'
    body %= b"x" * 8192
    streams, before = [], watched(server)
    for _ in range(20):
        stream = connect(server.address)
        stream.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        stream.sendall(b"POST /gremlin HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
        streams.append(stream)
    return dropped(server, streams, before, READER_MIB)


def slow_socket_readers(server, random, scale):
    script = "g.inject(1).repeat(union(identity(),identity())).times(17).constant(x)"
    streams, before = [], watched(server)
    for _ in range(20):
        client = Socket(server.address, receive_buffer=4096)
        client.send(TEXT, request(script, bindings={"x": "x" * 8192}, batchSize=100_000)[0])
        streams.append(client.stream)
    return dropped(server, streams, before, READER_MIB)


def watched(server):
    """Begins to record the server's peak memory. Returns its current memory."""
    server.reset_peak()
    return server.rss()


def dropped(server, streams, before, each):
    """The server must end the connections of clients that read nothing, and hold at most `each` MiB for each until
    then."""
    end = time.monotonic() + PATIENCE
    base = 1
    while time.monotonic() < end:
        # The request for the metric has a connection of its own.
        base = server.metric("mangrove_connections")
        if base is not None and base <= 1:
            break
        time.sleep(0.1)
    for stream in streams:
        stream.close()
    if base > 1:
        return f"{base - 1} of {len(streams)} clients that read nothing are still connected"
    much, bound = server.peak() - before, each * len(streams) + server.busy
    print(f"       {len(streams)} clients hold {much:.0f} MiB of {bound:.0f}", flush=True)
    return f"{len(streams)} clients that read nothing hold {much:.0f} MiB, more than {bound:.0f}" if much > bound else None


def unread_requests(server, random, scale):
    """Clients send requests without end and read no answer."""
    streams, before = [], watched(server)
    for _ in range(5):
        client = Socket(server.address, receive_buffer=4096)
        client.stream.settimeout(0.2)
        message = frame(TEXT, request("g.inject(x)", bindings={"x": "x" * 20_000})[0])
        with contextlib.suppress(OSError):
            for _ in range(20_000):
                client.stream.sendall(message)
        streams.append(client.stream)
    return dropped(server, streams, before, SENDER_MIB)


def unread_pings(server, random, scale):
    streams, before = [], watched(server)
    for _ in range(5):
        client = Socket(server.address, receive_buffer=4096)
        client.stream.settimeout(0.2)
        pings = frame(PING, b"x" * 125) * 100
        with contextlib.suppress(OSError):
            for _ in range(20_000):
                client.stream.sendall(pings)
        streams.append(client.stream)
    return dropped(server, streams, before, SENDER_MIB)


def connections_in_a_flood(server, random, scale):
    streams = []
    with contextlib.suppress(OSError):
        for _ in range(900):
            streams.append(connect(server.address, timeout=5))
    wrong = None if server.is_alive() else "the server is gone"
    for stream in streams:
        stream.close()
    return wrong


def handshakes_in_a_flood(server, random, scale):
    for _ in range(300 * scale):
        with contextlib.suppress(OSError), connect(server.address) as stream:
            stream.sendall(HANDSHAKE)
    return None


def broken_frames(server, random, scale):
    """A violation of the protocol ends the connection, with a close frame or without."""
    script = request("g.inject(1)")[0]
    close = struct.pack(">H", 1000)
    for what, sent in [
        ("no mask", frame(TEXT, script, mask=False)),
        ("a reserved opcode", frame(3, script)),
        ("a reserved control opcode", frame(11)),
        ("a compressed frame", frame(TEXT, script, rsv=4)),
        ("a reserved bit", frame(BINARY, script, rsv=1)),
        ("a ping in pieces", frame(PING, b"x", fin=False)),
        ("a long ping", frame(PING, b"x" * 126)),
        ("a piece of nothing", frame(CONTINUATION, script)),
        ("two messages in one another", frame(TEXT, b"{", fin=False) + frame(TEXT, script)),
        ("no UTF-8", frame(TEXT, b"\xff\xfe\xfd")),
        ("half a character", frame(TEXT, b"\xe2\x82")),
        ("a close of one byte", frame(CLOSE, b"x")),
        ("a close with a code that is none", frame(CLOSE, struct.pack(">H", 1005))),
        ("a close that is no UTF-8", frame(CLOSE, close + b"\xff")),
        ("a length of 2^63", frame(TEXT, b"", length=1 << 63)),
        ("a length of 2^62", frame(BINARY, b"", length=1 << 62)),
        ("five megabytes", frame(TEXT, b" " * (5 << 20))),
        ("noise", random_bytes(random, 10_000)),
    ]:
        client = Socket(server.address)
        with contextlib.suppress(OSError):
            client.stream.sendall(sent)
        if ends(client.stream) is None:
            return f"{what} keeps its connection"
        client.stream.close()
    return None


def refused_messages(server, random, scale):
    """An invalid request gets an answer, and the connection continues."""
    with Socket(server.address) as client:
        for opcode, payload in [
            (TEXT, b""),
            (TEXT, b"{"),
            (TEXT, b"[" * 100_000),
            (TEXT, b'{"requestId":"x"}'),
            (TEXT, b" " * ((1 << 20) + 1)),
            (BINARY, b""),
            (BINARY, b"\xff"),
            (BINARY, b"\x20application/vnd.graphbinary-v1.0"),
            (BINARY, b"\x20application/vnd.graphbinary-v1.0\x81" + bytes(16) + b"\x7f\xff\xff\xff"),
            (BINARY, b"\x20application/vnd.graphbinary-v1.0" + random_bytes(random, 1000)),
        ]:
            client.send(opcode, payload)
            answer = client.receive()
            if answer[0] == CLOSE:
                return f"{payload[:40]!r} ends the connection: {answer[1]!r}"
        code, _, _ = client.ask("g.inject(1)")
        return None if code == 200 else f"afterwards the connection answers {code}"


def tiny_fragments(server, random, scale):
    script = request("g.inject(1)")[0]
    with Socket(server.address) as client:
        parts = [frame(CONTINUATION, script[at:at + 1], fin=False) for at in range(1, len(script))]
        # Empty fragments are allowed, in any number.
        empty = frame(CONTINUATION, b"", fin=False) * 100
        client.stream.sendall(frame(TEXT, script[:1], fin=False) + empty.join(parts) + frame(CONTINUATION))
        opcode, payload = client.receive()
        return None if opcode == TEXT and b'"code":200' in payload.replace(b" ", b"") else f"they are answered {payload!r}"


def random_frames(server, random, scale):
    """Sends frames of all kinds in any order, with contents that are cut, doubled and changed."""
    good = request("g.V().has('a',1).out().values('b')")[0]
    end = time.monotonic() + 3 * scale
    while time.monotonic() < end:
        sent = b""
        for _ in range(random.randrange(1, 20)):
            payload = bytearray(good if random.random() < 0.7 else random_bytes(random, random.randrange(0, 300)))
            for _ in range(random.randrange(0, 4)):
                if payload:
                    payload[random.randrange(len(payload))] = random.randrange(256)
            payload = bytes(payload[:random.randrange(0, len(payload) + 1)] if random.random() < 0.3 else payload)
            opcode = random.choice([TEXT] * 6 + [BINARY] * 3 + [CONTINUATION, CLOSE, PING, 10, random.randrange(16)])
            sent += frame(opcode, payload, fin=random.random() < 0.9, mask=random.random() < 0.98,
                          rsv=random.choice([0] * 30 + [1, 2, 4]))
        with contextlib.suppress(OSError, Ended):
            client = Socket(server.address, timeout=5)
            client.stream.sendall(sent)
            client.stream.settimeout(random.random() * 0.05)
            client.stream.recv(1 << 16)
            client.stream.close()
    return None


def random_heads(server, random, scale):
    good = b"POST /gremlin?gremlin=g.V() HTTP/1.1\r\nHost: localhost\r\nAccept: application/json\r\nContent-Length: 24\r\n\r\n" \
        b'{"gremlin":"g.inject(1)"}'
    end = time.monotonic() + 3 * scale
    while time.monotonic() < end:
        sent = bytearray(good)
        for _ in range(random.randrange(1, 6)):
            at = random.randrange(len(sent) + 1)
            change = random.randrange(4)
            if change == 0 and at < len(sent):
                sent[at] = random.randrange(256)
            elif change == 1:
                sent[at:at] = random.choice([b"\r\n", b":", b" ", b"\x00", b"Content-Length: 3\r\n", b"%", b"\xff", b"Upgrade: x\r\n"])
            elif change == 2:
                del sent[at:at + random.randrange(10)]
            else:
                sent[at:at] = sent[max(0, at - random.randrange(50)):at]
        with contextlib.suppress(OSError), connect(server.address, timeout=5) as stream:
            stream.sendall(sent)
            stream.settimeout(random.random() * 0.05)
            stream.recv(1 << 16)
    return None


def heavy_results(server, random, scale):
    """A short request with an enormous answer: it is refused, or streamed in bounded memory to a client that leaves."""
    before = server.rss()
    script = "g.inject(1).repeat(union(identity(),identity())).times(%d).constant(x).%s"
    for times, rest in [(30, "fold()"), (40, "aggregate('a').cap('a')"), (40, "fold().order(local)"), (40, "group().by(identity())")]:
        with Socket(server.address, timeout=40) as client:
            message, _ = request(script % (times, rest), bindings={"x": "x" * 1000}, evaluationTimeout=1500,
                                 accepts="application/vnd.gremlin-v2.0+json;types=false")
            client.send(TEXT, message)
            with contextlib.suppress(Ended):
                client.receive()
    return None if server.is_alive() else f"the server is gone (it had {before:.0f} MiB)"


def nested_multisets(server, random, scale):
    """Nested multisets, a million times each: written out, the answer would be larger than any memory."""
    value = b"\x03\x00" + struct.pack(">i", 1) + b"a"
    for _ in range(5):
        value = b"\x21\x00" + struct.pack(">q", 1_000_000) + value
    text = lambda words: b"\x03\x00" + struct.pack(">i", len(words)) + words
    plain = lambda words: struct.pack(">i", len(words)) + words
    bindings = b"\x0a\x00" + struct.pack(">i", 1) + text(b"x") + value
    for accepts in [b"application/vnd.gremlin-v3.0+json;types=false", b"application/vnd.graphbinary-v1.0-stringd"]:
        message = b"\x20application/vnd.graphbinary-v1.0\x81" + bytes(16) + plain(b"eval") + plain(b"")
        message += struct.pack(">i", 3) + text(b"gremlin") + text(b"g.inject(x,x,x,x)")
        message += text(b"bindings") + bindings + text(b"accepts") + text(accepts)
        with Socket(server.address) as client:
            client.send(BINARY, message)
            if client.receive()[0] == CLOSE:
                return "it ends the connection"
    return None


def tls_garbage(server, random, scale):
    """Sends bytes that are not TLS, or a TLS handshake that stops midway, to a server with TLS."""
    hello = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"
    for sent in [
        b"",
        b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n",
        hello,
        hello + random_bytes(random, 508),
        b"\x16\x03\x01\xff\xff" + bytes(65535),
        b"\x15\x03\x03\x00\x02\x02\x28" * 100,
        b"\x17\x03\x03\x40\x00" + random_bytes(random, 1 << 14),
        random_bytes(random, 100_000),
    ]:
        wrong = all_end(server, 20 * scale, sent, None)
        if wrong:
            return f"{sent[:20]!r}: {wrong}"
    # Connections that are silent after the handshake.
    streams = [trusting().wrap_socket(connect(server.address)) for _ in range(20)]
    silent = [stream for stream in streams if ends(stream) is None]
    for stream in streams:
        stream.close()
    return f"{len(silent)} connections that say nothing after their handshake are kept" if silent else None


def trusting():
    """Accepts any certificate."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


SCENARIOS = [
    slow_heads, silent_connections, slow_bodies, slow_chunks, slow_handshakes, slow_frames, slow_fragments, oversized_heads,
    oversized_bodies, smuggled_requests, strange_requests, pipelined_http, slow_http_readers, slow_socket_readers,
    unread_requests, unread_pings, connections_in_a_flood, handshakes_in_a_flood, broken_frames, refused_messages,
    tiny_fragments, random_frames, random_heads, heavy_results, nested_multisets,
]

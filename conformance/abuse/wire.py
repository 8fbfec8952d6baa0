"""HTTP and WebSockets by hand, so that they can be used wrongly."""

import base64
import json
import os
import socket
import struct
import time
import uuid

CONTINUATION, TEXT, BINARY, CLOSE, PING, PONG = 0, 1, 2, 8, 9, 10

HANDSHAKE = (
    b"GET /gremlin HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
    b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: " + base64.b64encode(b"0123456789abcdef") + b"\r\n\r\n"
)


class Ended(Exception):
    """The server ended the connection."""


def connect(address, timeout=20):
    stream = socket.create_connection(address, timeout=timeout)
    stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return stream


def read_to_end(stream):
    """Reads until the server ends the connection."""
    answer = b""
    try:
        while chunk := stream.recv(1 << 16):
            answer += chunk
    except ConnectionError:
        pass
    return answer


def http(address, line, body=b"", headers=()):
    """Sends one well-formed request. Returns its answer, head and body."""
    lines = [line, "Host: localhost", "Connection: close", *headers]
    if body:
        lines.append(f"Content-Length: {len(body)}")
    with connect(address) as stream:
        stream.sendall("\r\n".join(lines).encode() + b"\r\n\r\n" + body)
        return read_to_end(stream)


def frame(opcode, payload=b"", fin=True, mask=True, rsv=0, length=None):
    """A frame. The masking key is zero, so the payload is unchanged."""
    head = bytes([(0x80 if fin else 0) | rsv << 4 | opcode])
    length = len(payload) if length is None else length
    bit = 0x80 if mask else 0
    if length < 126:
        head += bytes([bit | length])
    elif length < 1 << 16:
        head += bytes([bit | 126]) + struct.pack(">H", length)
    else:
        head += bytes([bit | 127]) + struct.pack(">Q", length)
    return head + (bytes(4) if mask else b"") + payload


def request(script, **arguments):
    """A request in GraphSON, and its id."""
    session = arguments.get("session")
    bindings = arguments.pop("bindings", {})
    name = str(uuid.uuid4())
    message = {
        "requestId": name,
        "op": "eval",
        "processor": "session" if session else "",
        "args": {"gremlin": script, "bindings": bindings, **arguments},
    }
    return json.dumps(message).encode(), name


class Socket:
    """A WebSocket connection."""

    def __init__(self, address, timeout=20, stream=None, receive_buffer=None):
        self.stream = stream or connect(address, timeout)
        if receive_buffer:
            self.stream.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        self.stream.sendall(HANDSHAKE)
        self.pending = b""
        head = self._until(b"\r\n\r\n")
        if b" 101 " not in head:
            raise Ended(head.decode(errors="replace"))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stream.close()

    def _more(self):
        try:
            chunk = self.stream.recv(1 << 18)
        except ConnectionError as error:
            raise Ended(str(error)) from error
        if not chunk:
            raise Ended("")
        self.pending += chunk

    def _until(self, mark):
        while mark not in self.pending:
            self._more()
        head, self.pending = self.pending.split(mark, 1)
        return head

    def _take(self, count):
        while len(self.pending) < count:
            self._more()
        taken, self.pending = self.pending[:count], self.pending[count:]
        return taken

    def send(self, *arguments, **named):
        self.stream.sendall(frame(*arguments, **named))

    def next_frame(self):
        """Reads the next frame. Returns opcode and payload."""
        first, second = self._take(2)
        length = second & 0x7F
        if length == 126:
            length = struct.unpack(">H", self._take(2))[0]
        elif length == 127:
            length = struct.unpack(">Q", self._take(8))[0]
        return first & 0x0F, self._take(length)

    def receive(self):
        """Reads the next frame other than a ping, and answers pings. Returns opcode and payload."""
        while True:
            opcode, payload = self.next_frame()
            if opcode == PING:
                self.send(PONG, payload)
            elif opcode != PONG:
                return opcode, payload

    def ask(self, script, **arguments):
        """Sends a script. Returns the status code, the results as JSON, and the message."""
        message, name = request(script, **arguments)
        self.send(TEXT, message)
        results = []
        while True:
            opcode, payload = self.receive()
            if opcode == CLOSE:
                raise Ended(payload[2:].decode(errors="replace"))
            answer = json.loads(payload)
            if answer["requestId"] != name:
                raise RuntimeError(f"an answer to {answer['requestId']} came in place of {name}")
            data = answer["result"]["data"]
            results += (data or {}).get("@value", []) if isinstance(data, dict) else data or []
            if answer["status"]["code"] != 206:
                return answer["status"]["code"], results, answer["status"]["message"]

    def end(self):
        """Reads until the server ends the connection. Returns the reason of its close frame, if there is one."""
        reason = None
        try:
            while True:
                opcode, payload = self.receive()
                if opcode == CLOSE:
                    reason = payload[2:].decode(errors="replace")
        except Ended:
            return reason


def good(address, seconds, secured=None):
    """Checks that a well-behaved client gets answers in time, over both protocols. Returns what is wrong, or None.
    `secured` wraps a stream in TLS, if the server has TLS."""
    begin = time.monotonic()
    try:
        if secured:
            with Socket(address, stream=secured(connect(address, seconds))) as client:
                code, _, message = client.ask("g.inject(1)")
                return None if code == 200 else f"a good client is answered {code} {message}"
        with Socket(address, timeout=seconds) as client:
            code, results, message = client.ask("g.inject(1)")
            if code != 200 or len(results) != 1:
                return f"a good client is answered {code} {message}"
        answer = http(address, "GET /gremlin?gremlin=g.inject(1) HTTP/1.1")
        if b" 200 " not in answer.split(b"\r\n")[0]:
            return f"a good client is answered {answer[:200]!r} over HTTP"
    except (OSError, Ended) as error:
        return f"a good client is not answered: {error!r}"
    elapsed = time.monotonic() - begin
    return f"a good client waited for {elapsed:.1f} s" if elapsed > seconds else None


def random_bytes(random, count):
    return random.randbytes(count) if hasattr(random, "randbytes") else os.urandom(count)

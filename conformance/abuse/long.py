"""Long runs: many clients, idle clients, enormous results, killed clients.

Each run is a function of the server. It prints its figures, and returns what is wrong, or None. The short form takes
seconds.
"""

import contextlib
import json
import os
import selectors
import signal
import subprocess
import sys
import time

from server import BUSY_THREAD_MIB, OTHER_THREADS
from wire import PING, PONG, TEXT, Ended, Socket, connect, frame, good, request

SETTINGS = {"worker_count_max": 32, "connection_count_max": 4096, "connection_count_address_max": 4096,
            "session_count_max": 4096, "session_count_address_max": 4096, "session_idle_max": "1h"}

MIB = 1 << 20

# An idle connection: a read buffer (READ_BUFFER_BYTES in http.rs), a write buffer of the same size, and its state.
IDLE_MIB = 0.04

# After this time, idle threads have ended (serve.rs, WORKER_IDLE_MAX) and their memory is given back.
REST_SECONDS = 15

# A request without an answer for this time is stuck.
STUCK_SECONDS = 20


class Pipelined:
    """A client that always has several requests in flight. It reads when bytes arrive."""

    WINDOW = 8
    SCRIPTS = [
        "g.inject(1)",
        "g.V(x).values('n')",
        "g.V(x).out('next').limit(3).valueMap()",
        "g.V().hasLabel('item').count()",
        "g.V(x).property('n', y)",
    ]

    def __init__(self, address, number):
        self.socket = Socket(address, timeout=60)
        self.socket.stream.setblocking(False)
        self.number, self.sent, self.answered, self.conflicts = number, 0, 0, 0
        self.waiting, self.unsent, self.latencies = {}, b"", []

    def fill(self, is_over):
        """Sends requests until the window is full. If the run is over, only sends the rest of what it began to send."""
        now = time.monotonic()
        while not is_over and len(self.waiting) < self.WINDOW:
            script = self.SCRIPTS[(self.number + self.sent) % len(self.SCRIPTS)]
            # Every client writes an item of its own, so conflicts occur only by chance.
            message, name = request(script, bindings={"x": self.number % 100, "y": self.sent})
            self.waiting[name] = now
            self.unsent += frame(TEXT, message)
            self.sent += 1
        if self.unsent:
            with contextlib.suppress(BlockingIOError):
                self.unsent = self.unsent[self.socket.stream.send(self.unsent):]

    def read(self):
        """Reads arrived bytes. Returns what is wrong with them, or None."""
        with contextlib.suppress(BlockingIOError):
            self.socket._more()
        while frame_is_whole(self.socket.pending):
            opcode, payload = self.socket.next_frame()
            if opcode in (PING, PONG):
                self.unsent += frame(PONG, payload) if opcode == PING else b""
                continue
            if opcode != TEXT:
                return f"the server closed a connection: {payload!r}"
            answer = json.loads(payload)
            code, name = answer["status"]["code"], answer["requestId"]
            if code == 596:
                self.conflicts += 1
            elif code not in (200, 204, 206):
                return f"a request failed: {answer['status']}"
            if code != 206:
                if name not in self.waiting:
                    return f"{name} is answered twice, or was never asked"
                self.latencies.append(time.monotonic() - self.waiting.pop(name))
                self.answered += 1
        return None


def frame_is_whole(pending):
    """Returns True if the bytes begin with a complete frame."""
    if len(pending) < 2:
        return False
    length, head = pending[1] & 0x7F, 2
    if length == 126:
        length, head = int.from_bytes(pending[2:4], "big"), 4
    elif length == 127:
        length, head = int.from_bytes(pending[2:10], "big"), 10
    return len(pending) >= head + length


def pipelined_clients(server, whole):
    """In the whole form: a hundred clients with eight requests in flight each, for ten minutes, and after a rest again
    for one minute. In the short form: thirty such clients for six seconds."""
    with Socket(server.address) as client:
        for script in [
            "g.inject(1).repeat(union(identity(),identity())).times(7).limit(100).index().count()",
            *[f"g.addV('item').property(id,{n}).property('n',0)" for n in range(100)],
            *[f"g.V({n}).addE('next').to(__.V({(n + 1) % 100}))" for n in range(100)],
        ]:
            code, _, message = client.ask(script)
            if code not in (200, 204):
                return f"{script} fails: {message}"
    if not whole:
        return burst(server, 30, 6, server.busy)
    wrong = burst(server, 100, 600, 0)
    if wrong:
        return wrong
    # The allocator keeps part of the peak. That must not grow: after the same work again, the server holds as much as
    # before.
    time.sleep(REST_SECONDS)
    print(f"       at rest afterwards: {server.rss():.0f} MiB", flush=True)
    server.started()
    return burst(server, 100, 60, server.busy)


def burst(server, count, seconds, growth_mib):
    """Runs this many clients for this time. Memory may grow by a tenth and `growth_mib`."""
    clients = [Pipelined(server.address, number) for number in range(count)]
    selector = selectors.DefaultSelector()
    for client in clients:
        selector.register(client.socket.stream, selectors.EVENT_READ, client)
        client.fill(False)
    begin = last = time.monotonic()
    memory, threads, wrong = [], 0, None
    while wrong is None:
        now = time.monotonic()
        is_over = now - begin > seconds
        if is_over and all(not client.waiting for client in clients):
            break
        for key, _ in selector.select(timeout=0.2):
            wrong = wrong or key.data.read()
            key.data.fill(is_over)
        if now - last > 0.5:
            last = now
            memory.append(server.rss())
            threads = max(threads, server.threads())
            for client in clients:
                client.fill(is_over)
                if client.waiting and now - min(client.waiting.values()) > STUCK_SECONDS:
                    wrong = f"a request of client {client.number} was not answered for {STUCK_SECONDS} s"
    elapsed = time.monotonic() - begin
    for client in clients:
        client.socket.stream.close()
    answered = sum(client.answered for client in clients)
    latencies = sorted(latency for client in clients for latency in client.latencies)
    if wrong or not latencies:
        return wrong or "nothing was answered"
    # After the first fifth, most threads have their part of the allocator; in a run of seconds, not all of them have.
    early, late = memory[len(memory) // 5:len(memory) // 2], memory[-max(1, len(memory) // 4):]
    early, late = sum(early) / max(1, len(early)), sum(late) / len(late)
    print(f"       {count} clients, {Pipelined.WINDOW} requests each, {elapsed:.0f} s: {answered} requests, "
          f"{answered / elapsed:.0f}/s, p50 {latencies[len(latencies) // 2] * 1e3:.1f} ms, "
          f"p99 {latencies[len(latencies) * 99 // 100] * 1e3:.1f} ms, longest {latencies[-1] * 1e3:.0f} ms, "
          f"{sum(client.conflicts for client in clients)} conflicts; memory {early:.0f} MiB early, {late:.0f} MiB late, "
          f"{threads} threads", flush=True)
    if threads > server.threads_max:
        return f"the server had {threads} threads"
    return f"memory grew from {early:.0f} to {late:.0f} MiB" if late > early * 1.1 + growth_mib else None


def idle_connections(server, whole):
    """A thousand idle connections (200 in the short form): their cost in memory, and their effect on others."""
    count = 1000 if whole else 200
    before, fds = server.rss(), server.fds()
    clients = [Socket(server.address) for _ in range(count)]
    opened = server.rss()
    for client in clients:
        code, _, _ = client.ask("g.inject(1)")
        if code != 200:
            return f"an idle client's first request is answered {code}"
    used = server.rss()
    late = []
    for _ in range(200):
        begin = time.monotonic()
        wrong = good(server.address, 5)
        if wrong:
            return wrong
        late.append(time.monotonic() - begin)
    late.sort()
    print(f"       {count} idle connections: {(opened - before) * 1024 / count:.1f} KiB each when opened, "
          f"{(used - before) * 1024 / count:.1f} KiB after a request, {server.fds() - fds} files; a new client beside them "
          f"connects and is answered both ways within {late[len(late) // 2] * 1e3:.1f} ms (p50), {late[-2] * 1e3:.1f} ms (p99)", flush=True)
    for client in clients:
        client.stream.close()
    return f"each costs {(used - before) / count:.2f} MiB" if used - before > IDLE_MIB * count + server.idle else None


def enormous(server, whole):
    """A script with a large result, its parameter, and the least number of bytes of the answer."""
    doublings = 17 if whole else 12
    script = f"g.inject(1).repeat(union(identity(),identity())).times({doublings}).constant(x)"
    return script, {"x": "x" * (16 << 10)}, (16 << 10) << doublings


def slowly(stream, count, whole):
    """Reads at least this many bytes, with pauses. Returns the bytes read and the seconds."""
    begin, taken = time.monotonic(), 0
    pause_every = count // 20
    while taken < count:
        chunk = stream.recv(1 << 18)
        if not chunk:
            break
        before, taken = taken, taken + len(chunk)
        if before // pause_every != taken // pause_every:
            time.sleep(0.5 if whole else 0.05)
    return taken, time.monotonic() - begin


def streamed(server, what, before, taken, seconds, expected):
    # By the defaults of outgoing_count_max (16) and batch_bytes_max (1 MiB): messages that are queued, being written
    # and being made, each as values and as bytes.
    peak, bound = server.peak(), (16 + 2) * 2 * 1 + BUSY_THREAD_MIB * OTHER_THREADS
    print(f"       {taken / MIB:.0f} MiB over {what} in {seconds:.1f} s, read with pauses: at most {peak - before:.0f} MiB more "
          f"memory than before", flush=True)
    if taken < expected:
        return f"{taken} of {expected} bytes came over {what}"
    return f"streaming over {what} took {peak - before:.0f} MiB" if peak - before > bound else None


def large_result_over_http(server, whole):
    script, bindings, expected = enormous(server, whole)
    body = json.dumps({"gremlin": script, "bindings": bindings, "evaluationTimeout": 0}).encode()
    before = server.rss()
    server.reset_peak()
    with connect(server.address, timeout=60) as stream:
        stream.sendall(b"POST /gremlin HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
        taken, seconds = slowly(stream, expected, whole)
    return streamed(server, "HTTP", before, taken, seconds, expected)


def large_result_over_websocket(server, whole):
    script, bindings, expected = enormous(server, whole)
    before = server.rss()
    server.reset_peak()
    with Socket(server.address, timeout=60) as client:
        client.send(TEXT, request(script, bindings=bindings, evaluationTimeout=0)[0])
        taken, seconds = slowly(client.stream, expected, whole)
    return streamed(server, "WebSocket", before, taken, seconds, expected)


def killed_clients(server, whole):
    """Clients are killed with an open transaction and a running query."""
    rounds, count = (10, 20) if whole else (2, 8)
    with Socket(server.address) as client:
        for number in range(count):
            client.ask(f"g.addV('mine').property(id,{number}).property('n',0)")
    released = []
    for turn in range(rounds):
        killed = [
            subprocess.Popen([sys.executable, __file__, *map(str, server.address), str(number), str(turn)], stdout=subprocess.PIPE)
            for number in range(count)
        ]
        for process in killed:
            if process.stdout.readline() != b"ready\n":
                return "a client ended before it could be killed"
        if server.metric("mangrove_sessions") != count:
            return f"{server.metric('mangrove_sessions')} sessions are open, not {count}"
        for process in killed:
            os.kill(process.pid, signal.SIGKILL)
        begin = time.monotonic()
        for process in killed:
            process.wait()
            process.stdout.close()
        while server.metric("mangrove_sessions") or server.metric("mangrove_connections") > 1:
            if time.monotonic() - begin > STUCK_SECONDS:
                return f"{server.metric('mangrove_sessions')} sessions of killed clients are still open"
            time.sleep(0.01)
        released.append(time.monotonic() - begin)
        with Socket(server.address) as client:
            for number in range(count):
                # The claims of a killed client are released at once, and its writes are rolled back.
                code, _, message = client.ask(f"g.V({number}).property('n',{turn})", evaluationTimeout=5000)
                if code not in (200, 204):
                    return f"a killed client's claim is not released: {code} {message}"
            _, results, _ = client.ask("g.V().hasLabel('half').count()")
            if results != [{"@type": "g:Int64", "@value": 0}]:
                return f"killed clients left writes: {results}"
    print(f"       {rounds * count} clients killed in their transactions: sessions and claims released within "
          f"{max(released) * 1e3:.0f} ms, all their writes rolled back", flush=True)
    return None


def victim(host, port, number, turn):
    """A client that opens a session, writes, runs a long query, and waits to be killed."""
    with Socket((host, int(port)), timeout=600) as client:
        session = f"victim-{turn}-{number}"
        for script in [f"g.V({number}).property('n',-1)", "g.addV('half')"]:
            code, _, message = client.ask(script, session=session)
            if code not in (200, 204):
                sys.exit(f"{code} {message}")
        # The session has an open transaction now. The long query runs outside it, on the same connection.
        endless = "g.inject(1).repeat(union(identity(),identity())).times(60).order().limit(1).count()"
        client.send(TEXT, request(endless, evaluationTimeout=0)[0])
        print("ready", flush=True)
        with contextlib.suppress(Ended):
            while True:
                client.receive()


RUNS = [pipelined_clients, idle_connections, large_result_over_http, large_result_over_websocket, killed_clients]

if __name__ == "__main__":
    victim(*sys.argv[1:])

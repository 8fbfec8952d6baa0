"""Checks access control with the official Python driver, with TLS and without: passwords, roles, sessions that expire,
equal response times for unknown users, slowed and refused guesses, graphs created and dropped while the server runs,
pages of other sites, and the audit log.

Usage: security.py MANGROVE   (the program; the checks start their own servers, on free ports)
"""

import base64
import json
import logging
import os
import re
import ssl
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path

from gremlin_python.driver.aiohttp.transport import AiohttpTransport
from gremlin_python.driver.client import Client
from gremlin_python.driver.driver_remote_connection import DriverRemoteConnection
from gremlin_python.driver.protocol import ConfigurationError, GremlinServerError
from gremlin_python.process.anonymous_traversal import traversal

PASSWORD = "correct horse"
CERTIFICATES = Path(__file__).resolve().parents[3] / "crates/server/tests/tls"


class Server:
    """A server with users; `more` has further flags."""

    def __init__(self, mangrove, folder, *more):
        command = [mangrove, "serve", "--listen", "127.0.0.1:0", "--users-file", f"{folder}/users.toml", *more]
        self.log = open(f"{folder}/log", "a+")
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=self.log, text=True)
        line = self.process.stdout.readline()
        self.url = re.search(r"wss?://\S+", line).group().replace("127.0.0.1", "localhost")

    def client(self, user=None, password=PASSWORD, url=None, **transport):
        factory = lambda: AiohttpTransport(**transport)
        name = {"username": user, "password": password} if user else {}
        return Client(url or self.url, "g", transport_factory=factory, pool_size=1, **name)

    def stop(self):
        self.process.terminate()
        assert self.process.wait() == 0, "the server did not end with 0"


def submit(client, script):
    try:
        return client.submit(script).all().result()
    finally:
        client.close()


def refused(client, script):
    """The status code with which the server refuses a script."""
    try:
        result = submit(client, script)
    except GremlinServerError as error:
        return error.status_code
    raise AssertionError(f"no error; the answer was {result!r}")


def passwords(server):
    assert submit(server.client("rita"), "g.V().count()") == [0]
    assert refused(server.client("rita", "wrong"), "g.V()") == 401
    assert refused(server.client("nobody"), "g.V()") == 401


def no_password(server):
    # A driver without a user name ends by itself when the server asks for authentication.
    try:
        submit(server.client(), "g.V()")
    except ConfigurationError as error:
        assert "requires authentication" in str(error), error
    else:
        raise AssertionError("a client without a login was served")


def roles(server):
    assert refused(server.client("rita"), "g.addV('x')") == 403
    assert refused(server.client("wim"), "g.call('mangrove.checkpoint')") == 403
    submit(server.client("wim"), "g.addV('x').iterate()")
    assert submit(server.client("rita"), "g.V().count()") == [1]
    submit(server.client("ada"), "g.call('mangrove.graph.create').with('name', 'mine').with('memory', true)")
    assert submit(server.client("ada"), "mine.V().count()") == [0]
    assert refused(server.client("rita"), "mine.addV('x')") == 403
    submit(server.client("ada"), "g.call('mangrove.graph.drop').with('name', 'mine')")


def bytecode_in_a_session(server):
    remote = DriverRemoteConnection(server.url, "g", username="rita", password=PASSWORD, pool_size=1)
    g = traversal().with_(remote)
    assert g.V().count().next() == 1
    try:
        g.add_v("x").iterate()
        raise AssertionError("a reader wrote")
    except GremlinServerError as error:
        assert error.status_code == 403, error
    remote.close()


def expired_sessions(server):
    remote = DriverRemoteConnection(server.url, "g", username="wim", password=PASSWORD, pool_size=1)
    tx = traversal().with_(remote).tx()
    g = tx.begin()
    g.add_v("lost").iterate()
    time.sleep(2.5)
    try:
        g.V().count().next()
        raise AssertionError("the session has not expired")
    except GremlinServerError as error:
        assert "was idle" in str(error), error
    remote.close()
    assert submit(server.client("rita"), "g.V().hasLabel('lost').count()") == [0]


def unknown_users_take_as_long(server):
    def seconds(user):
        began = time.perf_counter()
        assert refused(server.client(user, "wrong"), "g.V()") == 401
        return time.perf_counter() - began

    known, unknown = ([seconds(user) for _ in range(7)] for user in ("rita", "nobody"))
    ratio = statistics.median(known) / statistics.median(unknown)
    assert 0.3 < ratio < 3, f"a wrong password takes {ratio:.2f} times as long as an unknown user"


def encrypted(server):
    trusting = ssl.create_default_context(cafile=CERTIFICATES / "server.pem")
    assert submit(server.client("rita", ssl_options=trusting), "g.V().count()") == [0]
    assert refused(server.client("rita", "wrong", ssl_options=trusting), "g.V()") == 401
    for wrong in ({"url": server.url}, {"url": server.url.replace("wss", "ws")}):
        try:
            submit(server.client("rita", **wrong), "g.V()")
        except Exception as error:
            assert not isinstance(error, (AssertionError, GremlinServerError)), error
        else:
            raise AssertionError(f"{wrong} was served")


def guessing(server):
    """After several wrong passwords for a name, the server refuses the right one, too, for a while. The name need
    not exist."""
    began = time.perf_counter()
    for user in ("wim", "nobody"):
        assert [refused(server.client(user, "guess"), "g.V()") for _ in range(6)] == [401] * 6
        try:
            submit(server.client(user), "g.V()")
            raise AssertionError("a login was checked that should be refused unchecked")
        except GremlinServerError as error:
            assert error.status_code == 401 and "too many wrong logins" in str(error), error
        status, headers, _ = http(server, "/gremlin?gremlin=g.V()", {"Authorization": basic(user, PASSWORD)})
        assert status == 429 and int(headers["retry-after"]) > 0, (status, headers)
    # The fourth to sixth attempts wait 0.1, 0.2 and 0.4 s for their answers.
    assert time.perf_counter() - began > 1.4, "guesses are not slowed"
    metrics = http(server, "/metrics", {"Authorization": basic("ada", PASSWORD)})[2]
    assert 'mangrove_logins_refused_total{by="user"} 4\n' in metrics, metrics
    assert 'mangrove_logins_failed_total 12\n' in metrics, metrics
    # Other users are not delayed, and after the lockout the user can log in again.
    assert submit(server.client("rita"), "g.V().count()") == [0]
    time.sleep(5.5)
    assert submit(server.client("wim"), "g.V().count()") == [0]


def graphs_at_run_time(server):
    """An administrator creates a graph with sources and a limit of its own, uses it, and drops it."""
    ada = server.client("ada")
    made = "g.call('mangrove.graph.create').with('name', 'books').with('memory', true).with('memory_limit', 1)"
    rows = ada.submit(made + ".with('sources', ['gbooks': 'serializable'])").all().result()
    assert rows[0]["sources"] == {"gbooks": "serializable"}, rows
    assert submit(server.client("rita"), "gbooks.V().count()") == [0]
    assert refused(server.client("ada"), "books.V()") == 499
    try:
        submit(server.client("wim"), "gbooks.addV('x')")
        raise AssertionError("the limit of the graph has no effect")
    except GremlinServerError as error:
        assert "memory" in str(error), error
    assert refused(server.client("wim"), "g.call('mangrove.graph.drop').with('name', 'books')") == 403
    submit(server.client("ada"), "g.call('mangrove.graph.drop').with('name', 'books')")
    assert refused(server.client("ada"), "gbooks.V()") == 499
    ada.close()


def pages_of_other_sites(server):
    """A page may open a WebSocket only from an allowed origin, and not under a foreign host name that leads to this
    server."""
    def upgrade(**headers):
        asked = {"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13",
                 "Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA==", **headers}
        return http(server, "/gremlin", asked)[0]

    assert upgrade(Origin="https://evil.example") == 403
    assert upgrade(Origin="http://evil.example:8182", Host="evil.example:8182") == 403
    assert http(server, "/health", {"Host": "evil.example"})[0] == 403
    assert submit(server.client("rita"), "g.inject(1)") == [1]


def basic(user, password):
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


def http(server, path, headers):
    """The status code, headers and body of an answer."""
    url = server.url.replace("ws://", "http://").removesuffix("/gremlin") + path
    try:
        answer = urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=10)
    except urllib.error.HTTPError as error:
        answer = error
    return answer.status, answer.headers, answer.read().decode()


def audit(folder):
    """The audit log has every kind of entry, and no log has a password. Runs after the other checks."""
    log = Path(folder, "audit.log").read_text()
    for entry in map(json.loads, log.splitlines()):
        assert entry["target"] == "mangrove_audit" and entry.keys() >= {"timestamp", "user", "from", "act", "outcome"}
    for words in ("rita", "mangrove.graph.create", "refused", "role write", '"act":"lockout"'):
        assert words in log, f"the audit log lacks {words!r}"
    everything = log + Path(folder, "log").read_text()
    assert PASSWORD not in everything and "guess" not in everything, "a password is in a log"
    assert "mangrove_audit" not in Path(folder, "log").read_text(), "the audit log has a file of its own"


def main(mangrove):
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        for user, role in (("ada", "*=admin"), ("wim", "*=write"), ("rita", "*=read")):
            command = [mangrove, "user", "add", "--file", f"{folder}/users.toml", user, "--role", role]
            subprocess.run(command, input=PASSWORD, text=True, check=True)
        audited = ("--audit", f"{folder}/audit.log")
        plain = Server(mangrove, folder, *audited, "--session-idle-max", "1s")
        guessed = Server(mangrove, folder, *audited, "--login-failures-user-max", "6", "--login-lockout", "5s")
        files = ("--tls-certificate", CERTIFICATES / "server.pem", "--tls-key", CERTIFICATES / "server.key")
        tls = Server(mangrove, folder, *audited, *files)
        # Without delays and lockouts, times show the cost of a password check.
        timed = Server(mangrove, folder, *audited, "--login-lockout", "0s")
        checks = [
            (check, plain)
            for check in (
                passwords, no_password, roles, bytecode_in_a_session, expired_sessions, graphs_at_run_time,
                pages_of_other_sites
            )
        ]
        further = [(guessing, guessed), (unknown_users_take_as_long, timed), (encrypted, tls), (audit, folder)]
        for check, subject in [*checks, *further]:
            try:
                check(subject)
            except Exception as error:
                failed += 1
                print(f"FAILED security: {check.__name__}: {type(error).__name__}: {error}")
        for server in (plain, guessed, tls, timed):
            server.stop()
        count = len(checks) + len(further)
    print(f"security with gremlinpython: {count - failed} passed, {failed} failed")
    return failed


if __name__ == "__main__":
    # The driver logs every refusal, and most of these checks expect one.
    logging.disable(logging.CRITICAL)
    sys.exit(1 if main(os.path.abspath(sys.argv[1])) else 0)

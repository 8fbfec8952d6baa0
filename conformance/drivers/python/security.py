"""What the server lets whom do, with the official Python driver: over TLS and without, right and wrong passwords,
roles, sessions that expire, and how long an unknown user takes.

Usage: security.py MANGROVE   (the program; it starts its own servers, on free ports)
"""

import logging
import os
import re
import ssl
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from gremlin_python.driver.aiohttp.transport import AiohttpTransport
from gremlin_python.driver.client import Client
from gremlin_python.driver.driver_remote_connection import DriverRemoteConnection
from gremlin_python.driver.protocol import ConfigurationError, GremlinServerError
from gremlin_python.process.anonymous_traversal import traversal

PASSWORD = "correct horse"
CERTIFICATES = Path(__file__).resolve().parents[3] / "crates/server/tests/tls"


class Server:
    """A server with users; `more` are further flags."""

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
    """The status with which a script is refused."""
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
    # Asked who it is, a driver without a name gives up by itself.
    try:
        submit(server.client(), "g.V()")
    except ConfigurationError as error:
        assert "requires authentication" in str(error), error
    else:
        raise AssertionError("who did not say who it is was served")


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


def audit(folder):
    log = Path(folder, "log").read_text()
    for words in ("rita", "mangrove.graph.create", "refused", "role write"):
        assert words in log, f"the audit log lacks {words!r}"
    assert PASSWORD not in log, "a password is in the log"


def main(mangrove):
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        for user, role in (("ada", "*=admin"), ("wim", "*=write"), ("rita", "*=read")):
            command = [mangrove, "user", "add", "--file", f"{folder}/users.toml", user, "--role", role]
            subprocess.run(command, input=PASSWORD, text=True, check=True)
        plain = Server(mangrove, folder, "--session-idle-max", "1s")
        files = ("--tls-certificate", CERTIFICATES / "server.pem", "--tls-key", CERTIFICATES / "server.key")
        tls = Server(mangrove, folder, *files)
        checks = [
            (check, plain)
            for check in (
                passwords, no_password, roles, bytecode_in_a_session, expired_sessions, unknown_users_take_as_long
            )
        ]
        for check, subject in [*checks, (encrypted, tls), (audit, folder)]:
            try:
                check(subject)
            except Exception as error:
                failed += 1
                print(f"FAILED security: {check.__name__}: {type(error).__name__}: {error}")
        plain.stop()
        tls.stop()
        count = len(checks) + 2
    print(f"security with gremlinpython: {count - failed} passed, {failed} failed")
    return failed


if __name__ == "__main__":
    # The driver logs every refusal, with which this is about.
    logging.disable(logging.CRITICAL)
    sys.exit(1 if main(os.path.abspath(sys.argv[1])) else 0)

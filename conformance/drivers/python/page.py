"""Checks `in_transaction` of docs/clients.md against another writer. (conformance/docs runs the page's programs.)"""

import os
import re

from gremlin_python.driver.driver_remote_connection import DriverRemoteConnection
from gremlin_python.driver.protocol import GremlinServerError
from gremlin_python.process.anonymous_traversal import traversal

from cases import WRITABLE_SOURCE
from checks import Check, expect

PAGE = os.path.join(os.path.dirname(__file__), "../../../docs/clients.md")


class Page:
    """The checks of the page, on the writable graph."""

    def __init__(self, server):
        self.server = server

    def checks(self):
        return [Check("docs/clients.md", "a transaction runs again after a conflict", self.retries)]

    def names(self, g):
        """Creates two accounts, runs the page's first Python block, and returns the names that it defines."""
        g.V().drop().iterate()
        (g.add_v("account").property("name", "ada").property("balance", 90)
            .add_v("account").property("name", "bob").property("balance", 5).iterate())
        with open(PAGE, encoding="utf-8") as page:
            code = re.search(r"```python\n(.*?)```", page.read(), re.DOTALL)[1]
        names = {}
        exec(compile(code, PAGE, "exec"), names)
        return names

    def retries(self):
        """The first attempt meets a conflict with another writer; the second attempt sees that writer's value."""
        connection = DriverRemoteConnection(self.server.url, WRITABLE_SOURCE)
        g, attempts = traversal().with_remote(connection), []
        try:
            names = self.names(g)

            def work(gtx):
                balance = gtx.V().has("account", "name", "bob").values("balance").next()
                attempts.append(balance)
                if len(attempts) == 1:
                    g.V().has("account", "name", "bob").property("balance", 50).iterate()
                gtx.V().has("account", "name", "bob").property("balance", balance + 1).iterate()

            names["in_transaction"](g, work)
            expect(attempts == [5, 50], f"the attempts read {attempts}")
            expect(g.V().has("account", "name", "bob").values("balance").to_list() == [51], "both writes count")

            def wrong(gtx):
                attempts.append(None)
                gtx.V().has("account", "name", "ada").property("balance", 0).iterate()
                gtx.inject(1).fail("no").iterate()

            before = len(attempts)
            try:
                names["in_transaction"](g, wrong)
            except GremlinServerError as error:
                expect(error.status_code != 596, f"{error}")
            else:
                expect(False, "the error is raised")
            expect(len(attempts) == before + 1, "only a conflict is tried again")
            expect(g.V().has("account", "name", "ada").values("balance").to_list() == [90], "it left nothing")
        finally:
            g.V().drop().iterate()
            connection.close()

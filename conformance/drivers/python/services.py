"""Management through `call()`: the services, as bytecode and as scripts."""

from gremlin_python.driver.protocol import GremlinServerError
from gremlin_python.process.traversal import T

from cases import WRITABLE_SOURCE
from checks import Check, expect, expect_error

EVALUATION_ERROR = 597
# Services of the server. There is one besides for each algorithm.
ALGORITHMS = "mangrove.algo."
SERVICES = ["--list", "mangrove.backup", "mangrove.checkpoint", "mangrove.config", "mangrove.durability", "mangrove.gc",
            "mangrove.graph.create", "mangrove.graph.drop", "mangrove.graph.list", "mangrove.index.create",
            "mangrove.index.drop", "mangrove.index.list", "mangrove.kill", "mangrove.memory", "mangrove.names",
            "mangrove.plans", "mangrove.projection.create", "mangrove.projection.drop", "mangrove.projection.list",
            "mangrove.projection.refresh", "mangrove.promote", "mangrove.queries", "mangrove.schema.drop", "mangrove.schema.ends", "mangrove.schema.list",
            "mangrove.schema.require", "mangrove.schema.type", "mangrove.statistics", "mangrove.stats",
            "mangrove.transactions", "mangrove.upsert.edges", "mangrove.upsert.find", "mangrove.upsert.vertices",
            "tinker.degree.centrality", "tinker.search"]


def text(value):
    """A value in gremlin-lang."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return "[" + ", ".join(text(each) for each in value) + "]"
    return repr(value)


class Services:
    """The checks. Each runs in both forms, and on an empty graph. `call` is `bytecode` or `script`."""

    def __init__(self, server):
        self.server = server

    def bytecode(self, service=None, /, **arguments):
        """The answer of a service to bytecode."""
        g = self.server.source(WRITABLE_SOURCE)
        traversal = g.call() if service is None else g.call(service)
        for name, value in arguments.items():
            traversal = traversal.with_(name, value)
        return traversal.to_list()

    def script(self, service=None, /, **arguments):
        """The answer of a service to a script."""
        call = "g.call()" if service is None else f"g.call({service!r})"
        return self.server.submit(call + "".join(f".with({name!r}, {text(value)})" for name, value in arguments.items()),
                                  WRITABLE_SOURCE)

    def are_listed(self, call):
        """`call()` and `call('--list')` list all services."""
        for listed in call(), call("--list"):
            algorithms = [name for name in listed if name.startswith(ALGORITHMS)]
            expect(listed == sorted(SERVICES + algorithms), f"listed are {listed}")
            expect({f"{ALGORITHMS}{name}" for name in ("bfs", "pagerank", "wcc")} <= set(algorithms),
                   f"algorithms are {algorithms}")
        described, = call("--list", service="mangrove.index.create", verbose=True)
        expect(described["name"] == "mangrove.index.create" and "unique" in described["params"],
               f"described as {described}")

    def change_settings(self, call):
        """A setting changes for all clients and changes back; an invalid one is refused."""
        before, = call("mangrove.config")
        changed, = call("mangrove.config", optimistic_pre_read=False, gc_workers=2)
        expect(changed == {**before, "optimistic_pre_read": False, "gc_workers": 2}, f"changed to {changed}")
        same, = self.script("mangrove.config")
        expect(same == changed, f"another client sees {same}")
        back, = call("mangrove.config", **{name: before[name] for name in ("optimistic_pre_read", "gc_workers")})
        expect(back == before, f"changed back to {back}")
        expect_error(lambda: call("mangrove.config", gc_worker=1), {EVALUATION_ERROR}, "gc_worker", "gc_workers")
        expect_error(lambda: call("mangrove.config", gc_workers="two"), {EVALUATION_ERROR}, "gc_workers")

    def run_algorithms(self, call):
        """An algorithm gives rows of vertices and values, and writes values."""
        g = self.server.source(WRITABLE_SOURCE)
        for n in range(3):
            g.add_v("item").property(T.id, n).iterate()
        g.V(0).as_("from").V(1).add_e("next").from_("from").iterate()
        depths = {row["vertex"].id: row["depth"] for row in call("mangrove.algo.bfs", source=0, edges="next")}
        expect(depths == {0: 0, 1: 1}, f"depths are {depths}")
        row, = call("mangrove.algo.wcc", write="component")
        expect((row["written"], row["skipped"]) == (3, 0), f"written was {row}")
        found = g.V().values("component").dedup().count().next()
        expect(found == 2, f"{found} components were written")
        expect_error(lambda: call("mangrove.algo.bfs", sauce=0), {EVALUATION_ERROR}, "sauce", "source")

    def manage_indexes(self, call):
        """An index is built over existing elements, listed, maintained, and dropped; a unique one refuses
        duplicates."""
        g = self.server.source(WRITABLE_SOURCE)
        for n in range(3):
            g.add_v("item").property(T.id, n).property("serial", n).iterate()
        made, = call("mangrove.index.create", label="item", key="serial", kind="ordered", unique=True)
        try:
            expect((made["label"], made["key"], made["kind"], made["unique"], made["online"], made["entries"])
                   == ("item", ["serial"], "ordered", True, True, 3), f"made was {made}")
            expect_error(lambda: g.add_v("item").property("serial", 1).iterate(), {EVALUATION_ERROR}, "serial")
            g.add_v("item").property("serial", 3).iterate()
            listed = [index for index in call("mangrove.index.list") if index["id"] == made["id"]]
            expect([index["entries"] for index in listed] == [4], f"listed as {listed}")
            plan = self.server.submit("g.V().hasLabel('item').has('serial', gt(1)).explain()", WRITABLE_SOURCE)
            expect("index" in str(plan), f"the plan does not use it: {plan}")
        finally:
            dropped, = call("mangrove.index.drop", id=made["id"])
        expect(dropped["id"] == made["id"], f"dropped was {dropped}")
        expect(all(index["id"] != made["id"] for index in call("mangrove.index.list")), "a dropped index is listed")
        expect_error(lambda: call("mangrove.index.drop", id=made["id"]), {EVALUATION_ERROR}, "mangrove.index.list")

    def manage_rules(self, call):
        """Rules are created over existing elements, listed, enforced, and dropped; a rule that an element breaks is
        refused."""
        g = self.server.source(WRITABLE_SOURCE)
        g.add_v("ruled").property(T.id, 1).property("name", "one").iterate()
        made = [call("mangrove.schema.require", label="ruled", key="name")[0],
                call("mangrove.schema.type", label="ruled", key="name", type="string")[0],
                call("mangrove.schema.ends", label="rules", ends=[["ruled", "ruled"]])[0]]
        try:
            expect([rule["rule"] for rule in made] == ["required", "type", "ends"], f"made were {made}")
            expect(all(rule["online"] for rule in made), f"made were {made}")
            expect_error(lambda: g.add_v("ruled").iterate(), {EVALUATION_ERROR}, "no 'name'", "ruled")
            expect_error(lambda: g.V(1).property("name", 2).iterate(), {EVALUATION_ERROR}, "vertex 1", "string")
            expect_error(lambda: g.add_v("other").as_("o").V(1).add_e("rules").to("o").iterate(), {EVALUATION_ERROR},
                         "from 'ruled' to 'other'")
            expect_error(lambda: call("mangrove.schema.require", label="ruled", key="age"), {EVALUATION_ERROR}, "vertex 1")
            listed = [rule["id"] for rule in call("mangrove.schema.list")]
            expect(all(rule["id"] in listed for rule in made), f"listed are {listed}")
        finally:
            for rule in made:
                call("mangrove.schema.drop", id=rule["id"])
        g.add_v("ruled").iterate()
        g.V().has_label("ruled").drop().iterate()

    def show_memory(self, call):
        """The kinds of record add up to the total."""
        *kinds, total = call("mangrove.memory")
        expect(total["kind"] == "total", f"the last row is {total}")
        expect(total["bytes"] == sum(kind["bytes"] for kind in kinds) > 0, f"{total} of {kinds}")

    def count_transactions(self, call):
        """Commits are counted, and aborts are counted by cause."""
        before, = call("mangrove.transactions")
        self.server.submit("g.addV('item')", WRITABLE_SOURCE)
        after, = call("mangrove.transactions")
        expect(after["commits"] == before["commits"] + 1, f"{before}, then {after}")
        expect({"write_conflict", "read_conflict", "dependency", "too_old", "rollback"} <= after["aborts"].keys(),
               f"causes are {after['aborts'].keys()}")

    def collect_garbage(self, call):
        """After a collection, deleted elements that no snapshot sees are gone."""
        self.server.submit("g.addV('item').addV('item')", WRITABLE_SOURCE)
        self.server.empty(WRITABLE_SOURCE)
        before, = call("mangrove.gc")
        after, = call("mangrove.gc", collect=True)
        expect(after["queued_writes"] == 0, f"{before}, then {after}")
        expect(after["vertices"] >= before["vertices"], f"{before}, then {after}")
        packed, = call("mangrove.gc", compact=True)
        expect(packed.keys() == after.keys(), f"{packed}")

    def are_guarded(self, call):
        """For an unknown service, the error suggests a similar name. A read-only source has no services that write."""
        expect_error(lambda: call("mangrove.indx.list"), {EVALUATION_ERROR}, "mangrove.index.list")
        text_ = "g.withStrategies(ReadOnlyStrategy).call('mangrove.config')"
        try:
            self.server.submit(text_, WRITABLE_SOURCE)
        except GremlinServerError as e:
            expect(e.status_code == EVALUATION_ERROR, f"status {e.status_code}: {e}")
        else:
            raise AssertionError("a read-only source changed settings")

    def checks(self):
        """All checks, in both forms."""
        def check(form, call, method):
            def run():
                self.server.empty(WRITABLE_SOURCE)
                method(call)
            return Check(f"services by {form}", method.__name__.replace("_", " "), run)

        methods = [self.are_listed, self.run_algorithms, self.change_settings, self.manage_indexes, self.manage_rules, self.show_memory,
                   self.count_transactions, self.collect_garbage, self.are_guarded]
        return [check(form, call, method)
                for form, call in (("bytecode", self.bytecode), ("script", self.script)) for method in methods]

"""The answer to `profile()`, as the client's own type: durations, counts, annotations and nested metrics."""

from gremlin_python.process.graph_traversal import __

from checks import Check, expect

# GraphBinary has nanoseconds, GraphSON milliseconds.
PER_MILLISECOND = {"graphbinary": 1_000_000, "graphson3": 1, "graphson2": 1}


class Profiles:
    """The checks, for one serializer."""

    def __init__(self, server, name):
        self.server = server
        self.name = name

    def metrics_are_typed(self):
        """Each operator has an id, a name, a duration, counts and annotations; those of a scope are nested in its own."""
        profiled = self.server.source("gmodern").V().has_label("person").where(__.out("created").has("lang", "java"))
        for metrics in (profiled.profile().next(),
                        self.server.submit("g.V().hasLabel('person').where(out('created').has('lang','java')).profile()",
                                           "gmodern")[0]):
            self.check(metrics)

    def check(self, metrics):
        expect(isinstance(metrics, dict) and {"dur", "metrics"} <= metrics.keys(), f"the answer is {metrics!r}")
        *operators, run = metrics["metrics"]
        expect(0 < metrics["dur"] < 60_000 * PER_MILLISECOND[self.name], f"the duration is {metrics['dur']}")
        expect(len({operator["id"] for operator in operators}) == len(operators), f"ids are not unique: {operators}")
        for operator in operators:
            expect(operator["counts"]["traverserCount"] >= 0 and operator["dur"] >= 0, f"{operator}")
            expect({"percentDur", "messages", "rowsIn"} <= operator["annotations"].keys(), f"{operator}")
        shares = sum(operator["annotations"]["percentDur"] for operator in operators)
        expect(abs(shares - 100) < 0.001, f"the shares come to {shares}")
        scan, = [operator for operator in operators if "with label person" in operator["name"]]
        expect(scan["counts"]["traverserCount"] == 4, f"the scan is {scan}")
        results = operators[-1]
        # marko, josh and peter.
        expect(results["counts"] == {"traverserCount": 3, "elementCount": 3}, f"the results are {results}")
        scope, = [operator for operator in operators if operator.get("metrics")]
        expect(any("created" in nested["name"] for nested in scope["metrics"]), f"the scope is {scope}")
        flows = (scan["annotations"]["flow"], scope["annotations"]["flow"])
        expect(flows == ("sequential", "branch"), f"the flow types are {flows}")
        expect(run["id"] == "run" and run["annotations"]["scopeGroups"] == 1, f"the run is {run}")

    def checks(self):
        return [Check(f"profile, {self.name}", "metrics are typed", self.metrics_are_typed)]

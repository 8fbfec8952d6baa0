"""The protocol of all sides: one request a line on standard input, one answer a line on standard output, both JSON.

    {"do": "load", "folder": F}                    {"seconds": S, "version": V, "settings": {…}}
    {"do": "answer", "operations": [[QUERY, P]…]}  {"answers": [[…]…]}: flat lists, maps as key, value, key, value, …
    {"do": "time", "case": C, "passes": N}         {"nanos": […]}: of each operation, in N passes over the case
    {"do": "rephrase", "queries": [QUERY…]}        {"rephrased": B}: true if they have a second wording, used from now on
    {"do": "memory"}                               {"bytes": B}: of the process that holds the graph
    {"do": "end"}                                  {}

If a request fails, the answer is {"error": MESSAGE}; if it passed the time limit, {"error": MESSAGE, "timeout": true}.
The side continues after both. A side takes times, from passing a query to holding its whole result as objects of its
language. The caller does all arithmetic.

The Rust side (bench/examples/peers_side.rs) has the same protocol.
"""

import json
import pathlib
import sys
import time
import traceback


class TimedOut(Exception):
    """A query passed the time limit and was ended."""


class Side:
    """A side in Python. Its class loads, runs queries and flattens results; `serve` does the rest."""

    def load(self, folder):
        """Loads the files of the folder; returns (seconds, version, settings)."""
        raise NotImplementedError

    def ask(self, query, parameters):
        """Runs a query by its name. Returns its whole result in the client's form. May raise TimedOut."""
        raise NotImplementedError

    def flatten(self, result):
        """A result as a flat list of integers and strings."""
        raise NotImplementedError

    def rephrase(self, queries):
        """Uses the second wordings of these queries from now on. Returns True if there are any."""
        return False

    def process(self):
        """The id of the process that holds the graph."""
        raise NotImplementedError

    def end(self):
        """Stops the processes that this side started."""


def serve(side):
    """Answers requests until one says `end` or the input ends."""
    answers = sys.stdout
    # Output of libraries must not be mixed with answers.
    sys.stdout = sys.stderr
    handler = Handler(side)
    try:
        for line in sys.stdin:
            request = json.loads(line)
            print(handler.handle(request), file=answers, flush=True)
            if request["do"] == "end":
                break
    finally:
        side.end()


class Handler:
    """Answers one request at a time, as JSON."""

    def __init__(self, side):
        self.side = side
        self.cases = {}

    def handle(self, request):
        try:
            return json.dumps(getattr(self, "do_" + request["do"])(request))
        except TimedOut as error:
            return json.dumps({"error": str(error), "timeout": True})
        except Exception as error:  # whatever a rival raises is a result to be shown
            traceback.print_exc()
            return json.dumps({"error": f"{type(error).__name__}: {error}"})

    def do_load(self, request):
        folder = pathlib.Path(request["folder"])
        self.cases = json.loads((folder / "workloads.json").read_text())["cases"]
        seconds, version, settings = self.side.load(folder)
        return {"seconds": seconds, "version": version, "settings": settings}

    def do_answer(self, request):
        side = self.side
        return {"answers": [side.flatten(side.ask(query, p)) for query, p in request["operations"]]}

    def do_time(self, request):
        operations = self.cases[request["case"]]
        ask, now = self.side.ask, time.perf_counter_ns
        nanos = []
        for _ in range(request["passes"]):
            for query, parameters in operations:
                start = now()
                ask(query, parameters)
                nanos.append(now() - start)
        return {"nanos": nanos}

    def do_rephrase(self, request):
        return {"rephrased": self.side.rephrase(request["queries"])}

    def do_memory(self, _request):
        status = pathlib.Path(f"/proc/{self.side.process()}/status").read_text()
        (line,) = [line for line in status.splitlines() if line.startswith("VmRSS:")]
        return {"bytes": int(line.split()[1]) * 1024}

    def do_end(self, _request):
        return {}

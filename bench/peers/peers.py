"""Measures Mangrove beside other databases: one graph, the same operations, answers compared before any is timed.

`make bench-peers` sets everything up and runs this. README.md describes the method.

Each side is a program of its own, with the protocol of sides/lines.py. One side runs at a time: it loads the graph and
answers every case once; its answers are compared with the oracle's; its cases are timed; it ends. All arithmetic is in
figures.py.
"""

import argparse
import json
import os
import pathlib
import platform
import selectors
import subprocess
import sys
import time

import figures
import graph
import network
import workloads
from figures import Missing, Timing, figure
from oracle import Oracle, canonical

HERE = pathlib.Path(__file__).resolve().parent
SIDES = ["mangrove-prepared", "mangrove-single", "mangrove-text", "ladybug", "ladybug-disk", "mangrove-server", "tinkergraph-server"]
SERVERS = ["mangrove-server", "tinkergraph-server"]
REPETITION_COUNT = 5
SECOND_WORDING_MARK = "*"
# A pass that takes longer than this is not repeated.
PASS_SECONDS_MAX = 5
# The largest number of passes of a writing case in a repetition, so that the graph stays similar for all sides.
WRITING_PASSES_MAX = 10
# The time that a side may be silent beyond the time of its request, before it is given up.
SILENCE_SECONDS_MAX = 300


class GivenUp(Exception):
    """The side ended, or did not answer in time. It is not used again."""


class Refused(Exception):
    """The side answered with an error. It can be used again."""

    def __init__(self, answer):
        super().__init__(answer["error"])
        self.timeout = answer.get("timeout", False)


class SideProcess:
    """A running side."""

    def __init__(self, command, log):
        self.log = log
        with open(log, "w") as errors:
            self.process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, bufsize=0
            )
        self.selector = selectors.DefaultSelector()
        self.selector.register(self.process.stdout, selectors.EVENT_READ)

    def ask(self, request):
        try:
            self.process.stdin.write(json.dumps(request).encode() + b"\n")
            line = self.read_line(time.monotonic() + SILENCE_SECONDS_MAX)
        except BrokenPipeError:
            line = b""
        if not line:
            raise GivenUp(f"it ended during {request['do']} (`{request.get('case', '')}`); see {self.log}")
        answer = json.loads(line)
        if "error" in answer:
            raise Refused(answer)
        return answer

    def read_line(self, deadline):
        parts = []
        while not (parts and parts[-1].endswith(b"\n")):
            if not self.selector.select(max(0, deadline - time.monotonic())):
                self.process.kill()
                raise GivenUp(f"it said nothing for {SILENCE_SECONDS_MAX} s and was stopped; see {self.log}")
            part = os.read(self.process.stdout.fileno(), 1 << 20)
            if not part:
                return b""
            parts.append(part)
        return b"".join(parts)

    def end(self):
        """Asks the side to end, and kills it if it does not."""
        self.process.stdin.close()
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()


class Run:
    """The results of a run. `results` is by (side, case)."""

    def __init__(self, options, cases, oracle, queries=workloads.QUERIES):
        self.options, self.cases, self.oracle, self.queries = options, cases, oracle, queries
        self.results, self.settings, self.figures, self.problems = {}, {}, [], []
        reading = [case for case in cases if not case.writes]
        self.expected = {case.name: [oracle.answer(query, p) for query, p in case.operations] for case in reading}

    def measure(self, side, command):
        log = self.options.folder / f"{side}.log"
        process = SideProcess(command, log)
        try:
            self.load(side, process)
            for case in self.cases:
                if not case.writes:
                    self.result(side, case, lambda case=case: self.reading(side, process, case))
            self.writing(side, process)
            self.memory(side, process, "memory, at the end")
        except GivenUp as error:
            self.problem(f"{side} was given up: {error}")
        except Refused as error:
            self.problem(f"{side} was left out: {error}")
        finally:
            process.end()

    def problem(self, text):
        print(text, file=sys.stderr)
        self.problems.append(text)

    def load(self, side, process):
        told = process.ask({"do": "load", "folder": str(self.options.folder)})
        self.settings[side] = {"version": told["version"], **told["settings"]}
        timing = Timing([[told["seconds"] * 1e9]])
        self.keep(side, "load", timing)
        self.memory(side, process, "memory, after the load")

    def memory(self, side, process, case):
        size = process.ask({"do": "memory"})["bytes"]
        self.figures.append(figure(case, side, "size", size, "B"))

    def keep(self, side, case, result):
        self.results[side, case] = result
        if isinstance(result, Timing):
            self.figures += result.figures(case, side)
        else:
            self.figures.append(figure(case, side, result.word, 1, "flag"))
            self.problem(f"{side}, {case}: {result.word}: {result.reason}")
        print(f"{side:20} {case:34} {result.cell()}", file=sys.stderr)

    def result(self, side, case, measure):
        try:
            self.keep(side, case.name, measure())
        except Refused as error:
            limit = f"timeout > {self.options.limit:g} s"
            self.keep(side, case.name, Missing(limit if error.timeout else "failed", str(error)))

    def reading(self, side, process, case):
        """Compares the answers of a case and, if they are right, times it."""
        difference, mark = self.compare(process, case), ""
        if difference:
            queries = sorted({query for query, _ in case.operations})
            if not process.ask({"do": "rephrase", "queries": queries})["rephrased"]:
                return Missing("WRONG", difference)
            self.problem(f"{side}, {case.name}: asked in its second wording, because in the first {difference}")
            difference, mark = self.compare(process, case), SECOND_WORDING_MARK
            if difference:
                return Missing("WRONG", difference)
        timing, _ = self.time(process, case)
        timing.mark = mark
        return timing

    def compare(self, process, case):
        """The first wrong answer of a case, or None."""
        answers = process.ask({"do": "answer", "operations": case.operations})["answers"]
        return self.difference(case, answers)

    def difference(self, case, answers):
        for (query, parameters), answer, expected in zip(case.operations, answers, self.expected[case.name], strict=True):
            found = canonical(self.queries[query].shape, answer)
            if found != expected:
                return f"`{query}` of {parameters} is answered with {short(found)}, not with {short(expected)}"
        return None

    def time(self, process, case):
        """Warms up, times, and returns the times with the number of passes."""
        options = self.options
        ask = lambda passes: process.ask({"do": "time", "case": case.name, "passes": passes})["nanos"]
        passes, made = 1, 0
        most = WRITING_PASSES_MAX if case.writes else 1 << 30
        while True:
            nanos = ask(passes)
            made += passes
            warm_seconds = sum(nanos) / 1e9
            if warm_seconds >= options.seconds / 2 or passes * 2 > most:
                break
            passes *= 2
        if warm_seconds / passes > PASS_SECONDS_MAX:
            return Timing([nanos[-len(case.operations) :]]), made
        # As many passes as fill the time of a repetition; three repetitions if one pass fills the whole time.
        passes = max(1, min(most, round(options.seconds / REPETITION_COUNT / warm_seconds * passes)))
        repetitions = 3 if warm_seconds / passes > options.seconds else REPETITION_COUNT
        timing = Timing([ask(passes) for _ in range(repetitions)])
        return timing, made + repetitions * passes

    def writing(self, side, process):
        """Times the cases that write. Compares the graph after a first pass, and again at the end."""
        cases = [case for case in self.cases if case.writes]
        if not cases:
            return
        passes = {case.name: 0 for case in cases}
        try:
            for case in cases:
                process.ask({"do": "answer", "operations": case.operations})
                passes[case.name] += 1
            self.compare_state(process, cases, passes)
            for case in cases:
                timing, made = self.time(process, case)
                passes[case.name] += made
                self.keep(side, case.name, timing)
            self.compare_state(process, cases, passes)
        except (Refused, Wrong) as error:
            word = "WRONG" if isinstance(error, Wrong) else "failed"
            for case in cases:
                self.results.pop((side, case.name), None)
                self.keep(side, case.name, Missing(word, str(error)))

    def compare_state(self, process, cases, passes):
        edges, ages = self.oracle.after([(case, passes[case.name]) for case in cases])
        operations = [("count knows", {}), *(("age", {"who": person}) for person in ages)]
        answers = process.ask({"do": "answer", "operations": operations})["answers"]
        expected = [[edges], *([age] for age in ages.values())]
        for (query, parameters), found, wanted in zip(operations, answers, expected, strict=True):
            if found != wanted:
                raise Wrong(f"after writing, `{query}` of {parameters} is {found}, not {wanted}")


class Wrong(Exception):
    """The graph after writes differs from the expected one."""


def short(answer):
    text = str(answer)
    return text if len(text) <= 100 else text[:100] + " …"


def machine():
    """The machine and the build, in the form of the other benches."""
    model = platform.machine()
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            model = line.split(":", 1)[1].strip()
            break
    commit = subprocess.run(["git", "rev-parse", "--short=12", "HEAD"], capture_output=True, text=True, cwd=HERE)
    changed = subprocess.run(
        ["git", "status", "--porcelain", "--untracked-files=no"], capture_output=True, text=True, cwd=HERE
    )
    return [
        figure("machine", model, "threads", os.cpu_count(), "count", suite="run"),
        figure("load average", "before the run", "processes", round(os.getloadavg()[0], 2), "count", suite="run"),
        figure(
            "commit", commit.stdout.strip() or "unknown", "files changed since",
            len(changed.stdout.splitlines()), "count", suite="run",
        ),
    ]  # fmt: skip


def memory_table(sides, found):
    """The memory of each side, in MiB."""
    names = list(dict.fromkeys(f["case"] for f in found if f["metric"] == "size"))
    size = {(f["variant"], f["case"]): f"{f['value'] / 2**20:,.0f} MiB" for f in found if f["metric"] == "size"}
    return figures.table(["resident", *sides], [[name, *(size.get((side, name), "") for side in sides)] for name in names])


def report(run, sides):
    """The printed report: tables, and a description of each side."""
    names = ["load", *(case.name for case in run.cases)]
    parts = [figures.main_table(names, sides, run.results)]
    if any(isinstance(result, Timing) and result.mark for result in run.results.values()):
        parts.append(f"{SECOND_WORDING_MARK} asked in a second wording, because the first is answered wrongly: see below")
    servers = [server for server in SERVERS if server in sides]
    floor = figures.client_floor(servers, run.results)
    if floor is not None:
        parts.append(
            f"The client's floor, `g.inject(1)` over gremlinpython, is {figures.duration(floor)} "
            "(of the faster server); the servers without it:"
        )
        parts.append(figures.net_table(names[1:], servers, run.results, floor))
    parts.append(memory_table(sides, run.figures))
    for side, settings in run.settings.items():
        version = settings.get("version")
        rest = "; ".join(f"{name}: {value}" for name, value in settings.items() if name != "version")
        parts.append(f"{side} {version} — {rest}")
    if run.problems:
        parts.append("Not measured or not as it should be:\n" + "\n".join(f"- {text}" for text in run.problems))
    return "\n\n".join(parts)


def commands(options):
    """The command of each side, if its program is there."""
    python, limit = [sys.executable], f"{options.limit:g}"
    found = {"ladybug": [*python, HERE / "sides/ladybug_side.py", "memory", limit]}
    found["ladybug-disk"] = [*python, HERE / "sides/ladybug_side.py", "disk", limit]
    if options.embedded:
        found["mangrove-prepared"] = [options.embedded, "prepared", limit]
        found["mangrove-single"] = [options.embedded, "single", limit]
        found["mangrove-text"] = [options.embedded, "text", limit]
    if options.mangrove:
        found["mangrove-server"] = [*python, HERE / "sides/gremlin_side.py", "mangrove", limit, options.mangrove]
    if options.jars:
        found["tinkergraph-server"] = [*python, HERE / "sides/gremlin_side.py", "tinkergraph", limit, options.jars]
    return {side: list(map(str, command)) for side, command in found.items()}


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    path = lambda text: pathlib.Path(text).resolve()
    parser.add_argument("--vertices", type=int, default=200_000)
    parser.add_argument("--edges", type=int, help="the number of edges (default: ten times the vertices)")
    parser.add_argument("--seed", type=int, default=42)
    parser.add_argument(
        "--network", type=path, help="measure patterns, aggregates and paths on the tables of a social network in this folder"
    )
    parser.add_argument("--seconds", type=float, default=0.6, help="the time of a case on a side, in seconds")
    parser.add_argument("--limit", type=float, default=10.0, help="the time limit of one query, in seconds")
    parser.add_argument("--sides", default=",".join(SIDES), help="sides, with commas: " + ", ".join(SIDES))
    parser.add_argument("--only", help="measure only cases whose name contains this text")
    parser.add_argument("--json", type=path, help="also write the figures to this file")
    parser.add_argument("--folder", type=path, required=True, help="the folder for the graph's files and the logs")
    parser.add_argument("--embedded", type=path, help="the example `peers_side` of mangrove-bench")
    parser.add_argument("--mangrove", type=path, help="the program `mangrove`")
    parser.add_argument("--jars", type=path, help="the folder with the jars of Gremlin Server")
    options = parser.parse_args()
    of_network = [side for side in SIDES if side.startswith("mangrove-") or side == "ladybug"]
    known = [side for side in of_network if side not in SERVERS] if options.network else SIDES
    options.sides = [side for side in known if side in options.sides.split(",")]
    if not options.sides:
        parser.error("--sides names none of " + ", ".join(known))
    if options.edges is None:
        options.edges = 10 * options.vertices
    of_graph = f"{options.vertices}-{options.edges}-{options.seed}"
    options.folder = options.folder / (f"network-{options.network.name}" if options.network else of_graph)
    return options


def prepare_graph(options):
    """Writes the generated graph and the operations for the sides. Returns the cases, the oracle and the queries."""
    spec = graph.Spec(options.vertices, options.edges, options.seed)
    print(f"the graph: {spec.vertices} vertices, {spec.edges} edges, seed {spec.seed}", file=sys.stderr)
    oracle = Oracle(*graph.write(spec, options.folder))
    cases = workloads.cases(spec, oracle.names)
    workloads.write(spec, cases, options.folder / "workloads.json")
    return cases, oracle, workloads.QUERIES


def prepare_network(options):
    """As prepare_graph(), for the tables of a network."""
    tables = network.Network(options.network)
    tables.write(options.folder / "tables")
    vertices, edges = (sum(map(len, lists.values())) for lists in (tables.ids, tables.edges))
    print(f"the network: {vertices} vertices, {edges} edges", file=sys.stderr)
    queries = network.queries(tables)
    cases = network.cases(tables, queries)
    network.write_workloads(queries, cases, options.folder / "workloads.json")
    return cases, network.NetworkOracle(tables), queries


def measure_all(run, programs, found, begin):
    """Measures the sides that were asked for, prints the report, and writes the figures. Returns the exit code."""
    options = run.options
    for side in options.sides:
        if side in programs:
            run.measure(side, programs[side])
        else:
            run.problem(f"{side} was left out: its program is not there (see above)")
    print(report(run, [side for side in options.sides if side in run.settings]))
    print(f"{time.monotonic() - begin:.0f} s altogether", file=sys.stderr)
    if options.json:
        options.json.write_text(json.dumps(found + run.figures, indent=1))
    return 1 if any(isinstance(result, Missing) and result.word == "WRONG" for result in run.results.values()) else 0


def main():
    options = arguments()
    begin = time.monotonic()
    found = machine()
    cases, oracle, queries = prepare_network(options) if options.network else prepare_graph(options)
    if options.only:
        cases = [case for case in cases if options.only in case.name]
    run = Run(options, cases, oracle, queries)
    print(f"answers are known after {time.monotonic() - begin:.0f} s", file=sys.stderr)
    return measure_all(run, commands(options), found, begin)


if __name__ == "__main__":
    sys.exit(main())

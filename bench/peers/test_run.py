"""Tests a run with a side that answers from the oracle: correctly, wrongly, slowly, or not at all.

This file is also that side: `test_run.py MANNER`.
"""

import argparse
import contextlib
import io
import os
import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import figures
import graph
import peers
import workloads
from figures import Missing, Timing
from oracle import Oracle
from sides.lines import Side, TimedOut, serve


class Pretender(Side):
    """Answers like the oracle, with the deviation that its manner names."""

    def __init__(self, manner):
        self.manner, self.other_words = manner, False

    def load(self, folder):
        self.oracle = Oracle(folder / "people.csv", folder / "knows.csv")
        return 0.25, "0.0", {"manner": self.manner}

    def ask(self, query, parameters):
        if query == "insert" and self.manner != "forgetful":
            self.oracle.edge_count += 1
        if query == "update":
            self.oracle.ages[parameters["who"]] = parameters["age"]
        if query in ("insert", "update"):
            return []
        if query == "reach" and self.manner == "slow":
            raise TimedOut("ended after 1 s")
        if query == "2 hops paths" and self.manner == "dying":
            os._exit(3)
        answer = self.oracle.answer(query, parameters)
        lies = query == "3 hops paths" and (self.manner == "lying" or self.manner == "clumsy" and not self.other_words)
        return [cell + 1 for cell in answer] if lies else answer

    def flatten(self, result):
        return result

    def rephrase(self, queries):
        self.other_words = self.manner == "clumsy"
        return self.other_words

    def process(self):
        return os.getpid()


class Runs(unittest.TestCase):
    def run_side(self, manner):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        options = argparse.Namespace(folder=pathlib.Path(folder.name), seconds=0.0, limit=1.0)
        spec = graph.Spec(60, 300, 1)
        oracle = Oracle(*graph.write(spec, options.folder))
        cases = workloads.cases(spec, oracle.names)
        workloads.write(spec, cases, options.folder / "workloads.json")
        run = peers.Run(options, cases, oracle)
        with contextlib.redirect_stderr(io.StringIO()):
            run.measure("side", [sys.executable, __file__, manner])
        return run

    def missing(self, run):
        return {case: result.word for (_, case), result in run.results.items() if isinstance(result, Missing)}

    def test_an_honest_side_is_timed_in_every_case(self):
        run = self.run_side("honest")
        self.assertEqual(run.problems, [])
        names = {"load", *(case.name for case in run.cases)}
        self.assertEqual({case for (_, case), result in run.results.items() if isinstance(result, Timing)}, names)
        self.assertEqual(run.results["side", "load"].median, 0.25e9)
        text = peers.report(run, ["side"])
        self.assertTrue(all(name in text for name in names), text)
        self.assertEqual({tuple(made) for made in run.figures}, {tuple(figures.figure(1, 2, 3, 4, 5))})

    def test_a_wrong_answer_is_not_timed(self):
        run = self.run_side("lying")
        self.assertEqual(self.missing(run), {"3 hops, paths": "WRONG"})
        self.assertIn("not with", run.problems[0])

    def test_a_second_wording_is_tried_and_told(self):
        run = self.run_side("clumsy")
        self.assertEqual(self.missing(run), {})
        self.assertIn("second wording", run.problems[0])
        self.assertIn("*", run.results["side", "3 hops, paths"].cell())

    def test_lost_writes_are_found(self):
        run = self.run_side("forgetful")
        writing = {case.name: "WRONG" for case in run.cases if case.writes}
        self.assertEqual(self.missing(run), writing)

    def test_a_timeout_is_a_result_and_the_side_goes_on(self):
        run = self.run_side("slow")
        self.assertEqual(self.missing(run), {"reach within 4 hops": "timeout > 1 s"})

    def test_a_side_that_dies_is_given_up(self):
        run = self.run_side("dying")
        self.assertIn("given up", run.problems[0])
        self.assertIn(("side", "1 hop, paths"), run.results)
        self.assertNotIn(("side", "sum of a property"), run.results)


if __name__ == "__main__":
    serve(Pretender(sys.argv[1]))

"""Tests the arithmetic on small graphs and times, computed by hand: `python3 -m unittest discover -s bench/peers`.

Needs no peer, no client and no database.
"""

import json
import pathlib
import tempfile
import unittest

import figures
import graph
import workloads
from figures import Missing, Timing
from oracle import Oracle, canonical

MILLION = 1e6


class Arithmetic(unittest.TestCase):
    def test_the_median_is_of_the_repetitions_means_and_the_percentiles_of_single_operations(self):
        timing = Timing([[10, 30], [10, 10], [100, 20]])
        self.assertEqual((timing.median, timing.min, timing.max), (20, 10, 60))
        self.assertEqual((timing.p50, timing.p99), (10, 100))
        self.assertEqual((timing.repetitions, timing.operations), (3, 6))

    def test_percentiles_are_by_nearest_rank(self):
        hundred = list(range(1, 101))
        self.assertEqual([figures.percentile(hundred, share) for share in (0.01, 0.5, 0.99, 1)], [1, 50, 99, 100])
        self.assertEqual(figures.percentile([7], 0.5), 7)

    def test_durations_have_three_digits_and_the_unit_that_fits(self):
        for nanos, text in [
            (0, "0 ns"), (999, "999 ns"), (999.9, "1.00 µs"), (1234, "1.23 µs"), (56_789, "56.8 µs"),
            (-2_500, "-2.50 µs"), (1.5e9, "1.50 s"), (100 * MILLION, "100 ms"), (12e9, "12.0 s"),
        ]:  # fmt: skip
            self.assertEqual(figures.duration(nanos), text)

    def test_a_ratio_needs_two_times(self):
        ours, theirs = Timing([[10]]), Timing([[25]])
        self.assertEqual(figures.times(ours, theirs), "2.50×")
        self.assertEqual(figures.times(ours, Missing("WRONG", "")), "")
        self.assertEqual(figures.times(None, theirs), "")

    def test_figures_have_the_form_of_all_benches(self):
        made = Timing([[10, 30]]).figures("a case", "a side")
        self.assertEqual({tuple(figure) for figure in made}, {("suite", "case", "variant", "metric", "value", "unit")})
        values = {figure["metric"]: figure["value"] for figure in made}
        self.assertEqual(
            values,
            {"time": 20, "time_min": 20, "time_max": 20, "operation_p50": 10, "operation_p99": 30, "operations": 2},
        )


class Tables(unittest.TestCase):
    def setUp(self):
        slow, fast = Timing([[900]]), Timing([[400]])
        self.servers = ["a", "b"]
        self.results = {
            ("a", figures.FLOOR_CASE): Timing([[300]]), ("b", figures.FLOOR_CASE): Timing([[310]]),
            ("a", "hop"): fast, ("b", "hop"): slow,
            ("a", "echo"): Timing([[301]]), ("b", "echo"): slow,
            ("a", "walk"): slow, ("b", "walk"): Missing("timeout > 1 s", ""),
        }  # fmt: skip

    def test_the_floor_is_the_faster_servers(self):
        self.assertEqual(figures.client_floor(self.servers, self.results), 300)
        self.assertIsNone(figures.client_floor([], self.results))

    def test_the_floor_is_taken_off_both_and_noise_makes_no_ratio(self):
        text = figures.net_table([figures.FLOOR_CASE, "hop", "echo", "walk"], self.servers, self.results, 300)
        rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in text.splitlines()[2:]]
        self.assertEqual(
            rows,
            [
                ["hop", "100 ns", "600 ns", "6.00×"],
                ["echo", "1.00 ns", "600 ns", "–"],
                ["walk", "600 ns", "timeout > 1 s", ""],
            ],
        )

    def test_what_was_not_measured_is_shown_as_what_it_is(self):
        text = figures.main_table(["walk", "other"], self.servers, self.results)
        self.assertIn("timeout > 1 s", text)
        self.assertEqual(len({len(line) for line in text.splitlines()}), 1, "columns are aligned")


class Answers(unittest.TestCase):
    """A graph made by hand: 0→1 twice, 0→2, 1→3, 2→3, 3→0, 3→3."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        people = pathlib.Path(folder.name, "people.csv")
        knows = pathlib.Path(folder.name, "knows.csv")
        rows = ["0,40,a,1,x,30,person", "1,10,b,2,y,31,person", "2,30,c,1,x,32,person", "3,20,d,2,x,33,person"]
        people.write_text("\n".join([graph.VERTEX_HEADER, *rows]))
        edges = ["0,1,2001", "0,1,2010", "0,2,2020", "1,3,2001", "2,3,2010", "3,0,2020", "3,3,2020"]
        knows.write_text("\n".join([graph.EDGE_HEADER, *(edge + ",knows" for edge in edges)]))
        self.oracle = Oracle(people, knows)

    def test_every_query_that_reads_is_answered(self):
        start = {"who": 0}
        expected = {
            ("point", ("who", 0)): [40, "a"],
            ("by name", ("name", "c")): [30],
            ("by code", ("code", 2)): [2],
            ("neighbors", ("who", 0)): [10, 10, 30],
            ("1 hop paths", ("who", 0)): [3],
            ("1 hop distinct", ("who", 0)): [2],
            ("2 hops paths", ("who", 0)): [3],
            ("2 hops distinct", ("who", 0)): [1],
            ("3 hops paths", ("who", 0)): [6],
            ("3 hops distinct", ("who", 0)): [2],
            ("reach", ("who", 0)): [3],
            ("count people", None): [4],
            ("count knows", None): [7],
            ("sum", None): [126],
            ("top", None): [40, 30, 20, 10],
            ("group", None): ["x", 3, "y", 1],
            ("group edges", ("year", 2010)): [2010, 2, 2020, 3],
            ("age", ("who", 3)): [33],
            ("constant", None): [1],
        }
        for (query, parameter), answer in expected.items():
            parameters = dict([parameter]) if parameter else {}
            self.assertEqual(self.oracle.answer(query, parameters), answer, query)
        self.assertEqual(self.oracle.answer("recent neighbors", {**start, "year": 2010}), [2])
        asked = {query for query, _ in expected} | {"recent neighbors"}
        reading = {name for name, query in workloads.QUERIES.items() if query.shape != "none"}
        self.assertEqual(asked, reading, "every query has a line above")

    def test_writes_count_as_often_as_they_were_done_and_the_last_value_stays(self):
        add = workloads.Case("add", [("insert", {"who": 0, "other": 1, "year": 2000})])
        ages = [("update", {"who": 2, "age": 7}), ("update", {"who": 2, "age": 8}), ("point", {"who": 1})]
        none = workloads.Case("none", [("update", {"who": 3, "age": 1})])
        after = self.oracle.after([(add, 3), (workloads.Case("set", ages), 2), (none, 0)])
        self.assertEqual(after, (10, {2: 8}))

    def test_bags_and_maps_have_no_order_and_lists_do(self):
        self.assertEqual(canonical("bag", ["b", 2, 1]), canonical("bag", [1, "b", 2]))
        self.assertEqual(canonical("map", ["y", 1, "x", 3]), ["x", 3, "y", 1])
        self.assertNotEqual(canonical("values", [1, 2]), canonical("values", [2, 1]))
        with self.assertRaises(ValueError):
            canonical("map", ["x"])


class Graph(unittest.TestCase):
    SPEC = graph.Spec(1000, 10_000, 7)

    def test_the_seed_decides_everything(self):
        self.assertEqual(list(graph.knows(self.SPEC)), list(graph.knows(self.SPEC)))
        self.assertNotEqual(list(graph.knows(self.SPEC)), list(graph.knows(graph.Spec(1000, 10_000, 8))))
        names = [name for _, _, name, *_ in graph.people(self.SPEC)]
        one, other = (workloads.as_json(self.SPEC, workloads.cases(self.SPEC, names)) for _ in range(2))
        self.assertEqual(json.dumps(one), json.dumps(other))

    def test_ids_names_and_births_are_peoples_own_and_degrees_are_skewed(self):
        people = list(graph.people(self.SPEC))
        for column in range(3):
            self.assertEqual(len({person[column] for person in people}), 1000)
        degrees = [0] * 1000
        for source, _, _ in graph.knows(self.SPEC):
            degrees[source] += 1
        degrees.sort()
        self.assertGreater(degrees[-1], 100, "the largest degree is ten times the mean or more")
        self.assertLess(degrees[500], 10, "most are below the mean")

    def test_writing_cases_come_last(self):
        cases = workloads.cases(self.SPEC, ["p"] * 1000)
        writes = [case.writes for case in cases]
        self.assertEqual(writes, sorted(writes))
        self.assertEqual(len({case.name for case in cases}), len(cases))
        (mixed,) = [case for case in cases if case.name.startswith("mixed")]
        share = sum(workloads.QUERIES[query].shape == "none" for query, _ in mixed.operations) / len(mixed.operations)
        self.assertAlmostEqual(share, 0.2, delta=0.06)


if __name__ == "__main__":
    unittest.main()

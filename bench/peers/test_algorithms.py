"""Tests of the oracle of algorithms, and of what counts as a difference."""

import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from algorithms import Edges, read
from algorithms_oracle import Oracle, difference

# Two triangles that share the vertex 2, with a tail 4 – 5, and a pair of their own. Arcs go round both triangles.
ARCS = [(0, 1), (1, 2), (2, 0), (2, 3), (3, 4), (4, 2), (4, 5), (6, 7)]


class OracleTest(unittest.TestCase):
    def setUp(self):
        self.oracle = Oracle(Edges([*ARCS, (0, 0), (0, 1), (1, 0)]))

    def test_answers_are_those_of_the_definitions(self):
        oracle = self.oracle
        self.assertEqual(oracle.bfs(0), [0, 1, 1, 2, 2, 3, -1, -1])
        self.assertEqual(oracle.triangles(), [2])
        self.assertEqual(oracle.lcc()[:5], [1.0, 1.0, 1 / 3, 1.0, 1 / 3])
        self.assertEqual(oracle.k_core(), [2, 2, 2, 2, 2, 1, 1, 1])
        self.assertEqual(oracle.wcc(), [0] * 6 + [6] * 2)
        self.assertEqual(len(set(oracle.scc()[:5])), 1)
        self.assertEqual(len(set(oracle.scc())), 4)
        self.assertAlmostEqual(sum(oracle.pagerank(0.85, 1e-9, 100)), 1.0)
        # All paths from 5 lead through 4, and from there to 0 and 1 through 2.
        self.assertEqual(oracle.betweenness([5]), [0, 0, 1.0, 0, 2.0, 0, 0, 0])

    def test_wrong_answers_are_told(self):
        oracle = self.oracle
        self.assertIsNone(difference("wcc", [7] * 6 + [3] * 2, oracle.wcc(), oracle))
        self.assertIsNotNone(difference("wcc", [7] * 8, oracle.wcc(), oracle))
        self.assertIsNotNone(difference("wcc", [7] * 5 + [3] * 3, oracle.wcc(), oracle))
        ranks = oracle.pagerank(0.85, 1e-9, 100)
        self.assertIsNone(difference("pagerank", ranks, ranks, oracle))
        self.assertIsNotNone(difference("pagerank", [rank + 1e-5 for rank in ranks], ranks, oracle))
        self.assertIn("vertex 5", difference("bfs", [0, 1, 1, 2, 2, 4, -1, -1], oracle.bfs(0), oracle))
        self.assertIsNotNone(difference("bfs", [0, 1], oracle.bfs(0), oracle))
        self.assertIsNone(difference("louvain", [0, 0, 0, 1, 1, 1, 2, 2], None, oracle))
        self.assertIn("modularity", difference("louvain", [0] * 8, None, oracle))


class EdgesTest(unittest.TestCase):
    def test_lists_have_comments_and_any_numbers(self):
        with tempfile.NamedTemporaryFile("w", suffix=".el") as file:
            file.write("# source target\n10 20 3\n\n20\t10\n30,10\n30 30\n")
            file.flush()
            edges = Edges(read(file.name))
        self.assertEqual((edges.vertex_count, edges.arcs, edges.pairs), (3, [(0, 1), (1, 0), (2, 0)], [(0, 1), (0, 2)]))

    def test_a_graph_without_edges_is_refused(self):
        self.assertRaisesRegex(ValueError, "no edge", Edges, [(1, 1)])


if __name__ == "__main__":
    unittest.main()

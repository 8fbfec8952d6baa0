"""Tests the expected answers on a network that is small enough to count by hand."""

import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import network

# Three friends in one city. The first wrote a post in a forum, the second a comment on it, and the third likes the post.
TABLES = {
    "Person": ["id:ID(Person)", 1, 2, 3],
    "Place": ["id:ID(Place)|:LABEL|name:string", "10|Place;City|a", "20|Place;Country|b"],
    "Forum": ["id:ID(Forum)", 300],
    "Post": ["id:ID(Post)|content:string|length:int", "100|hello|5"],
    "Comment": ["id:ID(Comment)|length:int|browserUsed:string", "200|2|Opera"],
    "Tag": ["id:ID(Tag)", 5, 6],
    "TagClass": ["id:ID(TagClass)", 7],
    "Person_isLocatedIn_Place": [":START_ID(Person)|:END_ID(Place)", "1|10", "2|10", "3|10"],
    "Place_isPartOf_Place": [":START_ID(Place)|:END_ID(Place)", "10|20"],
    "Person_knows_Person": [":START_ID(Person)|:END_ID(Person)", "1|2", "2|3", "1|3"],
    "Person_hasInterest_Tag": [":START_ID(Person)|:END_ID(Tag)", "1|5"],
    "Person_likes_Post": [":START_ID(Person)|:END_ID(Post)", "3|100"],
    "Forum_hasMember_Person": [":START_ID(Forum)|:END_ID(Person)", "300|1"],
    "Forum_containerOf_Post": [":START_ID(Forum)|:END_ID(Post)", "300|100"],
    "Post_hasCreator_Person": [":START_ID(Post)|:END_ID(Person)", "100|1"],
    "Comment_hasCreator_Person": [":START_ID(Comment)|:END_ID(Person)", "200|2"],
    "Comment_replyOf_Post": [":START_ID(Comment)|:END_ID(Post)", "200|100"],
    "Post_hasTag_Tag": [":START_ID(Post)|:END_ID(Tag)", "100|5"],
    "Comment_hasTag_Tag": [":START_ID(Comment)|:END_ID(Tag)", "200|5", "200|6"],
    "Tag_hasType_TagClass": [":START_ID(Tag)|:END_ID(TagClass)", "5|7", "6|7"],
}


class NetworkTest(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        for name, lines in TABLES.items():
            (self.folder / f"{name}.csv").write_text("\n".join(map(str, lines)) + "\n")
        self.network = network.Network(self.folder)

    def test_patterns_are_counted(self):
        oracle = network.NetworkOracle(self.network)
        counts = [oracle.answer(query, {})[0] for query in network.PATTERNS]
        self.assertEqual(counts, [2, 1, 6, 1, 1, 2, 3, 0, 0])

    def test_aggregates_and_paths_are_answered(self):
        oracle = network.NetworkOracle(self.network)
        self.assertEqual(oracle.answer("greatest, sum and count", {}), [2, 2, 1])
        self.assertEqual(oracle.answer("group count by a text", {}), ["Opera", 1])
        self.assertEqual(oracle.answer("most likes", {}), [1])
        self.assertEqual(oracle.answer("shortest path", {"a": 1, "b": 3}), [2])

    def test_places_are_divided_by_their_labels(self):
        self.network.write(self.folder / "tables")
        names = {path.stem for path in (self.folder / "tables").glob("*.csv")}
        self.assertLessEqual({"City", "Country", "City_isPartOf_Country", "Person_isLocatedIn_City"}, names)
        self.assertNotIn("Place", names)
        again = network.Network(self.folder / "tables")
        self.assertEqual(network.NetworkOracle(again).q1(), 2)

    def test_every_query_has_both_texts(self):
        for name, query in network.queries(self.network).items():
            self.assertTrue(query.gremlin and query.cypher, name)


if __name__ == "__main__":
    unittest.main()

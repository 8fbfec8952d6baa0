"""Answers LDBC SNB BI with SQL: chooses parameters from the data, and prints the rows that are right.

DuckDB reads the same CSV files that Mangrove loads and shares no code with it. A line of the output is an object with
`query`, `parameters` and `answer`, as `mangrove-queries` reads it. Parameters are chosen like those of the benchmark:
tags, countries and classes by how often they occur, dates by how many messages are older. So they fit every scale.

Usage: answers.py FOLDER-OF-CSV-FILES
"""

import datetime
import heapq
import json
import sys
from collections import defaultdict
from pathlib import Path

import duckdb

HERE = Path(__file__).resolve().parent
DAY = 24 * 60 * 60 * 1000

# The columns of vertices, in the order of the files. A column with `Date` is a date, one without a name is not read.
VERTICES = {
    "person": ["id", "firstName", "lastName", "", "", "creationDate"],
    "post": ["id", "", "creationDate", "", "", "language", "content", "length"],
    "comment": ["id", "creationDate", "", "", "content", "length"],
    "forum": ["id", "title", "creationDate"],
    "tag": ["id", "name"],
    "tagclass": ["id", "name"],
    "place": ["id", "name"],
    "organisation": ["id", "", "name"],
}
# Edges have a source, a target, and maybe one property.
EDGES = {
    "person_knows_person": "creationDate",
    "person_isLocatedIn_place": None,
    "person_hasInterest_tag": None,
    "person_studyAt_organisation": "classYear",
    "person_workAt_organisation": None,
    "person_likes_post": None,
    "person_likes_comment": None,
    "post_hasCreator_person": None,
    "comment_hasCreator_person": None,
    "comment_replyOf_post": None,
    "comment_replyOf_comment": None,
    "post_hasTag_tag": None,
    "comment_hasTag_tag": None,
    "forum_containerOf_post": None,
    "forum_hasMember_person": None,
    "forum_hasModerator_person": None,
    "tag_hasType_tagclass": None,
    "place_isPartOf_place": None,
}
TEXTS = {"firstName", "lastName", "language", "content", "title", "name"}


def create_tables(db, folder):
    """Makes a table of each file, and then those of tables.sql."""
    files = {path.stem.removesuffix("_0_0").lower(): path for path in folder.rglob("*.csv")}
    edges = {name: ["source", "target"] + ([more] if more else []) for name, more in EDGES.items()}
    for name, columns in (VERTICES | edges).items():
        selected = ", ".join(f"{value(column, at)} AS {column}" for at, column in enumerate(columns) if column)
        db.execute(
            f"CREATE TABLE {name} AS SELECT {selected} FROM read_csv($file, delim = '|', quote = '', escape = '',"
            " header = false, skip = 1, all_varchar = true)",
            {"file": str(files[name.lower()])},
        )
    db.execute((HERE / "tables.sql").read_text())
    messages, different = db.execute("SELECT count(*), count(DISTINCT id) FROM message").fetchone()
    written = db.execute("SELECT (SELECT count(*) FROM post) + (SELECT count(*) FROM comment)").fetchone()[0]
    assert messages == different == written, (messages, different, written)


def value(column, at):
    """The expression of a column's value. Dates are milliseconds, or texts yyyyMMddHHmmssSSS."""
    field = f"column{at}"
    if column in TEXTS:
        return f"nullif({field}, '')"
    if column.endswith("Date"):
        return f"CASE length({field}) WHEN 17 THEN epoch_ms(strptime({field}, '%Y%m%d%H%M%S%g')) ELSE {field}::BIGINT END"
    return f"{field}::BIGINT"


def queries():
    """The queries of bi.sql by name."""
    parts = (HERE / "bi.sql").read_text().split("\n-- BI")[1:]
    return {"BI" + part.split("\n", 1)[0]: part.split("\n", 1)[1] for part in parts}


class Choice:
    """Values of the data, by how often they occur: 0 is the most frequent one."""

    def __init__(self, db):
        self.db = db
        self.tags = self.column("SELECT tagName FROM message_tag GROUP BY 1 ORDER BY count(*) DESC, 1")
        self.classes = self.column("SELECT tagClass FROM message_tag GROUP BY 1 ORDER BY count(*) DESC, 1")
        self.countries = self.column("SELECT country FROM person_place GROUP BY 1 ORDER BY count(*) DESC, 1")
        self.cities = self.column("SELECT city FROM person_place GROUP BY 1 ORDER BY count(*) DESC, 1")
        self.persons = self.column("SELECT person FROM knows GROUP BY 1 ORDER BY count(*) DESC, 1")
        self.interests = self.column("SELECT tagName FROM interest GROUP BY 1 ORDER BY count(*) DESC, 1")
        self.languages = self.column("SELECT language FROM post WHERE language IS NOT NULL GROUP BY 1 ORDER BY count(*) DESC, 1")

    def column(self, sql):
        return [row[0] for row in self.db.execute(sql).fetchall()]

    def day(self, part):
        """The beginning of the day before which this part of the messages was written."""
        sql = "SELECT quantile_disc(creationDate, $part) FROM message"
        return self.db.execute(sql, {"part": part}).fetchone()[0] // DAY * DAY

    def recruits(self, edges, how_many):
        """Companies and persons whom many of their employees reach by two of these edges."""
        sql = f"""
            WITH edges AS ({edges})
            SELECT o.name, b.target
            FROM edges a JOIN edges b ON b.source = a.target AND b.target <> a.source
            JOIN person_workAt_organisation w ON w.source = a.source
            JOIN organisation o ON o.id = w.target
            GROUP BY ALL
            ORDER BY count(DISTINCT a.source) DESC, o.name, b.target
            LIMIT $many
        """
        return self.db.execute(sql, {"many": how_many}).fetchall()

    def tagged_days(self, how_many):
        """Pairs of a tag and a day with persons who wrote about the first on the first day, and about the second on the second."""
        sql = """
            WITH used AS (
                SELECT DISTINCT creator, tagName, creationDate // $day * $day AS day
                FROM message JOIN message_tag ON message_tag.message = message.id
                WHERE tagName IN (SELECT tagName FROM message_tag GROUP BY 1 ORDER BY count(*) DESC, 1 LIMIT 20)
            )
            SELECT a.tagName, a.day, b.tagName, b.day
            FROM used a JOIN used b ON b.creator = a.creator AND a.tagName < b.tagName
            GROUP BY ALL
            ORDER BY count(*) DESC, a.tagName, a.day, b.tagName, b.day
            LIMIT $many
        """
        return self.db.execute(sql, {"day": DAY, "many": how_many}).fetchall()


def parameters(data, texts):
    """The parameters of each query, several times."""
    early, middle, late = data.day(0.25), data.day(0.5), data.day(0.8)
    periods = [(early, middle), (middle, late), (early, late)]
    month = lambda ms: (lambda day: 12 * day.year + day.month)(datetime.datetime.fromtimestamp(ms / 1000, datetime.timezone.utc))
    vertex = lambda person: {"vertex": ["Person", person]}
    period = lambda of: {"startDate": periods[of][0], "endDate": periods[of][1]}
    days = data.tagged_days(3)
    return {
        "BI1": [{"datetime": date} for date in (early, middle, late)],
        "BI2": [
            {"tagClass": data.classes[of], "date": date, "firstEnd": date + 100 * DAY, "secondEnd": date + 200 * DAY}
            for of, date in ((0, middle), (1, early), (5, late))
        ],
        "BI3": [{"tagClass": data.classes[a], "country": data.countries[b]} for a, b in ((0, 0), (3, 1), (1, 2))],
        "BI4": [{"date": date} for date in (early, middle, late)],
        "BI5": [{"tag": data.tags[of]} for of in (0, 10, 100)],
        "BI6": [{"tag": data.tags[of]} for of in (0, 10, 100)],
        "BI7": [{"tag": data.tags[of]} for of in (0, 10, 100)],
        "BI8": [{"tag": data.tags[of]} | period(1 - of % 2) for of in (0, 10, 101)],
        "BI9": [period(of) for of in (0, 1, 2)],
        "BI10": [
            {"personId": data.persons[of], "country": data.countries[of], "tagClass": data.classes[of],
             "minPathDistance": least, "maxPathDistance": most}
            for of, least, most in ((0, 1, 2), (1, 2, 3), (2, 3, 4))
        ],
        "BI11": [{"country": data.countries[of % 2]} | period(of) for of in (0, 1, 2)],
        "BI12": [
            {"startDate": date, "lengthThreshold": most, "languages": data.languages[of : of + 2]}
            for date, most, of in ((early, 100, 0), (middle, 20, 1), (late, 1000, 0))
        ],
        "BI13": [
            {"country": data.countries[of], "endDate": date, "endMonth": month(date)}
            for of, date in ((0, late), (1, middle), (2, late))
        ],
        "BI14": [{"country1": data.countries[a], "country2": data.countries[b]} for a, b in ((0, 1), (1, 0), (2, 3))],
        "BI15": [
            {"person1": vertex(data.persons[a]), "person2": vertex(data.persons[b])} | period(of)
            for a, b, of in ((0, -1, 0), (3, -5, 1), (-2, -9, 2))
        ],
        "BI16": [
            {"tagA": tag_a, "dateA": day_a, "endA": day_a + DAY, "tagB": tag_b, "dateB": day_b, "endB": day_b + DAY,
             "maxKnowsLimit": most}
            for (tag_a, day_a, tag_b, day_b), most in zip(days, (4, 2, 10))
        ],
        "BI17": [{"tag": data.tags[of], "delta": hours * 60 * 60 * 1000} for of, hours in ((0, 4), (5, 1), (34, 1))],
        "BI18": [{"tag": data.interests[of]} for of in (0, 7, 26)],
        "BI19": [{"city1Id": data.cities[a], "city2Id": data.cities[b]} for a, b in ((0, 1), (1, 2), (4, 3))],
        "BI20": [
            {"company": company, "person2": vertex(person)}
            for company, person in data.recruits(texts["BI20"].strip().rstrip(";"), 3)
        ],
    }


def distances(db, sql, given, source):
    """The lengths of the shortest paths from a person, by Dijkstra's algorithm."""
    edges = defaultdict(list)
    for start, end, weight in db.execute(sql, given).fetchall():
        edges[start].append((end, weight))
    found, waiting = {}, [(0, source)]
    while waiting:
        length, person = heapq.heappop(waiting)
        if person not in found:
            found[person] = length
            for friend, weight in edges[person]:
                heapq.heappush(waiting, (length + weight, friend))
    return found


def shortest_path(db, sql, given):
    """BI15: the length of the shortest path between two persons, or -1."""
    (source, target), dates = persons(given), {key: given[key] for key in ("startDate", "endDate")}
    return [distances(db, sql, dates, source).get(target, -1.0)]


def between_cities(db, sql, given):
    """BI19: the pairs with the shortest path among the pairs of a person of one city and one of another."""
    citizens = lambda city: [row[0] for row in db.execute("SELECT person FROM person_place WHERE city = $1", [city]).fetchall()]
    pairs = []
    for source in citizens(given["city1Id"]):
        found = distances(db, sql, {}, source)
        pairs += [(found[target], source, target) for target in citizens(given["city2Id"]) if target in found]
    least = min(pairs, default=(None,))[0]
    return [
        {"person1Id": source, "person2Id": target, "totalWeight": length}
        for length, source, target in sorted(pairs)
        if length == least
    ]


def recruits(db, sql, given):
    """BI20: the employees of a company with the shortest path to a person."""
    sql_employees = (
        "SELECT source FROM person_workAt_organisation w JOIN organisation o ON o.id = w.target WHERE o.name = $1"
    )
    (target,) = persons(given)
    found = distances(db, sql, {}, target)
    employees = [row[0] for row in db.execute(sql_employees, [given["company"]]).fetchall()]
    lengths = sorted((found[person], person) for person in employees if person in found and person != target)
    return [{"person1Id": person, "totalWeight": length} for length, person in lengths if length == lengths[0][0]][:20]


def persons(given):
    """The persons among the parameters, in the order of their names."""
    return [given[key]["vertex"][1] for key in ("person1", "person2") if key in given]


SEARCHES = {"BI15": shortest_path, "BI19": between_cities, "BI20": recruits}


def answer(db, name, sql, given):
    """The rows that are right."""
    if name in SEARCHES:
        return SEARCHES[name](db, sql, given)
    result = db.execute(sql, given)
    fields = [column[0] for column in result.description]
    return [dict(zip(fields, row)) for row in result.fetchall()]


def main():
    db = duckdb.connect()
    create_tables(db, Path(sys.argv[1]))
    texts = queries()
    for name, choices in parameters(Choice(db), texts).items():
        answers = [answer(db, name, texts[name], given) for given in choices]
        assert any(answers), f"{name} has no rows for any of its parameters, so it checks nothing"
        for given, rows in zip(choices, answers):
            print(json.dumps({"query": name, "parameters": given, "answer": rows}))


if __name__ == "__main__":
    main()

//! The two reads, in Gremlin and on the typed interface.
//!
//! A typed read has parts: the pages of a label, or a few vertices each. One thread reads a part in columns and gives a
//! partial answer. The partial answers are put together at the end.

use mangrove::{Database, Direction, IndexRange, Parameters, Result, Team, Value, VertexId};

use super::pages::Pages;

/// Listing 3 of the paper on the graph database interface (GDI, Besta and others 2023), in Gremlin: ownerships of red cars by
/// persons older than 30. A person with two red cars counts twice, as in the listing.
pub const RED_CARS: &str =
    "g.V().hasLabel('Person').has('age', gt(30)).out('OWN').hasLabel('Car').has('color', 'red').count()";

/// BI 2 of LDBC SNB, in Gremlin: the tags of a class, by how the number of messages about them changed from one period to
/// the next.
pub const TAG_EVOLUTION: &str = "g.V().has('TagClass', 'name', tagClass).in('hasType').
    project('tag', 'first', 'second').by('name').
      by(in('hasTag').hasLabel('Post', 'Comment').has('creationDate', between(start, middle)).count()).
      by(in('hasTag').hasLabel('Post', 'Comment').has('creationDate', between(middle, end)).count()).
    order().by(math('abs(first - second)'), desc).by('tag').limit(100)";

/// The length of a period of [`TAG_EVOLUTION`]: 100 days in milliseconds.
const PERIOD: i64 = 100 * 24 * 60 * 60 * 1000;
/// Tags of a part of the work: few enough for a balance between threads, although some tags have many messages.
const TAGS_A_PART: usize = 4;

/// [`RED_CARS`] in Gremlin.
pub fn red_cars_in_gremlin(db: &Database) -> Result<i64> {
    let counts = db.query(RED_CARS)?.collect()?;
    Ok(counts.first().map_or(0, integer))
}

/// [`RED_CARS`] on the typed interface.
pub fn red_cars(pages: &Pages<'_>, team: &Team) -> Result<i64> {
    let (persons, cars, own) = (pages.labels(&["Person"]), pages.labels(&["Car"]), pages.labels(&["OWN"]));
    let counts = pages.map(team, &persons, |persons| {
        let ages = pages.integers(persons, "age")?;
        let mut rows: Vec<u32> = ages.into_iter().filter(|(_, age)| *age > 30).map(|(row, _)| row).collect();
        // A person may have several ages. One that is high enough will do.
        rows.dedup();
        let owners: Vec<VertexId> = rows.iter().map(|row| persons[*row as usize]).collect();
        let mut things = pages.neighbors(&owners, Direction::Out, &own)?.neighbor;
        let mut are_cars = pages.have_labels(&things, &cars)?.into_iter();
        things.retain(|_| are_cars.next() == Some(true));
        let colors = pages.values(&things, "color")?;
        let red = Value::from("red");
        let mut rows: Vec<u32> =
            colors.row.iter().zip(&colors.value).filter(|(_, color)| **color == red).map(|(row, _)| *row).collect();
        rows.dedup();
        Ok(i64::try_from(rows.len()).unwrap_or(i64::MAX))
    })?;
    Ok(counts.into_iter().sum())
}

/// What [`TAG_EVOLUTION`] asks for.
pub struct TagEvolution {
    class: String,
    start: i64,
}

/// A row of [`TAG_EVOLUTION`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TagRow {
    /// The name of the tag.
    pub tag: String,
    /// Messages with the tag in the first period.
    pub first: i64,
    /// Messages with the tag in the second period.
    pub second: i64,
}

impl TagRow {
    fn difference(&self) -> i64 {
        (self.first - self.second).abs()
    }
}

impl TagEvolution {
    /// The tags of this class, in the two periods of 100 days that begin at a date, in milliseconds since 1970.
    pub fn new(class: &str, start: i64) -> Self {
        TagEvolution { class: class.to_owned(), start }
    }

    /// The rows, in Gremlin.
    pub fn rows_in_gremlin(&self, db: &Database) -> Result<Vec<TagRow>> {
        let (start, middle, end) = self.bounds();
        let parameters = Parameters::from([
            ("tagClass".into(), Value::from(self.class.as_str())),
            ("start".into(), start.into()),
            ("middle".into(), middle.into()),
            ("end".into(), end.into()),
        ]);
        let rows = db.run(&db.prepare(TAG_EVOLUTION)?, &parameters)?.collect()?;
        Ok(rows.iter().filter_map(row).collect())
    }

    /// The rows, on the typed interface. A part of the work is the messages of a few tags. A message has one date.
    pub fn rows(&self, pages: &Pages<'_>, team: &Team) -> Result<Vec<TagRow>> {
        let (start, middle, end) = self.bounds();
        let named = IndexRange::Equal(vec![self.class.as_str().into()]);
        let classes = pages.find(&pages.labels(&["TagClass"]), "name", &named)?;
        let tags = pages.neighbors(&classes, Direction::In, &pages.labels(&["hasType"]))?.neighbor;
        let (messages, has_tag) = (pages.labels(&["Post", "Comment"]), pages.labels(&["hasTag"]));
        let parts: Vec<&[VertexId]> = tags.chunks(TAGS_A_PART).collect();
        let counts = team.map_parts(parts.len(), |part| {
            let tagged = pages.neighbors(parts[part], Direction::In, &has_tag)?;
            let are_messages = pages.have_labels(&tagged.neighbor, &messages)?;
            let mut counts = vec![[0, 0]; parts[part].len()];
            for (row, date) in pages.integers(&tagged.neighbor, "creationDate")? {
                let row = row as usize;
                if are_messages[row] && (start..end).contains(&date) {
                    counts[tagged.row[row] as usize][usize::from(date >= middle)] += 1;
                }
            }
            Ok(counts)
        })?;
        // The parts follow one another as the tags do.
        let counts: Vec<[i64; 2]> = counts.into_iter().collect::<Result<Vec<_>>>()?.concat();
        let names = pages.values(&tags, "name")?;
        let row = |(row, name): (&u32, &Value)| {
            let [first, second] = counts[*row as usize];
            TagRow { tag: text(name), first, second }
        };
        let mut rows: Vec<TagRow> = names.row.iter().zip(&names.value).map(row).collect();
        rows.sort_by(|a, b| b.difference().cmp(&a.difference()).then_with(|| a.tag.cmp(&b.tag)));
        rows.truncate(100);
        Ok(rows)
    }

    fn bounds(&self) -> (i64, i64, i64) {
        (self.start, self.start + PERIOD, self.start + 2 * PERIOD)
    }
}

/// A row of Gremlin's answer, which is a map.
fn row(value: &Value) -> Option<TagRow> {
    let Value::Map(entries) = value else { return None };
    let field = |name: &str| entries.iter().find(|(key, _)| *key == Value::from(name)).map(|(_, value)| value);
    Some(TagRow { tag: text(field("tag")?), first: integer(field("first")?), second: integer(field("second")?) })
}

fn integer(value: &Value) -> i64 {
    match value {
        Value::I64(number) => *number,
        other => panic!("Gremlin counts with 64-bit integers, and not with a {}", other.type_name()),
    }
}

fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.to_string(),
        other => panic!("the name of a tag is a text, and not a {}", other.type_name()),
    }
}

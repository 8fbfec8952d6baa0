//! A graph for both reads, which depends on its size only: persons who own things, and messages with tags.

use mangrove::{Database, Result, UserId, Value, VertexId};

const TAGS: u64 = 200;
const CLASSES: u64 = 10;
const COLORS: [&str; 4] = ["red", "blue", "green", "white"];
const DAY: i64 = 24 * 60 * 60 * 1000;

/// Fills an empty database: this number of persons, as many things, and twice as many messages, from 300 days that begin at
/// a date.
pub fn graph(db: &Database, persons: u64, from: i64) -> Result<()> {
    let writer = Writer { transaction: db.begin()? };
    let people = writer.vertices("Person", 0..persons)?;
    // Ages from 1 to 80. Every tenth person has none.
    let ages = numbered(&people).filter(|(number, _)| number % 10 != 9);
    writer.values("age", ages.map(|(number, person)| (person, Value::I64(draw(number, 1, 80) + 1))))?;

    let cars = writer.vertices("Car", 0..persons / 2)?;
    let boats = writer.vertices("Boat", persons / 2..persons)?;
    for things in [&cars, &boats] {
        writer.values("color", numbered(things).map(|(number, thing)| (thing, COLORS[pick(number, 2, 4)].into())))?;
    }
    let things: Vec<VertexId> = cars.into_iter().chain(boats).collect();
    // Two things for each person on average; some are owned by several, and some are only rented.
    let owner = |number: u64| (people[pick(number, 3, people.len())], things[pick(number, 4, things.len())]);
    writer.edges("OWN", (0..2 * persons).map(owner))?;
    writer.edges("RENTS", (2 * persons..3 * persons).map(owner))?;

    let classes = writer.vertices("TagClass", 0..CLASSES)?;
    writer
        .values("name", numbered(&classes).map(|(number, class)| (class, format!("class {number}").as_str().into())))?;
    let tags = writer.vertices("Tag", 0..TAGS)?;
    writer.values("name", numbered(&tags).map(|(number, tag)| (tag, format!("tag {number}").as_str().into())))?;
    writer.edges("hasType", numbered(&tags).map(|(number, tag)| (tag, classes[pick(number, 5, classes.len())])))?;

    for (label, numbers) in [("Post", 0..persons), ("Comment", persons..2 * persons)] {
        let messages = writer.vertices(label, numbers.clone())?;
        let dated = |(number, message): (u64, VertexId)| {
            let date = from + draw(number, 6, 300) * DAY + draw(number, 7, DAY as u64);
            (message, Value::I64(date))
        };
        let messages: Vec<(u64, VertexId)> = numbers.zip(messages).collect();
        writer.values("creationDate", messages.iter().copied().map(dated))?;
        // The product of two draws makes tags with low numbers frequent.
        let tagged = |(number, message): (u64, VertexId)| {
            let place = draw(number, 8, TAGS) * draw(number, 9, TAGS) / TAGS as i64;
            (message, tags[place as usize])
        };
        writer.edges("hasTag", messages.iter().copied().map(tagged))?;
    }
    writer.transaction.commit().map(drop)
}

/// Writes through the typed interface, in one transaction.
struct Writer {
    transaction: mangrove::Transaction,
}

impl Writer {
    fn vertices(&self, label: &str, numbers: std::ops::Range<u64>) -> Result<Vec<VertexId>> {
        let set = self.transaction.view().catalog().intern_label_text(label);
        let ids: Vec<UserId> = numbers.map(|number| UserId::from(format!("{label} {number}").as_str())).collect();
        self.transaction.insert_vertices(set, &ids)
    }

    fn values(&self, key: &str, values: impl Iterator<Item = (VertexId, Value)>) -> Result<()> {
        self.transaction.set_vertex_property(key, &values.collect::<Vec<_>>())
    }

    fn edges(&self, label: &str, ends: impl Iterator<Item = (VertexId, VertexId)>) -> Result<()> {
        let set = self.transaction.view().catalog().intern_label_text(label);
        self.transaction.insert_edges(set, &ends.collect::<Vec<_>>()).map(drop)
    }
}

fn numbered(vertices: &[VertexId]) -> impl Iterator<Item = (u64, VertexId)> + '_ {
    (0..).zip(vertices.iter().copied())
}

/// A number below `below`, a function of the other two: the finalizer of SplitMix64.
fn draw(number: u64, purpose: u64, below: u64) -> i64 {
    let mixed = (number * 16 + purpose).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((mixed ^ mixed >> 31) % below) as i64
}

fn pick(number: u64, purpose: u64, of: usize) -> usize {
    draw(number, purpose, of as u64) as usize
}

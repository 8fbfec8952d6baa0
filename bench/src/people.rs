//! People: vertices with a user id and three properties, all functions of their number.

use std::fmt::Write;

use mangrove::{Database, KeyId, LabelSetId, Result, UserId, Value, VertexId};
use mangrove_store::{BulkColumn, ColumnData};
use smol_str::{SmolStr, SmolStrBuilder};

use mangrove_generate::random::{below, mix};

/// The label of people.
pub const PERSON: &str = "person";
/// A property: an integer that is different for nearly every person.
pub const BORN: &str = "born";
/// A property: a string that is short enough to be stored in a column.
pub const NAME: &str = "name";
/// A property: an integer below 100.
pub const AGE: &str = "age";

/// The id of a person.
pub fn id(number: u64) -> UserId {
    UserId::int(number as i64)
}

/// The value of [`BORN`].
#[inline]
pub fn born(number: u64) -> i64 {
    (mix(number) >> 24) as i64
}

/// The value of [`NAME`]: eight letters.
pub fn name(number: u64) -> SmolStr {
    let mut name = SmolStrBuilder::new();
    write!(name, "p{:07x}", mix(!number) >> 36).expect("writing to a string does not fail");
    name.finish()
}

/// The value of [`AGE`].
pub fn age(number: u64) -> i64 {
    below(mix(number ^ 0xa9e), 100) as i64
}

/// A number for a value, the same for all variants. The numbers of several values are added up.
#[inline]
pub fn digest(value: &Value) -> u64 {
    match value {
        Value::I64(number) => *number as u64,
        Value::I32(number) => *number as u64,
        Value::String(text) => digest_text(text),
        _ => u64::MAX,
    }
}

/// [`digest`] of a string.
#[inline]
pub fn digest_text(text: &str) -> u64 {
    text.bytes().take(8).fold(0, |digest, byte| digest << 8 | u64::from(byte))
}

/// People as plain arrays.
pub struct Columns {
    /// [`BORN`], by number.
    pub born: Vec<i64>,
    /// [`NAME`], by number.
    pub names: Vec<SmolStr>,
}

impl Columns {
    /// The first `count` people.
    pub fn new(count: usize) -> Self {
        let numbers = 0..count as u64;
        Columns { born: numbers.clone().map(born).collect(), names: numbers.map(name).collect() }
    }
}

/// The catalog's numbers for the names above.
#[derive(Clone, Copy)]
pub struct PeopleNames {
    /// [`PERSON`]
    pub person: LabelSetId,
    /// [`BORN`]
    pub born: KeyId,
    /// [`NAME`]
    pub name: KeyId,
}

impl PeopleNames {
    /// Looks the names up in this database.
    pub fn of(database: &Database) -> Self {
        let catalog = database.catalog();
        PeopleNames {
            person: catalog.intern_label_text(PERSON),
            born: catalog.intern_key(BORN),
            name: catalog.intern_key(NAME),
        }
    }
}

/// The ids and properties with which people are loaded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PeopleContent {
    /// No id and no property.
    Bare,
    /// Their id.
    Ids,
    /// Their id, [`BORN`] and [`NAME`].
    TwoProperties,
    /// Their id and all properties.
    AllProperties,
}

/// Vertices in one call of the loader.
const BATCH: usize = 64 << 10;

/// One call of the loader.
pub struct PeopleBatch {
    count: usize,
    ids: Option<Vec<UserId>>,
    columns: Vec<BulkColumn>,
}

/// The first `count` people, as batches for the loader.
pub fn batches(database: &Database, count: usize, shape: PeopleContent) -> Vec<PeopleBatch> {
    (0..count as u64).step_by(BATCH).map(|first| batch(database, first, count as u64, shape)).collect()
}

fn batch(database: &Database, first: u64, count: u64, shape: PeopleContent) -> PeopleBatch {
    let numbers = first..count.min(first + BATCH as u64);
    let catalog = database.catalog();
    let column = |key, values| BulkColumn { key: catalog.intern_key(key), values };
    let mut columns = Vec::new();
    if matches!(shape, PeopleContent::TwoProperties | PeopleContent::AllProperties) {
        columns.push(column(BORN, ColumnData::I64(numbers.clone().map(born).collect())));
        columns.push(column(NAME, ColumnData::String(numbers.clone().map(name).collect())));
    }
    if shape == PeopleContent::AllProperties {
        columns.push(column(AGE, ColumnData::I64(numbers.clone().map(age).collect())));
    }
    let ids = (shape != PeopleContent::Bare).then(|| numbers.clone().map(id).collect());
    PeopleBatch { count: (numbers.end - numbers.start) as usize, ids, columns }
}

/// Loads batches of people and returns their vertices in order.
pub fn load(
    loader: &mut mangrove_store::BulkLoader,
    person: LabelSetId,
    batches: &[PeopleBatch],
) -> Result<Vec<VertexId>> {
    let mut vertices = Vec::new();
    for batch in batches {
        vertices.extend(loader.vertices(person, batch.count, batch.ids.as_deref(), &batch.columns)?);
    }
    Ok(vertices)
}

/// A database with people and nothing else.
pub fn database(count: usize, shape: PeopleContent) -> Result<Database> {
    let database = Database::in_memory();
    let mut loader = database.bulk_load()?;
    let batches = batches(&database, count, shape);
    load(&mut loader, PeopleNames::of(&database).person, &batches)?;
    loader.finish()?;
    Ok(database)
}

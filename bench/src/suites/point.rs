//! Point reads: from a user id to two properties, one vertex at a time and 64 at a time.

use std::sync::Arc;

use hashbrown::HashMap;
use mangrove::{Database, KeyId, Result, UserId, Value, ValueRows, VertexId};
use smol_str::SmolStr;

use super::{Context, ReadCase, against_rival};
use crate::harness::Operation;
use crate::options::Suite;
use crate::people::{self, Columns, PeopleContent, PeopleNames, digest, digest_text};
use crate::report::Growing;
use crate::served::Served;
use crate::ways::{Question, Way};
use mangrove_generate::random::{below, mix};

/// Vertices in a batch.
const BATCH: usize = 64;

/// The targets of the design for the typed interface, in nanoseconds a vertex.
const ALONE_NS_MAX: f64 = 600.0;
const BATCHED_NS_MAX: f64 = 30.0;

/// The fastest embedded rival's point look-up, in milliseconds.
const RIVAL_MS: f64 = 0.144;

pub(super) fn run(context: &Context<'_>, report: &mut Growing<'_>) -> Result<()> {
    let count = context.options.scale.people();
    let database = people::database(count, PeopleContent::TwoProperties)?;
    let served = Served::start(&database)?;
    let bare = Arc::new(Bare::new(count));

    let mut case = ReadCase::new(Suite::Point, "alone", count as u64, context);
    let alone = || -> Box<dyn Operation> {
        let bare = bare.clone();
        Box::new(move |input: u64| Ok(bare.read(input)))
    };
    case.measure_bare(report, alone)?;
    case.measure(report, "typed", Some(ALONE_NS_MAX), &mut *alone(), || Ok(Box::new(Typed::new(&database, 1))))?;
    let question = Question::new("g.V(x).values('born', 'name')", |input, parameters| {
        parameters.insert("x".into(), Value::I64(input as i64));
    });
    case.measure_ways(report, &question, against_rival(RIVAL_MS), &mut *alone(), &database, &served)?;
    case.measure(report, "new text", None, &mut *alone(), || {
        let database = database.clone();
        Ok(Box::new(move |input: u64| ask_anew(&database, input)))
    })?;

    let mut case = ReadCase::new(Suite::Point, "batch of 64", count as u64, context);
    case.unit_count = BATCH as f64;
    let batch = || -> Box<dyn Operation> {
        let bare = bare.clone();
        Box::new(move |input: u64| {
            Ok(spread(input, count as u64, BATCH).map(|n| bare.read(n)).fold(0, u64::wrapping_add))
        })
    };
    case.measure_bare(report, batch)?;
    let typed = || -> Result<Box<dyn Operation>> { Ok(Box::new(Typed::new(&database, BATCH))) };
    case.measure(report, "typed", Some(BATCHED_NS_MAX), &mut *batch(), typed)?;
    let question = Question::new("g.V(x).values('born', 'name')", move |input, parameters| {
        let ids = spread(input, count as u64, BATCH).map(|n| Value::I64(n as i64)).collect();
        parameters.insert("x".into(), Value::list(ids));
    });
    let no_target = |_: Way| None;
    case.measure_ways(report, &question, no_target, &mut *batch(), &database, &served)
}

/// The inputs of a batch; they may repeat. Their answers are added up.
fn spread(input: u64, count: u64, batch: usize) -> impl Iterator<Item = u64> {
    (0..batch as u64).map(move |i| if batch == 1 { input } else { below(mix(input ^ (i << 40)), count) })
}

/// A hash map and two arrays.
struct Bare {
    numbers: HashMap<i64, u32, foldhash::fast::RandomState>,
    columns: Columns,
}

impl Bare {
    fn new(count: usize) -> Self {
        let numbers = (0..count as u32).map(|n| (i64::from(n), n)).collect();
        Bare { numbers, columns: Columns::new(count) }
    }

    fn read(&self, id: u64) -> u64 {
        let Some(&number) = self.numbers.get(&(id as i64)) else { return 0 };
        let name: &SmolStr = &self.columns.names[number as usize];
        (self.columns.born[number as usize] as u64).wrapping_add(digest_text(name))
    }
}

/// Look-up and two columns through the typed interface, each in a read-only transaction of its own.
struct Typed {
    database: Database,
    keys: [KeyId; 2],
    person_count: u64,
    batch: usize,
    ids: Vec<UserId>,
    found: Vec<Option<VertexId>>,
    values: [ValueRows; 2],
}

impl Typed {
    fn new(database: &Database, batch: usize) -> Self {
        let names = PeopleNames::of(database);
        let person_count = database.begin_read().and_then(|transaction| {
            transaction.view().count_vertices(&mangrove::LabelFilter::Any, mangrove::Share::ALL)
        });
        Typed {
            database: database.clone(),
            keys: [names.born, names.name],
            person_count: person_count.unwrap_or(0),
            batch,
            ids: Vec::new(),
            found: Vec::new(),
            values: Default::default(),
        }
    }
}

impl Operation for Typed {
    fn perform(&mut self, input: u64) -> Result<u64> {
        let transaction = self.database.begin_read()?;
        self.ids.clear();
        self.ids.extend(spread(input, self.person_count, self.batch).map(people::id));
        self.found.clear();
        self.values.iter_mut().for_each(ValueRows::clear);
        transaction.view().look_up_vertices(&self.ids, &self.keys, &mut self.found, &mut self.values)?;
        Ok(self.values.iter().flat_map(|values| &values.value).map(digest).fold(0, u64::wrapping_add))
    }
}

/// A text that was never used before, so it is parsed and planned, as when a program puts values into its texts.
fn ask_anew(database: &Database, input: u64) -> Result<u64> {
    let results = database.query(&format!("g.V({input}L).values('born', 'name')"))?;
    results.map(|value| Ok(digest(&value?))).try_fold(0u64, |sum, digest: Result<u64>| Ok(sum.wrapping_add(digest?)))
}

//! What indexes save besides the look-up of one value, in the graph of the suite `hop`:
//!
//! - *path*: the length of a shortest path between two people. If an id or an index finds the target, the search goes on
//!   from both ends.
//! - *union*: people of whom one of two keys has a value. Two indexes answer together.
//! - *intersection*: people with a value of one key and a range of another. The lists of two indexes are intersected.
//! - *prefix*: people whose name begins with a text.
//!
//! Each is timed beside the same query without that choice: from one end, or before the second index was made.

use std::sync::Arc;

use mangrove::{Parameters, Result, Value};

use super::{Context, ReadCase};
use crate::csr::Csr;
use crate::options::Suite;
use crate::people::{self, AGE, BORN, NAME, PERSON};
use crate::report::Growing;
use crate::served::Served;
use crate::social::{self, Social};
use crate::ways::{Question, Way};
use mangrove_generate::random::{below, mix};

/// The part of all values of `born` that a range has.
const RANGE_PARTS: u64 = 100;

/// The letters of a name with which a text begins: about one name in 4,096 begins so.
const PREFIX_LENGTH: usize = 4;

/// A question whose answer is a number.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Asked {
    Path,
    Union,
    Intersection,
    Prefix,
}

impl Asked {
    fn name(self) -> &'static str {
        match self {
            Asked::Path => "path",
            Asked::Union => "union",
            Asked::Intersection => "intersection",
            Asked::Prefix => "prefix",
        }
    }

    fn bind(self, count: u64, input: u64, parameters: &mut Parameters) {
        let other = other(input, count);
        let mut set = |name: &str, value: Value| drop(parameters.insert(name.into(), value));
        match self {
            Asked::Path => {
                set("a", Value::I64(input as i64));
                set("b", Value::I64(other as i64));
                set("n", Value::String(people::name(other)));
            }
            Asked::Union => {
                set("n", Value::String(people::name(input)));
                set("m", Value::I64(people::born(other)));
            }
            Asked::Intersection => {
                let (low, high) = range(input);
                set("age", Value::I64(people::age(other)));
                set("low", Value::I64(low));
                set("high", Value::I64(high));
            }
            Asked::Prefix => set("n", Value::String(people::name(input)[..PREFIX_LENGTH].into())),
        }
    }
}

/// The second person of a question.
fn other(input: u64, count: u64) -> u64 {
    below(mix(input ^ 0x0e7), count)
}

/// A range of `born` that begins at a person's.
fn range(input: u64) -> (i64, i64) {
    // Values of `born` have 40 bits.
    let low = people::born(input);
    (low, low + ((1u64 << 40) / RANGE_PARTS) as i64)
}

const PATH_TO_ID: &str = "g.V(a).repeat(both('knows').simplePath()).until(hasId(b)).path().count(local).limit(1)";
const PATH_TO_NAME: &str =
    "g.V(a).repeat(both('knows').simplePath()).until(has('person', 'name', n)).path().count(local).limit(1)";
const PATH_FROM_ONE_END: &str = "g.with('without', ['search from both ends']).V(a).\
     repeat(both('knows').simplePath()).until(has('person', 'name', n)).path().count(local).limit(1)";
const UNION: &str = "g.V().hasLabel('person').or(has('name', n), has('born', m)).count()";
const INTERSECTION: &str = "g.V().has('person', 'age', age).has('born', P.between(low, high)).count()";
const PREFIX: &str = "g.V().has('person', 'name', TextP.startingWith(n)).count()";

pub(super) fn run(context: &Context<'_>, report: &mut Growing<'_>) -> Result<()> {
    let scale = context.options.scale;
    let social = Social::load(scale, &social::even_edges(scale))?;
    let served = Served::start(&social.database)?;
    let bare = Arc::new(Bare::new(&social));
    let mut measure = |asked: Asked, script: &'static str, variant: &str| -> Result<()> {
        let count = bare.csr.vertex_count() as u64;
        let case = ReadCase::new(Suite::Indexes, asked.name(), count, context);
        let question = Question::new(script, move |input, parameters| asked.bind(count, input, parameters));
        let bare = bare.clone();
        let mut reference = move |input: u64| Ok(bare.answer(asked, input));
        case.measure(report, variant, None, &mut reference, || question.ask(Way::Prepared, &social.database, &served))
    };
    social.database.create_index(Some(PERSON), AGE, false, false)?;
    social.database.measure_statistics(&mut || Ok(()))?;
    measure(Asked::Union, UNION, "scan")?;
    measure(Asked::Intersection, INTERSECTION, "one index")?;
    measure(Asked::Prefix, PREFIX, "scan")?;
    for key in [NAME, BORN] {
        social.database.create_index(Some(PERSON), key, true, false)?;
    }
    social.database.measure_statistics(&mut || Ok(()))?;
    measure(Asked::Union, UNION, "two indexes")?;
    measure(Asked::Intersection, INTERSECTION, "two indexes")?;
    measure(Asked::Prefix, PREFIX, "ordered index")?;
    measure(Asked::Path, PATH_FROM_ONE_END, "from one end")?;
    measure(Asked::Path, PATH_TO_ID, "to an id")?;
    measure(Asked::Path, PATH_TO_NAME, "to a name with an index")
}

/// Plain arrays and a static graph.
struct Bare {
    people: Vec<Person>,
    csr: Csr,
    /// The edges against their direction.
    reverse: Csr,
}

struct Person {
    name: smol_str::SmolStr,
    born: i64,
    age: i64,
}

impl Bare {
    fn new(social: &Social) -> Self {
        let count = social.csr.vertex_count();
        let edges =
            (0..count).flat_map(|from| social.csr.neighbors(from).iter().map(move |&to| (to as u32, from as u32)));
        let reverse = Csr::new(count, &edges.collect::<Vec<_>>());
        let person =
            |number: u64| Person { name: people::name(number), born: people::born(number), age: people::age(number) };
        Bare { people: (0..count as u64).map(person).collect(), csr: social.csr.clone(), reverse }
    }

    fn answer(&self, asked: Asked, input: u64) -> u64 {
        let count =
            |is_one: &dyn Fn(&Person) -> bool| self.people.iter().filter(|person| is_one(person)).count() as u64;
        let (one, other) =
            (&self.people[input as usize], &self.people[other(input, self.people.len() as u64) as usize]);
        match asked {
            Asked::Path => self.path_length(input, &other.name),
            Asked::Union => count(&|person| person.name == one.name || person.born == other.born),
            Asked::Intersection => {
                let (low, high) = range(input);
                count(&|person| person.age == other.age && (low..high).contains(&person.born))
            }
            Asked::Prefix => count(&|person| person.name.starts_with(&one.name[..PREFIX_LENGTH])),
        }
    }

    /// The number of vertices on a shortest path; 0 if there is none.
    fn path_length(&self, from: u64, name: &str) -> u64 {
        let mut is_reached = vec![false; self.people.len()];
        is_reached[from as usize] = true;
        let (mut level, mut length) = (vec![from], 1);
        while !level.is_empty() {
            length += 1;
            let mut next = Vec::new();
            for vertex in level {
                for &to in self.csr.neighbors(vertex as usize).iter().chain(self.reverse.neighbors(vertex as usize)) {
                    if !std::mem::replace(&mut is_reached[to as usize], true) {
                        if self.people[to as usize].name == name {
                            return length;
                        }
                        next.push(to);
                    }
                }
            }
            level = next;
        }
        0
    }
}

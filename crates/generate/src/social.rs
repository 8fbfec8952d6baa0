//! A social network with the labels, properties and dates of LDBC's Social Network Benchmark.
//!
//! Persons know each other, study, work and have interests. They moderate forums, write posts and comments about tags,
//! and like them. Persons, organisations and messages have places. Labels and property keys are the benchmark's, so its
//! queries run (IC1 to IC14, IS1 to IS7), and so do those of Banyan's paper (CQ1 to CQ6). This is not LDBC's generator:
//! names, texts and figures are our own, and results on these graphs are not LDBC results.
//!
//! Degrees are skewed. Friends share a place, a university or an interest. Names depend on the country. Messages are
//! about interests of their author, and an event causes many messages about a tag. The members of walls and albums are
//! friends of the moderator. Dates are from 2010 to the end of 2012 and consistent: a friendship, a membership, a
//! message or a like is later than the elements that it refers to. Averages are near those of LDBC's scale factor 0.1.
//!
//! Persons and friendships stay in memory while the graph is made. Forums and messages do not.
//!
//! This file has the order of the stages. `world` makes the parts that all networks share. `people`, `friends` and
//! `activity` make the parts that depend on the seed. `emit` turns all of them into batches.

mod activity;
mod dates;
mod emit;
mod friends;
mod people;
pub(crate) mod words;
mod world;

use mangrove::{Error, Result};

use crate::parallel::in_order;
use crate::random::{RandomStream, domain};
use crate::sink::{GenerateProgress, GraphSink};
use activity::{Activity, ActivityContext};
use emit::Emitter;
use people::Person;
use world::World;

/// The maximum number of persons.
pub const PERSONS_MAX: u64 = 1 << 26;

/// Persons of one batch.
const PEOPLE_CHUNK: usize = 1024;

// The purposes of random numbers (`random::domain`): one for each kind of draw, so that no two draws share numbers.
const PEOPLE: u64 = 11;
const WANTED: u64 = 12;
const FRIENDS: u64 = 13;
const MEETINGS: u64 = 14;
const ACTIVITY: u64 = 15;
const EVENTS: u64 = 16;

/// Persons by LDBC's scale factors (the initial snapshots of Interactive v1).
const SCALE_FACTORS: [(f64, f64); 7] = [
    (0.1, 1_528.0),
    (0.3, 3_514.0),
    (1.0, 9_892.0),
    (3.0, 24_328.0),
    (10.0, 65_645.0),
    (30.0, 165_430.0),
    (100.0, 448_626.0),
];

/// A social network: the arguments of its generator.
#[derive(Clone, Debug)]
pub struct SocialSpec {
    /// The number of persons.
    pub persons: u64,
    /// The seed of all random numbers.
    pub seed: u64,
    /// Threads that generate. The graph does not depend on their number.
    pub threads: usize,
}

impl Default for SocialSpec {
    /// 1,528 persons (LDBC's scale factor 0.1), seed 1, one thread.
    fn default() -> Self {
        SocialSpec { persons: 1_528, seed: 1, threads: 1 }
    }
}

/// About the number of persons that LDBC's generator makes for a scale factor. Fails if the factor is not from 0.001 to
/// 1000.
pub fn persons_at(scale_factor: f64) -> Result<u64> {
    if !(0.001..=1000.0).contains(&scale_factor) {
        return Err(Error::invalid(format!("the scale factor is {scale_factor}; it is from 0.001 to 1000")));
    }
    // Interpolates between the two nearest known factors, in logarithms.
    let above = SCALE_FACTORS.iter().position(|(factor, _)| *factor >= scale_factor).unwrap_or(SCALE_FACTORS.len() - 1);
    let (low, high) = (SCALE_FACTORS[above.max(1) - 1], SCALE_FACTORS[above.max(1)]);
    let part = (scale_factor / low.0).ln() / (high.0 / low.0).ln();
    Ok((low.1 * (high.1 / low.1).powf(part)).round() as u64)
}

impl SocialSpec {
    /// Makes the network. Fails if the number of persons is out of its range, or if the sink fails.
    pub fn generate(&self, sink: &mut dyn GraphSink) -> Result<()> {
        if !(2..=PERSONS_MAX).contains(&self.persons) {
            let message = format!("{} persons; a network has 2 to {PERSONS_MAX}", self.persons);
            return Err(Error::invalid(message));
        }
        let world = World::new(self.seed);
        let people = self.people(&world)?;
        let mut emitter = Emitter::new(sink, &world, &people);
        emitter.world()?;
        emitter.people(PEOPLE_CHUNK)?;
        let friends = friends::friends(&people, self.seed, self.threads)?;
        emitter.knows(&friends, PEOPLE_CHUNK)?;
        let context = ActivityContext { world: &world, people: &people, friends: &friends, seed: self.seed };
        let chunks = people.len().div_ceil(activity::CHUNK);
        let make = |chunk: usize| -> Activity { activity::activity(&context, chunk) };
        in_order(self.threads, chunks, make, |chunk, activity| {
            emitter.activity(activity)?;
            let done = people.len().min((chunk + 1) * activity::CHUNK) as u64;
            emitter.progress(GenerateProgress { stage: "activity", done, total: people.len() as u64 });
            Ok(())
        })
    }

    /// Makes all persons, by number.
    fn people(&self, world: &World) -> Result<Vec<Person>> {
        let count = self.persons as usize;
        let key = domain(self.seed, PEOPLE);
        let make = |chunk: usize| -> Vec<Person> {
            let numbers = chunk * PEOPLE_CHUNK..count.min((chunk + 1) * PEOPLE_CHUNK);
            numbers.map(|n| people::person(world, &mut RandomStream::new(key, n as u64), n as u64)).collect()
        };
        let mut people = Vec::with_capacity(count);
        in_order(self.threads, count.div_ceil(PEOPLE_CHUNK), make, |_, chunk| {
            people.extend(chunk);
            Ok(())
        })?;
        Ok(people)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scale_factors_have_about_as_many_persons_as_ldbc() {
        let persons = |factor| persons_at(factor).unwrap();
        assert_eq!((persons(0.1), persons(1.0), persons(100.0)), (1_528, 9_892, 448_626));
        assert!((4_000..9_000).contains(&persons(0.5)) && persons(0.01) < 400 && persons(300.0) > 900_000);
        assert!(persons_at(0.0).is_err() && persons_at(f64::NAN).is_err());
    }
}

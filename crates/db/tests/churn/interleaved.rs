//! Rounds on one thread: writers, readers and keepers take turns in an order of the seed, on a disk with power cuts. A
//! seed repeats a round exactly.

use std::collections::BTreeSet;
use std::sync::Arc;

use mangrove::{Database, SimDisk, Value};
use mangrove_testdata::{case_count, first_seed};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

use crate::book::Closed;
use crate::life::{Index, Level, Life, options};
use crate::model::State;
use crate::names::Outcome;
use crate::reader::Reader;
use crate::whole::{check_recovered, look_from_every_side};
use crate::writer::Writer;
use crate::{Tally, step_count};

const LIVES: u64 = 4;
const WRITERS: usize = 4;
const READERS: usize = 3;

#[test]
fn interleaved_transactions_lose_nothing() {
    let mut tally = Tally::default();
    let first = first_seed(1);
    for seed in first..first + case_count(9_u64) {
        round(seed, &mut tally).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
    }
    tally.print("interleaved");
}

fn round(seed: u64, tally: &mut Tally) -> Outcome<()> {
    let mut random = SmallRng::seed_from_u64(seed);
    let mut disk = SimDisk::new();
    let mut before = Closed::default();
    let mut indexes = Some(BTreeSet::new());
    for number in 0..LIVES {
        let db = open(&mut disk, seed, &mut random)?;
        // The collector's thread would not follow the seed.
        db.configure("garbage_collection", &Value::Bool(false)).map_err(|error| error.to_string())?;
        let (mut life, found) = Life::begin(db, Level::of(seed), WRITERS, None)?;
        check_recovered(&before, &found, WRITERS).map_err(|error| format!("life {number}: {error}"))?;
        look_from_every_side(&life, &found)?;
        check_indexes(&life, indexes.as_ref())?;
        if found == State::default() {
            Writer::new(&life, 0, 0, 1 << 30, SmallRng::seed_from_u64(seed)).set_up(WRITERS)?;
            life.numbers[0] = 1;
            life.find_counters()?;
        }
        let is_cut = random.random_bool(0.6);
        if is_cut {
            life.may_fail = true;
            disk.power_off_at(disk.operations() + random.random_range(1..500));
        }
        let operations = live(&life, number, &mut random)?;
        let (closed, indexes_then) = life.close();
        tally.add(&closed, operations);
        // An index may have been half made when the power went off.
        indexes = (!is_cut).then_some(indexes_then);
        if is_cut {
            disk = disk.power_cut(random.random());
        }
        before = closed;
    }
    Ok(())
}

/// Opens the database; sometimes the power goes off during recovery.
fn open(disk: &mut SimDisk, seed: u64, random: &mut SmallRng) -> Outcome<Database> {
    while random.random_bool(0.3) {
        disk.power_off_at(disk.operations() + random.random_range(1..30));
        // The outcome does not matter, because the database is opened again.
        drop(Database::open_on(Arc::new(disk.clone()), &options(seed)));
        *disk = disk.power_cut(random.random());
    }
    Database::open_on(Arc::new(disk.clone()), &options(seed)).map_err(|error| format!("{:?}: {error}", error.kind()))
}

/// The indexes are those that were made and not dropped, if that is known.
fn check_indexes(life: &Life, expected: Option<&BTreeSet<Index>>) -> Outcome<()> {
    let found = life.indexes_of_database();
    if let Some(expected) = expected.filter(|expected| **expected != found) {
        return Err(format!("the indexes are {found:?}, not {expected:?}"));
    }
    *life.indexes.lock().unwrap() = found;
    Ok(())
}

/// Lets writers, readers and keepers take turns. Returns the number of operations.
fn live(life: &Life, number: u64, random: &mut SmallRng) -> Outcome<u64> {
    let mut writers: Vec<Writer<'_>> = (0..WRITERS)
        .map(|writer| {
            let first_tag = (number + 1) << 40 | (writer as u64) << 32;
            Writer::new(life, writer, life.numbers[writer], first_tag, SmallRng::seed_from_u64(random.random()))
        })
        .collect();
    let mut readers: Vec<Reader<'_>> =
        (0..READERS).map(|_| Reader::new(life, SmallRng::seed_from_u64(random.random()))).collect();
    for _ in 0..step_count(3_000) {
        match random.random_range(0..20) {
            0 => life.keep(random)?,
            1..9 => readers[random.random_range(0..READERS)].step()?,
            _ => writers[random.random_range(0..WRITERS)].step()?,
        }
        if life.is_over() {
            break;
        }
    }
    let writes: u64 = writers.iter().map(|writer| writer.op_count).sum();
    let reads: u64 = readers.iter().map(|reader| reader.read_count).sum();
    Ok(writes + reads)
}

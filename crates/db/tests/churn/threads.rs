//! Rounds on threads: writers, readers and keepers at once. Rounds with even seeds are on a directory that is closed
//! and opened again. Those with odd seeds are on a simulated disk. Repeatedly, the power goes off in a copy of the
//! disk, and the graph in the copy is compared with the commits that were acknowledged at that moment, while the round
//! continues.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use mangrove::{Database, Disk, ErrorKind, SimDisk, verify};
use mangrove_testdata::{case_count, first_seed};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

use crate::book::Closed;
use crate::life::{Level, Life, options};
use crate::model::State;
use crate::names::Outcome;
use crate::reader::Reader;
use crate::slow::SlowDisk;
use crate::whole::{check_recovered, look_from_every_side};
use crate::writer::Writer;
use crate::{Tally, step_count};

/// How many times a round runs its threads on the graph. The graph is opened again before each time and at the end.
const LIVES: u64 = 3;
pub const WRITERS: usize = 5;
const READERS: usize = 2;
/// The pause of a reader after each batch.
const READER_PAUSE: Duration = Duration::from_micros(300);
/// The number of keepers. The first repeats one action, the others do everything ([`Life::keep`]).
const KEEPERS: usize = 2;

#[test]
fn transactions_of_many_threads_lose_nothing() {
    let mut tally = Tally::default();
    let first = first_seed(1);
    for seed in first..first + case_count(3_u64) {
        let fail = |error: String| panic!("seed {seed}: {error}");
        if seed % 2 == 0 {
            // The folder is dropped after a failure, so that the failure keeps it.
            let folder = Folder::new(&format!("threads-{seed}"));
            round_on_directory(&folder, seed, &mut tally).unwrap_or_else(fail);
        } else {
            round_on_simulated_disk(seed, &mut tally).unwrap_or_else(fail);
        }
    }
    tally.print("threads");
}

fn round_on_directory(folder: &Folder, seed: u64, tally: &mut Tally) -> Outcome<()> {
    let mut before = Closed::default();
    for number in 0..=LIVES {
        let (life, found) = reopen(folder.path(), seed, &before)?;
        if number == LIVES {
            break;
        }
        let life = prepare(life, &found, seed)?;
        let operations = live(&life, seed, number, Some(step_count(400)), &checkpoint_only)?;
        let (closed, _) = life.close();
        tally.add(&closed, operations);
        before = closed;
    }
    Ok(())
}

fn round_on_simulated_disk(seed: u64, tally: &mut Tally) -> Outcome<()> {
    let disk = SimDisk::new();
    let mut before = Closed::default();
    for number in 0..=LIVES {
        let (life, found) = reopen_disk(Arc::new(SlowDisk(disk.clone())), seed, &before)?;
        if number == LIVES {
            break;
        }
        let life = prepare(life, &found, seed)?;
        let operations = live(&life, seed, number, Some(step_count(400)), &|life, random| {
            checkpoint_only(life, random)?;
            let luck = random.random();
            let (cut, told) = life.book().at_this_moment(|| disk.power_cut(luck));
            let after = reopen_disk(Arc::new(cut), seed, &told);
            after.map(drop).map_err(|error| format!("after a power cut: {error}"))
        })?;
        let (closed, _) = life.close();
        tally.add(&closed, operations);
        before = closed;
    }
    Ok(())
}

pub fn checkpoint_only(life: &Life, _: &mut SmallRng) -> Outcome<()> {
    life.db().checkpoint().map(drop).or_else(|error| life.excuse(error))
}

fn reopen_disk(disk: Arc<dyn Disk>, seed: u64, before: &Closed) -> Outcome<(Life, State)> {
    let db = Database::open_on(disk, &options(seed)).map_err(|error| error.to_string())?;
    let (life, found) = Life::begin(db, Level::of(seed), WRITERS, None)?;
    check_recovered(before, &found, WRITERS)?;
    look_from_every_side(&life, &found)?;
    Ok((life, found))
}

/// Opens the graph that the previous life has left, and compares it with its book.
pub fn reopen(directory: &Path, seed: u64, before: &Closed) -> Outcome<(Life, State)> {
    let directory = directory.to_str().expect("a temporary directory has a name of text");
    match verify(directory, &|_| {}) {
        Ok(_) => {}
        Err(error) if error.kind() == ErrorKind::NotFound && before.commits.is_empty() => {}
        Err(error) => return Err(format!("verify: {error}")),
    }
    let db = Database::open(directory, &options(seed)).map_err(|error| error.to_string())?;
    let (life, found) = Life::begin(db, Level::of(seed), WRITERS, None)?;
    check_recovered(before, &found, WRITERS)?;
    look_from_every_side(&life, &found)?;
    Ok((life, found))
}

/// A life with threads; first adds the vertices that writers need.
pub fn prepare(mut life: Life, found: &State, seed: u64) -> Outcome<Life> {
    if *found == State::default() {
        Writer::new(&life, 0, 0, 1 << 30, SmallRng::seed_from_u64(seed)).set_up(WRITERS)?;
        life.numbers[0] = 1;
        life.find_counters()?;
    }
    Ok(life.with_threads())
}

/// The action that the first keeper repeats.
pub type Keeper<'a> = &'a (dyn Fn(&Life, &mut SmallRng) -> Outcome<()> + Sync);

/// Runs all threads until each writer has taken `steps` steps, or without end. Returns the number of operations.
pub fn live(life: &Life, seed: u64, number: u64, steps: Option<usize>, keeper_does: Keeper<'_>) -> Outcome<u64> {
    let (failed, writing) = (Mutex::new(None), AtomicUsize::new(WRITERS));
    let operations = Mutex::new(0);
    let fail = |outcome: Outcome<()>| {
        if let Err(error) = outcome {
            failed.lock().unwrap().get_or_insert(error);
            life.end();
        }
    };
    let random = |thread: usize| SmallRng::seed_from_u64(seed << 16 | number << 8 | thread as u64);
    let goes_on = || writing.load(Ordering::SeqCst) > 0 && !life.is_over();
    std::thread::scope(|scope| {
        for writer in 0..WRITERS {
            let (fail, writing, operations, random) = (&fail, &writing, &operations, &random);
            scope.spawn(move || {
                let first_tag = (number + 1) << 40 | (writer as u64) << 32;
                let mut writer = Writer::new(life, writer, life.numbers[writer], first_tag, random(writer));
                let mut taken = 0;
                while steps.is_none_or(|steps| taken < steps) && !life.is_over() {
                    fail(writer.step());
                    taken += 1;
                }
                *operations.lock().unwrap() += writer.op_count;
                writing.fetch_sub(1, Ordering::SeqCst);
            });
        }
        for reader in 0..READERS {
            let (fail, goes_on, operations, random) = (&fail, &goes_on, &operations, &random);
            scope.spawn(move || {
                let mut reader = Reader::new(life, random(100 + reader));
                while goes_on() {
                    fail(reader.step());
                    // Gives writers time to proceed.
                    std::thread::sleep(READER_PAUSE);
                }
                *operations.lock().unwrap() += reader.read_count;
            });
        }
        for keeper in 0..KEEPERS {
            let (fail, goes_on, random) = (&fail, &goes_on, &random);
            scope.spawn(move || {
                let mut random = random(200 + keeper);
                while goes_on() {
                    match keeper {
                        0 => fail(keeper_does(life, &mut random)),
                        _ => fail(life.keep(&mut random)),
                    }
                    std::thread::yield_now();
                }
            });
        }
    });
    match failed.into_inner().unwrap() {
        Some(error) => Err(error),
        None => Ok(operations.into_inner().unwrap()),
    }
}

/// A directory for one round. It is removed at its end, but kept for inspection if the round fails.
pub struct Folder(PathBuf);

impl Folder {
    pub fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("mangrove-churn-{}-{name}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        Folder(path)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("what was found is in {}", self.0.display());
        } else {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }
}

//! Rounds in a process of its own, which is killed (SIGKILL) at a random moment. Its journal has the answers that it
//! received.

use std::fs::File;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use mangrove::Database;
use mangrove_testdata::{case_count, first_seed};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

use crate::life::{Level, Life, options};
use crate::model::State;
use crate::names::Outcome;
use crate::threads::{Folder, WRITERS, checkpoint_only, live, prepare, reopen};
use crate::{Tally, journal};

const DIRECTORY: &str = "MANGROVE_CHURN_DIRECTORY";
const SEED: &str = "MANGROVE_CHURN_SEED";
/// A database is replaced by a new one after this many kills.
const KILLS_A_DATABASE: u64 = 6;
/// The latest moment of a kill.
const LIFE_MS_MAX: u64 = 1_500;

#[test]
fn killed_processes_lose_nothing() {
    let mut tally = Tally::default();
    let first = first_seed(1);
    let (mut folder, mut base) = (Folder::new("kills"), State::default());
    for (round, seed) in (first..first + case_count(6_u64)).enumerate() {
        if (round as u64).is_multiple_of(KILLS_A_DATABASE) {
            (folder, base) = (Folder::new(&format!("kills-{seed}")), State::default());
        }
        base = run_and_kill(&folder, seed, base, &mut tally).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
    }
    drop(folder);
    println!("kills: {} commits, {} of unknown outcome", tally.commits, tally.unknown);
    assert!(tally.commits > 0, "no process committed anything");
}

/// Waits until a process has committed something, as long as that takes on a busy machine.
fn wait_for_commit(journal: &Path) {
    let is_there = || std::fs::read_to_string(journal).is_ok_and(|text| text.contains("\nA "));
    let mut tries = 0;
    while !is_there() && tries < 6_000 {
        std::thread::sleep(Duration::from_millis(5));
        tries += 1;
    }
}

/// Runs the driver until it is killed, and compares the graph that it left with its journal. Returns the graph.
fn run_and_kill(folder: &Folder, seed: u64, base: State, tally: &mut Tally) -> Outcome<State> {
    let path = folder.path().with_extension("journal");
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "kills::driver", "--nocapture", "--quiet"])
        .env(DIRECTORY, folder.path())
        .env(SEED, seed.to_string())
        .stdout(Stdio::null())
        .spawn()
        .map_err(|error| error.to_string())?;
    if !seed.is_multiple_of(4) {
        wait_for_commit(&path);
    }
    let mut random = SmallRng::seed_from_u64(seed);
    std::thread::sleep(Duration::from_millis(random.random_range(1..LIFE_MS_MAX)));
    let ended = child.try_wait().map_err(|error| error.to_string())?;
    child.kill().and_then(|()| child.wait()).map_err(|error| error.to_string())?;
    if let Some(status) = ended {
        return Err(format!("the process ended by itself ({status}): it says why above"));
    }
    let text = std::fs::read_to_string(&path).unwrap_or_default();
    let _ = std::fs::remove_file(&path);
    let closed = journal::read(&text, base);
    tally.add(&closed, 0);
    let (life, found) = reopen(folder.path(), seed, &closed)?;
    drop(life);
    Ok(found)
}

/// The process that is killed. As a test of its own it does nothing.
#[test]
fn driver() {
    let Ok(directory) = std::env::var(DIRECTORY) else { return };
    let seed: u64 = std::env::var(SEED).unwrap().parse().unwrap();
    if let Err(error) = drive(Path::new(&directory), seed) {
        eprintln!("seed {seed}: {error}");
        std::process::exit(1);
    }
}

fn drive(directory: &Path, seed: u64) -> Outcome<()> {
    let db = Database::open(directory.to_str().unwrap(), &options(seed)).map_err(|error| error.to_string())?;
    let journal = File::create(directory.with_extension("journal")).map_err(|error| error.to_string())?;
    let (life, found) = Life::begin(db, Level::of(seed), WRITERS, Some(journal))?;
    let life = prepare(life, &found, seed)?;
    // Tags are given once: by consecutive processes on one database, from different numbers on.
    live(&life, seed, seed % 1_024, None, &checkpoint_only).map(drop)
}

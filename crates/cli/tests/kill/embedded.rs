//! The embedded database in a process of its own, which reports its acknowledged commits through a pipe.

use std::io::{self, BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use mangrove::{
    Database, DatabaseOptions, DurabilityOptions, ErrorKind, LoadOptions, LogOptions, Result, Transaction, Value,
};

use crate::chance::Chance;
use crate::phase::{Phase, Phases, is_rotating};
use crate::workload::{ACCOUNTS, Counts, WRITERS, check, indexes, long, script, write_files};
use crate::{Folder, kills};

const DIRECTORY: &str = "MANGROVE_KILL_DIRECTORY";
const SEED: &str = "MANGROVE_KILL_SEED";
/// A database is replaced by a new one after this many kills, so that loads are killed, too.
const KILLS_A_DATABASE: u64 = 12;

#[test]
fn killed_programs_lose_nothing_that_was_acknowledged() {
    let folder = Folder::new("embedded");
    let (files, data) = (folder.path().join("files"), folder.path().join("data"));
    std::fs::create_dir_all(&files).unwrap();
    write_files(&files);
    let (mut counts, mut committed, mut phases) = (Counts::default(), 0, Phases::default());
    for (round, seed) in kills(7).enumerate() {
        let is_fresh = (round as u64).is_multiple_of(KILLS_A_DATABASE);
        if is_fresh {
            let _ = std::fs::remove_dir_all(&data);
            counts = Counts::default();
        }
        let before: u64 = counts.iter().sum();
        let (told, phase) = run_and_kill(&data, seed, counts, is_fresh);
        phases.count(phase);
        counts = check(&data, told, seed.is_multiple_of(8), &format!("seed {seed}, killed when {phase:?}"));
        committed += counts.iter().sum::<u64>() - before;
    }
    println!("{committed} transactions were committed");
    assert!(committed > 0, "every process was killed before it did anything");
    use Phase::{Checkpointing, Loading, Opening, Rotating, Starting, Writing};
    phases.check(&[Starting, Opening, Loading, Writing, Rotating, Checkpointing]);
}

/// The line that the driver prints when a phase begins.
const OPENING: &str = "opening";
const LOADING: &str = "loading";
const READY: &str = "ready";
const CHECKPOINT: &str = "checkpoint";
const CHECKPOINT_OVER: &str = "checkpoint over";

/// Runs the driver until it is killed. Returns the commits that were acknowledged to it, and its phase at the kill.
fn run_and_kill(data: &Path, seed: u64, mut told: Counts, is_fresh: bool) -> (Counts, Phase) {
    let mut chance = Chance::new(seed);
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "embedded::driver", "--nocapture", "--quiet"])
        .env(DIRECTORY, data)
        .env(SEED, seed.to_string())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = lines(&mut child);
    let mut said = Vec::new();
    let mut wait_for = |wanted: &str| {
        // Waits for no line of a process that has ended.
        let before = said.len();
        said.extend(lines.iter().take_while(|line| !line.ends_with(wanted)));
        said.push(wanted.to_owned());
        assert!(!said[before..].iter().any(|line| line.starts_with("error")), "seed {seed}: {said:?}");
    };
    // Half of the starts are killed at once, and half of the loads at their begin. On some machines these phases take
    // only a few milliseconds, and a later kill would miss them.
    let is_early = chance.below(2) == 0;
    let start_pause = if is_early { 1 } else { 4_000 };
    let load_pause = if is_early { 1_000 } else { 25_000 };
    let mut pause = |micros: u64| std::thread::sleep(Duration::from_micros(chance.below(micros)));
    match if is_fresh { 9 } else { seed % 8 } {
        0 => pause(start_pause),
        1 | 2 => {
            wait_for(OPENING);
            pause(15_000);
        }
        3 => {
            wait_for(READY);
            pause(60_000);
            let rotates = (0..100_000).any(|_| is_rotating(data));
            assert!(rotates, "seed {seed}: no segment is ever made");
        }
        4 | 5 => {
            wait_for(READY);
            pause(120_000);
            wait_for(CHECKPOINT);
            pause(5_000);
        }
        9 if seed.is_multiple_of(3) => {
            wait_for(OPENING);
            pause(25_000);
        }
        9 => {
            wait_for(LOADING);
            pause(load_pause);
        }
        _ => {
            wait_for(READY);
            pause(250_000);
        }
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let mut phase = Phase::Starting;
    for line in said.into_iter().chain(lines) {
        assert!(!line.starts_with("error"), "seed {seed}: {line}");
        let words: Vec<&str> = line.split(' ').collect();
        if let ["told", writer, k] = words[..] {
            told[writer.parse::<usize>().unwrap()] = k.parse().unwrap();
        }
        // The first line of the process comes after output of its test harness, in the same line.
        match &*line {
            line if line.ends_with(OPENING) => phase = Phase::Opening,
            LOADING => phase = Phase::Loading,
            READY | CHECKPOINT_OVER => phase = Phase::Writing,
            CHECKPOINT => phase = Phase::Checkpointing,
            _ => {}
        }
    }
    if phase == Phase::Writing {
        phase = Phase::of_writing(data);
    }
    (told, phase)
}

/// The lines that the child prints, to the end of its pipe.
pub fn lines(child: &mut Child) -> Receiver<String> {
    let stdout = BufReader::new(child.stdout.take().unwrap());
    let (sender, receiver) = channel();
    // It ends with the child.
    #[allow(clippy::disallowed_methods, reason = "a test's own thread, which ends with the process it listens to")]
    std::thread::spawn(move || stdout.lines().map_while(io::Result::ok).try_for_each(|line| sender.send(line)));
    receiver
}

/// Prints a line with one write, which the capture of test output does not intercept.
pub fn say(line: &str) {
    io::stdout().lock().write_all(format!("{line}\n").as_bytes()).unwrap();
}

/// The process that is killed. As a test of its own it does nothing.
#[test]
fn driver() {
    let Ok(directory) = std::env::var(DIRECTORY) else { return };
    let seed = std::env::var(SEED).unwrap().parse().unwrap();
    if let Err(error) = drive(&directory, seed) {
        say(&format!("error: {error}"));
    }
}

fn drive(directory: &str, seed: u64) -> Result<()> {
    let log = LogOptions { segment_bytes_min: 32 << 10, segment_bytes_max: 32 << 10, ..LogOptions::default() };
    let durability = DurabilityOptions { log, checkpoint_log_bytes: Some(64 << 10), ..DurabilityOptions::default() };
    let options = DatabaseOptions { tablet_count: 4, durability, ..DatabaseOptions::default() };
    say(OPENING);
    let db = Database::open(directory, &options)?;
    if db.is_empty() {
        say(LOADING);
        let files = Path::new(directory).with_file_name("files");
        db.load(&[files], &LoadOptions::default(), &mut |_| {})?;
    }
    let known = db.indexes();
    for index in indexes().iter().filter(|index| known.iter().all(|known| known.definition != **index)) {
        db.define_index(index)?;
    }
    say(READY);
    let failed = Mutex::new(None);
    std::thread::scope(|scope| {
        for writer in 0..WRITERS {
            let (db, failed) = (&db, &failed);
            scope.spawn(move || {
                let outcome = write(db, writer, Chance::new(seed ^ ((writer as u64 + 1) << 32)));
                failed.lock().unwrap().get_or_insert(outcome.unwrap_err());
            });
        }
        // Takes checkpoints all the time, so that many kills hit one.
        let mut chance = Chance::new(seed);
        while failed.lock().unwrap().is_none() {
            std::thread::sleep(Duration::from_millis(chance.below(40)));
            say(CHECKPOINT);
            if let Err(error) = db.checkpoint() {
                failed.lock().unwrap().get_or_insert(error);
            }
            say(CHECKPOINT_OVER);
        }
        // Writers go on until they are killed.
        say(&format!("error: {:?}", failed.lock().unwrap()));
        std::process::exit(1);
    })
}

/// Writes until the process is killed or an error other than a conflict occurs.
fn write(db: &Database, writer: usize, mut chance: Chance) -> Result<std::convert::Infallible> {
    let mut k = long(db, &format!("g.V('w{writer}').values('n')")).unwrap_or(0) as u64 + 1;
    loop {
        match transfer(db.begin()?, writer, k, &mut chance) {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::Conflict => continue,
            Err(error) => return Err(error),
        }
        say(&format!("told {writer} {k}"));
        k += 1;
    }
}

/// One transaction between any two accounts, which others use, too.
fn transfer(transaction: Transaction, writer: usize, k: u64, chance: &mut Chance) -> Result<()> {
    let from = chance.below(ACCOUNTS as u64) as usize;
    let to = (from + 1 + chance.below(ACCOUNTS as u64 - 1) as usize) % ACCOUNTS;
    let amount = chance.below(100) as i64;
    let balance = |account: usize| -> Result<i64> {
        match transaction.query(&format!("g.V('a{account}').values('balance')"))?.collect()?[..] {
            [Value::I64(n)] => Ok(n),
            ref other => panic!("account {account} has {other:?}"),
        }
    };
    let balances = [(from, balance(from)? - amount), (to, balance(to)? + amount)];
    transaction.query(&script(writer, k, balances))?;
    transaction.commit().map(drop)
}

//! The embedded database in a process of its own, that tells its acknowledgments over a pipe.

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
use crate::workload::{ACCOUNTS, Counts, WRITERS, check, index, long, script, write_files};
use crate::{Folder, kills};

const DIRECTORY: &str = "MANGROVE_KILL_DIRECTORY";
const SEED: &str = "MANGROVE_KILL_SEED";
/// A database is thrown away after so many kills, so that loads are killed, too.
const KILLS_A_DATABASE: u64 = 12;

#[test]
fn killed_programs_lose_nothing_that_was_acknowledged() {
    let folder = Folder::new("embedded");
    let (files, data) = (folder.path().join("files"), folder.path().join("data"));
    std::fs::create_dir_all(&files).unwrap();
    write_files(&files);
    let (mut counts, mut committed) = (Counts::default(), 0);
    for (round, seed) in kills(7).enumerate() {
        let is_fresh = (round as u64).is_multiple_of(KILLS_A_DATABASE);
        if is_fresh {
            let _ = std::fs::remove_dir_all(&data);
            counts = Counts::default();
        }
        let before: u64 = counts.iter().sum();
        let (told, moment) = run_and_kill(&data, seed, counts, is_fresh);
        counts = check(&data, told, seed.is_multiple_of(8), &format!("seed {seed}, killed {moment}"));
        committed += counts.iter().sum::<u64>() - before;
    }
    println!("{committed} transactions were committed");
    assert!(committed > 0, "every process was killed before it did anything");
}

/// Runs the driver until it is killed; what it was told is committed, and when it was killed.
fn run_and_kill(data: &Path, seed: u64, mut told: Counts, is_fresh: bool) -> (Counts, String) {
    let mut chance = Chance::new(seed);
    // While it opens, or loads a new database, or a while after it began to write.
    let is_early = is_fresh || chance.once_in(4);
    let wait = Duration::from_micros(if is_early { chance.below(60_000) } else { chance.below(250_000) });
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "embedded::driver", "--nocapture", "--quiet"])
        .env(DIRECTORY, data)
        .env(SEED, seed.to_string())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = lines(&mut child);
    let mut early = Vec::new();
    if !is_early {
        for line in &lines {
            let is_ready = line.contains("ready");
            early.push(line);
            if is_ready {
                break;
            }
        }
    }
    std::thread::sleep(wait);
    child.kill().unwrap();
    child.wait().unwrap();
    for line in early.into_iter().chain(lines) {
        assert!(!line.starts_with("error"), "seed {seed}: {line}");
        let words: Vec<&str> = line.split(' ').collect();
        if let ["told", writer, k] = words[..] {
            told[writer.parse::<usize>().unwrap()] = k.parse().unwrap();
        }
    }
    let after = if is_early { "its start" } else { "it began to write" };
    (told, format!("{wait:?} after {after}"))
}

/// What the child says, to the end of its pipe.
fn lines(child: &mut Child) -> Receiver<String> {
    let stdout = BufReader::new(child.stdout.take().unwrap());
    let (sender, receiver) = channel();
    // It ends with the child.
    #[allow(clippy::disallowed_methods, reason = "a test's own thread, which ends with the process it listens to")]
    std::thread::spawn(move || stdout.lines().map_while(io::Result::ok).try_for_each(|line| sender.send(line)));
    receiver
}

/// One line in one write, past what a test's output is captured by.
fn say(line: &str) {
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
    let durability = DurabilityOptions { log, checkpoint_log_bytes: 64 << 10, ..DurabilityOptions::default() };
    let options = DatabaseOptions { tablet_count: 4, durability, ..DatabaseOptions::default() };
    let db = Database::open(directory, &options)?;
    if db.is_empty() {
        let files = Path::new(directory).with_file_name("files");
        db.load(&[files], &LoadOptions::default(), &mut |_| {})?;
    }
    if db.indexes().is_empty() {
        db.define_index(&index())?;
    }
    say("ready");
    let failed = Mutex::new(None);
    std::thread::scope(|scope| {
        for writer in 0..WRITERS {
            let (db, failed) = (&db, &failed);
            scope.spawn(move || {
                let outcome = write(db, writer, Chance::new(seed ^ ((writer as u64 + 1) << 32)));
                failed.lock().unwrap().get_or_insert(outcome.unwrap_err());
            });
        }
        // Checkpoints without end, so that many a kill meets one.
        let mut chance = Chance::new(seed);
        while failed.lock().unwrap().is_none() {
            std::thread::sleep(Duration::from_millis(chance.below(40)));
            if let Err(error) = db.checkpoint() {
                failed.lock().unwrap().get_or_insert(error);
            }
        }
        // Writers go on until they are killed.
        say(&format!("error: {:?}", failed.lock().unwrap()));
        std::process::exit(1);
    })
}

/// Writes until the process is killed, or something else than a conflict comes of it.
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

//! `mangrove serve --data`, written to over the wire.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use mangrove::{ErrorKind, Parameters, Result, Value};

use crate::chance::Chance;
use crate::client::Client;
use crate::phase::{Phase, Phases};
use crate::workload::{Counts, check, indexes, script, write_files};
use crate::{Folder, kills};

const KILLS_A_DATABASE: u64 = 10;

#[test]
fn killed_servers_lose_nothing_that_was_acknowledged() {
    let folder = Folder::new("server");
    let (files, data) = (folder.path().join("files"), folder.path().join("data"));
    std::fs::create_dir_all(&files).unwrap();
    let files = write_files(&files);
    let (mut counts, mut committed, mut phases) = (Counts::default(), 0, Phases::default());
    for (round, seed) in kills(3).enumerate() {
        let is_fresh = (round as u64).is_multiple_of(KILLS_A_DATABASE);
        if is_fresh {
            let _ = std::fs::remove_dir_all(&data);
            counts = Counts::default();
        }
        let before: u64 = counts.iter().sum();
        let (told, phase) = serve_and_kill(&data, &files, seed, counts, is_fresh);
        phases.count(phase);
        counts = check(&data, told, seed.is_multiple_of(8), &format!("seed {seed}, a server killed when {phase:?}"));
        committed += counts.iter().sum::<u64>() - before;
    }
    println!("{committed} transactions were committed");
    assert!(committed > 0, "every server was killed before it did anything");
    // From outside, the phases before the server prints its address look the same.
    phases.check(&[Phase::Opening, Phase::Writing, Phase::Checkpointing, Phase::Stopping]);
}

/// A server, which is killed when this is dropped.
pub struct Serving(pub Child);

impl Serving {
    /// The URL that a server prints when it listens; `None` if it ends before.
    pub fn url(&mut self) -> Option<String> {
        let mut line = String::new();
        BufReader::new(self.0.stdout.take()?).read_line(&mut line).ok()?;
        line.split_whitespace().find(|word| word.starts_with("ws://")).map(str::to_owned)
    }

    /// Sends a signal, by the shell's built-in `kill`, because not every system has the program.
    pub fn signal(&self, name: &str) {
        let kill = format!("kill -s {name} {}", self.0.id());
        assert!(Command::new("sh").args(["-c", &kill]).status().unwrap().success());
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn serve_and_kill(data: &Path, files: &[PathBuf], seed: u64, told: Counts, is_fresh: bool) -> (Counts, Phase) {
    let mut chance = Chance::new(seed);
    let mut command = Command::new(env!("CARGO_BIN_EXE_mangrove"));
    command.args(["serve", "--listen", "127.0.0.1:0", "--data"]).arg(data).env("MANGROVE_LOG", "warn");
    command.args(["--log-segment-size", "64KiB", "--checkpoint-log-size", "256KiB"]);
    for file in files {
        command.arg("--load").arg(file);
    }
    let mut serving = Serving(command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap());
    // While it loads a new database, or opens.
    if is_fresh || chance.once_in(5) {
        std::thread::sleep(Duration::from_micros(chance.below(80_000)));
        return (told, if is_fresh { Phase::Loading } else { Phase::Opening });
    }
    let url = serving.url().unwrap_or_else(|| panic!("seed {seed}: the server does not listen"));
    let url = url.as_str();
    let told = told.map(AtomicU64::new);
    let (killed, in_checkpoint) = (AtomicBool::new(false), AtomicBool::new(false));
    let is_asked_to_stop = seed % 5 == 4;
    let mut phase = Phase::Writing;
    std::thread::scope(|scope| {
        for (writer, told) in told.iter().enumerate() {
            let (chance, killed) = (Chance::new(seed ^ ((writer as u64 + 1) << 32)), &killed);
            scope.spawn(move || {
                let error = write(url, writer, told, chance).unwrap_err();
                assert!(killed.load(Ordering::SeqCst), "seed {seed}, writer {writer}: {error}");
            });
        }
        scope.spawn(|| {
            // Until it is killed.
            let Ok(mut client) = Client::connect(url) else { return };
            loop {
                in_checkpoint.store(true, Ordering::SeqCst);
                if client.run("g.call('mangrove.checkpoint')", &Parameters::new()).is_err() {
                    return;
                }
                in_checkpoint.store(false, Ordering::SeqCst);
                std::thread::sleep(Duration::from_millis(10));
            }
        });
        std::thread::sleep(Duration::from_micros(50_000 + chance.below(300_000)));
        killed.store(true, Ordering::SeqCst);
        if is_asked_to_stop {
            serving.signal("TERM");
            // The server may stop before the kill, so half of the servers are killed at once.
            let pause = if chance.below(2) == 0 { 1 } else { 20_000 };
            std::thread::sleep(Duration::from_micros(chance.below(pause)));
            if serving.0.try_wait().unwrap().is_none() {
                phase = Phase::Stopping;
            }
        } else if in_checkpoint.load(Ordering::SeqCst) {
            phase = Phase::Checkpointing;
        }
        serving.0.kill().unwrap();
    });
    if phase == Phase::Writing {
        phase = Phase::of_writing(data);
    }
    (told.map(AtomicU64::into_inner), phase)
}

/// Writes, between accounts of the writer's own, until the server is gone.
fn write(url: &str, writer: usize, told: &AtomicU64, mut chance: Chance) -> Result<std::convert::Infallible> {
    let mut teller = Teller::begin(url, writer)?;
    // The first writer makes the indexes.
    if writer == 0 {
        teller.make_indexes()?;
    }
    teller.transactions = told.load(Ordering::SeqCst);
    loop {
        told.store(teller.transact(&mut chance)?, Ordering::SeqCst);
    }
}

/// A writer that moves money between accounts of its own.
pub struct Teller {
    client: Client,
    writer: usize,
    balances: [i64; 2],
    /// Transactions of the writer that the graph has.
    pub transactions: u64,
}

impl Teller {
    /// Connects, and reads what the graph has of a writer.
    pub fn begin(url: &str, writer: usize) -> Result<Self> {
        let client = Client::connect(url)?;
        let mut teller = Teller { client, writer, balances: [0; 2], transactions: 0 };
        for at in 0..2 {
            teller.balances[at] = teller.long(&format!("g.V('a{}').values('balance')", teller.accounts()[at]))?;
        }
        teller.transactions = teller.long(&format!("g.V('w{writer}').values('n')"))? as u64;
        Ok(teller)
    }

    fn accounts(&self) -> [usize; 2] {
        [2 * self.writer, 2 * self.writer + 1]
    }

    fn long(&mut self, script: &str) -> Result<i64> {
        let found = self.client.run(script, &Parameters::new())?;
        let [Value::I64(n)] = found[..] else { panic!("{script} gave {found:?}") };
        Ok(n)
    }

    /// Makes the indexes that are not there.
    pub fn make_indexes(&mut self) -> Result<()> {
        for index in indexes() {
            let (element, label, kind) =
                (index.element.name(), index.label.as_deref().unwrap_or_default(), index.kind.name());
            let of_kind = format!("g.call('mangrove.index.list').where(select('element').is('{element}'))");
            if self.client.run(&of_kind, &Parameters::new())?.is_empty() {
                let create = format!(
                    "g.call('mangrove.index.create').with('element', '{element}').with('label', '{label}').with('key', 'key')\
                     .with('kind', '{kind}').with('unique', true)"
                );
                self.client.run(&create, &Parameters::new())?;
            }
        }
        Ok(())
    }

    /// Commits the next transaction, and returns its number.
    pub fn transact(&mut self, chance: &mut Chance) -> Result<u64> {
        let k = self.transactions + 1;
        loop {
            let amount = chance.below(100) as i64;
            let [from, to] = self.accounts();
            let next = [self.balances[0] - amount, self.balances[1] + amount];
            match self.client.run(&script(self.writer, k, [(from, next[0]), (to, next[1])]), &Parameters::new()) {
                Ok(_) => {
                    (self.balances, self.transactions) = (next, k);
                    return Ok(k);
                }
                Err(error) if error.kind() == ErrorKind::Conflict => {}
                Err(error) => return Err(error),
            }
        }
    }
}

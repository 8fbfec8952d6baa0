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
struct Serving(Child);

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
    let mut line = String::new();
    BufReader::new(serving.0.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let url = line.split_whitespace().find(|word| word.starts_with("ws://")).unwrap_or_else(|| {
        panic!("seed {seed}: the server said {line:?}");
    });
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
            // The shell's built-in `kill`, because not every system has the program.
            let kill = format!("kill -s TERM {}", serving.0.id());
            assert!(Command::new("sh").args(["-c", &kill]).status().unwrap().success());
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
    let mut client = Client::connect(url)?;
    let none = Parameters::new();
    let accounts = [2 * writer, 2 * writer + 1];
    let mut k = told.load(Ordering::SeqCst) + 1;
    let mut balances = [0; 2];
    for (balance, account) in balances.iter_mut().zip(accounts) {
        let found = client.run(&format!("g.V('a{account}').values('balance')"), &none)?;
        let [Value::I64(n)] = found[..] else { panic!("account {account} has {found:?}") };
        *balance = n;
    }
    // The first writer makes the indexes.
    for index in indexes().iter().filter(|_| writer == 0) {
        let (element, label, kind) =
            (index.element.name(), index.label.as_deref().unwrap_or_default(), index.kind.name());
        let of_kind = format!("g.call('mangrove.index.list').where(select('element').is('{element}'))");
        if client.run(&of_kind, &none)?.is_empty() {
            let create = format!(
                "g.call('mangrove.index.create').with('element', '{element}').with('label', '{label}').with('key', 'key')\
                 .with('kind', '{kind}').with('unique', true)"
            );
            client.run(&create, &none)?;
        }
    }
    loop {
        let amount = chance.below(100) as i64;
        let next = [balances[0] - amount, balances[1] + amount];
        match client.run(&script(writer, k, [(accounts[0], next[0]), (accounts[1], next[1])]), &none) {
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::Conflict => continue,
            Err(error) => return Err(error),
        }
        told.store(k, Ordering::SeqCst);
        (balances, k) = (next, k + 1);
    }
}

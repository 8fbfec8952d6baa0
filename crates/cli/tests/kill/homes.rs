//! `mangrove serve --data ADDRESS`: servers that take a graph over from one another.
//!
//! Two writers and some readers follow the newest server. A third writer commits at each new server, so that there is news
//! that an earlier server cannot know. Each round ends a server in one of three ways:
//!
//! - it is killed;
//! - it is asked to stop;
//! - it is paused (SIGSTOP), another one takes over and commits, and it goes on (SIGCONT), with requests that came
//!   meanwhile.
//!
//! Every transaction that any server acknowledged is there at every later server, and at the end. No read, of a server that
//! goes on after a pause either, is older than what was acknowledged before the read was sent.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use mangrove::{Parameters, Value};

use crate::chance::Chance;
use crate::client::Client;
use crate::server::{Serving, Teller};
use crate::workload::{Counts, WRITERS, check, write_files};
use crate::{Folder, kills, number};

/// The writer that commits once at each new server.
const WITNESS: usize = WRITERS - 1;
/// Threads that read at each server.
const READERS: usize = 3;
/// Rounds of each database.
const ROUNDS: usize = 10;
/// The pause before a client tries again.
const PAUSE: Duration = Duration::from_millis(10);

/// How a server ends.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum End {
    Killed,
    Stopped,
    Paused,
}

/// What all clients share.
struct Clients {
    /// The transactions of each writer that were acknowledged.
    told: [AtomicU64; WRITERS],
    /// The URL of the newest server.
    newest: Mutex<String>,
    is_over: AtomicBool,
    reads: AtomicU64,
}

impl Clients {
    /// Writes at the newest server, until the end.
    fn write(&self, writer: usize, mut chance: Chance) {
        while !self.is_over.load(Ordering::SeqCst) {
            let url = self.newest.lock().unwrap().clone();
            // Whatever an error says, the transaction is there or is not; the next server tells.
            let _ = self.write_at(&url, writer, &mut chance);
            std::thread::sleep(PAUSE);
        }
    }

    fn write_at(&self, url: &str, writer: usize, chance: &mut Chance) -> mangrove::Result<()> {
        let mut teller = self.teller(url, writer)?;
        while !self.is_over.load(Ordering::SeqCst) {
            self.told[writer].store(teller.transact(chance)?, Ordering::SeqCst);
        }
        Ok(())
    }

    /// Connects a writer, and checks that the server has what was acknowledged, and at most one transaction more.
    fn teller(&self, url: &str, writer: usize) -> mangrove::Result<Teller> {
        let told = self.told[writer].load(Ordering::SeqCst);
        let teller = Teller::begin(url, writer)?;
        let found = teller.transactions;
        assert!(
            found == told || found == told + 1,
            "writer {writer} was told of {told} transactions, and {found} are at {url}"
        );
        self.told[writer].store(found, Ordering::SeqCst);
        Ok(teller)
    }

    /// Reads at a server until it fails. A server that was taken over may still answer, but with nothing stale.
    fn read(&self, url: &str, mut chance: Chance) {
        let Ok(mut client) = Client::connect(url) else { return };
        while !self.is_over.load(Ordering::SeqCst) {
            std::thread::sleep(Duration::from_micros(chance.below(20_000)));
            let writer = chance.below(WRITERS as u64) as usize;
            let told = self.told[writer].load(Ordering::SeqCst);
            let Ok(found) = client.run(&format!("g.V('w{writer}').values('n')"), &Parameters::new()) else { return };
            let [Value::I64(n)] = found[..] else { panic!("writer {writer} has {found:?}") };
            assert!(
                n as u64 >= told,
                "{url} showed {n} transactions of writer {writer}, after {told} were acknowledged"
            );
            self.reads.fetch_add(1, Ordering::SeqCst);
        }
    }
}

/// Ends the clients when the test ends or fails.
struct Over<'a>(&'a Clients);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.is_over.store(true, Ordering::SeqCst);
    }
}

fn serve(address: &str, files: &[PathBuf], log: &Path) -> Serving {
    let mut command = Command::new(env!("CARGO_BIN_EXE_mangrove"));
    command.args(["serve", "--listen", "127.0.0.1:0", "--data", address, "--checkpoint-log-size", "64KiB"]);
    command.arg("--reads-without-home=false").env("MANGROVE_LOG", "info");
    for file in files {
        command.arg("--load").arg(file);
    }
    Serving(command.stdout(Stdio::piped()).stderr(File::create(log).unwrap()).spawn().unwrap())
}

/// Servers of one database, one after the other. Returns the transactions that were acknowledged, and how servers ended.
fn run(address: &str, folder: &Path, files: &[PathBuf], first: u64, rounds: usize) -> (Counts, Vec<End>, u64) {
    let clients = Clients {
        told: Default::default(),
        newest: Mutex::default(),
        is_over: AtomicBool::new(false),
        reads: AtomicU64::new(0),
    };
    let mut ends = Vec::new();
    std::thread::scope(|scope| {
        let _over = Over(&clients);
        let mut chance = Chance::new(first);
        let open = |number: usize| {
            let mut server = serve(address, files, &folder.join(format!("{first}-{number}.log")));
            let url = server.url().unwrap_or_else(|| panic!("seed {first}: server {number} does not listen"));
            (server, url)
        };
        // A new server is asked first by the witness, then by all clients.
        let follow = |url: &str, chance: &mut Chance| {
            let mut teller = clients.teller(url, WITNESS).unwrap();
            for _ in 0..=chance.below(3) {
                clients.told[WITNESS].store(teller.transact(chance).unwrap(), Ordering::SeqCst);
            }
            url.clone_into(&mut clients.newest.lock().unwrap());
            for _ in 0..READERS {
                let (url, chance, clients) = (url.to_owned(), Chance::new(chance.below(u64::MAX)), &clients);
                scope.spawn(move || clients.read(&url, chance));
            }
        };
        let (mut server, url) = open(0);
        Teller::begin(&url, 0).unwrap().make_indexes().unwrap();
        follow(&url, &mut chance);
        for writer in 0..WITNESS {
            let (clients, chance) = (&clients, Chance::new(first ^ ((writer as u64 + 1) << 32)));
            scope.spawn(move || clients.write(writer, chance));
        }
        for round in 1..=rounds {
            std::thread::sleep(Duration::from_micros(chance.below(400_000)));
            let end = [End::Killed, End::Paused, End::Paused, End::Stopped][chance.below(4) as usize];
            match end {
                End::Killed => server.0.kill().unwrap(),
                End::Paused => server.signal("STOP"),
                End::Stopped => {
                    server.signal("TERM");
                    if chance.once_in(2) {
                        server.0.wait().unwrap();
                    }
                }
            }
            let (next, url) = open(round);
            follow(&url, &mut chance);
            if end == End::Paused {
                server.signal("CONT");
                // What came meanwhile is answered.
                std::thread::sleep(Duration::from_micros(chance.below(200_000)));
            }
            // The earlier server is killed, if it has not ended.
            server = next;
            ends.push(end);
        }
        server.signal("TERM");
        server.0.wait().unwrap();
    });
    (clients.told.map(AtomicU64::into_inner), ends, clients.reads.into_inner())
}

#[test]
fn servers_that_take_a_graph_over_lose_nothing_and_show_nothing_stale() {
    let folder = Folder::new("homes");
    let files = folder.path().join("files");
    std::fs::create_dir_all(&files).unwrap();
    let files = write_files(&files);
    let base = std::env::var("MANGROVE_KILL_HOME").unwrap_or_else(|_| format!("file:{}", folder.path().display()));
    let seeds = kills(number("MANGROVE_KILLS_IN_HOMES", 2));
    let (mut committed, mut all_reads, mut ended) = (0, 0, BTreeMap::new());
    for first in seeds.clone().step_by(ROUNDS) {
        let rounds = ROUNDS.min((seeds.end - first) as usize);
        let address = format!("{base}/kill-{}-{first}", std::process::id());
        let (told, ends, reads) = run(&address, folder.path(), &files, first, rounds);
        let found = check(Path::new(&address), told, false, &format!("seed {first}"));
        (committed, all_reads) = (committed + found.iter().sum::<u64>(), all_reads + reads);
        ends.into_iter().for_each(|end| *ended.entry(end).or_insert(0) += 1);
    }
    println!(
        "{committed} transactions were committed and {all_reads} reads served, by servers that ended as {ended:?}"
    );
    assert!(committed > 0 && all_reads > 0, "nothing happened");
}

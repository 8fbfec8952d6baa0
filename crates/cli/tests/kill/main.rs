//! Kill tests: a process that writes is killed (SIGKILL) at a random moment, repeatedly, and the database that it left
//! is opened and checked. Every acknowledged transaction exists, and no transaction exists in part.
//!
//! In one test the process is a program with the embedded database ([`embedded`]), in the other `mangrove serve
//! --data`, with writes over the wire ([`server`]). Both do the transactions of [`workload`]. They are killed while
//! they write, while they take checkpoints and change segments, while they recover, while they load in bulk, and while
//! they start and stop: each round aims at one of these, and what it met is counted ([`phase`]); a phase that no kill
//! of a run met fails it.
//!
//! Graphs in homes have a test of their own ([`homes`]): a server that is killed, stopped or paused is followed by another
//! one, which takes the graph over. It runs in a directory, or at the address that `MANGROVE_KILL_HOME` has.
//!
//! Rules of the schema have a test of their own ([`rules`]): they are created and dropped while other threads write.
//!
//! `MANGROVE_KILLS` sets the total number of kills, `MANGROVE_FIRST` the seed of the first round. A failure prints the
//! seed of its round. A seed decides the operations and the moment of the kill, as far as timing can be repeated.

mod chance;
mod embedded;
mod homes;
mod phase;
mod rules;
mod server;
mod workload;

#[path = "../../src/client/mod.rs"]
#[allow(dead_code, reason = "shared with the program")]
mod client;

use std::path::{Path, PathBuf};

/// Kills in CI; seven of ten of the embedded database.
const KILLS: u64 = 100;

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().unwrap_or_else(|e| panic!("{name}={text}: {e}")))
}

/// The seeds of a test, one a kill.
fn kills(share_of_ten: u64) -> std::ops::Range<u64> {
    let first = number("MANGROVE_FIRST", 1);
    first..first + (number("MANGROVE_KILLS", KILLS) * share_of_ten).div_ceil(10)
}

/// A directory for one test. It is removed at its end, but kept for inspection if the test fails.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("mangrove-kill-{}-{name}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    fn path(&self) -> &Path {
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

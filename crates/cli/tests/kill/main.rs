//! Kill tests: a process that writes is killed (SIGKILL) at a random moment, again and again. The files that it left
//! are opened and checked: every acknowledged transaction is there, and no transaction is there in part.
//!
//! In one test the process is a program with the embedded database ([`embedded`]), in another it is `mangrove serve
//! --data`, which clients write to over the wire ([`server`]). Both run the transactions of [`workload`]. They are
//! killed while they write, take checkpoints, change segments, recover, load in bulk, start and stop. Each round aims
//! at one of these phases and counts the phase that it met ([`phase`]). A phase that no kill of a run met fails the
//! run.
//!
//! Rules of the schema have kill tests of their own ([`rules`]): rules are made and dropped while other threads write.
//!
//! `MANGROVE_KILLS` is the number of kills in all, `MANGROVE_FIRST` the seed of the first round. A failure prints the
//! seed of its round. A seed decides the work and the moment of the kill, as far as time can be repeated.

mod chance;
mod embedded;
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

/// The kills of each of the two tests, and the first seed.
fn kills(share_of_ten: u64) -> std::ops::Range<u64> {
    let first = number("MANGROVE_FIRST", 1);
    first..first + (number("MANGROVE_KILLS", KILLS) * share_of_ten).div_ceil(10)
}

/// A directory for one test, removed at its end. It stays if the test fails.
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

//! Kill tests: a process that writes is killed (SIGKILL) at a random moment, again and again, and what it left is opened
//! and looked at: every transaction that was acknowledged is there, and none is half there.
//!
//! Once the process is the embedded database in a program of its own ([`embedded`]), once it is `mangrove serve --data`,
//! written to over the wire ([`server`]). Both do the transactions of [`workload`]. They are killed while they write, while
//! they take checkpoints and change segments, while they recover, while they load in bulk, and while they start and stop:
//! each round aims at one of these, and what it met is counted ([`phase`]); a phase that no kill of a run met fails it.
//!
//! Rules of the schema have kills of their own ([`rules`]): they are made and dropped while others write.
//!
//! `MANGROVE_KILLS` says how many times (in all), `MANGROVE_FIRST` the seed of the first round; a failure prints the
//! round's seed. A seed decides what is done and when the kill comes, as far as time can be repeated.

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

/// How many kills each of the two tests has, and the first seed.
fn kills(share_of_ten: u64) -> std::ops::Range<u64> {
    let first = number("MANGROVE_FIRST", 1);
    first..first + (number("MANGROVE_KILLS", KILLS) * share_of_ten).div_ceil(10)
}

/// A directory of a test's own, removed at its end; left there when the test fails, to be looked at.
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

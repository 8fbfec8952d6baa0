//! What the system says of this process, under the names that Prometheus' own clients use.
//!
//! Read from `/proc`; where there is none, the samples are missing and nothing else is.

use std::fs;

use crate::exposition::{Exposition, Kind};

/// Clock ticks a second in `/proc/self/stat`: what Linux shows to programs, whatever the kernel itself counts in.
const TICKS_PER_SECOND: f64 = 100.0;

/// The version, and what the process takes of the machine.
pub fn exposition() -> String {
    let mut text = Exposition::default();
    let meaning = "Always 1; its label is the version.";
    let mut family = text.family("mangrove_build_info", Kind::Gauge, meaning);
    family.sample(&[("version", env!("CARGO_PKG_VERSION"))], 1);
    if let Some(seconds) = cpu_seconds() {
        let meaning = "Processor time of the process, in seconds.";
        text.single("process_cpu_seconds_total", Kind::Counter, meaning, seconds);
    }
    if let Some(bytes) = resident_bytes() {
        text.single("process_resident_memory_bytes", Kind::Gauge, "Memory of the process that is in use.", bytes);
    }
    if let Some(count) = open_files() {
        text.single("process_open_fds", Kind::Gauge, "Open file descriptors, connections included.", count);
    }
    text.into_text()
}

fn cpu_seconds() -> Option<f64> {
    let stat = fs::read_to_string("/proc/self/stat").ok()?;
    // The second field is the program's name in parentheses, which may hold anything.
    let mut fields = stat.rsplit_once(')')?.1.split_ascii_whitespace().skip(11);
    let (user, system): (f64, f64) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
    Some((user + system) / TICKS_PER_SECOND)
}

fn resident_bytes() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kilobytes * 1024)
}

fn open_files() -> Option<usize> {
    // The listing itself has one open.
    Some(fs::read_dir("/proc/self/fd").ok()?.count().saturating_sub(1))
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn the_system_says_something_plausible() {
        assert!(resident_bytes().unwrap() > 1 << 20);
        assert!(open_files().unwrap() >= 3);
        assert!(cpu_seconds().unwrap() >= 0.0);
    }
}

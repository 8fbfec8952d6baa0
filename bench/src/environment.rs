//! The machine and the build of a run.

use std::process::Command;

use crate::report::Figure;

/// The machine, the commit and the build.
pub fn describe() -> Vec<Figure> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let (commit, changed) = commit();
    let profile = if cfg!(debug_assertions) { "debug" } else { "release" };
    vec![
        figure("machine", processor(), "threads", threads as f64, "count"),
        figure("memory", "total".to_owned(), "size", memory_bytes(), "B"),
        figure("commit", commit, "files changed since", changed as f64, "count"),
        figure("profile", profile.to_owned(), "debug assertions", f64::from(u8::from(cfg!(debug_assertions))), "flag"),
    ]
}

fn figure(case: &str, variant: String, metric: &str, value: f64, unit: &'static str) -> Figure {
    Figure { suite: "run", case: case.to_owned(), variant, metric: metric.to_owned(), value, unit }
}

/// The text after the colon of the first line that begins with `name`.
fn line_of(path: &str, name: &str) -> Option<String> {
    let text = std::fs::read_to_string(path).ok()?;
    let line = text.lines().find(|line| line.starts_with(name))?;
    line.split_once(':').map(|(_, value)| value.trim().to_owned())
}

fn processor() -> String {
    line_of("/proc/cpuinfo", "model name").unwrap_or_else(|| std::env::consts::ARCH.to_owned())
}

fn memory_bytes() -> f64 {
    let kibibytes = line_of("/proc/meminfo", "MemTotal").and_then(|text| text.split(' ').next()?.parse::<f64>().ok());
    kibibytes.unwrap_or(0.0) * 1024.0
}

/// The commit of the working directory, and the number of tracked files that differ from it.
fn commit() -> (String, usize) {
    let git = |arguments: &[&str]| {
        let output = Command::new("git").args(arguments).output().ok().filter(|output| output.status.success())?;
        String::from_utf8(output.stdout).ok()
    };
    let commit = git(&["rev-parse", "--short=12", "HEAD"]).map_or("unknown".to_owned(), |text| text.trim().to_owned());
    let changed = git(&["status", "--porcelain", "--untracked-files=no"]).map_or(0, |text| text.lines().count());
    (commit, changed)
}

/// The resident memory of the process, in bytes.
pub fn resident_bytes() -> f64 {
    let kibibytes = line_of("/proc/self/status", "VmRSS").and_then(|text| text.split(' ').next()?.parse::<f64>().ok());
    kibibytes.unwrap_or(0.0) * 1024.0
}

/// Processor time of all threads of the process, in hundredths of a second; 0 if the system does not report it.
pub fn processor_seconds() -> f64 {
    // The unit, USER_HZ, is 100 on all Linux systems.
    const TICKS_A_SECOND: f64 = 100.0;
    let ticks = || {
        let text = std::fs::read_to_string("/proc/self/stat").ok()?;
        // The name before these fields may contain blanks. State is field 3; user and system time are 14 and 15.
        let mut fields = text.rsplit_once(')')?.1.split_whitespace().skip(14 - 3);
        Some(fields.next()?.parse::<f64>().ok()? + fields.next()?.parse::<f64>().ok()?)
    };
    ticks().unwrap_or(0.0) / TICKS_A_SECOND
}

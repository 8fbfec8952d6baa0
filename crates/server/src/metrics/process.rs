//! The operating system's figures for this process, under the names that Prometheus' own clients use.
//!
//! The source is `/proc`. On a system without it the samples are missing.

use std::fs;
use std::path::Path;
use std::time::SystemTime;

use crate::metrics::exposition::{Exposition, MetricKind};

/// Clock ticks a second in `/proc/self/stat`. Linux shows this rate to programs, whatever the kernel counts in.
const TICKS_PER_SECOND: f64 = 100.0;

/// The version, and the resources that the process uses.
pub fn exposition() -> String {
    let mut text = Exposition::default();
    let meaning = "Always 1; its label is the version.";
    let mut family = text.family("mangrove_build_info", MetricKind::Gauge, meaning);
    family.sample(&[("version", env!("CARGO_PKG_VERSION"))], 1);
    if let Some(seconds) = cpu_seconds() {
        let meaning = "Processor time of the process, in seconds.";
        text.single("process_cpu_seconds_total", MetricKind::Counter, meaning, seconds);
    }
    if let Some(bytes) = resident_bytes() {
        text.single("process_resident_memory_bytes", MetricKind::Gauge, "Memory of the process that is in use.", bytes);
    }
    if let Some(bytes) = virtual_bytes() {
        text.single("process_virtual_memory_bytes", MetricKind::Gauge, "Addresses that the process has taken.", bytes);
    }
    if let Some(seconds) = start_seconds() {
        let meaning = "When the process was started, in seconds since 1970.";
        text.single("process_start_time_seconds", MetricKind::Gauge, meaning, seconds);
    }
    if let Some(count) = open_files_max() {
        text.single("process_max_fds", MetricKind::Gauge, "File descriptors that may be open.", count);
    }
    if let Some(count) = open_files() {
        text.single("process_open_fds", MetricKind::Gauge, "Open file descriptors, connections included.", count);
    }
    text.into_text()
}

/// A field of `/proc/self/stat`, counted from 1 as in the manual page.
fn stat(field: usize) -> Option<f64> {
    let stat = fs::read_to_string("/proc/self/stat").ok()?;
    // The second field is the program's name in parentheses, which may hold anything.
    let fields = stat.rsplit_once(')')?.1;
    fields.split_ascii_whitespace().nth(field.checked_sub(3)?)?.parse().ok()
}

fn cpu_seconds() -> Option<f64> {
    Some((stat(14)? + stat(15)?) / TICKS_PER_SECOND)
}

fn start_seconds() -> Option<f64> {
    let machine = fs::read_to_string("/proc/stat").ok()?;
    let booted: f64 = machine.lines().find_map(|line| line.strip_prefix("btime "))?.trim().parse().ok()?;
    Some(booted + stat(22)? / TICKS_PER_SECOND)
}

fn resident_bytes() -> Option<u64> {
    kilobytes("VmRSS:")
}

fn virtual_bytes() -> Option<u64> {
    kilobytes("VmSize:")
}

fn kilobytes(name: &str) -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kilobytes * 1024)
}

fn open_files_max() -> Option<u64> {
    let limits = fs::read_to_string("/proc/self/limits").ok()?;
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"))?;
    line.split_ascii_whitespace().next()?.parse().ok()
}

/// The file system that a directory is on.
#[derive(Clone, Copy, Debug)]
pub struct DiskSpace {
    /// Bytes that are free for others than root.
    pub free_bytes: u64,
    /// Its size.
    pub size_bytes: u64,
}

impl DiskSpace {
    /// The file system of a directory; `None` if the system does not say.
    pub fn of(directory: &Path) -> Option<DiskSpace> {
        let space = rustix::fs::statvfs(directory).ok()?;
        let bytes = |blocks: u64| blocks.saturating_mul(space.f_frsize);
        Some(DiskSpace { free_bytes: bytes(space.f_bavail), size_bytes: bytes(space.f_blocks) })
    }
}

/// When the newest file in a directory was written, in seconds since 1970; `None` if there is no file.
pub fn newest_file(directory: &Path) -> Option<f64> {
    let written = |entry: std::io::Result<fs::DirEntry>| entry.ok()?.metadata().ok()?.modified().ok();
    let newest: SystemTime = fs::read_dir(directory).ok()?.filter_map(written).max()?;
    newest.duration_since(SystemTime::UNIX_EPOCH).ok().map(|since| since.as_secs_f64())
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
        assert!(virtual_bytes().unwrap() > resident_bytes().unwrap());
        assert!(open_files_max().unwrap() >= open_files().unwrap() as u64);
        // A file that is made now is younger than the process, and not by days.
        let folder = std::env::temp_dir().join(format!("mangrove-process-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        assert_eq!(newest_file(&folder), None);
        fs::write(folder.join("a"), "").unwrap();
        let age = newest_file(&folder).unwrap() - start_seconds().unwrap();
        fs::remove_dir_all(&folder).unwrap();
        assert!((-2.0..86_400.0).contains(&age), "{age}");
        let space = DiskSpace::of(&std::env::temp_dir()).unwrap();
        assert!(space.size_bytes > space.free_bytes);
    }
}

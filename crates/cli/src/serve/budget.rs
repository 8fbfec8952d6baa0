//! The memory budget of a server: the setting, or else a share of the memory that the system allows the process.

use std::fs;
use std::path::{Path, PathBuf};

use mangrove::MemoryBudget;

use crate::quantity::Size;

/// The default share of the budget in the memory that the process may use, in quarters. The rest is for memory that the
/// budget does not count: gaps of the allocator, read sets of transactions, plans, stacks, buffers of connections, the
/// program itself. A write also allocates after the budget has admitted it.
const QUARTERS: u64 = 3;

/// A limit from here on means that there is none: a control group of version 1 says it with a huge number.
const NO_LIMIT_MIN: u64 = 1 << 60;

/// The memory that the process may use, in bytes, and the limit that it comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryAllowance {
    bytes: u64,
    by: String,
}

/// The budget that is set, or the default. Logs which it is.
pub fn of(setting: Option<Size>) -> MemoryBudget {
    match (setting, allowed(Path::new("/"))) {
        (Some(Size { bytes }), allowed) => {
            tracing::info!(
                bytes,
                "memory budget: graphs, queries and messages together use at most this (memory_budget)"
            );
            if let Some(MemoryAllowance { bytes: allowed, by }) = allowed.filter(|allowed| allowed.bytes < bytes) {
                tracing::warn!(
                    bytes,
                    allowed,
                    "memory_budget is more than the process may use ({by}): the system may end it before the budget \
                     refuses work"
                );
            }
            MemoryBudget::of(bytes)
        }
        (None, Some(MemoryAllowance { bytes: allowed, by })) => {
            let bytes = share(allowed);
            tracing::info!(
                bytes,
                allowed,
                "memory budget: graphs, queries and messages together use at most this, three quarters of {by}; the \
                 setting \
                 memory_budget changes it"
            );
            MemoryBudget::of(bytes)
        }
        (None, None) => {
            tracing::warn!(
                "there is no memory budget: the system does not say how much memory there is; set memory_budget"
            );
            MemoryBudget::unlimited()
        }
    }
}

/// The limit in bytes, as [`of`] sets it; `None` if there is none.
pub fn limit(setting: Option<Size>) -> Option<u64> {
    setting.map(|size| size.bytes).or_else(|| allowed(Path::new("/")).map(|allowed| share(allowed.bytes)))
}

fn share(bytes: u64) -> u64 {
    bytes / 4 * QUARTERS
}

/// The smallest limit that the system sets for the process. `root` is the root of the file system (another in tests).
fn allowed(root: &Path) -> Option<MemoryAllowance> {
    let said = [machine(root), control_group(root), address_space(root)];
    said.into_iter().flatten().min_by_key(|allowed| allowed.bytes)
}

/// The memory of the machine.
fn machine(root: &Path) -> Option<MemoryAllowance> {
    let text = fs::read_to_string(root.join("proc/meminfo")).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(MemoryAllowance { bytes: kilobytes.checked_mul(1024)?, by: "the machine's memory".to_owned() })
}

/// The smallest limit of the control group of the process and of those above it.
fn control_group(root: &Path) -> Option<MemoryAllowance> {
    let text = fs::read_to_string(root.join("proc/self/cgroup")).ok()?;
    let mut limits = Vec::new();
    for line in text.lines() {
        // A line is number, controllers, path. Version 2 has one line without controllers.
        let mut fields = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (fields.next(), fields.next()) else { continue };
        let (mount, file) = match controllers {
            "" => ("sys/fs/cgroup", "memory.max"),
            controllers if controllers.split(',').any(|name| name == "memory") => {
                ("sys/fs/cgroup/memory", "memory.limit_in_bytes")
            }
            _ => continue,
        };
        let mount = root.join(mount);
        let mut folder: Option<PathBuf> = Some(mount.join(path.trim_start_matches('/')));
        // A container may see its own group as the root, under a path that does not exist.
        while let Some(at) = folder.filter(|at| at.starts_with(&mount)) {
            let limit = fs::read_to_string(at.join(file)).ok().and_then(|text| text.trim().parse().ok());
            limits.extend(limit.filter(|bytes: &u64| *bytes < NO_LIMIT_MIN).map(|bytes| (bytes, at.join(file))));
            folder = at.parent().map(Path::to_owned);
        }
    }
    let (bytes, file) = limits.into_iter().min_by_key(|(bytes, _)| *bytes)?;
    Some(MemoryAllowance { bytes, by: format!("the limit of its control group, {}", file.display()) })
}

/// The limit of the process's address space (`ulimit -v`).
fn address_space(root: &Path) -> Option<MemoryAllowance> {
    let text = fs::read_to_string(root.join("proc/self/limits")).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("Max address space"))?;
    let bytes = line.split_ascii_whitespace().next()?.parse().ok()?;
    Some(MemoryAllowance { bytes, by: "the limit of its address space (ulimit -v)".to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A root with these files.
    fn root(name: &str, files: &[(&str, &str)]) -> PathBuf {
        let root = std::env::temp_dir().join(format!("mangrove-budget-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&root);
        for (path, text) in files {
            let path = root.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        root
    }

    const MACHINE: (&str, &str) = ("proc/meminfo", "MemTotal:       16000 kB\nMemFree:  1 kB\n");

    /// A name, files, how many bytes they allow, and what says so.
    type Case = (&'static str, &'static [(&'static str, &'static str)], u64, &'static str);

    #[test]
    fn the_least_of_what_the_system_says_counts() {
        const UNLIMITED: &str =
            "Limit   Soft Limit  Hard Limit  Units\nMax address space         unlimited   unlimited   bytes\n";
        const LIMITED: &str = "Max address space         12000000   unlimited   bytes\n";
        let cases: [Case; 7] = [
            ("machine", &[MACHINE, ("proc/self/limits", UNLIMITED)], 16_384_000, "the machine"),
            ("addresses", &[MACHINE, ("proc/self/limits", LIMITED)], 12_000_000, "ulimit -v"),
            (
                "group",
                &[
                    MACHINE,
                    ("proc/self/cgroup", "0::/system.slice/mangrove.service\n"),
                    ("sys/fs/cgroup/system.slice/mangrove.service/memory.max", "max\n"),
                    ("sys/fs/cgroup/system.slice/memory.max", "9000000\n"),
                ],
                9_000_000,
                "system.slice/memory.max",
            ),
            (
                "namespace",
                &[MACHINE, ("proc/self/cgroup", "0::/\n"), ("sys/fs/cgroup/memory.max", "8000000\n")],
                8_000_000,
                "memory.max",
            ),
            (
                "first_version",
                &[
                    MACHINE,
                    ("proc/self/cgroup", "12:cpu,cpuacct:/docker/1f\n9:memory:/docker/1f\n0::/\n"),
                    ("sys/fs/cgroup/memory/memory.limit_in_bytes", "7000000\n"),
                ],
                7_000_000,
                "memory.limit_in_bytes",
            ),
            (
                "first_version_without",
                &[
                    MACHINE,
                    ("proc/self/cgroup", "9:memory:/\n"),
                    ("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n"),
                ],
                16_384_000,
                "the machine",
            ),
            (
                "strange",
                &[MACHINE, ("proc/self/cgroup", "no line\n0::/../../etc\n"), ("proc/self/limits", "none")],
                16_384_000,
                "the machine",
            ),
        ];
        for (name, files, bytes, by) in cases {
            let root = root(name, files);
            let allowed = allowed(&root).unwrap();
            fs::remove_dir_all(&root).unwrap();
            assert!(allowed.bytes == bytes && allowed.by.contains(by), "{name}: {allowed:?}");
        }
        assert_eq!(allowed(&root("silent", &[])), None);
        assert_eq!(share(16_384_000), 12_288_000);
    }
}

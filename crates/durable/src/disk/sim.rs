//! [`SimDisk`]: a disk in memory that behaves as badly as a real one may, and repeatably by seed.
//!
//! It keeps synced data apart from data that was only written. [`SimDisk::power_cut`] returns the disk that a program
//! finds after a power cut: everything synced and, of the rest, the part that the seed decides on. Each unsynced sector
//! and name is there or not; a sector may also be torn. Each cut draws how much survives at all, so that "nothing",
//! "nearly everything" and mixtures all occur.
//!
//! Faults are set beforehand: the power going off at an operation, one operation that fails or panics, a sync that
//! fails, a full or read-only disk, bits that flip.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use parking_lot::Mutex;

use super::{Disk, DiskError, DiskFile, DiskResult, SECTOR, parent};

/// A simulated disk. A clone is another handle to the same disk.
#[derive(Clone, Debug, Default)]
pub struct SimDisk {
    state: Arc<Mutex<SimState>>,
}

/// The content of the disk. The durable parts change only by a sync.
#[derive(Debug, Default)]
struct SimState {
    files: Vec<SimContent>,
    /// The names that a program sees: directories, and files by their number.
    names: BTreeMap<String, SimNode>,
    durable_names: BTreeMap<String, SimNode>,
    name_changes: Vec<NameChange>,
    faults: Faults,
    /// Operations so far that changed or synced something.
    operations: u64,
    syncs: u64,
}

/// The faults that a test has set. Operations and syncs are counted from 1.
#[derive(Debug, Default)]
struct Faults {
    power_off_at: Option<u64>,
    failing_sync: Option<u64>,
    failing_operation: Option<u64>,
    panicking_operation: Option<u64>,
    capacity: Option<u64>,
    read_only: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum SimNode {
    Directory,
    File(usize),
}

#[derive(Clone, Debug)]
enum NameChange {
    Add(String, SimNode),
    Remove(String),
    /// One atomic change of both names.
    Rename(String, String, SimNode),
}

impl NameChange {
    fn is_in(&self, directory: &str) -> bool {
        match self {
            NameChange::Add(path, _) | NameChange::Remove(path) => parent(path) == directory,
            NameChange::Rename(from, to, _) => parent(from) == directory || parent(to) == directory,
        }
    }

    fn apply(&self, names: &mut BTreeMap<String, SimNode>) {
        match self {
            NameChange::Add(path, node) => {
                names.insert(path.clone(), *node);
            }
            NameChange::Remove(path) => {
                names.remove(path);
            }
            NameChange::Rename(from, to, node) => {
                names.remove(from);
                names.insert(to.clone(), *node);
            }
        }
    }
}

/// The bytes of one file.
#[derive(Debug, Default)]
struct SimContent {
    /// The bytes that a program reads.
    current: Vec<u8>,
    durable: Vec<u8>,
    /// The changes that lead from the durable bytes to the current ones.
    unsynced: Vec<ContentChange>,
}

#[derive(Clone, Debug)]
enum ContentChange {
    Write(u64, Vec<u8>),
    SetLen(u64),
}

impl ContentChange {
    fn apply(&self, bytes: &mut Vec<u8>) {
        match self {
            ContentChange::Write(offset, written) => overlay(bytes, *offset as usize, written),
            ContentChange::SetLen(len) => bytes.resize(*len as usize, 0),
        }
    }

    /// Applies the part of the change that survives a power cut.
    fn apply_by_chance(&self, bytes: &mut Vec<u8>, survival: &mut Survival) {
        let (offset, written) = match self {
            ContentChange::SetLen(_) if survival.keeps() => return self.apply(bytes),
            ContentChange::SetLen(_) => return,
            ContentChange::Write(offset, written) => (*offset, written),
        };
        let end = offset + written.len() as u64;
        let mut at = offset;
        while at < end {
            let next = (at / SECTOR * SECTOR + SECTOR).min(end);
            let part = &written[(at - offset) as usize..(next - offset) as usize];
            survival.write_sector(bytes, at as usize, part);
            at = next;
        }
    }
}

/// Writes into bytes, and grows them if needed.
fn overlay(bytes: &mut Vec<u8>, at: usize, written: &[u8]) {
    if bytes.len() < at + written.len() {
        bytes.resize(at + written.len(), 0);
    }
    bytes[at..at + written.len()].copy_from_slice(written);
}

/// Draws from a seed (SplitMix64) which changes survive a power cut.
#[derive(Debug)]
struct Survival {
    state: u64,
    keep_percent: u64,
}

impl Survival {
    fn of(seed: u64) -> Self {
        let mut survival = Survival { state: seed, keep_percent: 0 };
        survival.keep_percent = [0, 5, 50, 95, 100][survival.draw(5) as usize];
        survival
    }

    fn draw(&mut self, below: u64) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut n = self.state;
        n = (n ^ (n >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        n = (n ^ (n >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (n ^ (n >> 31)) % below
    }

    fn keeps(&mut self) -> bool {
        self.draw(100) < self.keep_percent
    }

    /// Writes a sector, or the written part of it: wholly, not at all, half, or as noise.
    fn write_sector(&mut self, bytes: &mut Vec<u8>, at: usize, part: &[u8]) {
        match self.draw(20) {
            0 if self.keep_percent < 100 => {
                let cut = self.draw(part.len() as u64 + 1) as usize;
                overlay(bytes, at, &part[..cut]);
            }
            1 if self.keep_percent < 100 => {
                // The rest of the sector is lost with it. So a program must not write to a sector whose content it
                // still needs.
                let sector = at / SECTOR as usize * SECTOR as usize;
                let end = (sector + SECTOR as usize).min(bytes.len().max(at + part.len()));
                let noise: Vec<u8> = (sector..end).map(|_| self.draw(256) as u8).collect();
                overlay(bytes, sector, &noise);
            }
            _ if self.keeps() => overlay(bytes, at, part),
            _ => {}
        }
    }
}

impl SimState {
    /// Counts an operation, and fails if a fault is set for it.
    fn begin(&mut self) -> io::Result<()> {
        self.operations += 1;
        self.check_power()?;
        assert!(self.faults.panicking_operation != Some(self.operations), "the disk panics, as it was told to");
        if self.faults.failing_operation == Some(self.operations) {
            return Err(io::Error::other("input/output error"));
        }
        match self.faults.read_only {
            true => Err(io::Error::new(io::ErrorKind::ReadOnlyFilesystem, "read-only file system")),
            false => Ok(()),
        }
    }

    fn check_power(&self) -> io::Result<()> {
        match self.faults.power_off_at {
            Some(at) if self.operations >= at => Err(io::Error::other("the power is off")),
            _ => Ok(()),
        }
    }

    fn used(&self) -> u64 {
        let files = self.names.values().filter_map(|node| match node {
            SimNode::File(number) => Some(*number),
            SimNode::Directory => None,
        });
        let mut files: Vec<usize> = files.collect();
        files.sort_unstable();
        files.dedup();
        files.into_iter().map(|number| self.files[number].current.len() as u64).sum()
    }

    fn change_names(&mut self, change: NameChange) {
        change.apply(&mut self.names);
        self.name_changes.push(change);
    }

    fn file(&self, path: &str) -> io::Result<usize> {
        match self.names.get(path) {
            Some(SimNode::File(number)) => Ok(*number),
            Some(SimNode::Directory) => Err(io::ErrorKind::IsADirectory.into()),
            None => Err(io::ErrorKind::NotFound.into()),
        }
    }

    fn check_new(&self, path: &str) -> io::Result<()> {
        if self.names.contains_key(path) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let directory = parent(path);
        match directory.is_empty() || self.names.get(directory) == Some(&SimNode::Directory) {
            true => Ok(()),
            false => Err(io::ErrorKind::NotFound.into()),
        }
    }

    fn change_content(&mut self, number: usize, change: ContentChange) -> io::Result<()> {
        let len = self.files[number].current.len() as u64;
        let grown = match &change {
            ContentChange::Write(offset, written) => (offset + written.len() as u64).saturating_sub(len),
            ContentChange::SetLen(_) => 0,
        };
        if grown > 0 && self.faults.capacity.is_some_and(|capacity| self.used() + grown > capacity) {
            return Err(io::Error::new(io::ErrorKind::StorageFull, "no space left on device"));
        }
        let file = &mut self.files[number];
        change.apply(&mut file.current);
        file.unsynced.push(change);
        Ok(())
    }

    fn sync(&mut self, number: usize) -> io::Result<()> {
        self.syncs += 1;
        let file = &mut self.files[number];
        let unsynced = std::mem::take(&mut file.unsynced);
        if self.faults.failing_sync == Some(self.syncs) {
            // The unsynced data is lost but the current content stays, so later syncs do not help.
            let mut survival = Survival::of(self.operations);
            unsynced.iter().for_each(|change| change.apply_by_chance(&mut file.durable, &mut survival));
            return Err(io::Error::other("input/output error"));
        }
        unsynced.iter().for_each(|change| change.apply(&mut file.durable));
        Ok(())
    }
}

impl SimDisk {
    /// An empty disk without faults.
    pub fn new() -> Self {
        SimDisk::default()
    }

    /// Returns the disk as a program finds it after a power cut now. This disk is not changed.
    #[must_use]
    pub fn power_cut(&self, seed: u64) -> SimDisk {
        let state = self.state.lock();
        let mut survival = Survival::of(seed);
        let files = state.files.iter().map(|file| {
            let mut bytes = file.durable.clone();
            file.unsynced.iter().for_each(|change| change.apply_by_chance(&mut bytes, &mut survival));
            SimContent { current: bytes.clone(), durable: bytes, unsynced: Vec::new() }
        });
        let files = files.collect();
        let mut names = state.durable_names.clone();
        for change in &state.name_changes {
            if survival.keeps() {
                change.apply(&mut names);
            }
        }
        // The content of a directory that did not survive is gone with it.
        let is_there = |path: &str| parent(path).is_empty() || names.get(parent(path)) == Some(&SimNode::Directory);
        let names: BTreeMap<String, SimNode> =
            names.iter().filter(|(path, _)| is_there(path)).map(|(path, node)| (path.clone(), *node)).collect();
        let state = SimState { files, durable_names: names.clone(), names, ..SimState::default() };
        SimDisk { state: Arc::new(Mutex::new(state)) }
    }

    /// The number of operations so far that changed or synced something.
    pub fn operations(&self) -> u64 {
        self.state.lock().operations
    }

    /// The number of syncs of files so far.
    pub fn syncs(&self) -> u64 {
        self.state.lock().syncs
    }

    /// Makes the operation with this number, and all after it, fail as after a power cut. The bytes that the operation
    /// itself wrote may survive, like all unsynced bytes.
    pub fn power_off_at(&self, operation: u64) {
        self.state.lock().faults.power_off_at = Some(operation);
    }

    /// Makes the sync of a file with this number fail.
    pub fn fail_sync(&self, sync: u64) {
        self.state.lock().faults.failing_sync = Some(sync);
    }

    /// Makes the operation with this number fail without an effect. Later ones succeed.
    pub fn fail_at(&self, operation: u64) {
        self.state.lock().faults.failing_operation = Some(operation);
    }

    /// Makes the operation with this number panic without an effect. Later ones succeed.
    pub fn panic_at(&self, operation: u64) {
        self.state.lock().faults.panicking_operation = Some(operation);
    }

    /// Sets the capacity of the disk in bytes; `None`: unlimited.
    pub fn set_capacity(&self, bytes: Option<u64>) {
        self.state.lock().faults.capacity = bytes;
    }

    /// Bytes of all files.
    pub fn used(&self) -> u64 {
        self.state.lock().used()
    }

    /// Makes the disk refuse changes, or accept them again.
    pub fn set_read_only(&self, read_only: bool) {
        self.state.lock().faults.read_only = read_only;
    }

    /// Flips a bit of a file, both in its durable bytes and in the bytes that a program reads.
    pub fn flip_bit(&self, path: &str, offset: u64, bit: u8) -> DiskResult<()> {
        self.run("damage", path, |state| {
            let number = state.file(path)?;
            let file = &mut state.files[number];
            for bytes in [&mut file.current, &mut file.durable] {
                if let Some(byte) = bytes.get_mut(offset as usize) {
                    *byte ^= 1 << (bit % 8);
                }
            }
            Ok(())
        })
    }

    /// All files with their lengths.
    pub fn files(&self) -> Vec<(String, u64)> {
        let state = self.state.lock();
        let files = state.names.iter().filter_map(|(path, node)| match node {
            SimNode::File(number) => Some((path.clone(), state.files[*number].current.len() as u64)),
            SimNode::Directory => None,
        });
        files.collect()
    }

    fn run<T>(
        &self,
        operation: &'static str,
        path: &str,
        change: impl FnOnce(&mut SimState) -> io::Result<T>,
    ) -> DiskResult<T> {
        change(&mut self.state.lock()).map_err(|error| DiskError::new(operation, path, &error))
    }

    /// The names of the wanted entries of a directory, ascending.
    fn entries(&self, path: &str, is_wanted: fn(&SimNode) -> bool) -> DiskResult<Vec<String>> {
        self.run("list", path, |state| {
            state.check_power()?;
            let within =
                |(name, node): &(&String, &SimNode)| parent(name) == path && !name.is_empty() && is_wanted(node);
            let names = state.names.iter().filter(within).map(|(name, _)| name);
            Ok(names.map(|name| name.rsplit('/').next().unwrap_or(name).to_owned()).collect())
        })
    }

    fn handle(&self, path: &str, number: usize, read_only: bool) -> Arc<dyn DiskFile> {
        Arc::new(SimFile { disk: self.clone(), path: path.to_owned(), number, read_only })
    }
}

impl Disk for SimDisk {
    fn create(&self, path: &str) -> DiskResult<Arc<dyn DiskFile>> {
        let number = self.run("create", path, |state| {
            state.begin()?;
            state.check_new(path)?;
            state.files.push(SimContent::default());
            let number = state.files.len() - 1;
            state.change_names(NameChange::Add(path.to_owned(), SimNode::File(number)));
            Ok(number)
        })?;
        Ok(self.handle(path, number, false))
    }

    fn open(&self, path: &str) -> DiskResult<Arc<dyn DiskFile>> {
        let number = self.run("open", path, |state| {
            state.check_power()?;
            match state.faults.read_only {
                true => Err(io::Error::new(io::ErrorKind::ReadOnlyFilesystem, "read-only file system")),
                false => state.file(path),
            }
        })?;
        Ok(self.handle(path, number, false))
    }

    fn open_read(&self, path: &str) -> DiskResult<Arc<dyn DiskFile>> {
        let number = self.run("open", path, |state| state.check_power().and_then(|()| state.file(path)))?;
        Ok(self.handle(path, number, true))
    }

    fn create_dir(&self, path: &str) -> DiskResult<()> {
        self.run("make the directory", path, |state| {
            let ends = path.match_indices('/').map(|(at, _)| at).chain([path.len()]).filter(|&end| end > 0);
            let missing: Vec<&str> = ends.map(|end| &path[..end]).filter(|p| !state.names.contains_key(*p)).collect();
            for directory in missing {
                state.begin()?;
                state.change_names(NameChange::Add(directory.to_owned(), SimNode::Directory));
            }
            Ok(())
        })
    }

    fn sync_dir(&self, path: &str) -> DiskResult<()> {
        self.run("sync the directory", path, |state| {
            state.begin()?;
            let changes = std::mem::take(&mut state.name_changes);
            let (synced, left): (Vec<_>, Vec<_>) = changes.into_iter().partition(|change| change.is_in(path));
            synced.iter().for_each(|change| change.apply(&mut state.durable_names));
            state.name_changes = left;
            Ok(())
        })
    }

    fn rename(&self, from: &str, to: &str) -> DiskResult<()> {
        self.run("rename", from, |state| {
            state.begin()?;
            let number = state.file(from)?;
            state.change_names(NameChange::Rename(from.to_owned(), to.to_owned(), SimNode::File(number)));
            Ok(())
        })
    }

    fn link_new(&self, from: &str, to: &str) -> DiskResult<()> {
        self.run("make the name", to, |state| {
            state.begin()?;
            let number = state.file(from)?;
            state.check_new(to)?;
            state.change_names(NameChange::Add(to.to_owned(), SimNode::File(number)));
            Ok(())
        })
    }

    fn remove(&self, path: &str) -> DiskResult<()> {
        self.run("remove", path, |state| {
            state.begin()?;
            state.file(path)?;
            state.change_names(NameChange::Remove(path.to_owned()));
            Ok(())
        })
    }

    fn list(&self, path: &str) -> DiskResult<Vec<String>> {
        self.entries(path, |_| true)
    }

    fn list_files(&self, path: &str) -> DiskResult<Vec<String>> {
        self.entries(path, |node| matches!(node, SimNode::File(_)))
    }

    fn free_space(&self) -> DiskResult<Option<u64>> {
        let state = self.state.lock();
        Ok(state.faults.capacity.map(|capacity| capacity.saturating_sub(state.used())))
    }

    fn describe(&self, path: &str) -> String {
        path.to_owned()
    }
}

#[derive(Debug)]
struct SimFile {
    disk: SimDisk,
    path: String,
    number: usize,
    read_only: bool,
}

impl SimFile {
    fn change(&self, operation: &'static str, change: ContentChange) -> DiskResult<()> {
        self.disk.run(operation, &self.path, |state| {
            if self.read_only {
                return Err(io::Error::new(io::ErrorKind::PermissionDenied, "the file was opened to be read only"));
            }
            let begun = state.begin();
            // Part of the last operation may reach the medium before the power is gone.
            if begun.is_ok() || (state.check_power().is_err() && Some(state.operations) == state.faults.power_off_at) {
                state.change_content(self.number, change)?;
            }
            begun
        })
    }
}

impl DiskFile for SimFile {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> DiskResult<usize> {
        self.disk.run("read", &self.path, |state| {
            state.check_power()?;
            let content = &state.files[self.number].current;
            let from = content.get(offset as usize..).unwrap_or_default();
            let count = from.len().min(buffer.len());
            buffer[..count].copy_from_slice(&from[..count]);
            Ok(count)
        })
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> DiskResult<()> {
        self.change("write to", ContentChange::Write(offset, bytes.to_vec()))
    }

    fn len(&self) -> DiskResult<u64> {
        Ok(self.disk.state.lock().files[self.number].current.len() as u64)
    }

    fn set_len(&self, len: u64) -> DiskResult<()> {
        self.change("set the length of", ContentChange::SetLen(len))
    }

    fn sync_data(&self) -> DiskResult<()> {
        self.disk.run("sync", &self.path, |state| {
            state.begin()?;
            state.sync(self.number)
        })
    }
}

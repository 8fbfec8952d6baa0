//! A disk in memory that behaves as badly as a real one may, the same way for the same seed.
//!
//! It keeps what was synced apart from what was only written. [`SimDisk::power_cut`] gives the disk that is found when
//! the power comes back: everything synced, and of the rest what the seed says, sector by sector and name by name:
//! there, not there, or, for a sector, torn. A cut chooses how much survives at all, so that "nothing", "nearly
//! everything" and the mixtures between all occur.
//!
//! Troubles are ordered beforehand: the power going off at a certain operation, one operation that fails or panics, a sync
//! that fails, a full or read-only disk, bits that flip while nobody looks.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use parking_lot::Mutex;

use super::{Disk, DiskError, DiskFile, DiskResult, SECTOR, parent};

/// See the module. Cloning gives another handle to the same disk.
#[derive(Clone, Debug, Default)]
pub struct SimDisk {
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    files: Vec<Content>,
    /// What a program sees: directories, and files by their number.
    names: BTreeMap<String, Node>,
    durable_names: BTreeMap<String, Node>,
    name_changes: Vec<NameChange>,
    trouble: Trouble,
    /// Operations that changed something or synced, so far.
    operations: u64,
    syncs: u64,
}

#[derive(Debug, Default)]
struct Trouble {
    power_off_at: Option<u64>,
    failing_sync: Option<u64>,
    failing_operation: Option<u64>,
    panicking_operation: Option<u64>,
    capacity: Option<u64>,
    read_only: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Node {
    Directory,
    File(usize),
}

#[derive(Clone, Debug)]
enum NameChange {
    Add(String, Node),
    Remove(String),
    /// At once.
    Rename(String, String, Node),
}

impl NameChange {
    fn is_in(&self, directory: &str) -> bool {
        match self {
            NameChange::Add(path, _) | NameChange::Remove(path) => parent(path) == directory,
            NameChange::Rename(from, to, _) => parent(from) == directory || parent(to) == directory,
        }
    }

    fn apply(&self, names: &mut BTreeMap<String, Node>) {
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

/// The bytes of a file.
#[derive(Debug, Default)]
struct Content {
    /// What a program reads.
    current: Vec<u8>,
    durable: Vec<u8>,
    /// What leads from the durable bytes to the current ones.
    unsynced: Vec<Change>,
}

#[derive(Clone, Debug)]
enum Change {
    Write(u64, Vec<u8>),
    SetLen(u64),
}

impl Change {
    fn apply(&self, bytes: &mut Vec<u8>) {
        match self {
            Change::Write(offset, written) => overlay(bytes, *offset as usize, written),
            Change::SetLen(len) => bytes.resize(*len as usize, 0),
        }
    }

    /// As far as the luck goes.
    fn apply_by_luck(&self, bytes: &mut Vec<u8>, luck: &mut Luck) {
        let (offset, written) = match self {
            Change::SetLen(_) if luck.keeps() => return self.apply(bytes),
            Change::SetLen(_) => return,
            Change::Write(offset, written) => (*offset, written),
        };
        let end = offset + written.len() as u64;
        let mut at = offset;
        while at < end {
            let next = (at / SECTOR * SECTOR + SECTOR).min(end);
            let part = &written[(at - offset) as usize..(next - offset) as usize];
            luck.write_sector(bytes, at as usize, part);
            at = next;
        }
    }
}

/// Writes into bytes that grow where needed.
fn overlay(bytes: &mut Vec<u8>, at: usize, written: &[u8]) {
    if bytes.len() < at + written.len() {
        bytes.resize(at + written.len(), 0);
    }
    bytes[at..at + written.len()].copy_from_slice(written);
}

/// What a power cut spares, drawn from a seed (SplitMix64).
#[derive(Debug)]
struct Luck {
    state: u64,
    keep_percent: u64,
}

impl Luck {
    fn of(seed: u64) -> Self {
        let mut luck = Luck { state: seed, keep_percent: 0 };
        luck.keep_percent = [0, 5, 50, 95, 100][luck.draw(5) as usize];
        luck
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

    /// A sector, or the part of it that was written: whole, not at all, half, or as anything.
    fn write_sector(&mut self, bytes: &mut Vec<u8>, at: usize, part: &[u8]) {
        match self.draw(20) {
            0 if self.keep_percent < 100 => {
                let cut = self.draw(part.len() as u64 + 1) as usize;
                overlay(bytes, at, &part[..cut]);
            }
            1 if self.keep_percent < 100 => {
                // What else is in the sector goes with it: whoever needs that must not write here.
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

impl State {
    /// Counts an operation, unless there is trouble.
    fn begin(&mut self) -> io::Result<()> {
        self.operations += 1;
        self.check_power()?;
        assert!(self.trouble.panicking_operation != Some(self.operations), "the disk panics, as it was told to");
        if self.trouble.failing_operation == Some(self.operations) {
            return Err(io::Error::other("input/output error"));
        }
        match self.trouble.read_only {
            true => Err(io::Error::new(io::ErrorKind::ReadOnlyFilesystem, "read-only file system")),
            false => Ok(()),
        }
    }

    fn check_power(&self) -> io::Result<()> {
        match self.trouble.power_off_at {
            Some(at) if self.operations >= at => Err(io::Error::other("the power is off")),
            _ => Ok(()),
        }
    }

    fn used(&self) -> u64 {
        let files = self.names.values().filter_map(|node| match node {
            Node::File(number) => Some(*number),
            Node::Directory => None,
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
            Some(Node::File(number)) => Ok(*number),
            Some(Node::Directory) => Err(io::ErrorKind::IsADirectory.into()),
            None => Err(io::ErrorKind::NotFound.into()),
        }
    }

    fn check_new(&self, path: &str) -> io::Result<()> {
        if self.names.contains_key(path) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let directory = parent(path);
        match directory.is_empty() || self.names.get(directory) == Some(&Node::Directory) {
            true => Ok(()),
            false => Err(io::ErrorKind::NotFound.into()),
        }
    }

    fn change_content(&mut self, number: usize, change: Change) -> io::Result<()> {
        let len = self.files[number].current.len() as u64;
        let grown = match &change {
            Change::Write(offset, written) => (offset + written.len() as u64).saturating_sub(len),
            Change::SetLen(_) => 0,
        };
        if grown > 0 && self.trouble.capacity.is_some_and(|capacity| self.used() + grown > capacity) {
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
        if self.trouble.failing_sync == Some(self.syncs) {
            // What was to be written is forgotten, the current content is not: later syncs do not help.
            let mut luck = Luck::of(self.operations);
            unsynced.iter().for_each(|change| change.apply_by_luck(&mut file.durable, &mut luck));
            return Err(io::Error::other("input/output error"));
        }
        unsynced.iter().for_each(|change| change.apply(&mut file.durable));
        Ok(())
    }
}

impl SimDisk {
    /// An empty disk without trouble.
    pub fn new() -> Self {
        SimDisk::default()
    }

    /// The disk as it is found after the power went off now. This one goes on as it is.
    #[must_use]
    pub fn power_cut(&self, seed: u64) -> SimDisk {
        let state = self.state.lock();
        let mut luck = Luck::of(seed);
        let files = state.files.iter().map(|file| {
            let mut bytes = file.durable.clone();
            file.unsynced.iter().for_each(|change| change.apply_by_luck(&mut bytes, &mut luck));
            Content { current: bytes.clone(), durable: bytes, unsynced: Vec::new() }
        });
        let files = files.collect();
        let mut names = state.durable_names.clone();
        for change in &state.name_changes {
            if luck.keeps() {
                change.apply(&mut names);
            }
        }
        // What lies in a directory that did not survive is gone with it.
        let is_there = |path: &str| parent(path).is_empty() || names.get(parent(path)) == Some(&Node::Directory);
        let names: BTreeMap<String, Node> =
            names.iter().filter(|(path, _)| is_there(path)).map(|(path, node)| (path.clone(), *node)).collect();
        let state = State { files, durable_names: names.clone(), names, ..State::default() };
        SimDisk { state: Arc::new(Mutex::new(state)) }
    }

    /// How many operations there were that change or sync something.
    pub fn operations(&self) -> u64 {
        self.state.lock().operations
    }

    /// How many syncs of files there were.
    pub fn syncs(&self) -> u64 {
        self.state.lock().syncs
    }

    /// Has the operation with this number, and all after it, fail for want of power: nothing is acknowledged after
    /// the cut, and what the operation wrote is like everything unsynced.
    pub fn power_off_at(&self, operation: u64) {
        self.state.lock().trouble.power_off_at = Some(operation);
    }

    /// Has the sync of a file with this number fail, counted from the first as 1.
    pub fn fail_sync(&self, sync: u64) {
        self.state.lock().trouble.failing_sync = Some(sync);
    }

    /// Has the operation with this number fail without an effect; those after it succeed.
    pub fn fail_at(&self, operation: u64) {
        self.state.lock().trouble.failing_operation = Some(operation);
    }

    /// Has the operation with this number panic without an effect; those after it succeed.
    pub fn panic_at(&self, operation: u64) {
        self.state.lock().trouble.panicking_operation = Some(operation);
    }

    /// So many bytes fit on the disk; `None`: any number.
    pub fn set_capacity(&self, bytes: Option<u64>) {
        self.state.lock().trouble.capacity = bytes;
    }

    /// The bytes of the files there are.
    pub fn used(&self) -> u64 {
        self.state.lock().used()
    }

    /// Refuses changes from now on, or takes them again.
    pub fn set_read_only(&self, read_only: bool) {
        self.state.lock().trouble.read_only = read_only;
    }

    /// Flips a bit of a file, on the medium and in what is read.
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
            Node::File(number) => Some((path.clone(), state.files[*number].current.len() as u64)),
            Node::Directory => None,
        });
        files.collect()
    }

    fn run<T>(
        &self,
        operation: &'static str,
        path: &str,
        change: impl FnOnce(&mut State) -> io::Result<T>,
    ) -> DiskResult<T> {
        change(&mut self.state.lock()).map_err(|error| DiskError::new(operation, path, &error))
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
            state.files.push(Content::default());
            let number = state.files.len() - 1;
            state.change_names(NameChange::Add(path.to_owned(), Node::File(number)));
            Ok(number)
        })?;
        Ok(self.handle(path, number, false))
    }

    fn open(&self, path: &str) -> DiskResult<Arc<dyn DiskFile>> {
        let number = self.run("open", path, |state| {
            state.check_power()?;
            match state.trouble.read_only {
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
                state.change_names(NameChange::Add(directory.to_owned(), Node::Directory));
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
            state.change_names(NameChange::Rename(from.to_owned(), to.to_owned(), Node::File(number)));
            Ok(())
        })
    }

    fn link_new(&self, from: &str, to: &str) -> DiskResult<()> {
        self.run("make the name", to, |state| {
            state.begin()?;
            let number = state.file(from)?;
            state.check_new(to)?;
            state.change_names(NameChange::Add(to.to_owned(), Node::File(number)));
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
        self.run("list", path, |state| {
            state.check_power()?;
            let names = state.names.keys().filter(|name| parent(name) == path && !name.is_empty());
            Ok(names.map(|name| name.rsplit('/').next().unwrap_or(name).to_owned()).collect())
        })
    }

    fn free_space(&self) -> DiskResult<Option<u64>> {
        let state = self.state.lock();
        Ok(state.trouble.capacity.map(|capacity| capacity.saturating_sub(state.used())))
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
    fn change(&self, operation: &'static str, change: Change) -> DiskResult<()> {
        self.disk.run(operation, &self.path, |state| {
            if self.read_only {
                return Err(io::Error::new(io::ErrorKind::PermissionDenied, "the file was opened to be read only"));
            }
            let begun = state.begin();
            // Part of it may reach the medium before the power is gone.
            if begun.is_ok() || (state.check_power().is_err() && Some(state.operations) == state.trouble.power_off_at) {
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
        self.change("write to", Change::Write(offset, bytes.to_vec()))
    }

    fn len(&self) -> DiskResult<u64> {
        Ok(self.disk.state.lock().files[self.number].current.len() as u64)
    }

    fn set_len(&self, len: u64) -> DiskResult<()> {
        self.change("set the length of", Change::SetLen(len))
    }

    fn sync_data(&self) -> DiskResult<()> {
        self.disk.run("sync", &self.path, |state| {
            state.begin()?;
            state.sync(self.number)
        })
    }
}

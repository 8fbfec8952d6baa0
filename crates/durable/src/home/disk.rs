//! [`DiskHome`]: a directory as a home, over a [`Disk`] with its explicit syncs.
//!
//! ```text
//!  PutNew:     .draft/N: create ──▶ write ──▶ sync ──▶ link to the name if it is free ──▶ sync the directory ──▶ remove .draft/N
//!  PutUnique:  .draft/N: create ──▶ write ──▶ sync ──▶ rename to the name             ──▶ sync the directory
//! ```
//!
//! - A name is made after the bytes are synced, and at once. So an object is whole wherever it is seen (HOME-1).
//! - A put is answered after its directory is synced, also with `Taken`. A name that this process has not yet seen may
//!   be unsynced work of another process, so the first read or list that meets it syncs the directory too (HOME-3).
//! - If a directory cannot be synced, or a name may be made or not, nothing that is read later proves that the name is
//!   durable. A later sync that succeeds does not make up for it (promise 4 of disks). So the home fails: it refuses
//!   every further request until it is opened again.
//!
//! A process that dies leaves its drafts, which no list shows. [`DiskHome::remove_drafts`] removes them.
//!
//! Several processes may use one directory, also on a network file system, if that has atomic links.

use std::collections::{BTreeSet, HashSet};
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use parking_lot::Mutex;

use super::workers::Workers;
use super::{
    ByteSource, Completion, Home, HomeError, HomeErrorKind, HomeResult, HomeTraits, Name, Put, Reply, Request,
    cut_ranges,
};
use crate::disk::{Disk, DiskError, DiskFile, DiskResult, parent};

/// The directory of drafts. No object is in it, because no part of a [`Name`] begins with a dot.
const DRAFT_DIR: &str = ".draft";

/// Two ranges with a gap of at most this many bytes are read faster as one: about what a disk reads in the time of a
/// further request.
const GAP_BYTES: u64 = 16 << 10;

/// A directory as a home.
#[derive(Debug)]
pub struct DiskHome {
    objects: Arc<Objects>,
    workers: Workers,
}

impl DiskHome {
    /// The home in the root of a disk. So many threads carry requests out; with 0 threads, each request is carried out
    /// by the thread that submits it.
    pub fn new(disk: Arc<dyn Disk>, threads: usize) -> HomeResult<Self> {
        let objects = Objects {
            disk,
            next_draft: AtomicU64::new(0),
            durable: Mutex::default(),
            directories: Mutex::default(),
            failure: OnceLock::new(),
        };
        Ok(DiskHome { objects: Arc::new(objects), workers: Workers::start("mangrove-home", threads)? })
    }

    /// Removes the drafts that died processes have left. The caller knows that no process is putting objects.
    pub fn remove_drafts(&self) -> HomeResult<()> {
        let disk = &*self.objects.disk;
        for draft in disk.list_files(DRAFT_DIR)? {
            disk.remove(&format!("{DRAFT_DIR}/{draft}"))?;
        }
        Ok(())
    }
}

impl Home for DiskHome {
    fn submit(&self, request: Request, done: Completion) {
        let objects = self.objects.clone();
        self.workers.run(Box::new(move || done(objects.answer(request))));
    }

    fn describe(&self, name: &str) -> String {
        self.objects.disk.describe(name)
    }

    fn traits(&self) -> HomeTraits {
        HomeTraits { is_durable: true, gap_bytes: GAP_BYTES }
    }
}

/// The objects, and what this process knows of them. Its locks are held for a few instructions, never through I/O.
#[derive(Debug)]
struct Objects {
    disk: Arc<dyn Disk>,
    /// The number at which the search for a free name of a draft begins.
    next_draft: AtomicU64,
    /// Objects whose names are known to be durable: one entry for each that this process has seen and not deleted.
    durable: Mutex<HashSet<Name>>,
    /// Directories whose names are known to be durable.
    directories: Mutex<HashSet<String>>,
    /// Why the home has failed.
    failure: OnceLock<HomeError>,
}

impl Objects {
    fn answer(&self, request: Request) -> HomeResult<Reply> {
        if let Some(failure) = self.failure.get() {
            return Err(failure.clone());
        }
        Ok(match request {
            Request::PutNew { name, mut bytes } => Reply::Put(self.put_new(name, &mut bytes)?),
            Request::PutUnique { name, mut source } => {
                self.put_unique(name, &mut *source)?;
                Reply::Put(Put::Done)
            }
            Request::Get { name } => {
                let read = |file: Arc<dyn DiskFile>| read_bytes(&*file, 0, file.len()?);
                Reply::Object(self.open(&name)?.map(read).transpose()?)
            }
            Request::Ranges { name, ranges } => {
                let file = self.open(&name)?;
                // A wrong range is an error, also if there is no object.
                let len = file.as_ref().map_or(Ok(0), |file| file.len())?;
                let ranges = cut_ranges(&ranges, len, &|| self.disk.describe(name.as_str()))?;
                let read = |file: Arc<dyn DiskFile>| {
                    ranges.iter().map(|range| read_bytes(&*file, range.start, range.end - range.start)).collect()
                };
                Reply::Ranges(file.map(read).transpose()?)
            }
            Request::Head { name } => Reply::Head(self.open(&name)?.map(|file| file.len()).transpose()?),
            Request::List { directory } => Reply::Names(self.list(&directory)?),
            Request::Delete { names } => {
                self.delete(&names)?;
                Reply::Deleted
            }
        })
    }

    fn put_new(&self, name: Name, bytes: &mut dyn ByteSource) -> HomeResult<Put> {
        self.make_directory(parent(name.as_str()))?;
        let draft = self.write_draft(bytes)?;
        let linked = self.disk.link_new(&draft, name.as_str());
        // The draft is a second name of the object, or holds bytes that are no object. If it stays, it only takes space.
        let _ = self.disk.remove(&draft);
        let put = match linked {
            Ok(()) => Put::Done,
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Put::Taken,
            Err(error) => return Err(self.name_is_uncertain(error)),
        };
        self.sync_names(parent(name.as_str()))?;
        self.durable.lock().insert(name);
        Ok(put)
    }

    fn put_unique(&self, name: Name, source: &mut dyn ByteSource) -> HomeResult<()> {
        self.make_directory(parent(name.as_str()))?;
        let draft = self.write_draft(source)?;
        if let Err(error) = self.disk.rename(&draft, name.as_str()) {
            let _ = self.disk.remove(&draft);
            return Err(self.name_is_uncertain(error));
        }
        self.sync_names(parent(name.as_str()))?;
        self.durable.lock().insert(name);
        Ok(())
    }

    /// Writes and syncs a draft, and returns its path. A draft that fails is removed.
    fn write_draft(&self, source: &mut dyn ByteSource) -> HomeResult<String> {
        self.make_directory(DRAFT_DIR)?;
        let (path, file) = loop {
            let path = format!("{DRAFT_DIR}/{:x}", self.next_draft.fetch_add(1, Ordering::Relaxed));
            match self.disk.create(&path) {
                Ok(file) => break (path, file),
                // A draft of another process, or one that was left.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error.into()),
            }
        };
        let written = write_all(&*file, source);
        if written.is_err() {
            let _ = self.disk.remove(&path);
        }
        written.map(|()| path)
    }

    /// Opens an object whose name is durable. `None` if there is none.
    fn open(&self, name: &Name) -> HomeResult<Option<Arc<dyn DiskFile>>> {
        let opened = self.disk.open_read(name.as_str());
        // Some systems open a directory too, and fail at the first read.
        let opened = opened.and_then(|file| file.read_at(0, &mut [0]).map(|_| file));
        let Some(file) = unless_absent(opened)? else {
            return Ok(None);
        };
        if !self.durable.lock().contains(name) {
            self.sync_names(parent(name.as_str()))?;
            self.durable.lock().insert(name.clone());
        }
        Ok(Some(file))
    }

    fn list(&self, directory: &Name) -> HomeResult<Vec<Name>> {
        let files = unless_absent(self.disk.list_files(directory.as_str()))?.unwrap_or_default();
        // Files that are no objects may lie in the directory too.
        let names: Vec<Name> = files.iter().filter_map(|file| directory.join(file).ok()).collect();
        let is_new = |name: &&Name| !self.durable.lock().contains(*name);
        let new: Vec<Name> = names.iter().filter(is_new).cloned().collect();
        if !new.is_empty() {
            self.sync_names(directory.as_str())?;
            self.durable.lock().extend(new);
        }
        Ok(names)
    }

    fn delete(&self, names: &[Name]) -> HomeResult<()> {
        let mut changed = BTreeSet::new();
        for name in names {
            self.durable.lock().remove(name);
            if unless_absent(self.disk.remove(name.as_str()))?.is_some() {
                changed.insert(parent(name.as_str()));
            }
        }
        changed.into_iter().try_for_each(|directory| self.sync_names(directory))
    }

    /// Makes a directory and those above it, durably.
    fn make_directory(&self, path: &str) -> HomeResult<()> {
        if path.is_empty() || self.directories.lock().contains(path) {
            return Ok(());
        }
        self.make_directory(parent(path))?;
        self.disk.create_dir(path)?;
        self.sync_names(parent(path))?;
        self.directories.lock().insert(path.to_owned());
        Ok(())
    }

    fn sync_names(&self, directory: &str) -> HomeResult<()> {
        match self.disk.sync_dir(directory) {
            // Nothing on a read-only file system waits to be made durable.
            Err(error) if error.kind() == io::ErrorKind::ReadOnlyFilesystem => Ok(()),
            Err(error) => Err(self.fail(&error)),
            Ok(()) => Ok(()),
        }
    }

    /// The error of a put whose name the disk did not make. If the disk may have made it in spite of the error, the home fails.
    fn name_is_uncertain(&self, error: DiskError) -> HomeError {
        use io::ErrorKind::{IsADirectory, NotFound, PermissionDenied, ReadOnlyFilesystem};
        if error.kind() == NotFound {
            // Some other program has removed the directory or the draft. The next attempt makes both again.
            self.directories.lock().clear();
        }
        let is_certain =
            error.is_full() || matches!(error.kind(), IsADirectory | NotFound | PermissionDenied | ReadOnlyFilesystem);
        if is_certain { error.into() } else { self.fail(&error) }
    }

    /// Fails the home. The request that met the failure may have been carried out.
    fn fail(&self, error: &DiskError) -> HomeError {
        let root = self.disk.describe("");
        let message = format!(
            "{error}; so the directory {root} takes no further requests: check the disk, and open the graph again"
        );
        let _ = self.failure.set(HomeError::new(HomeErrorKind::Failed, message.clone()));
        HomeError::new(HomeErrorKind::Unknown, message)
    }
}

/// `None` for a file that is not there. That includes a path through a file, and a directory.
fn unless_absent<T>(result: DiskResult<T>) -> HomeResult<Option<T>> {
    use io::ErrorKind::{IsADirectory, NotADirectory, NotFound};
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error) if matches!(error.kind(), NotFound | NotADirectory | IsADirectory) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

fn read_bytes(file: &dyn DiskFile, offset: u64, len: u64) -> HomeResult<Bytes> {
    let mut bytes = vec![0; len as usize];
    let count = file.read_at(offset, &mut bytes)?;
    // Objects never change, so fewer bytes mean that some other program has cut the file. Its checksum will tell.
    bytes.truncate(count);
    Ok(bytes.into())
}

fn write_all(file: &dyn DiskFile, source: &mut dyn ByteSource) -> HomeResult<()> {
    let mut offset = 0;
    while let Some(piece) = source.next_piece()? {
        file.write_at(offset, &piece)?;
        offset += piece.len() as u64;
    }
    Ok(file.sync_data()?)
}

#[cfg(test)]
mod tests;

//! A simulated disk with slow syncs, so that commits are in the log for a while before they are durable.

use std::sync::Arc;
use std::time::Duration;

use mangrove::{Disk, SimDisk};
use mangrove_durable::disk::{DiskFile, DiskResult};

/// The time of a sync on a fast drive.
const SYNC_TIME: Duration = Duration::from_micros(200);

/// A simulated disk whose syncs take time.
#[derive(Debug)]
pub struct SlowDisk(pub SimDisk);

/// A file of that disk.
#[derive(Debug)]
struct SlowFile(Arc<dyn DiskFile>);

fn slow(file: DiskResult<Arc<dyn DiskFile>>) -> DiskResult<Arc<dyn DiskFile>> {
    Ok(Arc::new(SlowFile(file?)))
}

impl Disk for SlowDisk {
    fn create(&self, path: &str) -> DiskResult<Arc<dyn DiskFile>> {
        slow(self.0.create(path))
    }

    fn open(&self, path: &str) -> DiskResult<Arc<dyn DiskFile>> {
        slow(self.0.open(path))
    }

    fn open_read(&self, path: &str) -> DiskResult<Arc<dyn DiskFile>> {
        self.0.open_read(path)
    }

    fn create_dir(&self, path: &str) -> DiskResult<()> {
        self.0.create_dir(path)
    }

    fn sync_dir(&self, path: &str) -> DiskResult<()> {
        std::thread::sleep(SYNC_TIME);
        self.0.sync_dir(path)
    }

    fn rename(&self, from: &str, to: &str) -> DiskResult<()> {
        self.0.rename(from, to)
    }

    fn link_new(&self, from: &str, to: &str) -> DiskResult<()> {
        self.0.link_new(from, to)
    }

    fn remove(&self, path: &str) -> DiskResult<()> {
        self.0.remove(path)
    }

    fn list(&self, path: &str) -> DiskResult<Vec<String>> {
        self.0.list(path)
    }

    fn list_files(&self, path: &str) -> DiskResult<Vec<String>> {
        self.0.list_files(path)
    }

    fn free_space(&self) -> DiskResult<Option<u64>> {
        self.0.free_space()
    }

    fn describe(&self, path: &str) -> String {
        self.0.describe(path)
    }
}

impl DiskFile for SlowFile {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> DiskResult<usize> {
        self.0.read_at(offset, buffer)
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> DiskResult<()> {
        self.0.write_at(offset, bytes)
    }

    fn len(&self) -> DiskResult<u64> {
        self.0.len()
    }

    fn set_len(&self, len: u64) -> DiskResult<()> {
        self.0.set_len(len)
    }

    fn sync_data(&self) -> DiskResult<()> {
        std::thread::sleep(SYNC_TIME);
        self.0.sync_data()
    }
}

//! The packs that a checkpoint writes, one after the other.

use mangrove_graph::Result;
use mangrove_store::image::PageImage;
use uuid::Uuid;

use super::live::PackPolicy;
use super::pack::{BlockName, PlacedPackWriter, WrittenPack};
use super::place::Place;
use crate::manifest::PackNumber;

/// The packs that a checkpoint writes, one after the other.
pub(super) struct PackSeries<'a, P: ?Sized> {
    pub(super) place: &'a P,
    pub(super) database: Uuid,
    pub(super) incarnation: u64,
    /// The counter of the last pack, or of a file of open columns that was begun after it.
    pub(super) counter: &'a mut u64,
    pub(super) policy: PackPolicy,
    /// Bytes of the graph's blocks before the checkpoint.
    pub(super) live: u64,
    /// Topology blocks count, so directories and catalogs are plain (LOG-101).
    pub(super) has_topology: bool,
    /// Images, topology blocks and runs that the checkpoint writes, as far as it knows.
    pub(super) due: u64,
    /// Images, topology blocks and runs written.
    pub(super) done: u64,
    /// Bytes of the packs that are finished.
    pub(super) bytes: u64,
    pub(super) current: Option<PlacedPackWriter<'a>>,
    pub(super) written: Vec<WrittenPack>,
}

impl<'a, P: Place + ?Sized> PackSeries<'a, P> {
    /// The pack that is being written.
    pub(super) fn writer(&mut self) -> Result<&mut PlacedPackWriter<'a>> {
        if self.current.is_none() {
            *self.counter += 1;
            let number = (self.incarnation, *self.counter);
            let compression = self.policy.compression;
            let mut writer = PlacedPackWriter::create(self.place, number, self.database, compression)?;
            if self.has_topology {
                writer.leave_plain();
            }
            self.current = Some(writer);
        }
        Ok(self.current.as_mut().expect("it was just begun"))
    }

    /// Adds the image of a page.
    pub(super) fn image(&mut self, image: &PageImage) -> Result<()> {
        self.writer()?.image(image)?;
        self.end_large_pack()
    }

    /// Adds a block of topology.
    pub(super) fn topology(&mut self, name: BlockName, body: &[u8]) -> Result<()> {
        self.writer()?.add(name, body)?;
        self.end_large_pack()
    }

    /// Adds a run of a look-up index. Returns the pack that has it.
    pub(super) fn run(&mut self, name: BlockName, body: &[u8]) -> Result<PackNumber> {
        self.due += 1;
        let writer = self.writer()?;
        writer.add(name, body)?;
        let pack = writer.number();
        self.end_large_pack()?;
        Ok(pack)
    }

    /// Returns true if a pack was begun.
    pub(super) fn is_begun(&self) -> bool {
        self.current.is_some() || !self.written.is_empty()
    }

    /// Notes that one of the due pages needs no new block.
    pub(super) fn leave_out(&mut self) {
        self.due -= 1;
    }

    /// Notes that the pack has a further block, and ends it if it is large.
    fn end_large_pack(&mut self) -> Result<()> {
        let here = self.writer()?.bytes();
        self.done += 1;
        // The first checkpoint of a large graph has no live bytes to go by.
        let expected = u128::from(self.bytes + here) * u128::from(self.due) / u128::from(self.done);
        let live = self.live.max(u64::try_from(expected).unwrap_or(u64::MAX));
        if here >= self.policy.target(live) && self.done < self.due {
            self.end_pack()?;
        }
        Ok(())
    }

    /// Ends the pack that is being written, if there is one.
    pub(super) fn end_pack(&mut self) -> Result<()> {
        if let Some(writer) = self.current.take() {
            let pack = writer.finish()?;
            self.bytes += pack.entry.bytes;
            self.written.push(pack);
        }
        Ok(())
    }

    /// Ends the last pack. Returns all of them.
    pub(super) fn finish(mut self) -> Result<Vec<WrittenPack>> {
        self.end_pack()?;
        Ok(self.written)
    }
}

//! Writing the topology of pages with a checkpoint: as blocks, or as deltas of the blocks that count.
//!
//! A delta is the difference between the block of the page, which is read again from its pack, and the lists of the snapshot. So
//! it has all changes since the block, whatever earlier deltas say, and no memory is needed for what has changed. A block is
//! written anew, and the delta with it dropped, if
//!
//! - the delta would have more than a quarter of the bytes of the block: a reader of a list reads both; or
//! - all deltas of the block, with this one, would have more bytes than it: to go on would cost more than to begin anew; or
//! - the pack of the block is retired, or the block cannot be read.

use std::collections::BTreeMap;

use hashbrown::HashMap;
use mangrove_graph::{Error, Result};
use mangrove_store::Store;
use mangrove_store::image::PageName;

use super::live::{DuePages, LivePacks, TopologyPlace};
use super::pack::{BlockName, PackReader, open_pack};
use super::place::Place;
use super::series::PackSeries;
use crate::open::{TopologyBlock, TopologyDelta, layers_checksum, put_delta, put_topology, read_topology, tablet_bits};

/// A delta has at most this part of the bytes of its block.
const DELTA_PART: u64 = 4;
/// Bytes of blocks that are read together.
const READ_BYTES: u64 = 4 << 20;

/// The topology that a checkpoint writes.
pub(super) struct DueTopology<'c> {
    pub(super) store: &'c Store,
    /// The timestamp of the snapshot.
    pub(super) at_ts: u64,
    /// The packs before the checkpoint.
    pub(super) packs: &'c LivePacks,
    pub(super) due: &'c DuePages,
    /// Lists that have changed a little are written as deltas. Otherwise the blocks that count may be of a state that the store
    /// has no notes of.
    pub(super) has_deltas: bool,
}

impl DueTopology<'_> {
    /// Writes the topology of all due pages. Returns how many blocks and how many deltas were written.
    pub(super) fn write<P: Place + ?Sized>(
        &self,
        series: &mut PackSeries<'_, P>,
        pause: &mut dyn FnMut() -> Result<()>,
    ) -> Result<(u64, u64)> {
        let mut bases = Bases { packs: self.packs, readers: HashMap::new(), bodies: HashMap::new() };
        let (mut blocks, mut deltas, mut body) = (0, 0, Vec::new());
        let bits = tablet_bits(self.store.tablet_count());
        for pages in self.read_together() {
            bases.read(series, pages.iter().filter_map(|page| Some((*page, self.base(*page)?))));
            for page in pages {
                pause()?;
                let lists = self.store.page_lists(*page, self.at_ts);
                let lists = lists.ok_or_else(|| Error::bug(format!("{page} is gone")))?;
                let now = TopologyBlock::new(self.at_ts, bits, lists);
                body.clear();
                let delta = self.base(*page).zip(bases.delta(*page, &now));
                match delta {
                    Some((base, delta)) if delta.is_empty() && base.delta.is_none() => series.leave_out(),
                    Some((base, delta)) if is_worth_it(base, &delta, &mut body) => {
                        series.topology(BlockName::of_delta(*page), &body)?;
                        deltas += 1;
                    }
                    _ => {
                        body.clear();
                        put_topology(&now, &mut body);
                        series.topology(BlockName::of_topology(*page), &body)?;
                        blocks += 1;
                    }
                }
            }
        }
        Ok((blocks, deltas))
    }

    /// The block of a page that its delta may be of.
    fn base(&self, page: PageName) -> Option<TopologyPlace> {
        let found = self.packs.topology_of(page).filter(|_| self.has_deltas)?;
        (!self.due.retired.contains(&found.block.pack)).then_some(found)
    }

    /// The due pages, in order, in groups whose blocks are read together.
    fn read_together(&self) -> Vec<&[PageName]> {
        let (mut groups, mut rest) = (Vec::new(), self.due.topology.as_slice());
        while !rest.is_empty() {
            let mut bytes = 0;
            let fits = |page: &&PageName| {
                let has_room = bytes < READ_BYTES;
                bytes += self.base(**page).map_or(0, |base| base.block.position.bytes());
                has_room
            };
            let (group, after) = rest.split_at(rest.iter().take_while(fits).count());
            groups.push(group);
            rest = after;
        }
        groups
    }
}

/// Appends a delta. Returns true if it is better than to write the block anew.
fn is_worth_it(base: TopologyPlace, delta: &TopologyDelta, body: &mut Vec<u8>) -> bool {
    put_delta(delta, body);
    let (bytes, of_block) = (body.len() as u64, base.block.position.bytes());
    bytes * DELTA_PART <= of_block && base.delta_bytes + bytes <= of_block
}

/// Blocks of which deltas are made.
struct Bases<'p, 'a> {
    packs: &'p LivePacks,
    /// By their places in the order of all packs; `None`: a pack cannot be read.
    readers: HashMap<u64, Option<PackReader<'a>>>,
    /// The blocks that were read last.
    bodies: HashMap<PageName, Vec<u8>>,
}

impl<'a> Bases<'_, 'a> {
    /// Reads the blocks of these pages. Leaves out those that cannot be read: they are written anew.
    fn read<P: Place + ?Sized>(
        &mut self,
        series: &PackSeries<'a, P>,
        pages: impl Iterator<Item = (PageName, TopologyPlace)>,
    ) {
        self.bodies.clear();
        let mut by_pack = BTreeMap::<u64, Vec<_>>::new();
        for (page, of_page) in pages {
            let block = (BlockName::of_topology(page), of_page.block.position);
            by_pack.entry(of_page.block.pack).or_default().push(block);
        }
        for (pack, mut blocks) in by_pack {
            let open = || open_pack(series.place, self.packs.pack(pack)?, series.database).ok();
            let Some(reader) = self.readers.entry(pack).or_insert_with(open) else { continue };
            blocks.sort_unstable_by_key(|(_, position)| position.offset);
            let bodies = &mut self.bodies;
            let read = reader.bodies(&blocks, |name, _, body| {
                bodies.extend(name.topology_page().map(|page| (page, body.to_vec())));
                Ok(())
            });
            // A damaged block ends the reading of its neighbors. Verification reports it.
            let _ = read;
        }
    }

    /// What has changed since the block of a page, if that could be read.
    fn delta(&self, page: PageName, now: &TopologyBlock) -> Option<TopologyDelta> {
        let body = self.bodies.get(&page)?;
        let block = read_topology(body).ok()?;
        TopologyDelta::between(&block, layers_checksum(body), now)
    }
}

#[cfg(all(test, not(feature = "model")))]
mod tests;

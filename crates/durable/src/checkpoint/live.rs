//! Which blocks of which packs count, and which packs are written anew.
//!
//! Of several images of a page, that in the last pack counts. A pack is *retired* when less than half of the bytes of
//! its blocks count, or when there are too many packs; then the smallest go first. The pages that still count in it are
//! due in the next checkpoint, as if they had changed. A pack without a block that counts leaves the manifest.
//!
//! Of topology blocks, too, that in the last pack counts, if the manifest says that there are any (LOG-100). So does the last
//! delta after it (LOG-103). Of runs of look-up indexes, those count that the manifest lists (LOG-104).
//!
//! So a graph takes at most about twice its size on disk, a checkpoint of few changes writes little, and recovery reads
//! each page once.

use std::collections::{BTreeMap, BTreeSet};

use hashbrown::{HashMap, HashSet};
use mangrove_store::image::PageName;

use super::compress::Compression;
use super::pack::{BlockName, BlockPosition, FORMAT, PlacedBlock, WrittenPack};
use crate::manifest::{ManifestIndex, ManifestPack, ManifestRun, PackNumber};

/// Runs of look-up indexes are ended when the entries that are gathered for them take about this many bytes of memory. The bytes
/// of a run, which are made of them, take about as much again, twice.
const GATHERED_BYTES_MAX: usize = 256 << 20;

/// How large packs become, how many there are, and whether they are compressed.
#[derive(Clone, Copy, Debug)]
pub(super) struct PackPolicy {
    /// A pack is ended at this size at least.
    pub(super) bytes_min: u64,
    /// And at this size at most, give or take an image.
    pub(super) bytes_max: u64,
    /// Packs that any graph may have.
    pub(super) packs_free: u64,
    pub(super) compression: Compression,
    /// Lists that have changed a little are written as deltas of their topology blocks.
    pub(super) deltas: bool,
    /// Bytes of memory that entries of look-up indexes take before runs are ended.
    pub(super) gathered_bytes_max: usize,
}

impl Default for PackPolicy {
    fn default() -> Self {
        let compression = Compression::Zstd;
        let gathered_bytes_max = GATHERED_BYTES_MAX;
        PackPolicy {
            bytes_min: 8 << 20,
            bytes_max: 1 << 30,
            packs_free: 16,
            compression,
            deltas: true,
            gathered_bytes_max,
        }
    }
}

impl PackPolicy {
    /// The size at which a pack of a graph with so many live bytes is ended.
    pub(super) fn target(self, live: u64) -> u64 {
        (live / 512).clamp(self.bytes_min, self.bytes_max)
    }

    /// The number of packs that such a graph may have.
    fn packs_max(self, live: u64) -> u64 {
        self.packs_free + live.div_ceil(self.target(live))
    }
}

/// Where the image of a page lies that counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct PagePlace {
    /// The pack, by its place in the order of all packs.
    pub(super) pack: u64,
    pub(super) position: BlockPosition,
}

/// Where the topology of a page lies that counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct TopologyPlace {
    pub(super) block: PagePlace,
    /// The delta of this block that counts, if there is one.
    pub(super) delta: Option<PagePlace>,
    /// Bytes of all deltas of this block, as far as the packs have had them since the graph was opened.
    pub(super) delta_bytes: u64,
}

impl TopologyPlace {
    /// The blocks of kind 3 and 4.
    fn places(self) -> [Option<PagePlace>; 2] {
        [Some(self.block), self.delta]
    }
}

/// A pack, and how much of it counts.
#[derive(Debug)]
struct LivePack {
    entry: ManifestPack,
    /// Bytes of its blocks, without the counts of the graph.
    bytes: u64,
    /// Bytes of those that count.
    live: u64,
    /// Its runs of look-up indexes.
    runs: Vec<PlacedBlock>,
}

/// A look-up index: its runs that count, oldest first.
#[derive(Debug)]
pub(super) struct LiveIndex {
    /// The kind and the number of its blocks.
    pub(super) block: (u8, u32),
    /// How many of the first runs have the entries of all pages.
    pub(super) base: usize,
    pub(super) runs: Vec<(ManifestRun, PagePlace)>,
}

/// The packs of a graph, and the blocks that count.
#[derive(Debug, Default)]
pub(super) struct LivePacks {
    /// In the order of the manifest, oldest first.
    packs: BTreeMap<u64, LivePack>,
    newest: HashMap<PageName, PagePlace>,
    /// The topology blocks that count, by their pages; `None` if none do (LOG-100).
    topology: Option<HashMap<PageName, TopologyPlace>>,
    /// The look-up indexes that count.
    indexes: Vec<LiveIndex>,
    /// The pack with the catalog that counts.
    catalog: Option<(u64, BlockPosition)>,
    /// The counts that count; `None` if no topology does.
    statistics: Option<PagePlace>,
    /// The place of the next pack.
    next: u64,
}

/// What a checkpoint writes.
#[derive(Debug, Default)]
pub(super) struct DuePages {
    /// Tablet by tablet.
    pub(super) pages: Vec<PageName>,
    /// The pages whose topology is written, tablet by tablet.
    pub(super) topology: Vec<PageName>,
    /// The packs of which nothing counts after that.
    pub(super) retired: BTreeSet<u64>,
}

impl LivePacks {
    /// Adds a pack that is newer than all others. Its catalog counts if it has one, unless the caller knows better.
    pub(super) fn add(&mut self, entry: ManifestPack, blocks: &[(BlockName, BlockPosition)]) -> u64 {
        let at = self.next;
        self.next += 1;
        let (mut bytes, mut live) = (0, 0);
        for &(name, position) in blocks {
            // Every checkpoint replaces the counts, which is no reason to write the pages beside them anew.
            bytes += if name == BlockName::STATISTICS { 0 } else { position.bytes() };
            let replaced = self.replaced_by(name);
            if !self.count(name, PagePlace { pack: at, position }) {
                continue;
            }
            live += position.bytes();
            for old in replaced.into_iter().flatten() {
                // Of two blocks with one name in this pack, which no writer makes, both seem to count.
                if let Some(pack) = self.packs.get_mut(&old.pack) {
                    pack.live -= old.position.bytes();
                }
            }
        }
        let runs = blocks.iter().filter(|(name, _)| name.is_run()).copied().collect();
        self.packs.insert(at, LivePack { entry, bytes, live, runs });
        at
    }

    /// Lets a block count that is newer than all others. Returns false if blocks of its kind do not count, or a delta has no
    /// block.
    fn count(&mut self, name: BlockName, place: PagePlace) -> bool {
        if let Some(page) = name.page() {
            self.newest.insert(page, place);
        } else if name == BlockName::CATALOG {
            self.catalog = Some((place.pack, place.position));
        } else if name == BlockName::STATISTICS && self.topology.is_some() {
            self.statistics = Some(place);
        } else if let (Some(page), Some(topology)) = (name.topology_page(), &mut self.topology) {
            topology.insert(page, TopologyPlace { block: place, delta: None, delta_bytes: 0 });
        } else if let (Some(page), Some(topology)) = (name.delta_page(), &mut self.topology) {
            let Some(of_page) = topology.get_mut(&page) else { return false };
            of_page.delta = Some(place);
            of_page.delta_bytes += place.position.bytes();
        } else {
            return false;
        }
        true
    }

    /// The images that count.
    pub(super) fn newest(&self) -> impl Iterator<Item = (PageName, PagePlace)> {
        self.newest.iter().map(|(page, place)| (*page, *place))
    }

    /// Lets the blocks of these pages count no more.
    pub(super) fn forget(&mut self, pages: &[PageName]) {
        for page in pages {
            let topology = self.topology.as_mut().and_then(|topology| topology.remove(page));
            let topology = topology.into_iter().flat_map(TopologyPlace::places).flatten();
            for place in self.newest.remove(page).into_iter().chain(topology) {
                subtract(&mut self.packs, place);
            }
        }
    }

    /// Returns true if topology blocks count.
    pub(super) fn has_topology(&self) -> bool {
        self.topology.is_some()
    }

    /// Says whether topology blocks count. If they did, and do not any more, their bytes stop counting.
    pub(super) fn count_topology(&mut self, counts: bool) {
        if counts {
            self.topology.get_or_insert_default();
        } else {
            let topology = self.topology.take().into_iter().flat_map(HashMap::into_values);
            let places = topology.flat_map(TopologyPlace::places).flatten().chain(self.statistics.take());
            places.for_each(|place| subtract(&mut self.packs, place));
        }
    }

    /// Lets these look-up indexes count, and no others. Fails with the reason if the packs do not have one of their runs.
    pub(super) fn count_indexes(&mut self, indexes: &[ManifestIndex]) -> Result<(), String> {
        for (_, place) in std::mem::take(&mut self.indexes).into_iter().flat_map(|index| index.runs) {
            subtract(&mut self.packs, place);
        }
        for ManifestIndex { kind, number, base, runs } in indexes {
            let (block, mut found) = ((*kind, *number), Vec::with_capacity(runs.len()));
            for run in runs {
                let is_run = |(name, _): &&PlacedBlock| (name.kind, name.number) == block;
                let mut packs = self.packs.iter_mut().filter(|(_, pack)| pack.entry.number() == run.pack());
                let place = packs.find_map(|(at, pack)| {
                    let position = pack.runs.iter().find(is_run)?.1;
                    pack.live += position.bytes();
                    Some(PagePlace { pack: *at, position })
                });
                let place = place.ok_or_else(|| {
                    format!("it says that pack {} of incarnation {} has a run of kind {kind} and number {number}, which it does \
                             not have", run.counter, run.incarnation)
                })?;
                found.push((*run, place));
            }
            self.indexes.push(LiveIndex { block, base: *base as usize, runs: found });
        }
        Ok(())
    }

    /// The look-up index with this kind and number of blocks that counts.
    pub(super) fn index(&self, block: (u8, u32)) -> Option<&LiveIndex> {
        self.indexes.iter().find(|index| index.block == block)
    }

    /// The place of the image of a page that counts.
    pub(super) fn image_of(&self, page: PageName) -> Option<PagePlace> {
        self.newest.get(&page).copied()
    }

    /// The topology that counts.
    pub(super) fn newest_topology(&self) -> impl Iterator<Item = (PageName, TopologyPlace)> {
        self.topology.iter().flatten().map(|(page, place)| (*page, *place))
    }

    /// The topology of a page that counts.
    pub(super) fn topology_of(&self, page: PageName) -> Option<TopologyPlace> {
        self.topology.as_ref()?.get(&page).copied()
    }

    /// A pack, by its place in the order of all packs.
    pub(super) fn pack(&self, at: u64) -> Option<&ManifestPack> {
        self.packs.get(&at).map(|pack| &pack.entry)
    }

    /// The blocks that stop counting when a newer block of this name counts.
    fn replaced_by(&self, name: BlockName) -> [Option<PagePlace>; 2] {
        if let Some(page) = name.page() {
            [self.newest.get(&page).copied(), None]
        } else if name == BlockName::CATALOG {
            [self.catalog.map(|(pack, position)| PagePlace { pack, position }), None]
        } else if name == BlockName::STATISTICS {
            [self.statistics, None]
        } else if let Some(page) = name.topology_page() {
            self.topology_of(page).map(TopologyPlace::places).unwrap_or_default()
        } else if let Some(page) = name.delta_page() {
            [self.topology_of(page).and_then(|of_page| of_page.delta), None]
        } else {
            [None, None]
        }
    }

    /// The number of pages with an image.
    pub(super) fn page_count(&self) -> usize {
        self.newest.len()
    }

    /// The number of the pack with the catalog that counts.
    pub(super) fn names(&self) -> Option<PackNumber> {
        let (pack, _) = self.catalog?;
        self.packs.get(&pack).map(|pack| pack.entry.number())
    }

    /// Returns true if the catalog that counts lies in one of these packs, or nowhere.
    pub(super) fn catalog_is_due(&self, retired: &BTreeSet<u64>) -> bool {
        self.catalog.is_none_or(|(pack, _)| retired.contains(&pack))
    }

    /// The counts that count.
    pub(super) fn statistics(&self) -> Option<PagePlace> {
        self.statistics
    }

    /// Returns true if the counts that count lie in one of these packs, or nowhere.
    pub(super) fn statistics_are_due(&self, retired: &BTreeSet<u64>) -> bool {
        self.statistics.is_none_or(|place| retired.contains(&place.pack))
    }

    /// Bytes of all blocks that count.
    pub(super) fn live_bytes(&self) -> u64 {
        self.packs.values().map(|pack| pack.live).sum()
    }

    /// The pages that a checkpoint writes: these, which have changed, those whose lists have changed, and those of the
    /// packs that are retired.
    pub(super) fn due(&self, changed: Vec<PageName>, lists: Vec<PageName>, policy: PackPolicy) -> DuePages {
        let changed: HashSet<PageName> = changed.into_iter().collect();
        let lists: HashSet<PageName> = lists.into_iter().collect();
        let mut live: BTreeMap<u64, u64> = self.packs.iter().map(|(at, pack)| (*at, pack.live)).collect();
        // Of a page with other lists, the block may go on to count.
        let deltas = lists.iter().filter_map(|page| self.topology_of(*page)?.delta);
        for place in changed.iter().filter_map(|page| self.newest.get(page).copied()).chain(deltas) {
            *live.get_mut(&place.pack).expect("the pack of a block that counts") -= place.position.bytes();
        }
        let is_mostly_dead = |at: u64| live[&at] * 2 < self.packs[&at].bytes;
        let mut retired: BTreeSet<u64> = self.packs.keys().copied().filter(|&at| is_mostly_dead(at)).collect();
        // Files of format 1 do not count here: there are many of them, and no new ones come.
        let is_kept_pack =
            |&(at, pack): &(&u64, &LivePack)| pack.entry.format == u64::from(FORMAT) && !retired.contains(at);
        let mut kept: Vec<(u64, u64)> = self.packs.iter().filter(is_kept_pack).map(|(at, _)| (live[at], *at)).collect();
        kept.sort_unstable();
        // This checkpoint adds one.
        let surplus = (kept.len() as u64 + 1).saturating_sub(policy.packs_max(self.live_bytes()));
        retired.extend(kept.iter().take(surplus as usize).map(|(_, at)| *at));
        let topology = self.newest_topology().flat_map(|(page, of_page)| of_page.places().map(|place| (page, place)));
        let mut topology = topology.filter_map(|(page, place)| place.map(|place| (page, place)));
        let all = |changed: HashSet<PageName>, blocks: &mut dyn Iterator<Item = (PageName, PagePlace)>| {
            let moved = blocks.filter(|(_, place)| retired.contains(&place.pack)).map(|(page, _)| page);
            let mut pages: Vec<PageName> = moved.filter(|page| !changed.contains(page)).collect();
            pages.extend(changed);
            pages.sort_unstable();
            pages.dedup();
            pages
        };
        let (pages, topology) = (all(changed, &mut self.newest()), all(lists, &mut topology));
        DuePages { pages, topology, retired }
    }

    /// The packs of the manifest that has these new ones, too, and these look-up indexes.
    pub(super) fn entries_with(&self, written: &[WrittenPack], indexes: &[ManifestIndex]) -> Vec<ManifestPack> {
        let mut live: BTreeMap<u64, u64> = self.packs.iter().map(|(at, pack)| (*at, pack.live)).collect();
        let replaced =
            written.iter().flat_map(|pack| &pack.blocks).flat_map(|(name, _)| self.replaced_by(*name)).flatten();
        let counts = |block, pack| indexes.iter().any(|index| index.has(block, pack));
        let runs =
            self.indexes.iter().flat_map(|index| index.runs.iter().map(|(run, place)| (index.block, run, *place)));
        let ended = runs.filter(|(block, run, _)| !counts(*block, run.pack())).map(|(.., place)| place);
        for place in replaced.chain(ended) {
            *live.get_mut(&place.pack).expect("the pack of a block that counts") -= place.position.bytes();
        }
        let old = self.packs.iter().filter(|(at, _)| live[*at] > 0);
        let old = old.map(|(at, pack)| ManifestPack { live: live[at], ..pack.entry.clone() });
        let new = written.iter().map(|WrittenPack { entry, blocks }| {
            let is_dead = |(name, _): &&PlacedBlock| name.is_run() && !counts((name.kind, name.number), entry.number());
            let dead: u64 = blocks.iter().filter(is_dead).map(|(_, position)| position.bytes()).sum();
            ManifestPack { live: entry.live - dead, ..entry.clone() }
        });
        old.chain(new).collect()
    }

    /// Notes that a manifest names these new packs, and none of which nothing counts, and these look-up indexes.
    pub(super) fn put(&mut self, written: Vec<WrittenPack>, indexes: &[ManifestIndex]) {
        for WrittenPack { entry, blocks } in written {
            self.add(entry, &blocks);
        }
        self.count_indexes(indexes).expect("the checkpoint wrote the runs, or they counted before");
        self.packs.retain(|_, pack| pack.live > 0);
    }
}

/// Notes that a block does not count any more.
fn subtract(packs: &mut BTreeMap<u64, LivePack>, place: PagePlace) {
    packs.get_mut(&place.pack).expect("the pack of a block that counts").live -= place.position.bytes();
}

#[cfg(test)]
mod tests {
    use mangrove_graph::{ElementKind, TabletId};

    use super::*;
    use crate::manifest::Covers;

    const POLICY: PackPolicy = PackPolicy {
        bytes_min: 1 << 20,
        bytes_max: 1 << 30,
        packs_free: 2,
        compression: Compression::None,
        deltas: true,
        gathered_bytes_max: 1 << 20,
    };

    fn page(number: u32) -> PageName {
        PageName { tablet: TabletId(1), kind: ElementKind::Vertex, number }
    }

    /// A pack with these pages, of so many bytes each.
    fn pack(counter: u64, pages: &[(u32, u32)]) -> WrittenPack {
        let block = |&(number, bytes): &(u32, u32)| {
            (BlockName::of_page(page(number)), BlockPosition { offset: 0, length: bytes - 8 })
        };
        let entry = ManifestPack {
            incarnation: 1,
            counter,
            bytes: 1_000,
            crc32c: 0,
            format: u64::from(FORMAT),
            live: pages.iter().map(|(_, bytes)| u64::from(*bytes)).sum(),
            covers: Covers::default(),
            path: None,
            database: None,
        };
        WrittenPack { entry, blocks: pages.iter().map(block).collect() }
    }

    fn due(packs: &LivePacks, changed: &[u32]) -> (Vec<u32>, Vec<u64>) {
        let changed = changed.iter().map(|number| page(*number)).collect();
        let DuePages { pages, retired, .. } = packs.due(changed, Vec::new(), POLICY);
        (pages.iter().map(|page| page.number).collect(), retired.into_iter().collect())
    }

    #[test]
    fn a_pack_is_retired_when_less_than_half_of_it_counts() {
        let mut packs = LivePacks::default();
        packs.put(vec![pack(1, &[(0, 30), (1, 30), (2, 40)])], &[]);
        assert_eq!(due(&packs, &[2]), (vec![2], vec![]), "60 of 100 bytes count");
        assert_eq!(due(&packs, &[1, 2]), (vec![0, 1, 2], vec![0]), "30 of 100 bytes count, so page 0 is due");
        packs.put(vec![pack(2, &[(2, 50)])], &[]);
        assert_eq!(packs.live_bytes(), 110);
        let entries = packs.entries_with(&[pack(3, &[(0, 30), (1, 30)])], &[]);
        let left: Vec<_> = entries.iter().map(|entry| (entry.counter, entry.live)).collect();
        assert_eq!(left, [(2, 50), (3, 60)], "nothing in the first pack counts");
    }

    #[test]
    fn the_smallest_packs_are_retired_when_there_are_too_many() {
        let mut packs = LivePacks::default();
        // All blocks together have less than the size of a pack, so the graph may have three packs.
        packs.put(vec![pack(1, &[(0, 300)]), pack(2, &[(1, 100)])], &[]);
        assert_eq!(due(&packs, &[7]), (vec![7], vec![]));
        packs.put(vec![pack(3, &[(2, 200)])], &[]);
        assert_eq!(due(&packs, &[7]), (vec![1, 7], vec![1]), "the pack of 100 bytes");
        assert_eq!(due(&packs, &[]).1, [1]);
    }

    #[test]
    fn the_size_of_packs_grows_with_the_graph() {
        let policy = PackPolicy::default();
        assert_eq!(policy.target(0), 8 << 20);
        assert_eq!(policy.target(8 << 30), 16 << 20);
        assert_eq!(policy.target(1 << 42), 1 << 30);
        assert_eq!((policy.packs_max(0), policy.packs_max(1), policy.packs_max(8 << 30)), (16, 17, 16 + 512));
    }
}

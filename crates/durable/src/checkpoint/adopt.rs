//! Going on with a checkpoint that was not loaded: that of an owner whose graph a follower has in memory already.
//!
//! The next checkpoint need only know which blocks of which packs count. That is in the directories of the packs, which
//! a follower reads while it has nothing else to do. So a promotion reads those of the last checkpoint at most.
//!
//! - **LOG-71.** A page of the owner's checkpoint that the follower does not have is empty: no commit has written to it
//!   (STORE-34). Its block does not count, and its number is not used again while the packs may have it.

use std::collections::BTreeMap;

use mangrove_graph::Result;
use mangrove_store::Store;
use mangrove_store::image::PageName;

use super::load::{live_packs, open_packs};
use super::pack::PlacedBlock;
use super::place::Place;
use super::take::Checkpoints;
use crate::manifest::{Manifest, ManifestPack, PackNumber};

/// Threads that read directories.
const READERS: usize = 8;

/// The directories of packs.
#[derive(Debug, Default)]
pub(crate) struct PackDirectories {
    /// By the paths of the packs.
    blocks: BTreeMap<String, Vec<PlacedBlock>>,
    /// The content of the catalog that counts, and its pack.
    names: Option<(PackNumber, Vec<u8>)>,
}

impl PackDirectories {
    /// Reads the directories of the packs of a manifest that are not known yet, and forgets all others. Returns how many
    /// packs were opened.
    ///
    /// # Errors
    ///
    /// If a pack is damaged, or missing because a later manifest does not name it.
    pub(crate) fn read<P: Place + ?Sized>(&mut self, place: &P, manifest: &Manifest) -> Result<u64> {
        if manifest.names.is_none() {
            self.names = None;
        }
        let named = manifest.names.filter(|named| self.names.as_ref().is_none_or(|(known, _)| known != named));
        let has_names = |pack: &ManifestPack| Some(pack.number()) == named && pack.covers.has_catalog();
        let is_needed = |pack: &&ManifestPack| has_names(pack) || !self.blocks.contains_key(&pack.path());
        let packs: Vec<ManifestPack> = manifest.packs.iter().filter(is_needed).cloned().collect();
        let opened = packs.len() as u64;
        for (pack, reader) in packs.iter().zip(open_packs(place, &packs, manifest.database, READERS)?) {
            if has_names(pack) {
                self.names = Some((pack.number(), reader.catalog(|bytes| Ok(bytes.to_vec()))?));
            }
            self.blocks.insert(pack.path(), reader.blocks);
        }
        self.blocks.retain(|path, _| manifest.packs.iter().any(|pack| pack.path() == *path));
        Ok(opened)
    }

    /// The content of the catalog of the last manifest that was read, if it has one.
    pub(crate) fn names(&self) -> Option<&[u8]> {
        self.names.as_ref().map(|(_, names)| names.as_slice())
    }

    /// The state after the checkpoint of a manifest whose directories were read, for a store that has everything in it.
    pub(crate) fn checkpoints<P: Place + ?Sized>(
        &self,
        place: &P,
        manifest: Manifest,
        store: &Store,
    ) -> Result<Checkpoints> {
        let blocks = manifest.packs.iter().map(|pack| self.blocks.get(&pack.path()).map_or(&[][..], Vec::as_slice));
        let mut packs = live_packs(place, &manifest, blocks)?;
        // LOG-71.
        let missing: Vec<PageName> =
            packs.newest().map(|(page, _)| page).filter(|page| !store.has_page(*page)).collect();
        packs.forget(&missing);
        store.keep_page_numbers(missing);
        let names = match &self.names {
            Some((number, names)) if Some(*number) == manifest.names => names.clone(),
            _ => Vec::new(),
        };
        Ok(Checkpoints::new(manifest, packs, names))
    }
}

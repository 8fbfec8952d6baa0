//! Verification of a home: of a graph, which may have an owner meanwhile, or of backups.
//!
//! | objects | what is checked |
//! |---|---|
//! | kept manifests | checksum; that each was made from the one before; that their owner's claim is there |
//! | packs that they name | length, checksum of all bytes, every block, every image |
//! | streams from the oldest floor on | every object whole and in its place, no gap, commits in order, the ends |
//! | pins | that they can be read |
//! | backups | checksum; their packs and objects as above; that they are of one database |
//!
//! Then the newest state is recovered. Claims of incarnations are random bytes, which mean nothing.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use hashbrown::HashSet;
use mangrove_graph::Result;
use mangrove_store::Store;

use super::{CompareColumns, OpenForms, check_bytes, check_open_forms, check_whole, options_of};
use crate::backup;
use crate::checkpoint::check_pack;
use crate::checkpoint::home::{HomePlace, patiently};
use crate::damage::damaged_in;
use crate::extract::Moment;
use crate::extract::find::{Found, Span, walk_home};
use crate::home::{Home, Name, WaitHome};
use crate::manifest::Manifest;
use crate::pin::{Pin, PinOptions, list_pins};
use crate::recovery::{Recovered, RecoveryProgress, RecoverySummary, recover_in};
use crate::states::{manifest_numbers, newest_manifest, read_manifest};
use crate::stream::fence::{StreamEnd, StreamTail};
use crate::stream::format::{Content, open};
use crate::stream::names::{node_name, stream_name};
use crate::stream::tails::{StreamTails, StreamsEnd, read_object};

/// A home whose objects are all whole.
#[derive(Debug)]
pub struct VerifiedHome {
    /// The recovered graph: the newest state, or the newest backup.
    pub store: Store,
    /// The summary of the recovery.
    pub recovery: RecoverySummary<StreamsEnd>,
    /// The number of manifests read.
    pub manifests: u64,
    /// The number of backups read.
    pub backups: u64,
    /// The number of packs read.
    pub packs: u64,
    /// The number of blocks in these packs.
    pub blocks: u64,
    /// Bytes of these packs.
    pub pack_bytes: u64,
    /// The open forms of the newest checkpoint.
    pub forms: OpenForms,
    /// The number of objects of streams.
    pub objects: u64,
    /// Bytes of these objects.
    pub object_bytes: u64,
}

/// Reads and checks everything that a home keeps. `threads` recover the graph; 0: one per core. A request is sent again for as
/// long as `patience` says. `compare` compares files of open columns.
///
/// # Errors
///
/// `NotFound` if there is no graph and no backup; otherwise the first fault, which names the object.
pub fn verify_home(
    home: &Arc<dyn Home>,
    patience: Duration,
    threads: usize,
    compare: &mut CompareColumns<'_>,
    progress: &(dyn Fn(RecoveryProgress) + Sync),
) -> Result<VerifiedHome> {
    let place = HomePlace::new(home.clone(), patience);
    let mut checked =
        Checked { place: &place, pin: None, packs: HashSet::new(), objects: BTreeSet::new(), sums: [0; 3] };
    let (mut manifests, mut backups) = (0, 0);
    let newest = if manifest_numbers(&**home, patience)?.is_empty() {
        // Without backups, this says so.
        backup::find(&**home, Moment::Newest, patience)?;
        checked.pin = Some(backup::hold(home, "verify", patience)?);
        for backup in backup::list_backups(&**home, patience)? {
            backup::check_database(&**home, &backup, patience)?;
            checked.packs(backup.manifest(), true)?;
            checked.spans(backup.spans())?;
            backups += 1;
        }
        backup::find(&**home, Moment::Newest, patience)?
    } else {
        let newest = newest_manifest(&**home, patience)?;
        let (pin, oldest) = Pin::hold(home.clone(), Some(newest.kept_from), PinOptions::of("verify", patience))?;
        checked.pin = Some(pin);
        let mut before: Option<Manifest> = None;
        for number in manifest_numbers(&**home, patience)?.range(..=newest.version) {
            // One below the oldest may be in the middle of its deletion.
            let is_kept = *number >= oldest.version;
            let Some(manifest) = read_manifest(&**home, *number, patience)? else { continue };
            if let Some(before) = before.filter(|before| before.version + 1 == *number)
                && !manifest.follows(&before)
            {
                let place = home.describe(&crate::stream::names::manifest_name(*number));
                return Err(damaged_in(&place, 0, format_args!("it was not made from manifest {}", before.version)));
            }
            checked.packs(&manifest, is_kept)?;
            manifests += 1;
            before = Some(manifest);
        }
        checked.claim(&newest)?;
        let history = walk_home(&**home, oldest, Moment::Newest, patience)?;
        checked.spans(history.spans.iter())?;
        checked.ends(&history)?;
        list_pins(&**home, patience)?;
        walk_home(&**home, newest, Moment::Newest, patience)?
    };
    let [blocks, pack_bytes, object_bytes] = checked.sums;
    let (packs, objects) = (checked.packs.len() as u64, checked.objects.len() as u64);
    let forms = checked.open_forms(&newest.manifest, options_of(threads).threads, compare)?;
    let (store, recovery) = checked.recover(&newest, threads, progress)?;
    Ok(VerifiedHome { store, recovery, manifests, backups, packs, blocks, pack_bytes, forms, objects, object_bytes })
}

/// What was checked.
struct Checked<'a> {
    place: &'a HomePlace,
    pin: Option<Pin>,
    packs: HashSet<String>,
    objects: BTreeSet<(u64, u64)>,
    /// Blocks, bytes of packs, bytes of objects.
    sums: [u64; 3],
}

impl Checked<'_> {
    fn renew(&mut self) -> Result<()> {
        self.pin.as_mut().map_or(Ok(()), Pin::renew)
    }

    fn home(&self) -> &Arc<dyn Home> {
        self.place.home()
    }

    /// Checks the packs of a manifest. All must be there that a kept manifest names.
    fn packs(&mut self, manifest: &Manifest, is_kept: bool) -> Result<()> {
        for pack in &manifest.packs {
            self.renew()?;
            let path = pack.path();
            if self.packs.contains(&path) {
                continue;
            }
            let name = Name::new(&path)?;
            if !is_kept && patiently(self.place.patience(), || self.home().head(&name))?.is_none() {
                continue;
            }
            self.sums[0] += check_pack(self.place, pack, manifest.database)?;
            check_whole(self.place, pack)?;
            self.sums[1] += pack.bytes;
            self.packs.insert(path);
        }
        Ok(())
    }

    /// Checks the open columns of a manifest, and compares its open forms with its images.
    fn open_forms(
        &mut self,
        manifest: &Manifest,
        threads: usize,
        compare: &mut CompareColumns<'_>,
    ) -> Result<OpenForms> {
        for file in manifest.columns.iter().flat_map(|columns| &columns.files) {
            self.renew()?;
            check_bytes(self.place, file.path.clone(), file.bytes, file.crc32c)?;
        }
        check_open_forms(self.place, manifest, threads, compare)
    }

    /// The claim of the owner of a manifest. A graph that nobody has opened has none.
    fn claim(&self, manifest: &Manifest) -> Result<()> {
        let name = node_name(manifest.epoch());
        let place = Name::new(&name)?;
        let is_there = patiently(self.place.patience(), || self.home().head(&place))?.is_some();
        match is_there || manifest.epoch() == 0 {
            true => Ok(()),
            false => Err(damaged_in(&self.home().describe(&name), 0, "the claim of the owner is missing")),
        }
    }

    fn object(&self, name: &str) -> Result<Option<bytes::Bytes>> {
        let place = Name::new(name)?;
        patiently(self.place.patience(), || self.home().get(&place))
    }

    /// Reads the objects of parts of streams, which come in order.
    fn spans<'s>(&mut self, spans: impl Iterator<Item = &'s Span>) -> Result<()> {
        let mut end = StreamsEnd::default();
        for span in spans {
            for (incarnation, seq) in span.places() {
                self.renew()?;
                let name = stream_name(incarnation, seq);
                let shown = self.home().describe(&name);
                let missing = || damaged_in(&shown, 0, "the object is missing, and its stream goes on");
                let bytes = self.object(&name)?.ok_or_else(missing)?;
                let end_ts = span.end_ts.filter(|_| seq + 1 == span.end);
                read_object(&bytes, &shown, end_ts, &mut end, &mut |_, _| Ok(()))?;
                if self.objects.insert((incarnation, seq)) {
                    self.sums[2] += bytes.len() as u64;
                }
            }
        }
        Ok(())
    }

    /// Checks the objects that end the streams of a history, all but the last of which have one.
    fn ends(&mut self, history: &Found) -> Result<()> {
        for (at, span) in history.spans.iter().enumerate() {
            let name = stream_name(span.incarnation, span.end);
            let shown = self.home().describe(&name);
            match self.object(&name)? {
                None if at + 1 == history.spans.len() => {}
                None => return Err(damaged_in(&shown, 0, "the end of the stream is missing")),
                Some(bytes) => {
                    open(&bytes).map_err(|error| error.of(&shown))?;
                    self.sums[2] += bytes.len() as u64;
                    self.objects.insert((span.incarnation, span.end));
                }
            }
        }
        Ok(())
    }

    /// Recovers a state.
    fn recover(
        mut self,
        found: &Found,
        threads: usize,
        progress: &(dyn Fn(RecoveryProgress) + Sync),
    ) -> Result<(Store, RecoverySummary<StreamsEnd>)> {
        let mut tails = Vec::new();
        for span in &found.spans {
            let mut objects = Vec::new();
            for name in span.names() {
                self.renew()?;
                let missing = || damaged_in(&self.home().describe(&name), 0, "the object is missing");
                let bytes = self.object(&name)?.ok_or_else(missing)?;
                let (header, _) = open(&bytes).map_err(|error| error.of(&self.home().describe(&name)))?;
                debug_assert!(matches!(header.content, Content::Records(_)), "a part of a stream has no end");
                objects.push(bytes);
            }
            let (incarnation, end_seq, end_ts) = (span.incarnation, span.end, span.end_ts);
            tails.push(StreamTail { incarnation, objects, end_seq, end: StreamEnd::Fin, end_ts });
        }
        let home = self.home().clone();
        let source = StreamTails { home: &*home, tails: &tails };
        let options = options_of(threads);
        let Recovered { store, summary, .. } =
            recover_in(self.place, &found.manifest, &source, &|_| Ok(()), options, progress)?;
        Ok((store, summary))
    }
}

#[cfg(all(test, not(feature = "model")))]
mod tests;

//! What clients were told, and whether it is true.
//!
//! - No acknowledged commit is missing from what a successor or the last recovery reads.
//! - No commit is recovered twice, and none that no client made.
//! - *One owner at a time*: when an owner acknowledges its first commit, it has every commit that owners before it have
//!   acknowledged. A commit that an owner acknowledges later is one that each successor has read that has acknowledged
//!   or served anything.
//! - A read has every commit that was acknowledged, or was in the answer of another read, before it began.
//! - An owner stops only if it was fenced.

use std::collections::{BTreeMap, BTreeSet};

use super::super::fence::TakenOver;
use super::super::format::decode;
use super::manifest::SimManifest;

/// A commit of a simulated client.
pub(super) type CommitId = u64;

/// A rule that was seen broken, as a sentence.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Violation(pub(super) String);

pub(super) type Checked = Result<(), Violation>;

/// What an owner has taken over and done.
#[derive(Debug)]
struct Reign {
    incarnation: u64,
    recovered: BTreeSet<CommitId>,
    /// True once it has acknowledged a commit or served a read.
    has_served: bool,
}

#[derive(Debug, Default)]
pub(super) struct Ledger {
    /// Owners by the number of the manifest with which they claimed the graph.
    reigns: BTreeMap<u64, Reign>,
    made: BTreeSet<CommitId>,
    /// Acknowledged commits, with the claim of the owner.
    acknowledged: BTreeMap<CommitId, u64>,
    /// What every later read must have, in the order in which it became so.
    must_see: Vec<CommitId>,
    is_in_must_see: BTreeSet<CommitId>,
    pub(super) reads: u64,
}

impl Ledger {
    pub(super) fn made(&mut self, commit: CommitId) {
        self.made.insert(commit);
    }

    pub(super) fn acknowledged_count(&self) -> u64 {
        self.acknowledged.len() as u64
    }

    /// Takes what a successor has read. Returns the commits.
    pub(super) fn taken_over(&mut self, taken: &TakenOver) -> Result<BTreeSet<CommitId>, Violation> {
        let manifest = SimManifest::read(&taken.manifest).map_err(|error| Violation(error.to_string()))?;
        let mut recovered = BTreeSet::new();
        let in_tails = taken.tails.iter().flat_map(|tail| &tail.objects).flat_map(|object| commits_of(object));
        for commit in manifest.covered.iter().copied().chain(in_tails) {
            if !self.made.contains(&commit) {
                return Err(Violation(format!("commit {commit} was recovered, and no client has made it")));
            }
            if !recovered.insert(commit) {
                return Err(Violation(format!("commit {commit} was recovered twice")));
            }
        }
        let reign = Reign { incarnation: taken.incarnation, recovered: recovered.clone(), has_served: false };
        self.reigns.insert(taken.manifest_number, reign);
        Ok(recovered)
    }

    pub(super) fn acknowledge(&mut self, claim: u64, commits: impl Iterator<Item = CommitId>) -> Checked {
        let commits: Vec<CommitId> = commits.collect();
        if commits.is_empty() {
            return Ok(());
        }
        self.serves(claim)?;
        for commit in commits {
            for (_, later) in self.reigns.range(claim + 1..).filter(|(_, reign)| reign.has_served) {
                if !later.recovered.contains(&commit) {
                    return Err(Violation(format!(
                        "commit {commit} was acknowledged after incarnation {} had taken over without it",
                        later.incarnation
                    )));
                }
            }
            self.acknowledged.insert(commit, claim);
            self.must_be_seen(commit);
        }
        Ok(())
    }

    /// Checks an owner that acknowledges or serves for the first time.
    fn serves(&mut self, claim: u64) -> Checked {
        let Some(reign) = self.reigns.get_mut(&claim) else { return Ok(()) };
        if reign.has_served {
            return Ok(());
        }
        reign.has_served = true;
        let missing = self.acknowledged.iter().find(|(commit, by)| **by < claim && !reign.recovered.contains(commit));
        match missing {
            None => Ok(()),
            Some((commit, _)) => Err(Violation(format!(
                "incarnation {} has taken over without commit {commit}, which was acknowledged",
                reign.incarnation
            ))),
        }
    }

    fn must_be_seen(&mut self, commit: CommitId) {
        if self.is_in_must_see.insert(commit) {
            self.must_see.push(commit);
        }
    }

    /// A mark for a read that begins.
    pub(super) fn read_begins(&self) -> usize {
        self.must_see.len()
    }

    /// Checks the view of a read that has begun at a mark and is served.
    pub(super) fn read_served(&mut self, claim: u64, mark: usize, own: &BTreeSet<CommitId>) -> Checked {
        self.serves(claim)?;
        self.reads += 1;
        let empty = BTreeSet::new();
        let recovered = self.reigns.get(&claim).map_or(&empty, |reign| &reign.recovered);
        let missing = self.must_see[..mark].iter().find(|commit| !own.contains(commit) && !recovered.contains(commit));
        if let Some(commit) = missing {
            return Err(Violation(format!(
                "a read at claim {claim} misses commit {commit}, which was acknowledged or read before it began"
            )));
        }
        let seen: Vec<CommitId> =
            recovered.iter().filter(|commit| !self.is_in_must_see.contains(commit)).copied().collect();
        seen.into_iter().for_each(|commit| self.must_be_seen(commit));
        Ok(())
    }

    /// Checks what the last recovery has read.
    pub(super) fn recovered_in_the_end(&self, recovered: &BTreeSet<CommitId>) -> Checked {
        match self.must_see.iter().find(|commit| !recovered.contains(commit)) {
            None => Ok(()),
            Some(commit) => Err(Violation(format!("commit {commit} was acknowledged or read, and is lost"))),
        }
    }
}

/// The commits in an object of a stream.
fn commits_of(object: &[u8]) -> Vec<CommitId> {
    let records = decode(object).map(|(_, records)| records).unwrap_or_default();
    records.chunks_exact(8).map(|id| u64::from_le_bytes(id.try_into().expect("eight bytes"))).collect()
}

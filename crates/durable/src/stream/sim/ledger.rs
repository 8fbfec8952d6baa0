//! What clients were told, and whether it is true.
//!
//! - No acknowledged commit is missing from what a successor or the last recovery reads.
//! - No commit is recovered twice, and none that no client made.
//! - *One owner at a time*: when an owner acknowledges its first commit, it has every commit that owners before it have
//!   acknowledged. A commit that an owner acknowledges later is one that each successor has read that has acknowledged
//!   or served anything.
//! - A read has every commit that was acknowledged, or was in the answer of another read, before it began.
//! - An owner stops only if it was fenced.
//! - A follower has a prefix of the history: each commit that was acknowledged and is before one that it has. No commit
//!   that it has is lost.

use std::collections::{BTreeMap, BTreeSet};

use super::super::fence::TakenOver;
use super::super::format::decode;
use super::manifest::{CommitId, SimManifest};

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
    /// What followers have.
    followed: BTreeSet<CommitId>,
    pub(super) reads: u64,
    pub(super) stalls: u64,
}

impl Ledger {
    pub(super) fn made(&mut self, commit: CommitId) {
        self.made.insert(commit);
    }

    pub(super) fn acknowledged_count(&self) -> u64 {
        self.acknowledged.len() as u64
    }

    /// Takes what a successor has read, after these commits if it has followed. Returns the commits.
    pub(super) fn taken_over(
        &mut self,
        taken: &TakenOver,
        followed: Option<&BTreeSet<CommitId>>,
    ) -> Result<BTreeSet<CommitId>, Violation> {
        let manifest = SimManifest::read(&taken.manifest).map_err(|error| Violation(error.to_string()))?;
        let mut recovered = BTreeSet::new();
        let in_tails = taken.tails.iter().flat_map(|tail| &tail.objects).flat_map(|object| commits_of(object));
        for commit in followed.unwrap_or(&manifest.covered).iter().copied().chain(in_tails) {
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

    /// Takes the commits of a follower that reads the stream of an incarnation, and those of them that are new.
    pub(super) fn followed(
        &mut self,
        incarnation: u64,
        commits: &BTreeSet<CommitId>,
        new: &BTreeSet<CommitId>,
    ) -> Checked {
        if let Some(commit) = new.iter().find(|commit| !self.made.contains(commit)) {
            return Err(Violation(format!("a follower has commit {commit}, and no client has made it")));
        }
        self.followed.extend(new);
        let last = commits.last().copied().unwrap_or_default();
        let is_before = |commit: CommitId, claim: &u64| {
            let by = self.reigns.get(claim).map_or(0, |reign| reign.incarnation);
            by < incarnation || (by == incarnation && commit < last)
        };
        let missing =
            self.acknowledged.iter().find(|(commit, by)| !commits.contains(commit) && is_before(**commit, by));
        match missing {
            None => Ok(()),
            Some((commit, _)) => Err(Violation(format!(
                "a follower that reads the stream of incarnation {incarnation} misses commit {commit}, which was acknowledged"
            ))),
        }
    }

    /// Checks what the last recovery has read.
    pub(super) fn recovered_in_the_end(&self, recovered: &BTreeSet<CommitId>) -> Checked {
        if let Some(commit) = self.must_see.iter().find(|commit| !recovered.contains(commit)) {
            return Err(Violation(format!("commit {commit} was acknowledged or read, and is lost")));
        }
        match self.followed.iter().find(|commit| !recovered.contains(commit)) {
            None => Ok(()),
            Some(commit) => Err(Violation(format!("commit {commit} was shown by a follower, and is lost"))),
        }
    }
}

/// The commits in an object of a stream.
pub(super) fn commits_of(object: &[u8]) -> Vec<CommitId> {
    let records = decode(object).map(|(_, records)| records).unwrap_or_default();
    records.chunks_exact(8).map(|id| u64::from_le_bytes(id.try_into().expect("eight bytes"))).collect()
}

#[cfg(test)]
mod tests {
    use super::super::super::fence::{StreamEnd, StreamTail};
    use super::super::super::format::{Batch, Content, Header, Place, encode};
    use super::super::manifest::database;
    use super::*;

    /// A take-over with these commits in the checkpoint and in an object of a stream.
    fn taken(claim: u64, covered: &[CommitId], in_tail: &[CommitId]) -> TakenOver {
        let place = Place { database: database(), incarnation: 1, seq: 1, nonce: [0; 16], previous: 0 };
        let records: Vec<u8> = in_tail.iter().flat_map(|id| id.to_le_bytes()).collect();
        let object = encode(&Header { place, cut_us: 0, content: Content::Records(Batch::default()) }, &records);
        let tail =
            StreamTail { incarnation: 1, objects: vec![object.into()], end_seq: 2, end: StreamEnd::Fin, end_ts: None };
        let covered = covered.iter().copied().collect();
        let manifest = SimManifest { covered, ..SimManifest::default() }.bytes().into();
        let (database, tails) = (database(), vec![tail]);
        TakenOver { database, incarnation: claim, manifest_number: claim, manifest, tails, held_until_us: 0 }
    }

    fn ledger() -> Ledger {
        let mut ledger = Ledger::default();
        (1..10).for_each(|id| ledger.made(id));
        ledger
    }

    #[test]
    fn doubled_and_invented_commits_are_noticed() {
        assert!(ledger().taken_over(&taken(1, &[1, 2], &[3]), None).is_ok());
        let Violation(what) = ledger().taken_over(&taken(1, &[1, 2], &[2]), None).unwrap_err();
        assert_eq!(what, "commit 2 was recovered twice");
        let Violation(what) = ledger().taken_over(&taken(1, &[1, 20], &[]), None).unwrap_err();
        assert_eq!(what, "commit 20 was recovered, and no client has made it");
    }

    #[test]
    fn lost_commits_and_late_acknowledgements_are_noticed() {
        let first = || {
            let mut ledger = ledger();
            ledger.taken_over(&taken(1, &[], &[]), None).unwrap();
            ledger.acknowledge(1, [1, 2].into_iter()).unwrap();
            ledger
        };
        assert!(first().recovered_in_the_end(&[1].into()).is_err());
        let mut ledger = first();
        ledger.taken_over(&taken(2, &[1], &[]), None).unwrap();
        assert!(ledger.acknowledge(2, [5].into_iter()).is_err(), "commit 2 is missing");
        let mut ledger = first();
        ledger.taken_over(&taken(3, &[1, 2], &[3]), None).unwrap();
        ledger.acknowledge(3, [6].into_iter()).unwrap();
        ledger.acknowledge(1, [3].into_iter()).unwrap();
        assert!(ledger.acknowledge(1, [4].into_iter()).is_err(), "the successor has not read commit 4");
    }

    #[test]
    fn reads_that_miss_something_are_noticed() {
        let mut ledger = ledger();
        ledger.taken_over(&taken(1, &[1], &[]), None).unwrap();
        ledger.taken_over(&taken(2, &[1], &[2]), None).unwrap();
        let before = ledger.read_begins();
        ledger.read_served(2, before, &BTreeSet::new()).unwrap();
        ledger.read_served(1, before, &BTreeSet::new()).unwrap();
        let after = ledger.read_begins();
        assert!(ledger.read_served(1, after, &BTreeSet::new()).is_err(), "another read has shown commit 2");
        ledger.read_served(1, after, &[2].into()).unwrap();
    }
}

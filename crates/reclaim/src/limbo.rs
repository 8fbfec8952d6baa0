//! Limbo: unlinked things that wait until no reader can hold them.
//!
//! A writer or a collector hands in a bag of things, and the limbo draws a tag when it closes the bag. Bags leave in
//! the order of their tags, when RECLAIM-3 allows it. The limbo frees memory itself. A thing that is a name, such as
//! the number of a record, goes back to its owner: the limbo only says when.
//!
//! A limbo that is dropped hands memory that readers may still hold to a list of the process, which every limbo works
//! off. (Those are readers of other structures; its own cannot be borrowed any more.)

#![expect(unsafe_code, reason = "frees retired memory when its grace period is over")]

use std::collections::VecDeque;

use mangrove_locks::rank;

use crate::epoch::{draw_tag, oldest_pin};
use crate::retired::Retired;
use crate::sync::Mutex;

/// A thing that may wait in a limbo: memory, or a name that means something to the limbo's owner.
pub trait Unlinked: From<Retired> {
    /// The memory, or else the name.
    fn into_memory(self) -> Result<Retired, Self>;
}

/// Things in a bag at most. A caller that releases a little takes about one bag, so that a committer is not held up by
/// the garbage of another committer or of a compaction.
const BAG_MAX: usize = 1_024;

/// Things of a bag that [`Limbo::release_groups`] releases together.
pub const RELEASED_TOGETHER: usize = 16;

/// Things unlinked before `tag` was drawn.
#[derive(Debug)]
struct Bag<G> {
    tag: u64,
    garbage: Vec<G>,
}

/// Memory of limbos that were dropped, with its tags.
static LEFT_BEHIND: mangrove_locks::Mutex<Vec<(u64, Retired)>, rank::LeftBehind> =
    mangrove_locks::Mutex::new(Vec::new());

/// Unlinked things in bags, oldest first. Invariant: tags ascend.
#[derive(Debug)]
pub struct Limbo<G: Unlinked> {
    bags: Mutex<VecDeque<Bag<G>>, rank::Limbo>,
}

impl<G: Unlinked> Default for Limbo<G> {
    fn default() -> Self {
        Limbo { bags: Mutex::new(VecDeque::new()) }
    }
}

impl<G: Unlinked> Limbo<G> {
    /// Takes in things that the caller has just unlinked.
    pub fn take_in(&self, mut garbage: Vec<G>) {
        if garbage.is_empty() {
            return;
        }
        // RECLAIM-2: the tag comes after the unlinking. It is drawn under the lock, so that tags ascend.
        let mut bags = self.bags.lock();
        let tag = draw_tag();
        while garbage.len() > BAG_MAX {
            let rest = garbage.split_off(garbage.len() - BAG_MAX);
            bags.push_back(Bag { tag, garbage: rest });
        }
        bags.push_back(Bag { tag, garbage });
    }

    /// Takes in one piece of memory, if there is one.
    pub fn retire(&self, retired: Option<Retired>) {
        self.take_in(retired.map(G::from).into_iter().collect());
    }

    /// How many things are waiting.
    #[expect(clippy::len_without_is_empty, reason = "a count for reports")]
    pub fn len(&self) -> usize {
        self.bags.lock().iter().map(|bag| bag.garbage.len()).sum()
    }

    /// Frees memory whose grace period is over, and hands names whose grace period is over to `each`. Works bag by bag,
    /// until at least `limit` things are released or none can be. Returns how many were released.
    pub fn release(&self, limit: usize, each: impl FnMut(G)) -> usize {
        self.release_groups(limit, |_| {}, each)
    }

    /// As [`Limbo::release`], in groups of [`RELEASED_TOGETHER`] things or less. `ahead` gets the whole group first, so that the caller can load
    /// ahead what `each` needs.
    pub fn release_groups(&self, limit: usize, ahead: impl Fn(&[G]), mut each: impl FnMut(G)) -> usize {
        free_left_behind();
        let oldest = oldest_pin();
        let mut count = 0;
        while count < limit {
            let bag = {
                let mut bags = self.bags.lock();
                // RECLAIM-3. Bags that came after `oldest` was read have larger tags.
                if bags.front().is_none_or(|bag| bag.tag >= oldest) {
                    break;
                }
                bags.pop_front()
            };
            count += bag.as_ref().map_or(0, |bag| bag.garbage.len());
            let mut bag = bag.map_or_else(Vec::new, |bag| bag.garbage).into_iter();
            while !bag.as_slice().is_empty() {
                let group = bag.len().min(RELEASED_TOGETHER);
                ahead(&bag.as_slice()[..group]);
                for garbage in bag.by_ref().take(group) {
                    match garbage.into_memory() {
                        // SAFETY: the tag was drawn after the memory was unlinked, and all pins are younger (RECLAIM-3).
                        Ok(retired) => unsafe { retired.free() },
                        Err(name) => each(name),
                    }
                }
            }
        }
        count
    }
}

fn free_left_behind() {
    let mut left = LEFT_BEHIND.lock();
    if left.is_empty() {
        return;
    }
    let oldest = oldest_pin();
    for at in (0..left.len()).rev() {
        if left[at].0 < oldest {
            let (_, retired) = left.swap_remove(at);
            // SAFETY: as in `release`.
            unsafe { retired.free() };
        }
    }
}

impl<G: Unlinked> Drop for Limbo<G> {
    fn drop(&mut self) {
        let mut left = LEFT_BEHIND.lock();
        for bag in self.bags.get_mut().drain(..) {
            for garbage in bag.garbage {
                if let Ok(retired) = garbage.into_memory() {
                    left.push((bag.tag, retired));
                }
            }
        }
        drop(left);
        free_left_behind();
    }
}

/// Limbos of memory alone, for tests.
#[cfg(test)]
impl Unlinked for Retired {
    fn into_memory(self) -> Result<Retired, Self> {
        Ok(self)
    }
}

#[cfg(test)]
impl Limbo<Retired> {
    pub(crate) fn release_boxes(&self) {
        self.release(usize::MAX, |name| unreachable!("{name:?} is memory"));
    }
}

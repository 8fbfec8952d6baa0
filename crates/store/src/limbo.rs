//! Limbo: what was unlinked and waits for the readers of its time to be gone.
//!
//! Things come in bags, each with a tag drawn when the bag is closed, and leave in the order of their tags
//! (`epoch`, invariant 3). Boxes are freed here. Records named by number go back to whom they belong (`reclaim`
//! does that): the limbo only says when.
//!
//! A limbo that is dropped hands the boxes that readers may still hold (of another store: its own cannot be
//! borrowed any more) to a list of the process, which every limbo works off.

#![expect(unsafe_code, reason = "frees retired boxes when their grace period is over")]

use std::collections::VecDeque;

use mangrove_graph::ElementId;

use crate::epoch::{Retired, draw_tag, oldest_pin};
use crate::memory::Memory;
use crate::sync::Mutex;
use crate::write::Write;

/// Something unlinked. Numbers are those of the tablet's pools.
#[derive(Debug)]
pub(crate) enum Garbage {
    /// Memory to be freed.
    Box(Retired),
    /// An undo record.
    Undo { tablet: u16, record: u64 },
    /// A record of the value region that no cell names any more: its content is refused to readers next.
    Value { tablet: u16, record: u64 },
    /// A record of the value region whose content is refused: it is cleared next.
    DyingValue { tablet: u16, record: u64 },
    /// A header of an adjacency list.
    Header { tablet: u16, record: u64 },
    /// A row of a tail.
    Row { tablet: u16, start: u64, len: u64 },
    /// The place of an element that left no trace.
    Slot(ElementId),
    /// The log of a transaction that was rolled back: until the readers of then are gone, a cell must not look
    /// as if it had never been touched (`column`).
    Aborted(Vec<Write>),
}

/// Whoever empties limbo a little takes no more than about a bag: a committer is not to be held up by what another one,
/// or a compaction, has left.
const BAG_MAX: usize = 1_024;

/// Things unlinked before `tag` was drawn.
#[derive(Debug)]
struct Bag {
    tag: u64,
    garbage: Vec<Garbage>,
}

/// What a structure needs that outgrows its memory while others read it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Space<'a> {
    /// Where its bytes are counted.
    pub(crate) memory: &'a Memory,
    /// Where what it has outgrown waits for its readers.
    pub(crate) limbo: &'a Limbo,
}

/// Boxes of limbos that are no more.
static LEFT_BEHIND: parking_lot::Mutex<Vec<(u64, Retired)>> = parking_lot::Mutex::new(Vec::new());

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Limbo {
    bags: Mutex<VecDeque<Bag>>,
}

impl Limbo {
    /// Takes in what was unlinked just now.
    pub(crate) fn take_in(&self, mut garbage: Vec<Garbage>) {
        if garbage.is_empty() {
            return;
        }
        // Drawn under the lock, so that tags ascend.
        let mut bags = self.bags.lock();
        let tag = draw_tag();
        while garbage.len() > BAG_MAX {
            let rest = garbage.split_off(garbage.len() - BAG_MAX);
            bags.push_back(Bag { tag, garbage: rest });
        }
        bags.push_back(Bag { tag, garbage });
    }

    /// Takes in one box, if there is one.
    pub(crate) fn retire(&self, retired: Option<Retired>) {
        self.take_in(retired.map(Garbage::Box).into_iter().collect());
    }

    /// How many things are waiting.
    pub(crate) fn len(&self) -> usize {
        self.bags.lock().iter().map(|bag| bag.garbage.len()).sum()
    }

    /// Frees the boxes whose time has come, and hands everything else whose time has come to `each`, bag by bag until
    /// it was about `limit`; returns how many things that were.
    pub(crate) fn release(&self, limit: usize, mut each: impl FnMut(Garbage)) -> usize {
        free_left_behind();
        let oldest = oldest_pin();
        let mut count = 0;
        while count < limit {
            let bag = {
                let mut bags = self.bags.lock();
                // Bags that came after `oldest` was read have larger tags.
                if bags.front().is_none_or(|bag| bag.tag >= oldest) {
                    break;
                }
                bags.pop_front()
            };
            count += bag.as_ref().map_or(0, |bag| bag.garbage.len());
            for garbage in bag.into_iter().flat_map(|bag| bag.garbage) {
                match garbage {
                    // SAFETY: the tag was drawn after the box was unlinked, and all pins are younger.
                    Garbage::Box(retired) => unsafe { retired.free() },
                    other => each(other),
                }
            }
        }
        count
    }

    /// Frees boxes only, for those who retire nothing else.
    #[cfg(test)]
    pub(crate) fn release_boxes(&self) {
        self.release(usize::MAX, |garbage| unreachable!("{garbage:?} is no box"));
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

impl Drop for Limbo {
    fn drop(&mut self) {
        let mut left = LEFT_BEHIND.lock();
        for bag in self.bags.get_mut().drain(..) {
            for garbage in bag.garbage {
                if let Garbage::Box(retired) = garbage {
                    left.push((bag.tag, retired));
                }
            }
        }
        drop(left);
        free_left_behind();
    }
}

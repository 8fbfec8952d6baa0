//! Groups of scope instances: their ids, their tags, and the instances of the group outside that these belong to.
//!
//! The rows of one message that enter a scope together become the instances of one group. A row names its instance by a
//! *tag*.
//!
//! - **FLOW-5.** The tags of a group are dense: `0..instances`. The number of instances travels with the end-of-stream,
//!   so a reduction answers also for instances without rows (`count()` of nothing is 0).
//! - **FLOW-6.** A group is at home on the node that opened it. Operators that keep state run at the home of the group. A
//!   group that a helper has opened is at home at the helper (FLOW-50).

/// The number of a node. Each node owns a share of the tablets of the graph.
pub type NodeId = u16;

/// The id of a group of scope instances that entered a scope together: the number of its home node in the upper 16
/// bits, and a number that the home counts up in the lower 48.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct GroupId(u64);

/// The position in a [`GroupId`] at which the number of the home node begins.
const NODE_SHIFT: u32 = 48;

/// The bit of a [`GroupId`] that is set if a helper has opened the group. Helpers count for themselves: no other thread
/// sees their groups.
const HELPER_BIT: u64 = 1 << (NODE_SHIFT - 1);

impl GroupId {
    /// The group of the query itself. It has one instance and is at home on node 0.
    pub const ROOT: GroupId = GroupId(0);

    /// Returns the node that opened the group (FLOW-6).
    pub fn home(self) -> NodeId {
        (self.0 >> NODE_SHIFT) as NodeId
    }

    /// Returns the id as it is sent to other nodes.
    pub fn to_bits(self) -> u64 {
        self.0
    }

    /// The group that a node has opened as its `number`th one, from 1 up.
    pub(crate) fn of(node: NodeId, number: u64) -> Self {
        GroupId((u64::from(node) << NODE_SHIFT) | number)
    }

    /// The group that a helper has opened as its `number`th one, from 1 up.
    pub(crate) fn of_helper(number: u64) -> Self {
        GroupId(HELPER_BIT | number)
    }

    /// Returns true if a helper has opened the group.
    pub fn is_of_helper(self) -> bool {
        self.0 & HELPER_BIT != 0
    }

    /// Reads an id that another node sent.
    pub fn from_bits(bits: u64) -> Self {
        GroupId(bits)
    }
}

/// A set of tags: a bit for each.
#[derive(Clone, Debug, Default)]
pub struct TagSet {
    words: Vec<u64>,
}

impl TagSet {
    /// Adds a tag. Returns true if the set did not contain it.
    pub fn insert(&mut self, tag: u32) -> bool {
        let (word, bit) = (tag as usize / 64, 1_u64 << (tag % 64));
        if self.words.len() <= word {
            self.words.resize(word + 1, 0);
        }
        let new = self.words[word] & bit == 0;
        self.words[word] |= bit;
        new
    }

    /// Adds all tags of another set. Returns true if the set lacked one of them.
    pub fn insert_all(&mut self, others: &TagSet) -> bool {
        if self.words.len() < others.words.len() {
            self.words.resize(others.words.len(), 0);
        }
        let mut new = 0;
        for (word, other) in self.words.iter_mut().zip(&others.words) {
            new |= other & !*word;
            *word |= other;
        }
        new != 0
    }

    /// Returns true if the set contains the tag.
    pub fn contains(&self, tag: u32) -> bool {
        self.words.get(tag as usize / 64).is_some_and(|w| w & (1 << (tag % 64)) != 0)
    }

    /// Returns the number of tags.
    pub fn len(&self) -> usize {
        self.words.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// Returns true if the set has no tag.
    pub fn is_empty(&self) -> bool {
        self.words.iter().all(|word| *word == 0)
    }

    /// Returns the tags in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        (0_u32..)
            .zip(&self.words)
            .flat_map(|(at, word)| (0..64).filter(move |bit| word & (1_u64 << *bit) != 0).map(move |bit| at * 64 + bit))
    }

    /// Removes all tags. The memory is kept.
    pub(crate) fn clear(&mut self) {
        self.words.clear();
    }
}

/// Sets with the same tags are equal, whatever memory they have.
impl PartialEq for TagSet {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl Eq for TagSet {}

impl FromIterator<u32> for TagSet {
    fn from_iter<I: IntoIterator<Item = u32>>(tags: I) -> Self {
        let mut set = TagSet::default();
        for tag in tags {
            set.insert(tag);
        }
        set
    }
}

/// The instances of the group outside that the instances of a group belong to. If all work of an instance outside is
/// cancelled, so is the work of the instances inside that belong to it (FLOW-40).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OuterTags {
    /// All belong to this instance.
    One(u32),
    /// Each belongs to the instance with the same tag, as in the iterations of a loop.
    Same,
    /// By tag inside: the tag outside. An instance that works for several instances outside has
    /// [`OuterTags::SEVERAL`].
    Each(Vec<u32>),
    /// As [`OuterTags::Each`]; the operator of the scope adds instances as they come
    /// ([`crate::Output::add_instances`]).
    Growing(Vec<u32>),
}

impl OuterTags {
    /// In place of a tag outside: only the cancellation of the whole group outside cancels the instance.
    pub const SEVERAL: u32 = u32::MAX;
}

//! The inboxes of operators, with bits that say where messages wait.
//!
//! What runs for each message is always inlined: the runtime has two copies of its loop, and the compiler inlines a
//! function of its size only into one caller. Calls took 7 % of the instructions of a light query.

use std::collections::VecDeque;

use mangrove_graph::Result;

use crate::message::Message;
use crate::mutation::{self, Mutation};
use crate::policy::Inside;
use crate::topology::OpId;

/// The messages that wait at an operator. A message that returns from a scope goes before a message that would enter
/// it.
struct Inbox<B> {
    /// The messages at port 0, where a stream enters.
    entering: VecDeque<Box<Message<B>>>,
    /// The messages at the other ports, to which the pipelines inside a scope send their results.
    returning: VecDeque<Box<Message<B>>>,
}

impl<B> Inbox<B> {
    fn new() -> Self {
        Inbox { entering: VecDeque::new(), returning: VecDeque::new() }
    }

    fn next(&self) -> Option<&Message<B>> {
        self.returning.front().or_else(|| self.entering.front()).map(|message| &**message)
    }

    fn is_idle(&self) -> bool {
        self.entering.is_empty() && self.returning.is_empty()
    }

    fn len(&self) -> usize {
        self.entering.len() + self.returning.len()
    }
}

/// The inboxes of operators with successive numbers.
pub(crate) struct Queues<B> {
    /// The number of the first of these operators.
    first: OpId,
    inboxes: Vec<Inbox<B>>,
    /// A bit for each operator, from the first one on: set if its inbox is not idle.
    ready: Vec<u64>,
    /// A bit for each operator of a scope: set if a message that came back from its scope waits.
    returned: Vec<u64>,
}

impl<B> Queues<B> {
    /// Empty inboxes of `count` operators.
    pub fn new(first: OpId, count: usize) -> Self {
        Queues {
            first,
            inboxes: (0..count).map(|_| Inbox::new()).collect(),
            ready: vec![0; count.div_ceil(64)],
            returned: vec![0; count.div_ceil(64)],
        }
    }

    /// The inbox of an operator, and the word and bit of its flags.
    #[inline(always)]
    fn at(&self, operator: OpId) -> (usize, usize, u64) {
        let at = usize::from(operator - self.first);
        (at, at / 64, 1 << (at % 64))
    }

    /// Returns true if no message waits.
    pub fn is_idle(&self) -> bool {
        self.inboxes.iter().all(Inbox::is_idle)
    }

    /// Returns true if no message waits at an operator.
    #[inline(always)]
    pub fn is_idle_at(&self, operator: OpId) -> bool {
        self.inboxes[self.at(operator).0].is_idle()
    }

    /// Adds a message. `returns` says that it comes back to the operator of a scope.
    #[inline(always)]
    pub fn push_back(&mut self, message: Box<Message<B>>, returns: bool) {
        let (at, word, bit) = self.at(message.operator);
        if returns {
            self.returned[word] |= bit;
        }
        let inbox = &mut self.inboxes[at];
        // A stream enters an operator at port 0; the messages that a scope sends back arrive at the others.
        if message.port == 0 {
            inbox.entering.push_back(message);
        } else {
            inbox.returning.push_back(message);
        }
        self.ready[word] |= bit;
    }

    /// Puts a message back before all others of its operator and kind. `returns` says that it comes back to the
    /// operator of a scope; `enters`, that it waits like a message that enters.
    pub fn push_front(&mut self, message: Box<Message<B>>, returns: bool, enters: bool) {
        let (at, word, bit) = self.at(message.operator);
        if returns {
            self.returned[word] |= bit;
        }
        let inbox = &mut self.inboxes[at];
        if enters {
            inbox.entering.push_front(message);
        } else {
            inbox.returning.push_front(message);
        }
        self.ready[word] |= bit;
    }

    /// Takes the next message of an operator. [`Queues::update`] follows after the operator's call.
    #[inline(always)]
    pub fn pop(&mut self, operator: OpId) -> Option<Box<Message<B>>> {
        let at = self.at(operator).0;
        let inbox = &mut self.inboxes[at];
        inbox.returning.pop_front().or_else(|| inbox.entering.pop_front())
    }

    /// Updates the bits of an operator.
    #[inline(always)]
    pub fn update(&mut self, operator: OpId) {
        let (at, word, bit) = self.at(operator);
        let inbox = &self.inboxes[at];
        if inbox.is_idle() {
            self.ready[word] &= !bit;
        } else {
            self.ready[word] |= bit;
        }
        if inbox.returning.is_empty() {
            self.returned[word] &= !bit;
        }
    }

    /// Returns the highest operator of a scope to which a message has come back.
    #[inline(always)]
    pub fn returned(&self) -> Option<OpId> {
        Some(self.first + highest(&self.returned)?)
    }

    /// Returns true if a message that came back from the scope of an operator waits at it.
    pub fn has_returned(&self, operator: OpId) -> bool {
        let (_, word, bit) = self.at(operator);
        self.returned[word] & bit != 0
    }

    /// Makes a message with a hold the next one of its operator, which is the highest with such a message. Returns the
    /// operator.
    pub fn bring_held_forward(&mut self) -> Option<OpId> {
        self.inboxes.iter_mut().enumerate().rev().find_map(|(at, inbox)| {
            let take = |queue: &mut VecDeque<Box<Message<B>>>| {
                let at = queue.iter().position(|message| message.hold.is_some())?;
                queue.remove(at)
            };
            let message = take(&mut inbox.returning).or_else(|| take(&mut inbox.entering))?;
            inbox.returning.push_front(message);
            Some(self.first + at as OpId)
        })
    }

    /// Returns the operator with a message that has the highest number.
    #[inline(always)]
    pub fn highest_ready(&self) -> Option<OpId> {
        Some(self.first + highest(&self.ready)?)
    }

    /// Returns the operator with a message that goes first.
    pub fn next(&self, inside: Inside) -> Option<OpId> {
        let at = match inside {
            Inside::Dfs => highest(&self.ready),
            Inside::Bfs => lowest(&self.ready),
            Inside::Fifo => {
                let arrivals = self.inboxes.iter().enumerate().filter_map(|(at, i)| Some((i.next()?.arrival, at)));
                arrivals.min().map(|(_, at)| at as OpId)
            }
        };
        Some(self.first + at?)
    }

    /// Returns when the first message of an operator arrived.
    pub fn arrival(&self, operator: OpId) -> Option<u64> {
        self.inboxes[self.at(operator).0].next().map(|message| message.arrival)
    }

    /// Returns the lowest of these operators at which batches wait that may be shared, and how many.
    pub fn lowest_waiting(&self, operators: &[bool]) -> Option<(OpId, usize)> {
        let waiting = |inbox: &Inbox<B>| inbox.entering.iter().filter(|message| message.is_shareable()).count();
        let mut all = operators.iter().zip(&self.inboxes).enumerate().filter(|(_, (is_one, _))| **is_one);
        all.find_map(|(at, (_, inbox))| match waiting(inbox) {
            0 => None,
            count => Some((at as OpId, count)),
        })
    }

    /// Returns true if a message waits beside `count` messages that enter an operator.
    pub fn has_work_beside(&self, operator: OpId, count: usize) -> bool {
        let inbox = &self.inboxes[self.at(operator).0];
        self.ready.iter().map(|word| word.count_ones()).sum::<u32>() > 1
            || inbox.entering.len() > count
            || !inbox.returning.is_empty()
    }

    /// Takes the oldest batches that may be shared out of an operator's inbox, `count` of them.
    pub fn take_oldest(&mut self, operator: OpId, count: usize) -> Vec<Box<Message<B>>> {
        let mut taken = Vec::with_capacity(count);
        let at = self.at(operator).0;
        let queue = std::mem::take(&mut self.inboxes[at].entering);
        for message in queue {
            if taken.len() < count && message.is_shareable() {
                taken.push(message);
            } else {
                self.inboxes[at].entering.push_back(message);
            }
        }
        self.update(operator);
        taken
    }

    /// Cuts the first batch that enters an operator in two with `cut`, which returns rows after the one at hand. They
    /// stay first. The batch goes to the end of the queue, but before the end of its group, and before each message of
    /// its group for which `comes_after` returns true, given the batch and the message (FLOW-45).
    pub fn step_aside(
        &mut self,
        operator: OpId,
        cut: impl FnOnce(&mut Message<B>) -> Result<Option<Box<Message<B>>>>,
        comes_after: impl Fn(&Message<B>, &Message<B>) -> bool,
    ) -> Result<()> {
        let at = self.at(operator).0;
        let queue = &mut self.inboxes[at].entering;
        let Some(mut heavy) = queue.pop_front() else { return Ok(()) };
        let Some(others) = cut(&mut heavy)? else {
            queue.push_front(heavy);
            return Ok(());
        };
        let is_end = |message: &Message<B>| !message.is_data() && !mutation::is_set(Mutation::HeavyRowGoesAfterEnd);
        let stays_after = |message: &Message<B>| is_end(message) || comes_after(&heavy, message);
        let next = queue.iter().position(|message| message.group == heavy.group && stays_after(message));
        queue.insert(next.unwrap_or(queue.len()), heavy);
        queue.push_front(others);
        Ok(())
    }

    /// Returns the oldest batch that enters an operator and may be shared.
    pub fn oldest(&mut self, operator: OpId) -> Option<&mut Message<B>> {
        let at = self.at(operator).0;
        self.inboxes[at].entering.iter_mut().find(|message| message.is_shareable()).map(|message| &mut **message)
    }

    /// Returns the first batch of a group that a helper has opened, at the lowest operator at which one waits.
    pub fn lowest_of_helper(&self) -> Option<&Message<B>> {
        let is_of_helper = |message: &Message<B>| message.is_data() && message.group.is_of_helper();
        let first = |inbox: &'_ Inbox<B>| inbox.entering.iter().position(|message| is_of_helper(message));
        self.inboxes.iter().find_map(|inbox| first(inbox).map(|at| &*inbox.entering[at]))
    }

    /// Takes all messages, in ascending order of their operators.
    pub fn take_all(&mut self) -> Vec<Box<Message<B>>> {
        let mut all = Vec::new();
        for inbox in &mut self.inboxes {
            all.extend(inbox.entering.drain(..).chain(inbox.returning.drain(..)));
        }
        self.ready.fill(0);
        self.returned.fill(0);
        all
    }

    /// Calls `change` with the messages that wait at an operator, and removes those for which it returns false. Returns
    /// the number of removed ones.
    pub fn retain(&mut self, operator: OpId, mut change: impl FnMut(&mut Message<B>) -> bool) -> usize {
        let Some(at) = operator.checked_sub(self.first).map(usize::from).filter(|at| *at < self.inboxes.len()) else {
            return 0;
        };
        let inbox = &mut self.inboxes[at];
        let before = inbox.len();
        if before == 0 {
            return 0;
        }
        inbox.entering.retain_mut(|message| change(message));
        inbox.returning.retain_mut(|message| change(message));
        let removed = before - inbox.len();
        self.update(operator);
        removed
    }
}

/// Returns the highest number in a set of bits.
#[inline(always)]
fn highest(bits: &[u64]) -> Option<OpId> {
    let word = bits.iter().rposition(|word| *word != 0)?;
    let bit = 63 - bits[word].leading_zeros() as usize;
    Some((word * 64 + bit) as OpId)
}

/// Returns the lowest number in a set of bits.
fn lowest(bits: &[u64]) -> Option<OpId> {
    let word = bits.iter().position(|word| *word != 0)?;
    Some((word * 64 + bits[word].trailing_zeros() as usize) as OpId)
}

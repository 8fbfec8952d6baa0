//! The tickets of a run whose view may be late ([`mangrove_graph::LateReads`]), and the messages that wait for them.
//!
//! Before each step of a message, the runtime asks the operator what the step will read, and the view for that. If it
//! is not at hand, the message is *parked* here until the view completes its ticket. If the run has used up its credit,
//! or the view has no room, the message is *refused* and waits until the run may ask again.
//!
//! ```text
//!          begin            submitted                      complete
//!  (free) ──────► Asking ─────────────► Parked ───────────────────────────► back to its inbox, with a hold
//!    ▲              │  └─ complete ─► Completed ── submitted ─► goes on at once
//!    └── withdraw ──┘                   Parked ── cancelled ─► forgotten
//! ```
//!
//! - **FLOW-30.** A ticket is completed at most once: its generation ends with it. A completion of a ticket that was
//!   completed, withdrawn or forgotten changes nothing.
//! - **FLOW-31.** A step is taken only while its message has a hold for what the step reads. A hold serves one step.
//! - **FLOW-32.** A refused message goes back as soon as the run may ask again: after a completion, after a ticket was
//!   forgotten, or after the view has said that it has room. Each of these begins a *round*. A message that asked in an
//!   earlier round than the current one is not refused, so none waits beside room.
//! - **FLOW-33.** While a message waits at an operator whose messages must keep their order, or a message was refused at
//!   home, the home calls neither that operator nor one with a lower number. Two kinds of messages still go on: those
//!   that return to the operator of a scope, and, if the home has nothing else to do, those with a hold. The view may
//!   wait for the memory of the hold.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};

use mangrove_graph::{Hold, Result, Ticket};

use crate::control::Charge;
use crate::mutation::{self, Mutation};

/// The reads that a run may have under way. It asks for more only while it is below both numbers, so the last message
/// may exceed them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadCredit {
    /// Reads.
    pub reads: u32,
    /// Bytes that they bring.
    pub bytes: u64,
}

/// The part of a query's memory limit that its reads may bring at a time: one in so many.
const MEMORY_SHARE: u64 = 4;

impl ReadCredit {
    /// The credit of a query with this memory limit.
    pub(crate) fn of(memory_limit: u64) -> Self {
        ReadCredit { reads: 4_096, bytes: memory_limit / MEMORY_SHARE }
    }
}

/// What a message has been promised: a hold, for whose bytes the query is charged.
#[derive(Debug)]
pub(crate) struct Held {
    pub _hold: Hold,
    pub _charge: Charge,
}

/// The tickets of a run, and what waits. `P` is a message that waits, with what it needs to go on.
pub(crate) struct Lot<P> {
    run: u64,
    slots: Vec<Slot<P>>,
    free: Vec<u32>,
    refused: VecDeque<P>,
    /// Counts the moments at which the run may ask again (FLOW-32).
    round: u64,
    under_way: ReadCredit,
}

struct Slot<P> {
    generation: u32,
    state: State<P>,
}

enum State<P> {
    Free,
    /// The view is being asked.
    Asking,
    /// The ticket was completed before the message was parked.
    Completed(Result<Hold>),
    Parked {
        entry: P,
        cost: ReadCredit,
    },
}

/// The effect of a completion.
pub(crate) enum Completed<P> {
    /// This message goes on.
    Back(P, Result<Hold>),
    /// The message is not parked yet.
    Early,
    /// Nothing waits for it (FLOW-30).
    Ignored(Result<Hold>),
}

/// Runs with late reads that this process has begun: their numbers tell tickets apart.
static RUNS: AtomicU64 = AtomicU64::new(0);

impl<P> Lot<P> {
    pub fn new() -> Self {
        Lot {
            run: RUNS.fetch_add(1, Ordering::Relaxed),
            slots: Vec::new(),
            free: Vec::new(),
            refused: VecDeque::new(),
            round: 0,
            under_way: ReadCredit { reads: 0, bytes: 0 },
        }
    }

    /// Returns the current round (FLOW-32).
    pub fn round(&self) -> u64 {
        self.round
    }

    /// Returns a ticket to ask with; `None` if the credit is used up. A run without a read under way gets one whatever
    /// its credit is.
    pub fn begin(&mut self, credit: ReadCredit) -> Option<Ticket> {
        let ReadCredit { reads, bytes } = self.under_way;
        if reads > 0 && (reads >= credit.reads || bytes >= credit.bytes) {
            return None;
        }
        let number = match self.free.pop() {
            Some(number) => number,
            None => {
                self.slots.push(Slot { generation: 0, state: State::Free });
                (self.slots.len() - 1) as u32
            }
        };
        let slot = &mut self.slots[number as usize];
        slot.state = State::Asking;
        Some(Ticket { run: self.run, number, generation: slot.generation })
    }

    /// Ends a ticket: its position may be used again, under another generation (FLOW-30).
    fn end(&mut self, number: u32) -> State<P> {
        let slot = &mut self.slots[number as usize];
        slot.generation = slot.generation.wrapping_add(1);
        self.free.push(number);
        std::mem::replace(&mut slot.state, State::Free)
    }

    /// The view has answered without a read: the ticket is not used.
    pub fn withdraw(&mut self, ticket: Ticket) {
        self.end(ticket.number);
    }

    /// Parks a message under its ticket. If the ticket is completed already, returns the message: it goes on.
    pub fn park(&mut self, ticket: Ticket, entry: P, reads: u32, bytes: u64) -> Option<(P, Result<Hold>)> {
        let is_early = matches!(self.slots[ticket.number as usize].state, State::Completed(_));
        if is_early && !mutation::is_set(Mutation::EarlyCompletionIsLost) {
            return match self.end(ticket.number) {
                State::Completed(outcome) => Some((entry, outcome)),
                _ => None,
            };
        }
        // A read counts as one even if the view says that it is none: `begin` asks whether any is under way.
        let cost = ReadCredit { reads: reads.max(1), bytes };
        self.under_way.reads = self.under_way.reads.saturating_add(cost.reads);
        self.under_way.bytes = self.under_way.bytes.saturating_add(cost.bytes);
        self.slots[ticket.number as usize].state = State::Parked { entry, cost };
        None
    }

    /// Completes a ticket.
    pub fn complete(&mut self, ticket: Ticket, outcome: Result<Hold>) -> Completed<P> {
        let Some(slot) = self.slots.get_mut(ticket.number as usize) else { return Completed::Ignored(outcome) };
        let is_current = slot.generation == ticket.generation || mutation::is_set(Mutation::LateCompletionIsHeeded);
        match &slot.state {
            State::Asking if is_current => {
                slot.state = State::Completed(outcome);
                Completed::Early
            }
            State::Parked { .. } if is_current => match self.end_parked(ticket.number) {
                Some(entry) => Completed::Back(entry, outcome),
                None => Completed::Ignored(outcome),
            },
            _ => Completed::Ignored(outcome),
        }
    }

    /// Ends the ticket of a parked message and returns the message. The run may ask again (FLOW-32).
    fn end_parked(&mut self, number: u32) -> Option<P> {
        let State::Parked { entry, cost } = self.end(number) else { return None };
        self.under_way.reads = self.under_way.reads.saturating_sub(cost.reads);
        self.under_way.bytes = self.under_way.bytes.saturating_sub(cost.bytes);
        self.round += 1;
        Some(entry)
    }

    /// Keeps a message that asked in this round until the run may ask again. Returns it if the run may already (FLOW-32).
    pub fn refuse(&mut self, entry: P, round: u64) -> Option<P> {
        if round != self.round && !mutation::is_set(Mutation::RoundIsIgnored) {
            return Some(entry);
        }
        self.refused.push_back(entry);
        None
    }

    /// The view has room: the run may ask again.
    pub fn has_room(&mut self) {
        self.round += 1;
    }

    /// Takes the messages that were refused, to be put back.
    pub fn take_refused(&mut self) -> VecDeque<P> {
        if mutation::is_set(Mutation::RefusedIsKept) {
            return VecDeque::new();
        }
        std::mem::take(&mut self.refused)
    }

    /// Forgets the parked messages for which `is_over` returns true. Returns them with their tickets.
    pub fn forget(&mut self, mut is_over: impl FnMut(&mut P) -> bool) -> Vec<(Ticket, P)> {
        let mut forgotten = Vec::new();
        for number in 0..self.slots.len() as u32 {
            let Slot { generation, state } = &mut self.slots[number as usize];
            let ticket = Ticket { run: self.run, number, generation: *generation };
            if let State::Parked { entry, .. } = state
                && is_over(entry)
                && let Some(entry) = self.end_parked(number)
            {
                forgotten.push((ticket, entry));
            }
        }
        forgotten
    }

    /// Forgets everything: the run is over. Returns the tickets that were not completed, what waited, and the outcomes
    /// of reads whose message was not parked because the run failed first.
    pub fn clear(&mut self) -> (Vec<Ticket>, Vec<P>, Vec<Result<Hold>>) {
        let (mut tickets, mut entries): (Vec<_>, Vec<_>) = self.forget(|_| true).into_iter().unzip();
        entries.extend(self.refused.drain(..));
        let mut outcomes = Vec::new();
        for number in 0..self.slots.len() as u32 {
            let Slot { generation, state } = &self.slots[number as usize];
            let ticket = Ticket { run: self.run, number, generation: *generation };
            match state {
                State::Free | State::Parked { .. } => continue,
                State::Asking => tickets.push(ticket),
                State::Completed(_) => {}
            }
            if let State::Completed(outcome) = self.end(number) {
                outcomes.push(outcome);
            }
        }
        (tickets, entries, outcomes)
    }
}

#[cfg(test)]
mod tests {
    use mangrove_graph::Error;

    use super::*;

    const CREDIT: ReadCredit = ReadCredit { reads: 10, bytes: 100 };

    fn hold() -> Result<Hold> {
        Ok(Hold::nothing())
    }

    #[test]
    fn a_ticket_is_completed_once() {
        let mut lot = Lot::new();
        let ticket = lot.begin(CREDIT).unwrap();
        assert!(lot.park(ticket, 'a', 1, 1).is_none());
        assert!(matches!(lot.complete(ticket, Err(Error::invalid("no"))), Completed::Back('a', Err(_))));
        assert!(matches!(lot.complete(ticket, hold()), Completed::Ignored(Ok(_))), "completed twice");
        let next = lot.begin(CREDIT).unwrap();
        assert_eq!(next.number, ticket.number, "the position is used again");
        assert!(matches!(lot.complete(ticket, hold()), Completed::Ignored(_)), "an earlier generation");
        assert!(lot.park(next, 'b', 1, 1).is_none());
        assert!(matches!(lot.complete(next, hold()), Completed::Back('b', Ok(_))));
    }

    #[test]
    fn a_completion_may_come_before_its_message_is_parked() {
        let mut lot = Lot::new();
        let ticket = lot.begin(CREDIT).unwrap();
        assert!(matches!(lot.complete(ticket, hold()), Completed::Early));
        assert!(matches!(lot.complete(ticket, hold()), Completed::Ignored(_)));
        assert!(matches!(lot.park(ticket, 'a', 9, 9), Some(('a', Ok(_)))));
        // The run fails between the read and the parking.
        let early = lot.begin(CREDIT).unwrap();
        assert!(matches!(lot.complete(early, hold()), Completed::Early));
        let (tickets, _, outcomes) = lot.clear();
        assert_eq!((tickets.len(), outcomes.len()), (0, 1));
        assert!(matches!(lot.complete(early, hold()), Completed::Ignored(_)));
        let unused = lot.begin(CREDIT).unwrap();
        lot.withdraw(unused);
        assert!(matches!(lot.complete(unused, hold()), Completed::Ignored(_)));
    }

    #[test]
    fn credit_comes_back_with_completed_and_forgotten_tickets() {
        let mut lot = Lot::new();
        let (first, second) = (lot.begin(CREDIT).unwrap(), lot.begin(CREDIT).unwrap());
        assert!(lot.park(first, 'a', 9, 1).is_none());
        assert!(lot.park(second, 'b', 1, 1).is_none());
        assert!(lot.begin(CREDIT).is_none(), "ten reads are under way");
        let round = lot.round();
        assert!(lot.refuse('c', round).is_none());
        assert!(matches!(lot.complete(first, hold()), Completed::Back('a', _)));
        assert_eq!(lot.take_refused(), ['c']);
        assert_eq!(lot.refuse('c', round), Some('c'), "it asked before the completion");
        let third = lot.begin(CREDIT).unwrap();
        let (tickets, left, _) = lot.clear();
        assert_eq!((&tickets[..], &left[..]), (&[second, third][..], &['b'][..]), "asked for, and not parked");
        assert!(matches!(lot.complete(second, hold()), Completed::Ignored(_)), "forgotten");
        // A single need above the credit is read alone.
        let large = lot.begin(CREDIT).unwrap();
        assert!(lot.park(large, 'd', 1, 1_000).is_none());
        assert!(lot.begin(CREDIT).is_none());
    }
}

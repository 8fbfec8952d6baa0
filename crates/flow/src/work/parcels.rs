//! The part of a thread's work that is shared with the other threads of an open run: parcels, and what helpers send home.

use std::sync::Arc;

use mangrove_graph::{Error, Result};

use super::Work;
use crate::any_operator::AnyOperator;
use crate::batch::Batch;
use crate::board::{Board, Homebound, Parcel, Token};
use crate::cancel::Groups;
use crate::control::QueryControl;
use crate::cursor::{Cursor, Step};
use crate::group::GroupId;
use crate::local::Local;
use crate::message::{Body, Message};
use crate::mutation::{self, Mutation};
use crate::operator::{Output, WeakState};
use crate::router::charge;
use crate::sharing::Sharers;
use crate::stats::{OperatorStats, ScopeCounts};
use crate::topology::{OpId, Topology};

impl<B: Batch> Work<B> {
    /// The work of a helper.
    pub fn helping(
        topology: Arc<Topology>,
        operators: Vec<AnyOperator<B>>,
        context: Arc<Option<B::Context>>,
        local: Local,
        timed: bool,
    ) -> Self {
        let mut work = Work { context, timed, ..Work::new(0, 1, topology, operators) };
        work.router.local = Some(local);
        work.router.groups = Groups::of_helper();
        work
    }

    /// On a helper: begins the run at the operators that it uses. They join the states of the home's operators.
    pub fn begin_local(&mut self, states: &[Option<WeakState>]) -> Result<()> {
        let Some(context) = &*self.context else { return Err(Error::bug("a run has begun before it is open")) };
        let is_used = |at: usize| self.router.local.as_ref().is_some_and(|local| local.uses(at));
        for (at, (operator, state)) in self.operators.iter_mut().zip(states).enumerate() {
            if is_used(at) {
                operator.begin(context)?;
            }
            // A state is gone if the run is over.
            if let Some(state) = state.as_ref().and_then(WeakState::upgrade)
                && !mutation::is_set(Mutation::ReplicaDoesNotJoin)
            {
                operator.join(&state);
            }
        }
        Ok(())
    }

    /// Lets passing operators send what they hold: all of them, or those whose rows gain nothing by waiting. Returns
    /// true if messages wait then.
    pub fn flush(&mut self, all: bool, control: &Arc<QueryControl>) -> Result<bool> {
        if mutation::is_set(Mutation::PassingOperatorKeepsRows) {
            return Ok(false);
        }
        for id in 0..self.operators.len() as OpId {
            let operator = &self.operators[id as usize];
            if let AnyOperator::Stateful(passing) = operator
                && passing.is_passing()
                && (all || !operator.keeps_rows())
            {
                let flush = |operator: &mut AnyOperator<B>, out: &mut Output<'_, B>| {
                    operator.flush(out)?;
                    Ok(Step::Done)
                };
                let _done = self.call(id, control, flush)?;
            }
        }
        Ok(self.router.next_ready().is_some())
    }

    /// Returns true if a passing operator holds rows that gain by waiting for more.
    pub fn keeps_rows(&self) -> bool {
        self.operators.iter().any(AnyOperator::keeps_rows)
    }

    /// On a helper: hands its counts over to the board.
    pub fn account(&mut self, board: &Board<B>, nanos: u64) {
        let router = &mut self.router;
        let scopes = ScopeCounts {
            opened: router.groups.take_opened_count(),
            tags_cancelled: std::mem::take(&mut router.tags_cancelled),
            set_apart: std::mem::take(&mut router.set_apart),
        };
        board.account(nanos, scopes, &self.own_stats());
        self.stats.fill(OperatorStats::default());
        self.router.rows_out.fill(0);
    }

    /// On a helper: replaces what it knows of the cancellations of its parcel's group (FLOW-40).
    pub fn adopt(&mut self, board: &Board<B>, group: GroupId, control: &Arc<QueryControl>) {
        self.router.groups.adopt(group, board.cancellations(group));
        if self.router.groups.has_fresh() {
            self.carry_out_cancellations(control);
        }
    }

    /// On the home: a helper has failed at this operator.
    pub fn fail_at(&mut self, operator: Option<OpId>) {
        self.failed = operator;
    }

    /// On a helper: the operator whose error ended its work.
    pub fn failed(&self) -> Option<OpId> {
        self.failed
    }

    /// On the home: receives what helpers have sent, and shares work if another thread has none.
    pub fn meet_helpers(&mut self, control: &Arc<QueryControl>) -> Result<()> {
        let Some(sharing) = &self.sharing else { return Ok(()) };
        let board = sharing.board();
        let is_quiet = !board.has_arrivals() && !board.has_idle_thread();
        if is_quiet && self.next_callable().is_some() {
            return Ok(());
        }
        let Some(sharing) = &self.sharing else { return Ok(()) };
        let board = sharing.board().clone();
        if board.has_arrivals() {
            for arrival in board.receive() {
                match arrival {
                    Homebound::Message(message) => self.router.accept_shared(message),
                    Homebound::Failed(error, operator) => {
                        self.fail_at(operator);
                        return Err(error);
                    }
                    Homebound::Done(token) => {
                        let ends = self.sharing.as_mut().map(|sharing| sharing.is_back(token)).unwrap_or_default();
                        ends.into_iter().try_for_each(|end| self.end_goes_on(end, control))?;
                    }
                    Homebound::Back(parked, hold) => self.come_back(*parked, hold, control)?,
                }
            }
        }
        if self.next_callable().is_none() {
            // The home works off itself what no helper has taken.
            if let Some(Parcel { token, message, .. }) = board.take_back() {
                // Before an end that waits in the inbox: it must not overtake the message when the token is closed.
                let is_part = matches!(message.body, Body::Part { .. });
                self.router.bring_before_all(message, control)?;
                // A part counts until it is worked off ([`Work::take_part`]).
                if !is_part || mutation::is_set(Mutation::PartTakenBackIsDone) {
                    board.worked_off(token, 1);
                }
            }
        } else if board.has_idle_thread()
            && let Some(sharing) = &self.sharing
        {
            let sharers = sharing.sharers().clone();
            self.share(&board, &sharers, None, control)?;
        }
        Ok(())
    }

    /// Offers about half of the messages that wait at the lowest of these operators: work that is nearest to the source
    /// has the most to follow. On a helper, they belong to the token of its parcel.
    pub fn share(
        &mut self,
        board: &Board<B>,
        sharers: &Sharers,
        token: Option<Token>,
        control: &Arc<QueryControl>,
    ) -> Result<()> {
        let Some((operator, count)) = self.router.queues.lowest_waiting(&sharers.stealable) else { return Ok(()) };
        let mut messages = if count > 1 {
            self.router.queues.take_oldest(operator, count / 2)
        } else {
            self.split_oldest(operator, sharers, control)?.into_iter().collect()
        };
        if messages.is_empty() && (sharers.shares_all || self.router.has_work_beside(operator, count)) {
            messages = self.router.queues.take_oldest(operator, count);
        }
        if messages.is_empty() {
            return Ok(());
        }
        let parcels = self.parcels_of(messages, token);
        if let Some(sharing) = &mut self.sharing {
            sharing.are_away(parcels.iter().map(|parcel| parcel.token));
        }
        board.offer(parcels);
        Ok(())
    }

    /// On a helper with nothing to share: sends instances of a group that it has opened home, where threads share their work
    /// (FLOW-50). These are the later half of those that the first message has not begun. Returns true if some went.
    pub fn send_instances_home(&mut self, sharers: &Sharers, control: &Arc<QueryControl>) -> Result<bool> {
        let Some(message) = self.router.queues.lowest_of_helper() else { return Ok(false) };
        let Message { group, body: Body::Data { batch: Some(rows), .. }, cursor, .. } = message else {
            return Ok(false);
        };
        // As in a message that is cut in two: after a step that did not finish it, each row has much to follow.
        let (at, rows_min) = if cursor.is_start() { (0, sharers.split_rows_min()) } else { (cursor.row as usize, 1) };
        if rows.rows() <= at + rows_min {
            return Ok(false);
        }
        let begun = rows.tag(at);
        let mut tags: Vec<u32> = (at + 1..rows.rows()).map(|row| rows.tag(row)).filter(|tag| *tag != begun).collect();
        tags.dedup();
        let later = tags.split_off(tags.len() / 2);
        let group = *group;
        let Some(scope) = self.router.groups.scope(group).filter(|_| !later.is_empty()) else { return Ok(false) };
        let mut have_gone = false;
        let _done = self.call(scope, control, |operator, out| {
            if let AnyOperator::Stateful(operator) = operator {
                have_gone = operator.send_instances_home(group, &later, out)?;
            }
            Ok(Step::Done)
        })?;
        Ok(have_gone)
    }

    /// Makes parcels of messages. On a helper, they belong to the token of its own parcel.
    fn parcels_of(&self, messages: Vec<Box<Message<B>>>, token: Option<Token>) -> Vec<Parcel<B>> {
        let parcel = |message: Box<Message<B>>| {
            let own = Token { operator: message.operator, group: message.group };
            Parcel { token: token.unwrap_or(own), message }
        };
        messages.into_iter().map(parcel).collect()
    }

    /// On a helper: makes parcels of all its messages, in ascending order of their operators.
    pub fn parcels_of_all(&mut self, token: Token, control: &Arc<QueryControl>) -> Result<Vec<Parcel<B>>> {
        let messages = self.router.take_all(control)?;
        Ok(self.parcels_of(messages, Some(token)))
    }

    /// Cuts the oldest batch that waits at an operator in two. Returns the second part, charged.
    fn split_oldest(
        &mut self,
        operator: OpId,
        sharers: &Sharers,
        control: &Arc<QueryControl>,
    ) -> Result<Option<Box<Message<B>>>> {
        let Some(context) = &*self.context else { return Ok(None) };
        let Some(message) = self.router.queues.oldest(operator) else { return Ok(None) };
        let Message { port, group, body, cursor, .. } = message;
        let (port, group) = (*port, *group);
        let Body::Data { batch: Some(input), charged } = body else { return Ok(None) };
        let held = *charged + cursor.bytes();
        // A message that takes more than one step has few rows with much to follow.
        let rows_min = if cursor.is_start() { sharers.split_rows_min() } else { 1 };
        let Some(part) = self.operators[operator as usize].split(input, cursor, rows_min, context)? else {
            return Ok(None);
        };
        // FLOW-13: each part is charged for itself.
        *charged = input.bytes() as u64;
        let left = *charged + cursor.bytes();
        control.release(held);
        control.charge(left)?;
        let mut second = self.router.message(operator, port, group, Body::data(part.batch));
        second.cursor = part.cursor;
        charge(&mut second, control)?;
        control.charge(second.cursor.bytes())?;
        Ok(Some(second))
    }

    /// On a helper: shortens what it has gathered for the home ([`crate::Operator::combine`]), and charges it (FLOW-22).
    pub fn combine_homebound(&mut self, control: &Arc<QueryControl>) -> Result<()> {
        let context = self.context.clone();
        let Some(context) = &*context else { return Err(Error::bug("a helper has the context during its turn")) };
        let Work { operators, router, asking, .. } = self;
        for message in &mut router.homebound {
            let Message { operator, port, body, .. } = &mut **message;
            let operator = &mut operators[*operator as usize];
            if let Body::Data { batch, .. } = body
                && let Some(whole) = batch.take()
            {
                // What may be late is read at home, where the message can wait for it.
                let is_late = asking.is_some()
                    && !operator.needs(*port, &whole, &Cursor::default(), context, control)?.is_nothing();
                *batch = Some(if is_late { whole } else { operator.combine(*port, whole, context, control)? });
            }
            charge(message, control)?;
        }
        Ok(())
    }
}

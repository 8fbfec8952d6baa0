//! A message: a batch, or the end of a group, on its way to an operator.

use crate::cursor::Cursor;
use crate::group::GroupId;
use crate::lane_order::LaneNumber;
use crate::late::Held;
use crate::mutation::{self, Mutation};
use crate::topology::OpId;

/// A message on its way along an edge. Messages are boxed: they are large, and move several times.
pub(crate) struct Message<B> {
    /// The receiver.
    pub operator: OpId,
    /// The port of the receiver.
    pub port: u8,
    pub group: GroupId,
    pub body: Body<B>,
    /// How far the receiver has worked it off.
    pub cursor: Cursor,
    /// In a lane: its place in the order of arrival.
    pub arrival: u64,
    /// What was read for its next step, in a run with late reads (FLOW-31).
    pub hold: Option<Box<Held>>,
}

impl<B> Message<B> {
    /// A message of which nothing is worked off.
    pub fn new(operator: OpId, port: u8, group: GroupId, body: Body<B>) -> Self {
        Message { operator, port, group, body, cursor: Cursor::default(), arrival: 0, hold: None }
    }

    /// Returns true if it is a batch that another thread may work off: its group is not one of a helper (FLOW-50).
    pub fn is_shareable(&self) -> bool {
        self.is_data() && (!self.group.is_of_helper() || mutation::is_set(Mutation::GroupsOfHelpersAreShared))
    }

    /// Returns true if it is a batch.
    pub fn is_data(&self) -> bool {
        matches!(self.body, Body::Data { .. })
    }
}

/// The content of a message.
pub(crate) enum Body<B> {
    /// A batch (`None` once it is worked off), and the bytes that the query is charged for it while it waits (FLOW-13);
    /// 0 before it has waited.
    Data { batch: Option<B>, charged: u64 },
    /// The end-of-stream of a sender for the group: how many messages it sent here (FLOW-12), and how many instances
    /// the group had (FLOW-5).
    End { messages: u64, instances: u32 },
    /// The end of a group of which the operator has worked off a part. It is never sent.
    Closing { instances: u32 },
    /// A part of the end of the group `ended`, which any thread may work off (FLOW-49). The cursor holds it. The group of
    /// the message is that of the rows that it sends. At home it waits in the lane of the end.
    Part { ended: GroupId, lane: LaneNumber },
}

impl<B> Body<B> {
    /// A batch that is not charged yet.
    pub fn data(batch: B) -> Self {
        Body::Data { batch: Some(batch), charged: 0 }
    }
}

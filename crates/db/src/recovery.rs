//! What recovery found, for graphs in directories and in homes alike.

use mangrove_durable::log::read::{LogEnd, TornTail};
use mangrove_durable::recovery::RecoverySummary;
use mangrove_durable::stream::tails::StreamsEnd;

/// What was read of the log when a graph was recovered.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LogRead {
    /// Bytes.
    pub bytes: u64,
    /// The torn end of a log in a directory, if it was torn.
    pub torn: Option<TornTail>,
}

/// The result of the recovery of a graph, in numbers.
pub type Recovery = RecoverySummary<LogRead>;

/// The result of a recovery, with what is told about its log.
pub(crate) fn of_summary<E>(summary: &RecoverySummary<E>) -> Recovery
where
    for<'a> &'a E: Into<LogRead>,
{
    summary.with_log((&summary.log).into())
}

impl From<&LogEnd> for LogRead {
    fn from(end: &LogEnd) -> Self {
        LogRead { bytes: end.bytes, torn: end.torn.clone() }
    }
}

impl From<&StreamsEnd> for LogRead {
    fn from(end: &StreamsEnd) -> Self {
        LogRead { bytes: end.bytes, torn: None }
    }
}

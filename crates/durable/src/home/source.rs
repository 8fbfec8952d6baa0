//! [`ByteSource`]: bytes of an object that are made while the object is put, so that a large one is never in memory whole.

use std::fmt::Debug;

use bytes::Bytes;

use super::HomeResult;

/// A source of the bytes of one object, piece by piece.
pub trait ByteSource: Send + Debug {
    /// The next piece, of any length; `None` after the last one.
    ///
    /// If it fails, nothing is put under the name. An error should be of kind
    /// [`Source`](super::HomeErrorKind::Source). The caller is a thread on which this may take its time.
    fn next_piece(&mut self) -> HomeResult<Option<Bytes>>;
}

/// All bytes as one piece.
impl ByteSource for Bytes {
    fn next_piece(&mut self) -> HomeResult<Option<Bytes>> {
        Ok(if self.is_empty() { None } else { Some(std::mem::take(self)) })
    }
}

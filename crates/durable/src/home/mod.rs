//! Homes: where the objects of a durable graph are kept, be it a directory, memory, or a bucket of an object store.
//!
//! An *object* is bytes under a [`Name`]. It is written once, whole, and never changed. A [`Home`] keeps these promises,
//! and all code above relies on them; the module `contract` tests them on every home:
//!
//! - **HOME-1.** *Put if absent.* Of all [`Request::PutNew`] of one name, at most one succeeds, whichever processes
//!   send them. The others are answered [`Put::Taken`]. A reader sees all bytes of an object, or no object.
//! - **HOME-2.** *Read after write.* After a put or delete was answered, every later read and list shows its effect.
//! - **HOME-3.** *Durable.* If [`HomeTraits::is_durable`] is true, an object survives a power cut once its put was
//!   answered, and once a read, a list or [`Put::Taken`] showed it.
//! - **HOME-4.** *Answered once.* Each request calls its completion exactly once, also if the home is dropped before.
//! - **HOME-5.** *Honest about doubt.* An error of any kind but [`HomeErrorKind::Unknown`] means that the request
//!   changed nothing and will change nothing. [`Request::Delete`] and [`Request::PutUnique`] are exceptions, which
//!   callers simply send again: some names may be deleted, and the object may be there.
//!
//! Not promised: any order among requests under way, any order of a list, and any protection of a name that two callers
//! give to [`Request::PutUnique`].
//!
//! | module | content |
//! |---|---|
//! | [`name`](Name) | names, checked |
//! | [`error`](HomeError) | what can fail, and what it says about the request |
//! | [`source`](ByteSource) | bytes that are made while they are put |
//! | [`wait`](WaitHome) | a typed method for each request, which waits for the answer |
//! | [`memory`](MemoryHome) | a home in memory |
//! | [`disk`](DiskHome) | a home in a directory |
//! | `workers` | threads for requests that wait for a disk |
//! | `object` | a home in a bucket of an object store; with the feature `s3` |
//! | [`counting`], [`delay`] | another home, counted by kind of request; another home, as slow as a network |
//! | [`url`] | the homes that a text names |
//! | [`settle`] | whose object has a name, after lost answers |
//! | `draw` | random draws from a seed |
//! | `contract` | the promises as tests |

#[cfg(test)]
pub(crate) mod contract;
pub mod counting;
pub mod delay;
mod disk;
mod draw;
mod error;
mod memory;
mod name;
#[cfg(feature = "s3")]
pub mod object;
pub mod settle;
mod source;
pub mod url;
mod wait;
mod workers;

use std::fmt::Debug;
use std::ops::Range;

use bytes::Bytes;

pub use disk::DiskHome;
pub use error::{HomeError, HomeErrorKind};
pub use memory::MemoryHome;
pub use name::{NAME_BYTES_MAX, Name, PART_BYTES_MAX};
pub use source::ByteSource;
pub use wait::WaitHome;

/// The result of a request.
pub type HomeResult<T> = Result<T, HomeError>;

/// What a home calls with the answer of a request.
///
/// It runs on a thread of the home, or on the caller's before [`Home::submit`] returns. So it neither waits nor panics,
/// and the caller of `submit` holds no lock that the completion takes.
pub type Completion = Box<dyn FnOnce(HomeResult<Reply>) + Send>;

/// A keeper of objects, with the promises in the header of its module.
pub trait Home: Send + Sync + Debug {
    /// Hands over a request. `done` is called with the answer.
    fn submit(&self, request: Request, done: Completion);

    /// A name as its user would write it, for messages: a path or a URL. `""` is the home itself.
    fn describe(&self, name: &str) -> String;

    /// What its callers may rely on, and what its requests cost.
    fn traits(&self) -> HomeTraits;
}

/// Properties in which homes differ.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HomeTraits {
    /// True if objects survive the end of the process, and power cuts (HOME-3).
    pub is_durable: bool,
    /// Two ranges with at most this many bytes between them are read faster as one range.
    pub gap_bytes: u64,
}

/// A request to a home.
#[derive(Debug)]
pub enum Request {
    /// Puts an object if the name is free (HOME-1). The answer is [`Reply::Put`].
    ///
    /// Neither `Taken` nor an error of kind `Unknown` tells whose object has the name: see [`settle`].
    PutNew {
        /// The name.
        name: Name,
        /// All bytes of the object, at most 5 GB.
        bytes: Bytes,
    },
    /// Puts an object under a name that no other caller ever uses. The answer is [`Reply::Put`] with `Done`.
    ///
    /// After an error, the caller may put the same bytes under the same name again.
    PutUnique {
        /// The name.
        name: Name,
        /// The bytes. The home asks for them on a thread of its own choice.
        source: Box<dyn ByteSource>,
    },
    /// Reads an object. The answer is [`Reply::Object`].
    Get {
        /// The name.
        name: Name,
    },
    /// Reads ranges of an object, in bytes. The answer is [`Reply::Ranges`].
    ///
    /// Ranges may overlap and come in any order. A range that reaches beyond the end of the object is cut there. So a
    /// range that begins at the end or after it is empty.
    Ranges {
        /// The name.
        name: Name,
        /// The ranges.
        ranges: Vec<Range<u64>>,
    },
    /// Asks for the length of an object. The answer is [`Reply::Head`].
    Head {
        /// The name.
        name: Name,
    },
    /// Lists the objects in a directory, without those in directories below it. The answer is [`Reply::Names`].
    List {
        /// The directory, which need not exist.
        directory: Name,
    },
    /// Deletes objects. The answer is [`Reply::Deleted`]. Names without an object are no error.
    Delete {
        /// The names, any number of them.
        names: Vec<Name>,
    },
}

/// The answer to a request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Reply {
    /// To a put.
    Put(Put),
    /// To [`Request::Get`]: the bytes; `None` if there is no object.
    Object(Option<Bytes>),
    /// To [`Request::Ranges`]: the bytes of each range, in the order of the request; `None` if there is no object.
    Ranges(Option<Vec<Bytes>>),
    /// To [`Request::Head`]: the length in bytes; `None` if there is no object.
    Head(Option<u64>),
    /// To [`Request::List`]: the whole names, in any order, each once.
    Names(Vec<Name>),
    /// To [`Request::Delete`].
    Deleted,
}

/// How a put ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Put {
    /// The object is there.
    Done,
    /// An object of that name was there, or another put of the name is under way. It may be an earlier attempt of the
    /// same caller, whose answer was lost.
    Taken,
}

impl Request {
    /// What the request does, as an infinitive for messages.
    pub fn verb(&self) -> &'static str {
        match self {
            Request::PutNew { .. } | Request::PutUnique { .. } => "put",
            Request::Get { .. } | Request::Ranges { .. } => "read",
            Request::Head { .. } => "look at",
            Request::List { .. } => "list",
            Request::Delete { .. } => "delete",
        }
    }
}

/// The part of each range that lies in an object of a length. Fails if a range ends before it begins.
fn cut_ranges(ranges: &[Range<u64>], len: u64, object: &dyn Fn() -> String) -> HomeResult<Vec<Range<u64>>> {
    let cut = |range: &Range<u64>| {
        if range.start > range.end {
            return Err(HomeError::new(
                HomeErrorKind::Invalid,
                format!(
                    "cannot read bytes {} to {} of {}: the range ends before it begins",
                    range.start,
                    range.end,
                    object()
                ),
            ));
        }
        Ok(range.start.min(len)..range.end.min(len))
    };
    ranges.iter().map(cut).collect()
}

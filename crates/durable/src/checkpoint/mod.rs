//! Checkpoints: the graph at a snapshot, in files, so that the log before it is not needed any more.
//!
//! ```text
//! snapshot ──▶ tablet by tablet: images of the pages that changed ──▶ segment files, synced ──▶ names ──▶ manifest
//!                                                                                              └──▶ old files go
//! ```
//!
//! Writers go on meanwhile: the snapshot is registered, and pages are imaged one at a time. A tablet's state is a list of
//! files, in which the newest image of a page counts. A tablet is written whole again when less than half of the bytes of
//! its files are images that count, or when it has [`FILES_MAX`] files.
//!
//! Invariants:
//!
//! 1. A checkpoint at timestamp `S` has all commits up to `S` and nothing later: its pages are images at `S`, or older
//!    images of pages that no commit has changed since.
//! 2. All files that a manifest names, and their names, are durable before the manifest is put ([`crate::manifest`]).
//! 3. A file is removed only when neither of the newest two manifests names it, and the newest is durable. The one before
//!    is kept for who reads it just now (a backup, a verification); the log is kept for the newest only.
//! 4. What a checkpoint that did not come to its end has written is named by nobody, and removed by the next one.
//! 5. Names are taken after the last image: every number in an image has its name.
//! 6. A version that was tried is not tried again by the same process: its manifest may have been put before the failure,
//!    and then its files count.
//!
//! | module | what it holds |
//! |---|---|
//! | `page` | a page's image as bytes |
//! | `names` | names and indexes as bytes |
//! | `segment` | files of blocks with checksums |
//! | `take` | writing a checkpoint |
//! | `load` | reading one |

mod load;
mod names;
mod page;
mod segment;
mod take;

pub(crate) use load::load;
pub(crate) use names::{IMPOSSIBLE_INDEX, Indexes, is_possible, read_names};
pub(crate) use page::{put_image, read_image};
pub use segment::SEGMENT_DIR;
pub(crate) use segment::check_file;
pub use take::CheckpointReport;
pub(crate) use take::{CheckpointSnapshot, Checkpoints, clean_up};

/// So many files a tablet has at most before it is written whole again.
pub const FILES_MAX: usize = 8;

#[cfg(test)]
mod tests;

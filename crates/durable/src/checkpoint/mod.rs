//! Checkpoints: the graph at a snapshot, in files, so that the log before it is not needed.
//!
//! ```text
//! floor of the log ──▶ snapshot ──▶ tablet by tablet: images of due pages ──▶ packs ──▶ names ──▶ synced ──▶ manifest
//!                                                                                                    └──▶ remove old files
//! ```
//!
//! Writers go on meanwhile: the snapshot is registered, and pages are imaged one at a time. The images of a checkpoint go
//! into one pack, or several of a size that grows with the graph. The newest image of a page counts (`live`).
//!
//! - **LOG-20.** A checkpoint at timestamp `S` has all commits up to `S` and nothing later. Its pages are images at
//!   `S`, or older images of pages that no commit has changed since.
//! - **LOG-21.** `S` is durable in the log before the checkpoint is taken.
//! - **LOG-22.** All files that a manifest names, and their names, are durable before the manifest is.
//! - **LOG-23.** A file is removed only if neither of the newest two manifests names it, and the newest is durable. The
//!   older one is kept for a reader that is using it (a backup, a verification). The log is kept for the newest only. A home
//!   keeps more (LOG-80).
//! - **LOG-24.** A checkpoint that fails leaves the last one as it was. No manifest names its files, and the next
//!   checkpoint removes them. Its version is not used again by this process, because its manifest may have been written
//!   before the failure, and then its files count.
//! - **LOG-62.** In a home, a manifest whose put failed is put again, with the same bytes, before any other one. So an
//!   owner never leaves out a number: of two processes that put the manifest after `N`, one is superseded (LOG-31).
//! - **LOG-25.** Names are taken after the last image: every number in an image has its name.
//! - **LOG-26.** No id comes back: the generation of a slot in an image is at least that of the last element committed
//!   there up to `S`, and a free slot is given away under the next one.
//!
//! | module | what it holds |
//! |---|---|
//! | `image` | a page image as bytes |
//! | `compress` | compression of parts of files |
//! | `indexes` | writing the runs of look-up indexes with a checkpoint |
//! | `look_up` | reading look-up indexes by ranges |
//! | `names` | names, indexes and schema rules as bytes |
//! | `pack` | packs: blocks of several tablets with checksums |
//! | `live` | which blocks count, and which packs are written anew |
//! | `place` | where checkpoints are: a directory or a home |
//! | `home` | checkpoints in a home: packs and manifests as objects |
//! | `floor` | from where on a checkpoint needs the log |
//! | `columns` | writing open columns with a checkpoint |
//! | `series` | the packs that a checkpoint writes |
//! | `topology` | writing topology blocks and their deltas with a checkpoint |
//! | `take` | writing a checkpoint |
//! | `load` | loading one |
//! | `adopt` | going on with one that a follower has not loaded |

mod adopt;
mod columns;
mod compress;
mod floor;
pub(crate) mod home;
mod image;
mod indexes;
mod live;
mod load;
mod look_up;
mod names;
mod pack;
pub(crate) mod place;
mod series;
mod take;
mod topology;

pub(crate) use adopt::PackDirectories;
pub(crate) use compress::Compression;
pub(crate) use floor::CheckpointFloor;
pub(crate) use image::{ImageReader, ImageWriter, read_image_of_version_1};
pub(crate) use load::{each_topology, load, load_catalog, with_statistics};
pub(crate) use look_up::LookUps;
pub(crate) use names::{IMPOSSIBLE_INDEX, Indexes, is_possible, read_names};
pub use pack::{BlockEntry, list_blocks};
pub(crate) use pack::{check_directory, check_pack, list_blocks_in};
pub use take::{CheckpointForms, CheckpointReport};
pub(crate) use take::{CheckpointSnapshot, Checkpoints, clean_up};

#[cfg(test)]
mod tests;

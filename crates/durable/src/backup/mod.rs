//! Backups: states of a graph, copied to another home.
//!
//! ```text
//! pack/…, log/…      as in the home of the graph: what any backup needs
//! backup/database    the database whose backups they are
//! backup/N.json      a backup: its manifest, its parts of streams, its moment
//! pin/ID             a backup, restore or collection that is under way
//! ```
//!
//! A backup pins the state at its source, copies what no earlier backup has, and is put last. Objects never change, so a
//! name that an earlier backup has is not copied again: a second backup copies what was written since the first.
//!
//! - **LOG-87.** A backup that exists is whole: everything that it names was copied before it was put.
//! - **LOG-88.** A home has backups of one database, because packs of two may have the same name.
//! - **LOG-89.** No collection runs while a backup or a restore uses the home. Each side puts its pin first and then lists
//!   the others: one of the two sees the other. A collection that sees a pin leaves everything for the next one; a backup
//!   waits for a collection. A collection that was paused for longer than its pin deletes nothing more.
//!
//! | module | what it holds |
//! |---|---|
//! | `entry` | a backup as text |
//! | `collect` | the deletion of old backups |

mod collect;
mod entry;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use mangrove_graph::{Error, ErrorKind, Result};
use uuid::Uuid;

use crate::ambient::unix_us;
use crate::checkpoint::home::patiently;
use crate::disk::Disk;
use crate::extract::copy::{Origin, copy_object, copy_pack, side_by_side};
use crate::extract::directory;
use crate::extract::find::{Found, Span, Stretch, walk};
use crate::extract::streams::StreamCopy;
use crate::extract::{Location, Moment, find_in_home, shown};
use crate::home::{Home, Name, Put, WaitHome};
use crate::log::FramedRecord;
use crate::pin::{PIN_TIME, Pin, PinOptions, list_pins};
use crate::stream::clock;
use crate::stream::names::stream_name;

pub use entry::Backup;

/// The directory of backups.
pub const BACKUPS: &str = "backup";
/// The object that names the database.
const DATABASE: &str = "backup/database";
/// What a pin of a collection says that it is for.
const COLLECTION: &str = "collection";
/// How long a backup sleeps between two looks whether a collection is over.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// The options of a backup.
#[derive(Clone, Copy, Debug)]
pub struct BackupOptions {
    /// How long a request is sent again while a home does not answer.
    pub patience: Duration,
    /// Deletes all backups but the newest so many, this one included; `None`: none is deleted.
    pub keep: Option<u64>,
}

impl Default for BackupOptions {
    fn default() -> Self {
        BackupOptions { patience: Duration::from_secs(30), keep: None }
    }
}

/// The result of a backup, in numbers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BackupReport {
    /// The backup.
    pub backup: Backup,
    /// Packs and objects of streams that were copied, because no earlier backup has them.
    pub copied: u64,
    /// Their bytes.
    pub copied_bytes: u64,
    /// Backups that were deleted.
    pub deleted: u64,
    /// Why none was deleted, although `keep` says so: what else uses the home.
    pub not_deleted: Option<String>,
}

/// Copies the newest state of a graph into a home of backups. A home may have an owner meanwhile; a directory may not.
///
/// # Errors
///
/// `NotFound` if there is no graph. `InvalidArgument` if the target has backups of another database, or is the home of a
/// graph. If an object is damaged or missing, which the error names.
pub fn backup(from: &Location, to: &Arc<dyn Home>, options: BackupOptions) -> Result<BackupReport> {
    let patience = options.patience;
    match from {
        Location::Home(home) => {
            let began_us = unix_us();
            let (found, mut pin) = find_in_home(home, Moment::Newest, "backup", patience)?;
            copy_state(&Origin::of_home(home.clone(), patience), found, began_us, Some(&mut pin), to, options)
        }
        Location::Directory(disk) => {
            let began_us = unix_us();
            let found = directory::find(disk, Moment::Newest)?;
            copy_state(&Origin::of_disk(disk.clone()), found, began_us, None, to, options)
        }
    }
}

/// Copies a state that the caller keeps from being changed. It has everything that was durable before `began_us`.
pub(crate) fn copy_state(
    origin: &Origin,
    mut found: Found,
    began_us: u64,
    mut source_pin: Option<&mut Pin>,
    to: &Arc<dyn Home>,
    options: BackupOptions,
) -> Result<BackupReport> {
    let patience = options.patience;
    let mut pin = hold(to, "backup", patience)?;
    claim(&**to, found.manifest.database, patience)?;
    let earlier = list_backups(&**to, patience)?;
    let (mut copied, mut copied_bytes) = (0, 0);
    let known: BTreeMap<String, u32> =
        earlier.iter().flat_map(|backup| backup.packs()).map(|pack| (pack.path(), pack.crc32c)).collect();
    let mut new = Vec::new();
    for pack in &found.manifest.packs {
        match known.get(&pack.path()) {
            None => new.push(pack),
            Some(crc) if *crc == pack.crc32c => {}
            // LOG-88: the database was copied as files, and both copies were written to.
            Some(_) => return Err(forked(&**to, &pack.path())),
        }
    }
    let copy = |pack: &&crate::manifest::ManifestPack| copy_pack(origin, pack, &**to, patience);
    copied += new.len() as u64;
    let pins = source_pin.as_deref_mut().into_iter().chain([&mut pin]).collect();
    copied_bytes += side_by_side(&new, pins, copy)?;
    if let Some(disk) = origin.disk() {
        let known: Vec<Span> = earlier.iter().flat_map(|backup| backup.spans()).copied().collect();
        if let Some((span, objects, bytes)) = copy_log(disk, &found, &known, &**to, patience)? {
            found.spans.push(span);
            (copied, copied_bytes) = (copied + objects, copied_bytes + bytes);
        }
    } else if let Some(from) = origin.home() {
        let has: BTreeSet<(u64, u64)> =
            earlier.iter().flat_map(|backup| backup.spans()).flat_map(|span| span.places()).collect();
        let places = found.spans.iter().flat_map(Span::places).filter(|place| !has.contains(place));
        let names: Vec<String> = places.map(|(incarnation, seq)| stream_name(incarnation, seq)).collect();
        let copy = |name: &String| copy_object(&**from, name, &**to, patience);
        let pins = source_pin.into_iter().chain([&mut pin]).collect();
        copied_bytes += side_by_side(&names, pins, copy)?;
        copied += names.len() as u64;
    }
    // LOG-87.
    let number = earlier.last().map_or(0, |backup| backup.number);
    let backup = put_backup(&**to, Backup::of(found, number + 1, began_us), patience)?;
    drop(pin);
    let mut report = BackupReport { backup, copied, copied_bytes, deleted: 0, not_deleted: None };
    if let Some(keep) = options.keep {
        let collected = collect::keep_newest(to, keep.max(1), patience)?;
        (report.deleted, report.not_deleted) = collected;
    }
    Ok(report)
}

/// Copies the log of a directory as objects of a stream. Returns the stream with the objects and bytes that were copied: none
/// if an earlier backup has the same stream. The checksum of its last header covers all before it.
fn copy_log(
    disk: &Arc<dyn Disk>,
    found: &Found,
    known: &[Span],
    to: &dyn Home,
    patience: Duration,
) -> Result<Option<(Span, u64, u64)>> {
    let manifest = &found.manifest;
    let write = |to: Option<&dyn Home>| -> Result<Option<(Span, u64, u64)>> {
        let mut stream = StreamCopy::begin(to, manifest.database, manifest.epoch(), patience);
        if found.has_log {
            let mut add = |us: u64, records: &[FramedRecord]| stream.add(us, records);
            directory::read_until(&**disk, manifest, Moment::Newest, &mut add)?;
        }
        Ok(stream.finish()?.map(|span| (span, stream.objects, stream.bytes)))
    };
    match write(None)? {
        Some((span, _, _)) if known.contains(&span) => Ok(Some((span, 0, 0))),
        Some(_) => write(Some(to)),
        None => Ok(None),
    }
}

/// Puts a backup under the first free number from its own on.
fn put_backup(to: &dyn Home, mut backup: Backup, patience: Duration) -> Result<Backup> {
    loop {
        let (name, bytes) = (Name::new(&backup.name())?, backup.text());
        // If an answer was lost, this process may put the backup twice, under two numbers, which does no harm.
        match patiently(patience, || to.put_new(&name, bytes.clone()))? {
            Put::Done => return Ok(backup),
            Put::Taken => backup.number += 1,
        }
    }
}

/// Makes a home one of backups of a database (LOG-88).
fn claim(to: &dyn Home, database: Uuid, patience: Duration) -> Result<()> {
    let numbers = crate::states::manifest_numbers(to, patience)?;
    if !numbers.is_empty() {
        return Err(Error::invalid(format!(
            "{} is the home of a graph: name another place for backups",
            to.describe("")
        )));
    }
    let name = Name::new(DATABASE)?;
    let text = Bytes::from(database.to_string());
    loop {
        patiently(patience, || to.put_new(&name, text.clone()))?;
        // Taken by an earlier backup, or by this one.
        match patiently(patience, || to.get(&name))? {
            Some(found) if found == text => return Ok(()),
            Some(found) => {
                let found = String::from_utf8_lossy(&found).into_owned();
                let message = format!(
                    "{} has backups of database {found}, and this is database {database}: name another place",
                    to.describe("")
                );
                return Err(Error::invalid(message));
            }
            None => {}
        }
    }
}

/// Checks that a home of backups says the database of a backup.
pub(crate) fn check_database(home: &dyn Home, backup: &Backup, patience: Duration) -> Result<()> {
    let name = Name::new(DATABASE)?;
    let found = patiently(patience, || home.get(&name))?.unwrap_or_default();
    match found == backup.database().to_string() {
        true => Ok(()),
        false => {
            let what =
                format!("backup {} is of database {}, and this names another one", backup.number, backup.database());
            Err(crate::damage::damaged_in(&home.describe(DATABASE), 0, what))
        }
    }
}

fn forked(to: &dyn Home, path: &str) -> Error {
    let message = format!(
        "{} is another file than {path} of this database: the database was copied by hand, and both copies were written \
         to. Name another place for the backups of this copy",
        to.describe(path)
    );
    Error::invalid(message)
}

/// Pins a home of backups, and waits for a collection that is under way (LOG-89).
pub(crate) fn hold(home: &Arc<dyn Home>, what: &'static str, patience: Duration) -> Result<Pin> {
    let pin = Pin::mark(home.clone(), PinOptions::of(what, patience))?;
    let until_us = clock::now().us.saturating_add((PIN_TIME + patience).as_micros() as u64);
    while list_pins(&**home, patience)?.iter().any(|pin| pin.what == COLLECTION) {
        if clock::now().us > until_us {
            let message = format!("{} has been deleting old backups for too long; try again later", home.describe(""));
            return Err(Error::new(ErrorKind::Io, message));
        }
        std::thread::sleep(LOOK_EVERY);
    }
    Ok(pin)
}

/// The backups in a home, oldest first.
///
/// # Errors
///
/// If the home fails, or if a backup is damaged, which the error names.
pub fn list_backups(home: &dyn Home, patience: Duration) -> Result<Vec<Backup>> {
    let directory = Name::new(BACKUPS)?;
    let listed = patiently(patience, || home.list(&directory))?;
    let numbers: BTreeSet<u64> = listed.iter().filter_map(|name| Backup::number_of(name.as_str())).collect();
    let mut backups = Vec::with_capacity(numbers.len());
    for number in numbers {
        let name = Backup::name_of(number);
        let place = Name::new(&name)?;
        // One that was deleted since it was listed is none.
        if let Some(bytes) = patiently(patience, || home.get(&place))? {
            backups.push(Backup::of_text(&bytes, number, &home.describe(&name))?);
        }
    }
    Ok(backups)
}

/// Finds a moment in the backups of a home.
pub(crate) fn find(home: &dyn Home, moment: Moment, patience: Duration) -> Result<Found> {
    let backups = list_backups(home, patience)?;
    if backups.is_empty() {
        let message = format!("there is no graph and no backup in {}; check the address", home.describe(""));
        return Err(Error::new(ErrorKind::NotFound, message));
    }
    let has = |backup: &&Backup| match moment {
        Moment::Newest => true,
        Moment::Commit(commit) => (backup.checkpoint_ts()..=backup.last_ts).contains(&commit),
        Moment::Time(unix_us) => (backup.first_us()..=backup.taken_us).contains(&unix_us),
    };
    let Some(backup) = backups.iter().rfind(has) else {
        let known: Vec<String> = backups
            .iter()
            .map(|backup| {
                let (from, to) = (shown(backup.first_us().min(backup.taken_us)), shown(backup.taken_us));
                format!(
                    "{} has commits {} to {}, {from} to {to}",
                    backup.number,
                    backup.checkpoint_ts(),
                    backup.last_ts
                )
            })
            .collect();
        let message = format!("no backup in {} has that moment. Backup {}", home.describe(""), known.join("; backup "));
        return Err(Error::new(ErrorKind::NotFound, message));
    };
    let stretch = |span: &Span| Stretch {
        incarnation: span.incarnation,
        database: span.database,
        first: span.first,
        end: Some(span.end),
        end_ts: span.end_ts,
    };
    let streams: VecDeque<Stretch> = backup.spans().map(stretch).collect();
    let manifest = backup.manifest().clone();
    let base = (manifest.epoch(), manifest.checkpoint_ts());
    walk(home, streams, &mut |_| Ok(VecDeque::new()), moment, base, patience)?.into_found(home, manifest, moment)
}

#[cfg(all(test, not(feature = "model")))]
mod tests;

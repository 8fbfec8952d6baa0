//! The new database of a restore: in a home, or in a directory.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use mangrove_graph::{Error, ErrorKind, Result};
use uuid::Uuid;

use super::{RestoreOptions, RestoreReport};
use crate::ambient::draw_uuid;
use crate::checkpoint::home::patiently;
use crate::codec::Reader;
use crate::disk::Disk;
use crate::extract::copy::{Origin, copy_object, copy_pack, side_by_side};
use crate::extract::directory::read_until;
use crate::extract::find::Found;
use crate::extract::streams::{StreamCopy, end_stream};
use crate::extract::{Location, Moment};
use crate::home::{Home, Name, WaitHome};
use crate::log::record::read_record;
use crate::log::{FramedRecord, LogBefore, LogRewrite, remains};
use crate::manifest::{CHECKPOINT_DIR, FIRST_CHECKPOINT_DIR, MANIFEST_DIR, Manifest, ManifestWal};
use crate::pin::Pin;
use crate::stream::format::{Content, open};
use crate::stream::manifest_put::ManifestOutcome;
use crate::stream::names::{MANIFESTS, NODES, node_name};
use crate::stream::take_over::put_manifest;

/// Checks that a place has no database and no part of one (LOG-85).
pub(super) fn check_empty(to: &Location, patience: Duration) -> Result<()> {
    let found = match to {
        Location::Home(home) => {
            let mut found = None;
            for directory in [MANIFESTS, NODES, CHECKPOINT_DIR, crate::backup::BACKUPS] {
                let directory = Name::new(directory)?;
                found = found.or(patiently(patience, || home.list(&directory))?.first().map(Name::to_string));
            }
            found.map(|name| home.describe(&name))
        }
        Location::Directory(disk) => {
            let mut found = remains(&**disk)?;
            for directory in [MANIFEST_DIR, CHECKPOINT_DIR, FIRST_CHECKPOINT_DIR] {
                found = found.or(disk.list(directory)?.first().map(|name| format!("{directory}/{name}")));
            }
            found.map(|path| disk.describe(&path))
        }
    };
    match found {
        None => Ok(()),
        Some(path) => Err(Error::invalid(format!(
            "{} is not empty: it has {path}. Restore to an empty place; what an interrupted restore has left may be deleted",
            to.describe()
        ))),
    }
}

/// Writes a state as a new database.
pub(super) fn write(
    to: &Location,
    origin: &Origin,
    found: Found,
    pin: Option<Pin>,
    options: &RestoreOptions,
) -> Result<RestoreReport> {
    match to {
        Location::Home(home) => write_home(&**home, origin, found, pin, options),
        Location::Directory(disk) => write_directory(disk, origin, found, pin, options),
    }
}

fn write_home(
    to: &dyn Home,
    origin: &Origin,
    mut found: Found,
    mut pin: Option<Pin>,
    options: &RestoreOptions,
) -> Result<RestoreReport> {
    let patience = options.patience;
    // LOG-84. The claim is also what another restore, or an opening, finds in a home that is not whole yet (LOG-85).
    let incarnation = found.last_incarnation();
    let claim = Name::new(&node_name(incarnation))?;
    let claimed = draw_uuid();
    let put = || to.put_unique(&claim, Box::new(Bytes::copy_from_slice(claimed.as_bytes())));
    patiently(patience, put)?;
    let database = options.new_database.unwrap_or_else(draw_uuid);
    let packs = &found.manifest.packs;
    let pack_bytes = side_by_side(packs, pin.iter_mut().collect(), |pack| copy_pack(origin, pack, to, patience))?;
    let (objects, stream_bytes) = match (origin.home(), origin.disk()) {
        (Some(from), _) => {
            let names: Vec<String> = found.spans.iter().flat_map(|span| span.names()).collect();
            let copy = |name: &String| copy_object(&**from, name, to, patience);
            (names.len() as u64, side_by_side(&names, pin.iter_mut().collect(), copy)?)
        }
        (None, Some(disk)) => {
            let mut stream = StreamCopy::begin(Some(to), database, found.manifest.epoch(), patience);
            read_until(&**disk, &found.manifest, moment_of(&found), &mut |us, records| stream.add(us, records))?;
            found.spans.extend(stream.finish()?);
            (stream.objects, stream.bytes)
        }
        (None, None) => (0, 0),
    };
    for span in &found.spans {
        end_stream(to, span, found.written_us, patience)?;
    }
    let mut manifest = restored_manifest(&found, Some(database));
    let report = report(&found, &manifest, objects, pack_bytes + stream_bytes)?;
    // LOG-85.
    match put_manifest(to, manifest.version, manifest.write_object(), patience)? {
        ManifestOutcome::Counts => Ok(report),
        ManifestOutcome::Superseded => {
            let message = format!("another process has put a manifest in {} during the restore", to.describe(""));
            Err(Error::new(ErrorKind::Closed, message))
        }
    }
}

/// The moment of a state of a directory, for a second pass over its log.
fn moment_of(found: &Found) -> Moment {
    Moment::Commit(found.last_ts)
}

fn write_directory(
    to: &Arc<dyn Disk>,
    origin: &Origin,
    found: Found,
    mut pin: Option<Pin>,
    options: &RestoreOptions,
) -> Result<RestoreReport> {
    let has_first_format = found.manifest.packs.iter().any(|pack| pack.path.is_some());
    let pack_dirs = [CHECKPOINT_DIR, FIRST_CHECKPOINT_DIR];
    let pack_dirs = if has_first_format { &pack_dirs[..] } else { &pack_dirs[..1] };
    for directory in pack_dirs.iter().chain([&MANIFEST_DIR]) {
        to.create_dir(directory)?;
    }
    to.sync_dir("")?;
    let pack_bytes = side_by_side(&found.manifest.packs, pin.iter_mut().collect(), |pack| {
        let file = to.create(&pack.path())?;
        let (mut pieces, mut at) = (origin.pack(pack), 0);
        while let Some(piece) = pieces.next()? {
            file.write_at(at, &piece)?;
            at += piece.len() as u64;
        }
        file.sync_data()?;
        Ok(pack.bytes)
    })?;
    for directory in pack_dirs {
        to.sync_dir(directory)?;
    }
    let mut manifest = restored_manifest(&found, options.new_database);
    manifest.streams.clear();
    manifest.wal = Some(ManifestWal { first_segment: 1, before: Some(LogBefore { next_batch: 1, last_ts: 0 }) });
    let mut log = LogRewrite::begin(to.clone(), manifest.database, manifest.epoch())?;
    let (mut batches, mut log_bytes) = (0, 0);
    let mut write = |us: u64, records: &[FramedRecord]| {
        batches += 1;
        log_bytes += records.iter().map(|record| record.bytes.len() as u64).sum::<u64>();
        log.write(us, records)
    };
    match (origin.home(), origin.disk()) {
        (Some(from), _) => read_spans(&**from, &found, pin.as_mut(), options.patience, &mut write)?,
        (None, Some(disk)) => {
            read_until(&**disk, &found.manifest, moment_of(&found), &mut write)?;
        }
        (None, None) => {}
    }
    let report = report(&found, &manifest, batches, pack_bytes + log_bytes)?;
    // LOG-85.
    manifest.put(&**to)?;
    Ok(report)
}

/// Reads the records of the objects of a state, without commits that do not count.
fn read_spans(
    from: &dyn Home,
    found: &Found,
    mut pin: Option<&mut Pin>,
    patience: Duration,
    each: &mut dyn FnMut(u64, &[FramedRecord]) -> Result<()>,
) -> Result<()> {
    for span in &found.spans {
        for name in span.names() {
            if let Some(pin) = pin.as_mut() {
                pin.renew()?;
            }
            let place = Name::new(&name)?;
            let bytes = patiently(patience, || from.get(&place))?;
            let shown = from.describe(&name);
            let missing = || crate::damage::damaged_in(&shown, 0, "the object is missing, and its stream goes on");
            let bytes = bytes.ok_or_else(missing)?;
            let (header, payload) = open(&bytes).map_err(|error| error.of(&shown))?;
            if !matches!(header.content, Content::Records(_)) {
                return Err(crate::damage::damaged_in(&shown, 64, "expected records, found the end of the stream"));
            }
            let records = payload.records().map_err(|error| error.of(&shown))?;
            let mut framed = Vec::new();
            let mut reader = Reader::new(&records);
            while !reader.is_at_end() {
                let malformed = |malformed: crate::codec::Malformed| {
                    crate::damage::damaged_in(&shown, payload.offset(), format_args!("a record with {malformed}"))
                };
                let record = FramedRecord::of(&read_record(reader.bytes().map_err(malformed)?).map_err(malformed)?);
                let counts = |ts: u64| span.end_ts.is_none_or(|end_ts| ts <= end_ts);
                if record.commit.is_none_or(counts) {
                    framed.push(record);
                }
            }
            if !framed.is_empty() {
                each(header.cut_us, &framed)?;
            }
        }
    }
    Ok(())
}

/// The first manifest of the database that a state becomes.
fn restored_manifest(found: &Found, database: Option<Uuid>) -> Manifest {
    let mut manifest = Manifest::first_in_home(database.unwrap_or_else(draw_uuid), found.manifest.tablet_count);
    found.put_into(&mut manifest);
    manifest
}

fn report(found: &Found, manifest: &Manifest, objects: u64, bytes: u64) -> Result<RestoreReport> {
    let origin = manifest.origin.ok_or_else(|| Error::bug("a restored manifest has no origin"))?;
    Ok(RestoreReport {
        database: manifest.database,
        origin,
        written_us: found.written_us,
        packs: manifest.packs.len() as u64,
        objects,
        bytes,
    })
}

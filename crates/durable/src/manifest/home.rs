//! Manifests as objects of a [`Home`], named as in [`crate::stream::names`].

use bytes::Bytes;
use mangrove_graph::Result;
use uuid::Uuid;

use super::text::Unreadable;
use super::{Manifest, ManifestStream};
use crate::home::Home;
use crate::stream::fence::{ListedStream, ManifestView, Manifests};
use crate::stream::names::manifest_name;

impl Manifest {
    /// The first manifest of a new database in a home.
    pub(crate) fn first_in_home(database: Uuid, tablet_count: u16) -> Self {
        Manifest { wal: None, ..Manifest::first(database, tablet_count) }
    }

    /// The manifest as an object. Its checksum is noted, for the manifests that are made from it.
    pub(crate) fn write_object(&mut self) -> Bytes {
        let (checksum, text) = self.to_text();
        self.checksum = Some(checksum);
        text.into()
    }

    /// Reads the object of the manifest with a number.
    pub(crate) fn of_object(home: &dyn Home, number: u64, bytes: &[u8]) -> Result<Self> {
        let read = Manifest::of_text(bytes, number).and_then(|manifest| match manifest.wal {
            None => Ok(manifest),
            Some(_) => Err(Unreadable::Damaged(0, "it names the log of a directory".to_owned())),
        });
        read.map_err(|unreadable| unreadable.of(&home.describe(&manifest_name(number))))
    }
}

/// The layout of manifests, for the take-over of a graph in a home, which errors name.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HomeManifests<'a> {
    pub(crate) home: &'a dyn Home,
}

impl ManifestStream {
    /// The stream, as take-overs and followers know it.
    pub(crate) fn listed(&self) -> ListedStream {
        ListedStream {
            incarnation: self.incarnation,
            floor: self.first,
            end: self.end,
            end_ts: self.end_ts,
            database: self.database,
        }
    }
}

impl Manifests for HomeManifests<'_> {
    fn view(&self, number: u64, manifest: &[u8]) -> Result<ManifestView> {
        let manifest = Manifest::of_object(self.home, number, manifest)?;
        let streams = manifest.streams.iter().map(ManifestStream::listed).collect();
        Ok(ManifestView { database: manifest.database, owner: manifest.epoch(), streams })
    }

    fn claim(&self, number: u64, parent: &[u8], incarnation: u64) -> Result<Vec<u8>> {
        let parent = Manifest::of_object(self.home, number, parent)?;
        let mut next = parent.next(number + 1);
        // LOG-80: how long states are kept is decided with the next checkpoint.
        next.kept_from = parent.kept_from;
        next.claim(incarnation);
        next.streams.push(ManifestStream { incarnation, first: 1, end: None, end_ts: None, database: None });
        Ok(next.write_object().into())
    }
}

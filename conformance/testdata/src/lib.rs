//! What tests run on: data sets, unpacked where a program can read them, and numbers of random cases.
//!
//! The archives live outside the project, in `../shared/data` beside its root (see the README there for what
//! each holds). [`dataset`] unpacks one into `target/testdata` the first time it is asked for and returns
//! its folder. Where the archives are absent it returns `None`, and a test says so and passes: the project
//! must build and test from a bare checkout. TinkerPop's graphs can be had there, too: `tinkerpop.sh` fetches them from
//! Maven, and `make test` calls it.
//!
//! Several test programs may ask at once: each unpacks into a folder of its own and renames it into place;
//! the first wins.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod cases;

use std::fs::{self, File};
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};

pub use cases::{case_count, first_seed};

/// The folder of a data set, unpacked; `None` where its archive is absent (say so and skip the test).
///
/// # Panics
///
/// When the archive is there but cannot be unpacked: a test must not pass because a disk is full.
pub fn dataset(name: &str) -> Option<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("the crate lies two folders deep");
    let target = root.join("target/testdata");
    let folder = target.join(name);
    if folder.is_dir() {
        return Some(folder);
    }
    let archives = root.join("../shared/data");
    let archive = ["tar.zst", "tar.gz"]
        .map(|extension| archives.join(format!("{name}.{extension}")))
        .into_iter()
        .find(|path| path.is_file());
    let Some(archive) = archive else {
        println!("skipped: the data set {name} is not in {}", archives.display());
        return None;
    };
    unpack(&archive, &target, &folder)
        .unwrap_or_else(|e| panic!("cannot unpack {} to {}: {e}", archive.display(), target.display()));
    Some(folder)
}

/// Unpacks an archive that holds one folder, and moves that folder into place.
fn unpack(archive: &Path, target: &Path, folder: &Path) -> io::Result<()> {
    let own = target.join(format!(".unpacking-{}-{:?}", std::process::id(), std::thread::current().id()));
    fs::create_dir_all(&own)?;
    tar::Archive::new(decompress(archive)?).unpack(&own)?;
    let name = folder.file_name().expect("the folder is named after a data set");
    let outcome = fs::rename(own.join(name), folder);
    fs::remove_dir_all(&own)?;
    match outcome {
        // Another process was faster: its folder has the same content.
        Err(_) if folder.is_dir() => Ok(()),
        outcome => outcome,
    }
}

fn decompress(archive: &Path) -> io::Result<Box<dyn Read>> {
    let file = BufReader::new(File::open(archive)?);
    if archive.extension().is_some_and(|extension| extension == "gz") {
        return Ok(Box::new(flate2::bufread::GzDecoder::new(file)));
    }
    let decoder = ruzstd::decoding::StreamingDecoder::new(file).map_err(io::Error::other)?;
    Ok(Box::new(decoder))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn archives_of_both_kinds_unpack_once() {
        for (name, file) in [("tinkerpop", "tinkerpop-modern.json"), ("ldbc_snb_sf0.003", "test-data.md")] {
            let Some(folder) = dataset(name) else { continue };
            assert!(folder.join(file).is_file(), "{name}");
            assert_eq!(dataset(name), Some(folder));
        }
    }

    #[test]
    fn an_unknown_name_is_absent() {
        assert_eq!(dataset("no-such-set"), None);
    }
}

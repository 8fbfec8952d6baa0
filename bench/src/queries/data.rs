//! The data sets of LDBC, in a directory that the client names (`--data`).
//!
//! The directory has each data set as a folder or as an archive (`ldbc_snb_sf0.1.tar.zst`). Archives are unpacked to a
//! temporary directory, which is removed at the end of the suite.

use std::path::{Path, PathBuf};

use mangrove::{Error, Result};

use crate::options::Options;
use crate::run_directory::RunDirectory;

/// LDBC's social network of scale factor 0.1, with published answers.
pub const LDBC: &str = "ldbc_snb_sf0.1";
/// The graph of LSQB at scale factor 0.1, with published counts.
pub const LSQB: &str = "lsqb_sf0.1";

/// A data set: its folder, which exists as long as this value.
pub struct DataSet {
    /// The folder.
    pub folder: PathBuf,
    _unpacked: Option<RunDirectory>,
}

/// Finds a data set. The inner result is a sentence that says why there is none.
///
/// # Errors
///
/// If the archive cannot be unpacked.
pub fn find(options: &Options, name: &str) -> Result<Result<DataSet, String>> {
    let Some(directory) = &options.queries.data else {
        return Ok(Err(format!("The data set {name} was left out, because --data names no directory that has it.")));
    };
    let folder = directory.join(name);
    if folder.is_dir() {
        return Ok(Ok(DataSet { folder, _unpacked: None }));
    }
    let temporary = RunDirectory::new(options.choices.directory.as_deref())?;
    match mangrove_testdata::unpacked(directory, name, &temporary.fresh("data")).map_err(Error::from)? {
        Some(folder) => Ok(Ok(DataSet { folder, _unpacked: Some(temporary) })),
        None => Ok(Err(absent(directory, name))),
    }
}

fn absent(directory: &Path, name: &str) -> String {
    format!("The data set {name} was left out, because {} has neither its folder nor its archive.", directory.display())
}

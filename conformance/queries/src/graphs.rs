//! The graphs on which the queries run.

use std::path::{Path, PathBuf};

use mangrove::{Database, Error, LoadOptions, Mapping, Result};
use mangrove_testdata::dataset;

/// A data set of LDBC's social network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DataSet {
    /// Scale factor 0.1: 1,528 persons, 1.5 million edges. The published answers are for this one.
    Tenth,
    /// Scale factor 0.003, with update streams of all eight kinds.
    Small,
}

impl DataSet {
    /// The name of its folder among the data sets.
    pub fn name(self) -> &'static str {
        match self {
            DataSet::Tenth => "ldbc_snb_sf0.1",
            DataSet::Small => "ldbc_snb_sf0.003",
        }
    }

    /// Its folder. If the data is missing, prints a line and returns `None`.
    pub fn folder(self) -> Option<PathBuf> {
        dataset(self.name())
    }

    /// The folder of its CSV files.
    pub fn files(self, folder: &Path) -> PathBuf {
        folder.join(match self {
            DataSet::Tenth => "data",
            DataSet::Small => "vanilla",
        })
    }
}

/// A database with the data set of this folder, and an index for each label whose ids are parameters.
///
/// # Panics
///
/// If a file does not load without rejects.
pub fn loaded(set: DataSet, folder: &Path) -> Database {
    let db = Database::in_memory();
    load_files(&db, &set.files(folder)).unwrap_or_else(|error| panic!("{}: {error}", set.name()));
    db
}

/// Loads the CSV files of LDBC's social network into an empty database, and creates the indexes.
///
/// # Errors
///
/// The error of the database, or the number of rows that it rejects.
pub fn load_files(db: &Database, files: &Path) -> Result<()> {
    let options = LoadOptions { mapping: Mapping::shipped("ldbc-snb"), ..LoadOptions::default() };
    let report = db.load(&[files.to_owned()], &options, &mut |_| {})?;
    if report.rejects > 0 {
        let message = format!("{} rows of {} do not load", report.rejects, files.display());
        return Err(Error::invalid(message));
    }
    create_indexes(db)
}

/// Creates an index for each label of LDBC's social network whose ids are parameters of queries.
///
/// # Errors
///
/// The error of the database.
pub fn create_indexes(db: &Database) -> Result<()> {
    let by_id = ["Person", "Post", "Comment", "Forum", "Tag", "Place", "Organisation"].map(|label| (label, "id"));
    for (label, key) in by_id.into_iter().chain([("Tag", "name"), ("Person", "firstName")]) {
        db.create_index(Some(label), key, false, false)?;
    }
    // A message is a post or a comment. A query that finds it by id alone does not know its label.
    db.create_index(None, "id", false, false).map(drop)
}

/// Moves the dates of all likes ten seconds into the future.
///
/// The mixed validation file of scale factor 0.1 comes from a generator run whose likes are exactly ten seconds later
/// than those in the CSV files beside it. The answers of IC7 show it; nothing else differs.
///
/// # Panics
///
/// If the database returns an error.
pub fn shift_likes(db: &Database) {
    let script = "g.withSack(10000L).E().hasLabel('likes').sack(sum).by('creationDate').property('creationDate', sack()).iterate()";
    db.query(script).and_then(mangrove::ResultStream::collect).expect("likes have dates");
}

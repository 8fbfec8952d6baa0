//! The directories of graphs that were created: what their names say.
//!
//! | name | what it is |
//! |---|---|
//! | `NAME` | a graph, whole; if it has the mark `DROPPED`, one that is dropped as soon as no request uses it |
//! | `NAME.new` | a graph that is being created, or what a failed creation has left |
//! | `NAME.dropped` | what is left of a graph |
//!
//! A graph comes and goes by a rename, which happens wholly or not at all. So a directory that has a graph's name is never
//! half of one, whenever a crash comes; directories of the other two kinds are removed at the next start. No graph has a
//! name with a dot.

use std::fs;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use mangrove_failpoint::{Point, check};
use mangrove_graph::{Error, ErrorKind, Result};

/// A file that says that the graph in its directory is dropped.
const TOMBSTONE: &str = "DROPPED";

const UNFINISHED: &str = "new";
const DROPPED: &str = "dropped";

fn failed(path: &Path, error: io::Error) -> Error {
    Error::new(ErrorKind::Io, format!("{}: {error}", path.display()))
}

fn sync(directory: &Path) -> io::Result<()> {
    fs::File::open(directory)?.sync_all()
}

/// Renames a directory, and returns when that is durable.
fn rename(from: &Path, to: &Path) -> io::Result<()> {
    fs::rename(from, to)?;
    to.parent().map_or(Ok(()), sync)
}

fn remove_if_there(directory: &Path) -> io::Result<()> {
    match fs::remove_dir_all(directory) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Where the graph of a directory is made. What an attempt before has left there is removed.
pub(crate) fn begin(directory: &Path) -> Result<PathBuf> {
    let unfinished = directory.with_extension(UNFINISHED);
    remove_if_there(&unfinished).map_err(|error| failed(&unfinished, error))?;
    Ok(unfinished)
}

/// Gives a graph that was made its name. It is closed.
pub(crate) fn finish(directory: &Path) -> Result<()> {
    check(Point::GraphCreated)?;
    let unfinished = directory.with_extension(UNFINISHED);
    rename(&unfinished, directory).map_err(|error| failed(directory, error))?;
    check(Point::GraphNamed)?;
    Ok(())
}

/// Removes what a creation that failed has left, whether it got its name or not.
pub(crate) fn give_up(directory: &Path) -> Result<()> {
    begin(directory)?;
    if directory.exists() { remove(directory) } else { Ok(()) }
}

/// Marks a graph that is open: it is removed when it is closed, or at the next start. After an error it is not marked.
pub(crate) fn mark(directory: &Path) -> Result<()> {
    let mark = directory.join(TOMBSTONE);
    let marked = check(Point::GraphDrop).and_then(|()| fs::write(&mark, "")).and_then(|()| sync(directory));
    marked.map_err(|error| {
        // One that may stay would drop at the next start what is said to be there.
        let left = match fs::remove_file(&mark) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                format!(" now; remove that file, or it is at the next start: {error}")
            }
            _ => String::new(),
        };
        Error::new(ErrorKind::Io, format!("{}: {error}; the graph is not dropped{left}", mark.display()))
    })
}

/// Removes a graph that is closed. After an error the next start tries again.
pub(crate) fn remove(directory: &Path) -> Result<()> {
    let dropped = directory.with_extension(DROPPED);
    remove_if_there(&dropped).map_err(|error| failed(&dropped, error))?;
    rename(directory, &dropped).map_err(|error| failed(directory, error))?;
    check(Point::GraphRemove).and_then(|()| fs::remove_dir_all(&dropped)).map_err(|error| failed(&dropped, error))
}

/// The directories of the graphs below a directory, which is made if it is not there. What is left of others is removed.
pub(crate) fn graphs_below(home: &Path) -> Result<Vec<PathBuf>> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(home).map_err(|error| failed(home, error))?;
    let mut graphs = Vec::new();
    for entry in fs::read_dir(home).map_err(|error| failed(home, error))? {
        let path = entry.map_err(|error| failed(home, error))?.path();
        if !path.is_dir() {
            continue;
        }
        if path.extension().is_some_and(|state| state == UNFINISHED || state == DROPPED) {
            fs::remove_dir_all(&path).map_err(|error| failed(&path, error))?;
        } else if path.join(TOMBSTONE).exists() {
            remove(&path)?;
        } else {
            graphs.push(path);
        }
    }
    graphs.sort();
    Ok(graphs)
}

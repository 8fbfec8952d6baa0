//! The directories of created graphs, and the meaning of their names.
//!
//! | name | meaning |
//! |---|---|
//! | `NAME` | a whole graph; with the mark `DROPPED`, one that is removed as soon as no request uses it |
//! | `NAME.new` | a graph that is being created, or the remains of a failed creation |
//! | `NAME.dropped` | the remains of a dropped graph |
//!
//! No graph has a name with a dot. The next start removes directories of the last two kinds.
//!
//! - **SERVER-9.** A graph comes and goes by one rename, which happens wholly or not at all. So a directory with a
//!   graph's name is never half of a graph, whenever a crash comes.

use std::fs;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use mangrove_failpoint::{Point, check};
use mangrove_graph::{Error, ErrorKind, Result};

/// The file that marks the graph in its directory as dropped.
const TOMBSTONE: &str = "DROPPED";

const UNFINISHED: &str = "new";
const DROPPED: &str = "dropped";

fn failed(path: &Path, error: io::Error) -> Error {
    Error::new(ErrorKind::Io, format!("{}: {error}", path.display()))
}

fn sync(directory: &Path) -> io::Result<()> {
    fs::File::open(directory)?.sync_all()
}

/// Renames a directory durably.
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

/// The directory in which a graph is created. Remains of an earlier attempt are removed.
pub(crate) fn begin(directory: &Path) -> Result<PathBuf> {
    let unfinished = directory.with_extension(UNFINISHED);
    remove_if_there(&unfinished).map_err(|error| failed(&unfinished, error))?;
    Ok(unfinished)
}

/// Gives a created graph its name. The graph must be closed.
pub(crate) fn finish(directory: &Path) -> Result<()> {
    check(Point::GraphCreated)?;
    let unfinished = directory.with_extension(UNFINISHED);
    // SERVER-9: the graph in `NAME.new` is whole by now.
    rename(&unfinished, directory).map_err(|error| failed(directory, error))?;
    check(Point::GraphNamed)?;
    Ok(())
}

/// Removes the remains of a failed creation, under either name.
pub(crate) fn give_up(directory: &Path) -> Result<()> {
    begin(directory)?;
    if directory.exists() { remove(directory) } else { Ok(()) }
}

/// Marks an open graph as dropped: it is removed when it is closed, or at the next start. After an error it is not
/// marked.
pub(crate) fn mark(directory: &Path) -> Result<()> {
    let mark = directory.join(TOMBSTONE);
    let marked = check(Point::GraphDrop).and_then(|()| fs::write(&mark, "")).and_then(|()| sync(directory));
    marked.map_err(|error| {
        // A mark that stayed would drop, at the next start, a graph that the administrator was told is there.
        let left = match fs::remove_file(&mark) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                format!(" now; remove that file, or it is at the next start: {error}")
            }
            _ => String::new(),
        };
        Error::new(ErrorKind::Io, format!("{}: {error}; the graph is not dropped{left}", mark.display()))
    })
}

/// Removes a closed graph. After an error the next start tries again.
pub(crate) fn remove(directory: &Path) -> Result<()> {
    let dropped = directory.with_extension(DROPPED);
    remove_if_there(&dropped).map_err(|error| failed(&dropped, error))?;
    // SERVER-9: from here on no directory has the graph's name.
    rename(directory, &dropped).map_err(|error| failed(directory, error))?;
    check(Point::GraphRemove).and_then(|()| fs::remove_dir_all(&dropped)).map_err(|error| failed(&dropped, error))
}

/// The directories of the graphs below a directory, which is created if necessary. Remains of other graphs are removed.
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

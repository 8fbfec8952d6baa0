//! What rows must carry, because some step reads it.

use std::collections::HashSet;

use crate::logical::{Configuration, Name, PathUse, SackUse, Traversal};
use crate::physical::{PathRequirement, Requirements};

/// Works out the requirements of a whole traversal. Columns cost as much as the work itself, so a path is
/// kept only where a step reads it, and only at the labels that are read where no step reads it whole.
pub fn requirements(traversal: &Traversal, configuration: &Configuration) -> Requirements {
    let mut full = path_shown(traversal, configuration) == PathRequirement::Full;
    let mut loops = false;
    let mut names: Vec<Name> = Vec::new();
    let mut read: HashSet<Name> = HashSet::new();
    let mut given: HashSet<Name> = HashSet::new();
    traversal.visit(&mut |node| {
        given.extend(node.labels.iter().cloned());
        let traits = node.step.traits();
        full |= traits.path == PathUse::Reads;
        loops |= traits.reads_loops;
        for name in traits.names_read {
            if read.insert(name.clone()) {
                names.push(name.clone());
            }
        }
    });
    // What no step is labeled with is a side effect or the key of a map: no path holds it.
    names.retain(|name| given.contains(name));
    let path = match (full, names.is_empty()) {
        (true, _) => PathRequirement::Full,
        (false, false) => PathRequirement::Labels(names),
        (false, true) => PathRequirement::None,
    };
    let sacks = configuration.sack.is_some() || traversal.any(|step| step.traits().sack == SackUse::Uses);
    let merge_sacks = configuration.sack.as_ref().and_then(|sack| sack.merge);
    Requirements { path, loops, sacks, merge_sacks, one_bulk: configuration.one_bulk, seed: configuration.seed }
}

/// Whether some step shows the objects of a path to the user: then no step's object may be skipped.
pub fn path_shown(traversal: &Traversal, configuration: &Configuration) -> PathRequirement {
    let shown = configuration.path || traversal.any(|step| step.traits().path == PathUse::Shows);
    if shown { PathRequirement::Full } else { PathRequirement::None }
}

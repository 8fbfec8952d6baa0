//! The columns that rows must carry because some step reads them.
//!
//! A column costs about as much as the work itself. So rows keep paths only if a step reads them. If no step reads
//! whole paths, rows keep only the objects under labels that are read: in a binding column if only the newest object
//! under the label is read, else in a path.

use std::collections::HashSet;

use crate::logical::{Configuration, Name, PathUse, SackUse, Traversal};
use crate::physical::{PathRequirement, Requirements};

/// Works out the requirements of a whole traversal.
pub fn requirements(traversal: &Traversal, configuration: &Configuration) -> Requirements {
    let mut full = path_shown(traversal, configuration) == PathRequirement::Full;
    let mut loops = false;
    let mut names: Vec<Name> = Vec::new();
    let mut read: HashSet<Name> = HashSet::new();
    let mut older: HashSet<Name> = HashSet::new();
    let mut given: HashSet<Name> = HashSet::new();
    traversal.visit(&mut |node| {
        given.extend(node.labels.iter().cloned());
        let traits = node.step.traits();
        full |= traits.path == PathUse::Reads;
        loops |= traits.reads_loops;
        if traits.reads_older {
            older.extend(traits.names_read.iter().copied().cloned());
        }
        for name in traits.names_read {
            if read.insert(name.clone()) {
                names.push(name.clone());
            }
        }
    });
    // A name that is no step's label stands for a side effect or the key of a map. No row holds it.
    names.retain(|name| given.contains(name));
    let (path, bindings) = if full {
        (PathRequirement::Full, Vec::new())
    } else {
        let (in_paths, bindings): (Vec<Name>, Vec<Name>) = names.into_iter().partition(|name| older.contains(name));
        let path = if in_paths.is_empty() { PathRequirement::None } else { PathRequirement::Labels(in_paths) };
        (path, bindings)
    };
    let sacks = configuration.sack.is_some() || traversal.any(|step| step.traits().sack == SackUse::Uses);
    let merge_sacks = configuration.sack.as_ref().and_then(|sack| sack.merge);
    Requirements {
        path,
        bindings,
        loops,
        sacks,
        merge_sacks,
        one_bulk: configuration.one_bulk,
        seed: configuration.seed,
    }
}

/// `Full` if a step shows whole paths. Rules must then keep the object of every step.
pub fn path_shown(traversal: &Traversal, configuration: &Configuration) -> PathRequirement {
    let shown = configuration.path || traversal.any(|step| step.traits().path == PathUse::Shows);
    if shown { PathRequirement::Full } else { PathRequirement::None }
}

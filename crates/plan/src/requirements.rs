//! The columns that rows must carry because some step reads them.
//!
//! A column costs about as much as the work itself. So rows keep paths only if a step reads them. If no step reads
//! whole paths, rows keep only the objects under labels that are read: in a binding column if only the newest object
//! under the label is read, else in a path.

use mangrove_graph::FastSet;

use crate::logical::{Configuration, Name, PathUse, SackUse, Traversal};
use crate::physical::{PathRequirement, Requirements};

/// Works out the requirements of a whole traversal.
pub fn requirements(traversal: &Traversal, configuration: &Configuration) -> Requirements {
    let mut full = configuration.path;
    let mut sacks = configuration.sack.is_some();
    let mut loops = false;
    let mut names: Vec<&Name> = Vec::new();
    let mut read: FastSet<&Name> = FastSet::default();
    let mut older: FastSet<&Name> = FastSet::default();
    let mut given: FastSet<&Name> = FastSet::default();
    traversal.visit(&mut |node| {
        given.extend(&node.labels);
        let traits = node.step.traits();
        full |= traits.path != PathUse::None;
        sacks |= traits.sack == SackUse::Uses;
        loops |= traits.reads_loops;
        if traits.reads_older {
            older.extend(traits.names_read.iter().copied());
        }
        names.extend(traits.names_read.into_iter().filter(|name| read.insert(name)));
    });
    // A name that is no step's label stands for a side effect or the key of a map. No row holds it.
    names.retain(|name| given.contains(name));
    let (path, bindings) = if full {
        (PathRequirement::Full, Vec::new())
    } else {
        let is_older = |name: &Name| older.contains(name);
        let (in_paths, bindings): (Vec<Name>, Vec<Name>) = names.into_iter().cloned().partition(is_older);
        let path = if in_paths.is_empty() { PathRequirement::None } else { PathRequirement::Labels(in_paths) };
        (path, bindings)
    };
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

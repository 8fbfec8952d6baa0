//! Checking topology blocks against the images of the same checkpoint.
//!
//! The graph is made again of the images alone, without the log, since the blocks are of the same state. Its lists come from
//! the ends of the edges, and the blocks from the lists of the graph that wrote them. So the two have nothing in common but
//! the graph.

use hashbrown::HashSet;
use mangrove_graph::Result;
use mangrove_store::Store;
use mangrove_store::lists::{ListEntry, PageLists};

use crate::checkpoint::each_topology;
use crate::checkpoint::place::Place;
use crate::damage::damaged_in;
use crate::manifest::{Manifest, ManifestTopology};

/// Checks the topology blocks that count against the graph of the images. Returns how many there are.
pub(super) fn check_topology<P: Place + ?Sized>(place: &P, manifest: &Manifest, store: &Store) -> Result<u64> {
    let of_manifest = |what: String| damaged_in(&place.describe(&Manifest::path(manifest.version)), 0, what);
    let Some(ManifestTopology { at_ts }) = manifest.topology else { return Ok(0) };
    if at_ts != manifest.checkpoint_ts() {
        let what = format!("its topology is of commit {at_ts}, and its images of {}", manifest.checkpoint_ts());
        return Err(of_manifest(what));
    }
    let (mut seen, mut count) = (HashSet::new(), 0);
    each_topology(place, manifest, &mut |reader, position, block| {
        let name = block.lists.name;
        if block.at_ts > at_ts {
            let what = format!("the topology of {name} is of commit {}, and the checkpoint of {at_ts}", block.at_ts);
            return Err(reader.damaged(position.offset, what));
        }
        // A page that no commit has written to may have a block, and no image.
        let expected = store.page_lists(name, at_ts).unwrap_or_else(|| without_vertices(&block.lists));
        if let Some(what) = difference(&expected, &block.lists) {
            return Err(
                reader.damaged(position.offset, format!("the topology of {name} contradicts the images: {what}"))
            );
        }
        seen.insert(name);
        count += 1;
        Ok(())
    })?;
    let tablets = (1..=store.tablet_count()).map(mangrove_graph::TabletId);
    let missing = tablets.flat_map(|id| store.pages_with_changed_lists(id, None)).find(|name| !seen.contains(name));
    match missing {
        Some(name) => {
            let what = format!("it says that there is topology of all pages, and none of {name} is in its packs");
            Err(of_manifest(what))
        }
        None => Ok(count),
    }
}

fn without_vertices(lists: &PageLists) -> PageLists {
    let (live, outgoing, incoming) = Default::default();
    PageLists { live, outgoing, incoming, generations: lists.generations.clone(), ..*lists }
}

/// The first difference between the lists of a page and those that a block has, as text.
fn difference(expected: &PageLists, found: &PageLists) -> Option<String> {
    let (labels, found_labels) = (expected.labels.0, found.labels.0);
    if labels != found_labels {
        return Some(format!("its vertices have label set {labels}, and not {found_labels}"));
    }
    let generation = |lists: &PageLists, at: usize| lists.generations.get(at).copied().unwrap_or(0);
    for at in 0..expected.used.max(found.used) as usize {
        let vertex = |lists: &PageLists| lists.live.contains(at).then(|| generation(lists, at));
        if vertex(expected) != vertex(found) {
            return Some(format!(
                "slot {at} has the vertex of generation {:?}, and not {:?}",
                vertex(expected),
                vertex(found)
            ));
        }
    }
    let sides = [("outgoing", &expected.outgoing, &found.outgoing), ("incoming", &expected.incoming, &found.incoming)];
    sides.into_iter().find_map(|(side, expected, found)| {
        let sorted = |entries: &[ListEntry]| {
            let mut entries = entries.to_vec();
            entries.sort_unstable();
            entries
        };
        let (expected, found) = (sorted(expected), sorted(found));
        let at = (0..expected.len().max(found.len())).find(|&at| expected.get(at) != found.get(at))?;
        Some(format!("of the {side} edges, it has {:?} in place of {:?}", found.get(at), expected.get(at)))
    })
}

#[cfg(all(test, not(feature = "model")))]
mod tests {
    use mangrove_graph::{EdgeId, ElementKind, LabelSetId, TabletId, VertexId};
    use mangrove_store::image::PageName;

    use super::*;

    #[test]
    fn every_difference_that_counts_is_found() {
        let name = PageName { tablet: TabletId(1), kind: ElementKind::Vertex, number: 0 };
        let entry = |slot| ListEntry {
            slot,
            labels: LabelSetId(3),
            neighbor: VertexId::new(TabletId(2), 5),
            edge: EdgeId::new(TabletId(1), u64::from(slot)),
        };
        let lists = PageLists {
            name,
            labels: LabelSetId(1),
            used: 3,
            generations: vec![0, 1, 0],
            live: [0, 1].into_iter().collect(),
            outgoing: vec![entry(0), entry(1)],
            incoming: vec![entry(1)],
        };
        let mut other_order = lists.clone();
        other_order.outgoing.reverse();
        // Slots without a vertex do not count, nor does their generation.
        other_order.used = 4;
        other_order.generations = vec![0, 1, 7, 0];
        assert_eq!(difference(&lists, &other_order), None);
        let changes: [&dyn Fn(&mut PageLists); 7] = [
            &|lists| lists.labels = LabelSetId(2),
            &|lists| lists.live.insert(2),
            &|lists| lists.live.remove(0),
            &|lists| lists.generations[1] = 2,
            &|lists| _ = lists.outgoing.pop(),
            &|lists| lists.incoming.push(entry(0)),
            &|lists| lists.outgoing[0].edge = EdgeId::new(TabletId(1), 9),
        ];
        for (number, change) in changes.iter().enumerate() {
            let mut other = lists.clone();
            change(&mut other);
            assert!(difference(&lists, &other).is_some(), "change {number}");
            assert!(difference(&other, &lists).is_some(), "change {number}");
        }
    }
}

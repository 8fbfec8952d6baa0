//! The lists of the vertices of a page at a snapshot, for checkpoints that write them for other readers.
//!
//! An image of a page has no lists ([`crate::image`]): a restored store makes them from the edges. Readers that do not have
//! the whole graph need them page by page. They come from the adjacency tables, so they cost no search for edges.
//!
//! The caller keeps a transaction at the snapshot, as it does for images. Which pages have other lists than before is
//! known in a store that notes it (STORE-37).

use mangrove_graph::{Direction, EdgeId, ElementKind, LabelSetId, TabletId, VertexId};
use mangrove_reclaim::{Pin, epoch};

use crate::page::{PageName, SlotSet, VertexPage};
use crate::read::view::StoreView;
use crate::store::Store;
use crate::version::Snapshot;

/// An edge in the list of one of its ends.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct ListEntry {
    /// The slot of the vertex whose list it is.
    pub slot: u16,
    /// The label set of the edge.
    pub labels: LabelSetId,
    /// The other end.
    pub neighbor: VertexId,
    /// The edge.
    pub edge: EdgeId,
}

/// The vertices of a page at a snapshot, and their lists.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PageLists {
    /// The page: one of vertices.
    pub name: PageName,
    /// The label set of its vertices.
    pub labels: LabelSetId,
    /// The number of slots, from the front, that were ever reserved.
    pub used: u32,
    /// The generation of each of the `used` slots; empty if all are in their first generation.
    pub generations: Vec<u16>,
    /// The slots with a vertex.
    pub live: SlotSet,
    /// The edges that leave a vertex, in no order.
    pub outgoing: Vec<ListEntry>,
    /// The edges whose target is the vertex, in any order.
    pub incoming: Vec<ListEntry>,
}

impl Store {
    /// The pages of vertices of a tablet of which a commit after the timestamp `since` has added or removed a vertex, or an
    /// edge of one. All of them if `since` is `None`, or if replayed commits noted no changes. Waits for large commits
    /// that snapshots see already, as [`Store::pages_changed_since`] does.
    ///
    /// `since` must be the snapshot of earlier lists of all pages.
    pub fn pages_with_changed_lists(&self, tablet: TabletId, since: Option<u64>) -> Vec<PageName> {
        let Some(found) = self.tablet(tablet) else { return Vec::new() };
        self.installing.wait();
        let since = since.filter(|_| self.notes_replayed_lists);
        let is_due = |page: &VertexPage| since.is_none_or(|since| page.lists_changed() > since);
        let due = found.vertices.numbered().filter(|(_, page)| is_due(page));
        due.map(|(number, _)| PageName { tablet, kind: ElementKind::Vertex, number: number as u32 }).collect()
    }

    /// The lists of a page of vertices at a timestamp; `None` if there is no such page. The caller keeps a transaction that
    /// reads at the timestamp.
    pub fn page_lists(&self, name: PageName, at_ts: u64) -> Option<PageLists> {
        let tablet = self.tablet(name.tablet).filter(|_| name.kind == ElementKind::Vertex)?;
        let page = tablet.vertices.get(name.number as usize)?;
        let (view, pin) = (self.view(Snapshot::committed(at_ts)), epoch::pin());
        let used = page.core.used();
        let live: SlotSet = (0..used).filter(|&at| page.core.visible_under(&pin, at, &view.snapshot)).collect();
        let generations = match page.core.is_first_generation() {
            true => Vec::new(),
            false => (0..used).map(|at| page.core.generation(at)).collect(),
        };
        let lists = |direction| {
            let mut entries = Vec::new();
            for (labels, table) in page.tables(direction).iter() {
                for at in live.iter() {
                    let entry =
                        |neighbor, edge| ListEntry { slot: at as u16, labels: LabelSetId(labels), neighbor, edge };
                    if table.descriptor(at, &pin) != 0 {
                        let list = table.list(at, &tablet.lists, &pin);
                        view.each_of_list(&list, &pin, |neighbor, edge| entries.push(entry(neighbor, edge)));
                    }
                }
            }
            entries
        };
        let (outgoing, incoming) = (lists(Direction::Out), lists(Direction::In));
        let (labels, used) = (page.core.label, used as u32);
        Some(PageLists { name, labels, used, generations, live, outgoing, incoming })
    }
}

impl StoreView<'_> {
    /// Calls `each` with the other end and the edge of every entry of a list that the snapshot sees.
    fn each_of_list(&self, list: &crate::adjacency::List<'_>, pin: &Pin, mut each: impl FnMut(VertexId, EdgeId)) {
        if list.is_clean() {
            list.cells().for_each(|(neighbor, edge)| each(neighbor, edge));
            return;
        }
        self.each_visible(pin, list.candidates(), |_, neighbor, edge| {
            each(neighbor, edge);
            true
        });
    }
}

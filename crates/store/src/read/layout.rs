//! The layout of a graph's adjacency: counts that explain how fast it can be read.
//!
//! A walk over all tables, for benchmarks and for people. The store decides nothing by it.

use mangrove_graph::Direction;
use mangrove_reclaim::epoch;

use crate::adjacency::{follow_runs, is_clean_run};
use crate::page::{PAGE_SLOTS, VertexPage};
use crate::store::Store;

/// Counts of pages, tables and lists, and of their layout in memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AdjacencyLayout {
    /// Pages of vertices.
    pub pages: u64,
    /// Vertices on these pages.
    pub vertices: u64,
    /// Adjacency tables: one for each page, direction, and label set that edges of the page have or had.
    pub tables: u64,
    /// Tables without a list, which readers pass over.
    pub empty_tables: u64,
    /// Lists that are not empty.
    pub lists: u64,
    /// Lists that are clean packed runs.
    pub packed_lists: u64,
    /// Maximal groups of clean packed runs that are adjacent in memory, in the order of their vertices.
    pub stretches: u64,
}

impl Store {
    /// Counts pages, tables and lists. Visits every list.
    pub fn adjacency_layout(&self) -> AdjacencyLayout {
        let mut layout = AdjacencyLayout::default();
        for page in self.tablets.iter().flat_map(|tablet| tablet.vertices.iter()) {
            layout.pages += 1;
            layout.vertices += page.core.live_count();
            layout.add_tables(page);
        }
        layout
    }
}

impl AdjacencyLayout {
    fn add_tables(&mut self, page: &VertexPage) {
        let (mut words, mut ends) = (Vec::new(), [0; PAGE_SLOTS as usize]);
        let pin = epoch::pin();
        for table in [Direction::Out, Direction::In].iter().flat_map(|way| page.tables(*way).iter()) {
            words.clear();
            table.1.append_words(page.core.used(), &mut words, &pin);
            self.tables += 1;
            self.empty_tables += u64::from(table.1.is_empty());
            self.lists += words.iter().filter(|word| **word != 0).count() as u64;
            self.packed_lists += words.iter().filter(|word| **word != 0 && is_clean_run(**word)).count() as u64;
            self.stretches += stretches(&words, &mut ends);
        }
    }
}

/// The number of groups of adjacent packed runs in a table.
fn stretches(words: &[u64], ends: &mut [u32]) -> u64 {
    let (mut at, mut count) = (0, 0);
    while let Some(&word) = words.get(at) {
        if word == 0 || !is_clean_run(word) {
            at += 1;
        } else {
            count += 1;
            at += follow_runs(&words[at..], ends).1;
        }
    }
    count
}

#[cfg(all(test, not(feature = "model")))]
mod tests {
    use super::*;
    use crate::{BulkLoader, StoreOptions};
    use std::sync::Arc;

    #[test]
    fn loaded_adjacency_is_one_stretch_a_table() {
        let store = Arc::new(Store::new(&StoreOptions { tablet_count: 1, ..StoreOptions::default() }));
        let [person, knows] = ["person", "knows"].map(|name| store.catalog().intern_label_text(name));
        let mut loader = BulkLoader::new(store.clone()).unwrap();
        let vertices = loader.vertices(person, 10, None, &[]).unwrap();
        let ends: Vec<_> = vertices[1..].iter().map(|&v| (v, vertices[0])).collect();
        loader.edges(knows, &ends, None, &[]).unwrap();
        loader.finish().unwrap();
        let expected = AdjacencyLayout {
            pages: 1,
            vertices: 10,
            tables: 2,
            empty_tables: 0,
            lists: 10,
            packed_lists: 10,
            stretches: 2,
        };
        assert_eq!(store.adjacency_layout(), expected);
    }
}

//! Helpers of this crate's tests: a graph with a random history, and a dump of everything that a snapshot shows of a
//! graph.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use mangrove_graph::{
    Direction, EdgeId, ElementKind, ExpandCursor, ExpandRequest, Expansion, GraphView, KeyId, LabelFilter, LabelSetId,
    PropertyRow, ScanCursor, Share, TabletId, UserId, Value, VertexId,
};
use mangrove_store::image::{PageImage, PageName, SlotSet};
use mangrove_store::{IndexOptions, Store, StoreOptions, WriteCardinality};
use mangrove_txn::{Transaction, TransactionManager};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

use crate::open::columns::{ColumnsFormat, ColumnsOrigin, ColumnsTable, WriteTable};

/// One line for each element, by kind and internal id.
pub(crate) type Dump = BTreeMap<(bool, u64), String>;

/// Everything that a snapshot shows of the graph. Panics if the adjacency is not that of the edges.
pub(crate) fn dump(view: &dyn GraphView) -> Dump {
    let (mut vertices, mut cursor) = (Vec::new(), ScanCursor::default());
    while !view.scan_vertices(&LabelFilter::Any, Share::ALL, &mut cursor, 1_000, &mut vertices).unwrap() {}
    let (mut edges, mut cursor) = (Vec::new(), ScanCursor::default());
    while !view.scan_edges(&LabelFilter::Any, Share::ALL, &mut cursor, 1_000, &mut edges).unwrap() {}
    let (mut sources, mut targets) = (Vec::new(), Vec::new());
    view.edge_ends(&edges, &mut sources, &mut targets).unwrap();
    for (direction, owners, neighbors) in [(Direction::Out, &sources, &targets), (Direction::In, &targets, &sources)] {
        let mut expected: Vec<_> = (0..edges.len()).map(|i| (owners[i], neighbors[i], edges[i])).collect();
        expected.sort_unstable();
        assert_eq!(expand(view, &vertices, direction), expected, "{direction:?}");
    }
    let mut lines = Dump::new();
    let (mut ids, mut labels, mut rows) = (Vec::new(), Vec::new(), Vec::new());
    view.vertex_user_ids(&vertices, &mut ids).unwrap();
    view.vertex_labels(&vertices, &mut labels).unwrap();
    view.vertex_properties(&vertices, None, &mut rows).unwrap();
    let texts = properties(view, vertices.len(), &rows);
    for (row, vertex) in vertices.iter().enumerate() {
        let label = view.catalog().label_set_name(labels[row]);
        lines.insert((false, vertex.to_bits()), format!("{:?} {label} {:?}", ids[row], texts[row]));
    }
    let (mut ids, mut labels, mut rows) = (Vec::new(), Vec::new(), Vec::new());
    view.edge_user_ids(&edges, &mut ids).unwrap();
    view.edge_labels(&edges, &mut labels).unwrap();
    view.edge_properties(&edges, None, &mut rows).unwrap();
    let texts = properties(view, edges.len(), &rows);
    for (row, edge) in edges.iter().enumerate() {
        let (label, ends) = (view.catalog().label_set_name(labels[row]), (sources[row], targets[row]));
        lines.insert((true, edge.to_bits()), format!("{:?} {label} {ends:?} {:?}", ids[row], texts[row]));
    }
    lines
}

fn expand(view: &dyn GraphView, vertices: &[VertexId], direction: Direction) -> Vec<(VertexId, VertexId, EdgeId)> {
    let request = ExpandRequest { direction, labels: LabelFilter::Any, edges: true, limit: 1_000 };
    let (mut out, mut cursor) = (Expansion::default(), ExpandCursor::default());
    while !view.expand(vertices, &request, &mut cursor, &mut out).unwrap() {}
    let mut cells: Vec<_> =
        (0..out.len()).map(|i| (vertices[out.row[i] as usize], out.neighbor[i], out.edge[i])).collect();
    cells.sort_unstable();
    cells
}

/// The properties of each row, by the names of their keys.
fn properties(view: &dyn GraphView, count: usize, rows: &[PropertyRow]) -> Vec<BTreeMap<String, Vec<String>>> {
    let mut out = vec![BTreeMap::<String, Vec<String>>::new(); count];
    let name = |key: KeyId| view.catalog().key_name(key).to_string();
    for row in rows {
        let meta: Vec<_> = row.meta.iter().map(|(key, value)| (name(*key), value)).collect();
        let text = format!("{} {:?} {meta:?}", row.ordinal, row.value);
        out[row.row as usize].entry(name(row.key)).or_default().push(text);
    }
    out
}

/// Everything that the graph of a manager shows now.
pub(crate) fn dump_now(manager: &TransactionManager) -> Dump {
    dump(&manager.begin_unproved_read().unwrap())
}

/// An empty graph with three tablets, two indexes, and no collector.
pub(crate) fn new_graph() -> TransactionManager {
    new_graph_with(StoreOptions::default())
}

/// The same, with other options.
pub(crate) fn new_graph_with(options: StoreOptions) -> TransactionManager {
    let store = Store::new(&StoreOptions { tablet_count: 3, ..options });
    let manager = TransactionManager::new(Arc::new(store));
    make_indexes(&manager);
    manager
}

/// Creates the two indexes, and turns the collector off.
pub(crate) fn make_indexes(manager: &TransactionManager) {
    quiet(manager);
    let catalog = manager.store().catalog();
    let keys = ["a", "b"].map(|name| catalog.intern_key(name));
    for (key, ordered) in [(keys[0], true), (keys[1], false)] {
        manager
            .create_index(&IndexOptions {
                element: ElementKind::Vertex,
                label: None,
                keys: vec![key],
                ordered,
                unique: false,
            })
            .unwrap();
    }
}

/// Turns the collector off.
pub(crate) fn quiet(manager: &TransactionManager) {
    manager.settings().gc_workers.store(0, Ordering::Relaxed);
}

/// A client that runs random transactions.
pub(crate) struct Actor {
    pub(crate) rng: SmallRng,
}

impl Actor {
    pub(crate) fn new(seed: u64) -> Self {
        Actor { rng: SmallRng::seed_from_u64(seed) }
    }

    /// Runs one transaction. Returns the result of its commit, if it was committed.
    pub(crate) fn transaction(&mut self, manager: &TransactionManager) -> Option<mangrove_graph::Result<u64>> {
        let txn = manager.begin(Default::default()).unwrap();
        for _ in 0..self.rng.random_range(1..8) {
            // A duplicate id changes nothing. There is no concurrent transaction, so no conflict.
            let _ = self.operation(&txn);
            txn.finish_statement().unwrap();
        }
        if self.rng.random_ratio(1, 8) {
            txn.rollback();
            return None;
        }
        Some(txn.commit().map(|info| info.timestamp))
    }

    fn vertex(&mut self, txn: &Transaction) -> Option<VertexId> {
        let (mut found, mut cursor) = (Vec::new(), ScanCursor::default());
        while !txn.scan_vertices(&LabelFilter::Any, Share::ALL, &mut cursor, 1_000, &mut found).unwrap() {}
        (!found.is_empty()).then(|| found[self.rng.random_range(0..found.len())])
    }

    fn edge(&mut self, txn: &Transaction) -> Option<EdgeId> {
        let (mut found, mut cursor) = (Vec::new(), ScanCursor::default());
        while !txn.scan_edges(&LabelFilter::Any, Share::ALL, &mut cursor, 1_000, &mut found).unwrap() {}
        (!found.is_empty()).then(|| found[self.rng.random_range(0..found.len())])
    }

    fn value(&mut self) -> Value {
        match self.rng.random_range(0..5) {
            0 => Value::Bool(true),
            1..3 => Value::I64(self.rng.random_range(0..9)),
            3 => Value::F64(0.5),
            _ => Value::from("a string too long for a cell"),
        }
    }

    fn operation(&mut self, txn: &Transaction) -> Option<()> {
        let catalog = txn.store().catalog();
        let key = catalog.intern_key(["a", "b", "c"][self.rng.random_range(0..3)]);
        match self.rng.random_range(0..20) {
            0..5 => {
                let label = catalog.intern_label_text(["x", "y", "x::y"][self.rng.random_range(0..3)]);
                let number = self.rng.random_range(0..40);
                let id = match self.rng.random_range(0..4) {
                    0 => Some(UserId::int(number)),
                    1 => Some(UserId::from(&*format!("the name of vertex {number}"))),
                    _ => None,
                };
                txn.insert_vertex(label, id).ok()?;
            }
            5..10 => {
                let label = catalog.intern_label_text(["e", "f"][self.rng.random_range(0..2)]);
                let id = self.rng.random_ratio(1, 5).then(|| UserId::int(self.rng.random_range(0..40)));
                let (source, target) = (self.vertex(txn)?, self.vertex(txn)?);
                txn.insert_edge(source, target, label, id).ok()?;
            }
            10..15 => {
                use WriteCardinality::{List, Set, Single};
                let cardinality = [Single, Single, List, Set][self.rng.random_range(0..4)];
                let meta = if self.rng.random_ratio(1, 4) { vec![(key, self.value())] } else { vec![] };
                let (vertex, value) = (self.vertex(txn)?, self.value());
                txn.set_vertex_property(vertex, key, value, cardinality, meta).ok()?;
            }
            15 => txn.remove_vertex_property(self.vertex(txn)?, key, None).ok()?,
            16 => txn.delete_vertex(self.vertex(txn)?).ok()?,
            17 => {
                let (edge, value) = (self.edge(txn)?, self.value());
                txn.set_edge_property(edge, key, value).ok()?;
            }
            18 => txn.remove_edge_property(self.edge(txn)?, key).ok()?,
            _ => txn.delete_edge(self.edge(txn)?).ok()?,
        }
        Some(())
    }
}

/// The image of a page whose slots were all used and have no element.
pub(crate) fn empty_page(kind: ElementKind, tablet: u16, number: u32) -> PageImage {
    PageImage {
        name: PageName { tablet: TabletId(tablet), kind, number },
        labels: LabelSetId(1),
        capacity: 64,
        used: 9,
        generations: (0..9).collect(),
        live: SlotSet::default(),
        ids: Vec::new(),
        ends: Vec::new(),
        columns: Vec::new(),
    }
}

/// A format of open columns for tests: a line for each element, with its internal id. It fails if it is told to.
#[derive(Debug, Default)]
pub(crate) struct LineColumns {
    pub(crate) fails: AtomicBool,
}

/// The internal ids of a table.
pub(crate) fn lines(view: &dyn GraphView, table: ColumnsTable) -> Vec<u64> {
    let (labels, mut cursor) = (LabelFilter::Sets([table.labels].into()), ScanCursor::default());
    let (mut vertices, mut edges) = (Vec::new(), Vec::new());
    match table.kind {
        ElementKind::Vertex => {
            while !view.scan_vertices(&labels, Share::ALL, &mut cursor, 100, &mut vertices).unwrap() {}
        }
        ElementKind::Edge => while !view.scan_edges(&labels, Share::ALL, &mut cursor, 100, &mut edges).unwrap() {},
    }
    vertices.iter().map(|id| id.to_bits()).chain(edges.iter().map(|id| id.to_bits())).collect()
}

impl ColumnsFormat for LineColumns {
    fn each_table(
        &self,
        view: &dyn GraphView,
        _: ColumnsOrigin,
        file: &mut WriteTable<'_>,
    ) -> mangrove_graph::Result<()> {
        for kind in [ElementKind::Vertex, ElementKind::Edge] {
            for set in 0..view.catalog().label_set_count() as u32 {
                let table = ColumnsTable { kind, labels: LabelSetId(set) };
                let ids = lines(view, table);
                if !ids.is_empty() {
                    file(table, &mut |out| {
                        ids.iter().for_each(|id| writeln!(out, "{id}").unwrap());
                        match self.fails.load(Ordering::Relaxed) {
                            true => Err(mangrove_graph::Error::bug("the format fails, as the test wants")),
                            false => Ok(ids.len() as u64),
                        }
                    })?;
                }
            }
        }
        Ok(())
    }
}

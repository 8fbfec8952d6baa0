//! Look-up indexes that checkpoints write: they find what the store finds, at every checkpoint.

use std::sync::atomic::{AtomicU64, Ordering};

use mangrove_graph::compare::order;
use mangrove_graph::{
    EdgeId, ElementId, ElementKind, GraphView, IndexInfo, IndexRange, Share, UserId, Value, VertexId,
};
use mangrove_store::IndexOptions;
use rand::Rng;

use super::*;
use crate::checkpoint::live::PackPolicy;
use crate::checkpoint::pack::open_pack;
use crate::checkpoint::place::{NewPack, RangeSource, ReadShape};
use crate::checkpoint::tests::{CheckpointedGraph, POLICY};
use crate::checkpoint::{CheckpointReport, LookUps, check_pack};
use crate::disk::SimDisk;
use crate::manifest::Manifest;
use crate::open::runs::{KIND_ORDERED, LookUpKey};
use crate::testing::Actor;
use crate::verify::check_open_forms;

/// A graph whose checkpoints have look-up indexes.
struct Indexed {
    kept: CheckpointedGraph,
    actor: Actor,
}

/// What look-ups find, each with what it was asked.
type Found = Vec<(String, Vec<u64>)>;

fn ids() -> Vec<UserId> {
    let number = |n| [UserId::int(n), UserId::from(&*format!("the name of vertex {n}"))];
    (0..40).flat_map(number).collect()
}

/// Values that properties have, and some that none has.
fn values() -> Vec<Value> {
    let numbers = (-1..10).flat_map(|n: i32| [Value::I64(i64::from(n)), Value::F64(f64::from(n))]);
    let others =
        [Value::Bool(true), Value::Bool(false), Value::F64(0.5), "a string too long for a cell".into(), "z".into()];
    numbers.chain(others).collect()
}

/// What an index is asked: values under the first keys, and a range under the next one.
fn questions(index: &IndexInfo) -> Vec<(Vec<Value>, IndexRange)> {
    let equal = |value: Value| IndexRange::Equal(vec![value]);
    let between = |low: Option<(Value, bool)>, high: Option<(Value, bool)>| IndexRange::Between { low, high };
    let ranges = || {
        let numbers = [(0, true, 3, true), (2, false, 7, false), (5, true, 5, true), (8, true, 2, true)];
        let of_numbers = numbers.map(|(a, b, c, d)| between(Some((Value::I64(a), b)), Some((Value::F64(c as f64), d))));
        let open = [between(Some((Value::F64(0.5), false)), None), between(None, Some(("b".into(), true)))];
        of_numbers.into_iter().chain(open)
    };
    let mut questions = Vec::new();
    match (index.ordered, index.keys.len()) {
        (true, 1) => questions.extend(values().into_iter().map(equal).chain(ranges()).map(|range| (vec![], range))),
        (true, _) => {
            questions.extend(values().into_iter().map(|value| (vec![], equal(value))));
            questions
                .extend(values().into_iter().flat_map(|first| ranges().map(move |range| (vec![first.clone()], range))));
        }
        (false, 1) => questions.extend(values().into_iter().map(|value| (vec![], equal(value)))),
        (false, _) => {
            let pairs =
                values().into_iter().flat_map(|first| values().into_iter().map(move |next| (first.clone(), next)));
            questions.extend(pairs.map(|(first, next)| (vec![first], equal(next))));
        }
    }
    questions
}

fn sorted(elements: impl IntoIterator<Item = u64>) -> Vec<u64> {
    let mut elements: Vec<u64> = elements.into_iter().collect();
    elements.sort_unstable();
    elements
}

/// What the indexes of a view find.
fn found_in_store(view: &dyn GraphView) -> Found {
    let mut found = Found::new();
    let (mut vertices, mut edges) = (Vec::new(), Vec::new());
    view.find_vertices(&ids(), &mut vertices).unwrap();
    view.find_edges(&ids(), &mut edges).unwrap();
    let bits =
        vertices.iter().map(|id| id.map(VertexId::to_bits)).chain(edges.iter().map(|id| id.map(EdgeId::to_bits)));
    let kinds = [ElementKind::Vertex, ElementKind::Edge]
        .into_iter()
        .flat_map(|kind| ids().into_iter().map(move |id| (kind, id)));
    found.extend(kinds.zip(bits).map(|(question, id)| (format!("{question:?}"), id.into_iter().collect())));
    for index in view.indexes() {
        for (prefix, range) in questions(&index) {
            let (mut vertices, mut edges) = (Vec::new(), Vec::new());
            match index.element {
                ElementKind::Vertex => {
                    view.index_vertices(index.id, &prefix, &range, Share::ALL, &mut vertices).unwrap()
                }
                ElementKind::Edge => view.index_edges(index.id, &prefix, &range, Share::ALL, &mut edges).unwrap(),
            }
            let bits = vertices.into_iter().map(VertexId::to_bits).chain(edges.into_iter().map(EdgeId::to_bits));
            found.push((format!("{:?} {prefix:?} {range:?}", index.id), sorted(bits)));
        }
    }
    found
}

/// What the look-up indexes of a checkpoint find.
fn found_by_ranges(look_ups: &LookUps<'_>, indexes: &[IndexInfo]) -> Result<Found> {
    let of =
        |number: u32| look_ups.indexes().iter().find(|index| index.number == number).expect("all indexes are there");
    let bits = |elements: Vec<ElementId>| sorted(elements.into_iter().map(ElementId::to_bits));
    let mut found = Found::new();
    for (kind, number) in [(ElementKind::Vertex, 0), (ElementKind::Edge, 1)] {
        for id in ids() {
            let elements = look_ups.find(of(number), LookUpKey::Id(&id))?;
            found.push((format!("{:?}", (kind, id)), bits(elements)));
        }
    }
    for index in indexes {
        let of = of(index.id.0 + 2);
        for (prefix, range) in questions(index) {
            let elements = match &range {
                IndexRange::Equal(values) => {
                    let key: Vec<Value> = prefix.iter().chain(values).cloned().collect();
                    look_ups.find(of, LookUpKey::Values(&key))?
                }
                IndexRange::Between { low, high } => {
                    let (low, high) = (low.as_ref().map(|(v, i)| (v, *i)), high.as_ref().map(|(v, i)| (v, *i)));
                    let found = look_ups.between(of, &prefix, low, high)?;
                    assert!(found.is_sorted_by(|(a, _), (b, _)| order(&a[prefix.len()], &b[prefix.len()]).is_le()));
                    // A range of the store has values that are comparable with its limits.
                    let holds = |(values, _): &(Box<[Value]>, ElementId)| range.holds(&values[prefix.len()]);
                    let mut found: Vec<ElementId> =
                        found.into_iter().filter(holds).map(|(_, element)| element).collect();
                    found.sort_unstable_by_key(|element| element.to_bits());
                    found.dedup();
                    found
                }
            };
            found.push((format!("{:?} {prefix:?} {range:?}", index.id), bits(elements)));
        }
    }
    Ok(found)
}

impl Indexed {
    fn new(seed: u64, policy: PackPolicy) -> Self {
        let mut kept = CheckpointedGraph::with_topology();
        kept.checkpoints.set_policy(policy);
        Indexed { kept, actor: Actor::new(seed) }
    }

    fn run(&mut self, transactions: usize) {
        (0..transactions).for_each(|_| _ = self.actor.transaction(&self.kept.manager));
    }

    /// Creates an index, or drops one.
    fn change_indexes(&mut self) {
        let catalog = self.kept.manager.store().catalog();
        let keys = ["a", "b", "c"].map(|key| catalog.intern_key(key));
        let label = catalog.intern_label("x");
        let indexes = self.kept.manager.store().indexes();
        let rng = &mut self.actor.rng;
        if indexes.len() > 4 {
            let dropped = indexes[rng.random_range(0..indexes.len())].id;
            return self.kept.manager.drop_index(dropped).unwrap();
        }
        let element = if rng.random_ratio(1, 2) { ElementKind::Vertex } else { ElementKind::Edge };
        let label = (element == ElementKind::Vertex && rng.random_ratio(1, 2)).then_some(label);
        let first = rng.random_range(0..3);
        let keys = if rng.random_ratio(1, 2) { vec![keys[first]] } else { vec![keys[first], keys[(first + 1) % 3]] };
        let options = IndexOptions { element, label, keys, ordered: rng.random_ratio(1, 2), unique: false };
        // There may be such an index.
        let _ = self.kept.manager.create_index(&options);
    }

    fn manifest(&self) -> &Manifest {
        self.kept.checkpoints.manifest()
    }

    /// Takes a checkpoint while random transactions go on. Its look-up indexes must find what the store found before.
    fn checkpoint(&mut self) -> CheckpointReport {
        let view = self.kept.manager.begin_unproved_read().unwrap();
        let (expected, indexes) = (found_in_store(&view), view.indexes());
        drop(view);
        let report = self.kept.take(&mut self.actor).1.unwrap().unwrap_or_default();
        let live = self.manifest().packs.iter().map(|pack| pack.live).sum::<u64>();
        assert_eq!(live, self.kept.checkpoints.live_bytes());
        let found = self.verify(&indexes).unwrap();
        let differ = expected.iter().zip(&found).find(|(expected, found)| expected != found);
        assert!(expected.len() == found.len() && differ.is_none(), "{differ:?}");
        report
    }

    /// Checks everything, and returns what the look-up indexes find.
    fn verify(&self, indexes: &[IndexInfo]) -> Result<Found> {
        let (disk, manifest) = (&self.kept.disk, self.manifest());
        for pack in &manifest.packs {
            check_pack(disk, pack, manifest.database)?;
        }
        let look_ups = LookUps::open(disk, manifest)?;
        assert_eq!(look_ups.indexes().len(), indexes.len() + 2);
        let runs = manifest.indexes.iter().map(|index| index.runs.len() as u64).sum::<u64>();
        assert_eq!(check_open_forms(disk, manifest, 1, &mut |_, _, _| Ok(None))?.index_runs, runs);
        found_by_ranges(&look_ups, indexes)
    }

    fn reopen(&mut self, policy: PackPolicy) {
        let live = self.kept.checkpoints.live_bytes();
        self.kept = CheckpointedGraph::open(self.kept.disk.clone()).unwrap();
        assert_eq!(self.kept.checkpoints.live_bytes(), live, "as many bytes count as before");
        self.kept.checkpoints.set_policy(policy);
    }
}

#[test]
fn look_ups_find_what_the_store_finds() {
    let cases = mangrove_testdata::case_count(4);
    let (mut most_runs, mut first_runs, mut elements) = (0, 0, 0);
    for seed in 0..cases {
        // Small packs are retired often, with the runs in them, and little memory makes several runs of one.
        let policy = match seed % 2 {
            0 => POLICY,
            _ => PackPolicy { gathered_bytes_max: 4_000, ..PackPolicy::default() },
        };
        let mut graph = Indexed::new(seed, policy);
        for round in 0..16 {
            graph.run(10 + round % 3 * 25);
            if round % 3 == 1 {
                graph.change_indexes();
            }
            if round % 4 == 3 {
                graph.kept.manager.compact();
            }
            graph.checkpoint();
            for index in &graph.manifest().indexes {
                most_runs = most_runs.max(index.runs.len() as u64 - index.base);
                first_runs = first_runs.max(index.base);
                elements += index.runs.iter().map(|run| run.entries).sum::<u64>();
            }
            if round % 5 == 4 {
                graph.reopen(policy);
            }
        }
    }
    assert!(most_runs > 3 && first_runs > 1, "{most_runs} runs after the first ones, {first_runs} first runs");
    assert!(elements > 2_000 * cases, "{elements} entries");
}

/// A graph of several runs with many entries.
fn with_runs() -> Indexed {
    let mut graph = Indexed::new(3, PackPolicy::default());
    graph.run(300);
    graph.kept.take_alone(&mut |_| ()).unwrap();
    for which in 0..3 {
        // One page of the graph, so that the first pack is not retired.
        graph.kept.change_one(which);
        graph.kept.take_alone(&mut |_| ()).unwrap();
    }
    let runs: Vec<usize> = graph.manifest().indexes.iter().map(|index| index.runs.len()).collect();
    assert!(runs.iter().max() > Some(&2), "{runs:?} runs");
    graph
}

#[test]
fn every_flipped_byte_of_a_run_is_found() {
    let mut graph = with_runs();
    let (whole, indexes) = (graph.kept.disk.clone(), graph.kept.manager.store().indexes());
    let manifest = graph.manifest().clone();
    let mut flipped = 0;
    for pack in &manifest.packs {
        let blocks = open_pack(&whole, pack, manifest.database).unwrap().blocks;
        for (name, position) in blocks.into_iter().filter(|(name, _)| name.is_run()) {
            for at in (position.offset..position.offset + position.bytes()).step_by(23) {
                graph.kept.disk = whole.power_cut(0);
                graph.kept.disk.flip_bit(&pack.path(), at, (at % 8) as u8).unwrap();
                let error = graph.verify(&indexes).unwrap_err();
                assert!(error.message().contains(&pack.path()), "byte {at} of {name}: {error}");
                // A reader of ranges finds it, too, unless it does not need the byte.
                let disk = &graph.kept.disk;
                let by_ranges =
                    LookUps::open(disk, &manifest).and_then(|look_ups| found_by_ranges(&look_ups, &indexes));
                if let Ok(found) = by_ranges {
                    assert!(
                        found == found_in_store(&graph.kept.manager.begin_unproved_read().unwrap()),
                        "byte {at} of {name}"
                    );
                }
                flipped += 1;
            }
        }
    }
    assert!(flipped > 100, "{flipped} bytes");
}

#[test]
fn an_entry_that_is_missing_or_too_much_is_found() {
    let graph = with_runs();
    let (disk, whole) = (&graph.kept.disk, graph.manifest());
    let check = |manifest: &Manifest| {
        check_open_forms(disk, manifest, 1, &mut |_, _, _| Ok(None)).map(|forms| forms.index_runs)
    };
    assert!(check(whole).unwrap() > 0);
    for (at, index) in whole.indexes.iter().enumerate() {
        for run in 0..index.runs.len() {
            // A run that the manifest leaves out. The entries of the last one are of pages that no later checkpoint has imaged.
            let mut manifest = whole.clone();
            let left_out = manifest.indexes[at].runs.remove(run);
            if run + 1 == index.runs.len() && left_out.entries > 0 {
                let error = check(&manifest).unwrap_err();
                assert!(error.message().contains("which the images have"), "{error}");
            }
            // A head of another length, and another number of entries.
            for change in [|run: &mut ManifestRun| run.entries += 1, |run: &mut ManifestRun| run.head += 1] {
                let mut manifest = whole.clone();
                change(&mut manifest.indexes[at].runs[run]);
                assert!(check(&manifest).is_err(), "run {run} of index {at}");
            }
        }
    }
    let mut manifest = whole.clone();
    manifest.indexes[0].runs[0].counter += 1_000;
    assert!(check(&manifest).unwrap_err().message().contains("which it does not have"));
    let mut manifest = whole.clone();
    manifest.indexes.last_mut().unwrap().number += 7;
    assert!(check(&manifest).is_err());
}

#[test]
fn indexes_come_and_go_with_topology() {
    let mut graph = with_runs();
    let indexes = graph.kept.manager.store().indexes();
    graph.kept.checkpoints.set_topology(false);
    graph.run(5);
    graph.kept.take(&mut graph.actor).1.unwrap();
    assert!(graph.manifest().indexes.is_empty() && graph.manifest().topology.is_none());
    let live = graph.manifest().packs.iter().map(|pack| pack.live).sum::<u64>();
    assert_eq!(live, graph.kept.checkpoints.live_bytes());
    graph.kept.checkpoints.set_topology(true);
    graph.checkpoint();
    assert!(graph.manifest().indexes.iter().all(|index| index.base == index.runs.len() as u64));
    graph.verify(&indexes).unwrap();
}

/// A manifest of a version without look-up indexes has topology and no section for them.
#[test]
fn a_graph_without_indexes_gets_them_without_a_change() {
    let mut graph = with_runs();
    let mut older = graph.manifest().clone();
    older.indexes.clear();
    let mut next = older.next(older.version + 1);
    next.put(&graph.kept.disk).unwrap();
    graph.kept = CheckpointedGraph::open(graph.kept.disk.clone()).unwrap();
    assert!(graph.manifest().indexes.is_empty());
    let report = graph.kept.take_alone(&mut |_| ()).unwrap().unwrap();
    let indexes = &graph.manifest().indexes;
    assert!(indexes.iter().all(|index| index.base == index.runs.len() as u64));
    assert_eq!((report.pages, report.index_runs), (0, indexes.iter().map(|index| index.base).sum()));
    let indexes = graph.kept.manager.store().indexes();
    graph.verify(&indexes).unwrap();
    // And nothing without a change.
    assert_eq!(graph.kept.take_alone(&mut |_| ()).unwrap(), None);
}

/// A place that counts the ranges that are read of its packs.
struct Counting<'a> {
    disk: &'a SimDisk,
    ranges: AtomicU64,
}

/// A pack of a place that counts.
struct CountingSource<'a> {
    source: Box<dyn RangeSource + 'a>,
    ranges: &'a AtomicU64,
}

impl Place for Counting<'_> {
    fn begin_pack(&self, path: &str) -> Result<Box<dyn NewPack + '_>> {
        self.disk.begin_pack(path)
    }

    fn open_pack(&self, path: String, bytes: u64) -> Result<Box<dyn RangeSource + '_>> {
        let source = Place::open_pack(self.disk, path, bytes)?;
        Ok(Box::new(CountingSource { source, ranges: &self.ranges }))
    }

    fn keep_packs(&self) -> Result<()> {
        self.disk.keep_packs()
    }

    fn put_manifest(&self, next: &mut Manifest, newest: &Manifest) -> Result<()> {
        self.disk.put_manifest(next, newest)
    }

    fn puts_again(&self) -> bool {
        self.disk.puts_again()
    }

    fn describe(&self, path: &str) -> String {
        Place::describe(self.disk, path)
    }

    fn describe_log(&self) -> String {
        self.disk.describe_log()
    }
}

impl RangeSource for CountingSource<'_> {
    fn length(&self) -> Result<u64> {
        self.source.length()
    }

    fn read(&self, offset: u64, count: usize) -> Result<Vec<u8>> {
        self.ranges.fetch_add(1, Ordering::Relaxed);
        self.source.read(offset, count)
    }

    fn shape(&self) -> ReadShape {
        self.source.shape()
    }

    fn describe(&self) -> String {
        self.source.describe()
    }
}

#[test]
fn a_look_up_takes_a_range_of_each_run_and_one_of_each_image() {
    let graph = with_runs();
    let place = Counting { disk: &graph.kept.disk, ranges: AtomicU64::new(0) };
    let look_ups = LookUps::open(&place, graph.manifest()).unwrap();
    let ranges_of = |look_up: &dyn Fn() -> usize| {
        place.ranges.store(0, Ordering::Relaxed);
        (look_up(), place.ranges.load(Ordering::Relaxed))
    };
    let view = graph.kept.manager.begin_unproved_read().unwrap();
    let mut known = Vec::new();
    view.find_vertices(&ids(), &mut known).unwrap();
    let known: Vec<UserId> = ids().into_iter().zip(known).filter(|(_, id)| id.is_some()).map(|(id, _)| id).collect();
    let index = &look_ups.indexes()[0];
    let runs = graph.manifest().indexes[0].runs.len() as u64;
    let id = |at: usize| look_ups.find(index, LookUpKey::Id(&known[at])).unwrap().len();
    let (found, first) = ranges_of(&|| id(0));
    assert!(found == 1 && first <= 2 * runs + 1, "{first} ranges for {runs} runs with their heads");
    for at in 1..known.len() {
        let (found, ranges) = ranges_of(&|| id(at));
        assert!(found == 1 && ranges <= runs + 1, "{ranges} ranges for {runs} runs and an image");
    }
    let ordered = look_ups.indexes().iter().position(|index| index.kind() == KIND_ORDERED).unwrap();
    let runs = graph.manifest().indexes[ordered].runs.len() as u64;
    let all = || look_ups.between(&look_ups.indexes()[ordered], &[], None, None).unwrap().len();
    assert!(ranges_of(&all).1 == 2 * runs && ranges_of(&all).1 == runs, "a scan of an ordered index reads no image");
}

//! Knowledge graphs: their shape, and that a seed decides all of them.

use std::collections::BTreeMap;

use mangrove::{Result, Value};
use mangrove_generate::knowledge::KnowledgeSpec;
use mangrove_generate::{GeneratedEdges, GeneratedValues, GeneratedVertices, GraphSink, GraphsonSink, NullSink};

use crate::common::{check_same, counts, database, dump, folder, loaded, number};

fn spec(entities: u64) -> KnowledgeSpec {
    KnowledgeSpec { entities, ..KnowledgeSpec::default() }
}

#[test]
fn the_graph_does_not_depend_on_threads_and_is_what_it_was() {
    let digest = |threads, seed| counts(&|sink| KnowledgeSpec { threads, seed, ..spec(3_000) }.generate(sink)).digest;
    let one = digest(1, 1);
    assert_eq!((digest(2, 1), digest(7, 1)), (one, one));
    assert_ne!(digest(1, 2), one);
    assert_eq!(one, 0x0d53_1027_04dc_81bf, "the generator makes another graph than it did: {one:#x}");
}

/// The facts that a schema of the graph would have to state.
#[derive(Default)]
struct Shape {
    /// By key: rows that have it, and the types of its values.
    keys: BTreeMap<String, (u64, Vec<std::mem::Discriminant<Value>>)>,
    /// Properties by vertex.
    sizes: Vec<u64>,
    several: u64,
    longest: usize,
    edge_labels: BTreeMap<String, u64>,
    in_degrees: Vec<u64>,
}

impl GraphSink for Shape {
    fn vertices(&mut self, batch: GeneratedVertices) -> Result<()> {
        self.sizes.resize(self.sizes.len() + batch.len, 0);
        self.in_degrees.resize(self.sizes.len(), 0);
        for column in batch.columns {
            match column.values {
                GeneratedValues::Several(rows) => {
                    let (count, types) = self.keys.entry(column.key.to_string()).or_default();
                    *count += rows.len() as u64;
                    for (row, values) in rows {
                        self.sizes[batch.first as usize + row as usize] += 1;
                        self.several += u64::from(values.len() > 1);
                        types.extend(values.iter().map(std::mem::discriminant));
                    }
                }
                GeneratedValues::OptionalText(texts) => {
                    self.longest = texts.iter().flatten().map(|text| text.len()).max().unwrap_or(0).max(self.longest);
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn edges(&mut self, batch: GeneratedEdges) -> Result<()> {
        *self.edge_labels.entry(batch.label.to_string()).or_default() += batch.ends.len() as u64;
        batch.ends.iter().for_each(|(_, target)| self.in_degrees[*target as usize] += 1);
        Ok(())
    }
}

#[test]
fn keys_are_free_and_vertices_rich() {
    let mut shape = Shape::default();
    spec(5_000).generate(&mut shape).unwrap();
    assert!(shape.keys.len() > 3_000, "{} keys", shape.keys.len());
    let mixed = shape.keys.values().filter(|(_, types)| types.iter().any(|other| *other != types[0])).count();
    assert!(mixed > shape.keys.len() / 4, "{mixed} keys have values of several types");
    let mut uses: Vec<u64> = shape.keys.values().map(|(count, _)| *count).collect();
    uses.sort_unstable_by(|a, b| b.cmp(a));
    assert!(uses[0] > 100 * uses[uses.len() / 2], "{} and {}", uses[0], uses[uses.len() / 2]);
    let rich = shape.sizes.iter().filter(|size| **size >= 100).count();
    assert!((25..100).contains(&rich), "{rich} of 5,000 have a hundred properties or more");
    assert!(shape.several > 1_000 && shape.longest > 1_500, "{} {}", shape.several, shape.longest);
    assert!(shape.edge_labels.len() > 300, "{} edge labels", shape.edge_labels.len());
    shape.in_degrees.sort_unstable();
    let (median, largest) = (shape.in_degrees[2_500], shape.in_degrees[4_999]);
    assert!(largest > 50 * median.max(1), "{median} {largest}");
}

#[test]
fn files_load_to_the_same_graph() {
    let spec = spec(300);
    let folder = folder("knowledge");
    let mut files = GraphsonSink::new(&folder).unwrap();
    spec.generate(&mut files).unwrap();
    assert!(files.finish().unwrap() > 100_000);
    let db = database(&|sink| spec.generate(sink));
    check_same(&dump(&loaded(&folder), "id()"), &dump(&db, "id()"));
    assert!(number(&db, "g.V().hasLabel('Person').hasLabel('Athlete').count()") > 0);
    assert_eq!(number(&db, "g.V().has('label').count()"), 300);
}

#[test]
fn small_graphs_and_few_keys_work() {
    for entities in [1, 2, 7] {
        assert_eq!(counts(&|sink| KnowledgeSpec { keys: 1, ..spec(entities) }.generate(sink)).vertices, entities);
    }
    assert!(spec(0).generate(&mut NullSink).is_err());
    assert!(KnowledgeSpec { keys: 0, ..spec(1) }.generate(&mut NullSink).is_err());
}

#[test]
fn a_graph_without_a_schema_takes_little_more_than_its_values() {
    for (entities, edge_bytes_max) in [(2_000, 450), (5_000, 335)] {
        let generate = |sink: &mut dyn GraphSink| spec(entities).generate(sink);
        let counts = counts(&generate);
        let memory = database(&generate).memory();
        let bytes = |names: &[&str]| -> u64 {
            memory.rows.iter().filter(|row| names.contains(&row.name)).map(|row| row.bytes).sum()
        };
        // Hundreds of keys and edge labels on every page, each with a handful of values or edges.
        let values = bytes(&["column", "value"]) / (counts.vertex_properties + counts.edge_properties);
        let edges = bytes(&["edge page", "adjacency descriptors", "packed adjacency", "directory"]) / counts.edges;
        let own = counts.property_bytes / (counts.vertex_properties + counts.edge_properties);
        let told = format!(
            "{entities} entities: {values} B a value of {own} B, {edges} B an edge, {} B in all; {:?}",
            memory.total_bytes(),
            memory.rows.iter().map(|row| (row.name, row.bytes)).collect::<Vec<_>>()
        );
        assert!(values <= 3 * own && edges <= edge_bytes_max, "{told}");
    }
}

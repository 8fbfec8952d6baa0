//! Kronecker graphs: their shape, and that the seed decides everything.

use std::sync::Arc;

use mangrove::{Result, Value};
use mangrove_generate::kronecker::{KroneckerSpec, Schema};
use mangrove_generate::{CsvSink, GeneratedEdges, GeneratedVertices, GraphSink};

use crate::common::{ask, check_same, counts, database, dump, folder, loaded, number};

/// Keeps the degrees of sources.
struct Degrees(Vec<u64>);

impl GraphSink for Degrees {
    fn vertices(&mut self, batch: GeneratedVertices) -> Result<()> {
        self.0.resize((batch.first as usize) + batch.len, 0);
        Ok(())
    }

    fn edges(&mut self, batch: GeneratedEdges) -> Result<()> {
        batch.ends.iter().for_each(|(source, _)| self.0[*source as usize] += 1);
        Ok(())
    }
}

fn spec(scale: u32) -> KroneckerSpec {
    KroneckerSpec { scale, ..KroneckerSpec::default() }
}

#[test]
fn the_graph_does_not_depend_on_threads_and_is_what_it_was() {
    let digest = |threads, seed| counts(&|sink| KroneckerSpec { threads, seed, ..spec(13) }.generate(sink)).digest;
    let one = digest(1, 1);
    assert_eq!((digest(2, 1), digest(7, 1)), (one, one));
    assert_ne!(digest(1, 2), one);
    assert_eq!(one, 0xe23a_93bc_d430_710b, "the generator makes another graph than it did: {one:#x}");
}

#[test]
fn counts_are_exact() {
    let directed = counts(&|sink| spec(12).generate(sink));
    assert_eq!((directed.vertices, directed.edges), (1 << 12, 16 << 12));
    let undirected = counts(&|sink| KroneckerSpec { undirected: true, ..spec(12) }.generate(sink));
    assert_eq!((undirected.vertices, undirected.edges), (1 << 12, 32 << 12));
    assert_eq!(undirected.edge_properties, 2 * directed.edge_properties);
    assert!(directed.vertex_properties > 0 && directed.edge_properties > 0);
    assert_eq!((directed.vertices_by_label.len(), directed.edges_by_label.len()), (10, 10));
}

#[test]
fn an_undirected_graph_is_symmetric() {
    let db = database(&|sink| KroneckerSpec { undirected: true, edge_factor: 4, ..spec(6) }.generate(sink));
    let edges = |from: &str, to: &str| {
        let script =
            format!("g.E().project('s', 'l', 't', 'p').by({from}().id()).by(label).by({to}().id()).by(valueMap())");
        let mut rows: Vec<String> = ask(&db, &script).iter().map(|row| format!("{row:?}")).collect();
        rows.sort_unstable();
        rows
    };
    assert_eq!(edges("outV", "inV"), edges("inV", "outV"));
}

#[test]
fn degrees_are_heavy_tailed() {
    let mut degrees = Degrees(Vec::new());
    spec(14).generate(&mut degrees).unwrap();
    let mut degrees = degrees.0;
    degrees.sort_unstable_by(|a, b| b.cmp(a));
    let total: u64 = degrees.iter().sum();
    let top: u64 = degrees[..degrees.len() / 100].iter().sum();
    assert!(degrees[0] > 16 * 30, "the largest degree is far above the mean: {}", degrees[0]);
    assert!(top * 100 > total * 12, "one vertex in a hundred has an eighth of the edges or more: {top} of {total}");
    assert!(degrees[degrees.len() / 2] < 10, "the median is below the mean: {}", degrees[degrees.len() / 2]);
    // Between ranks that are powers of two, the logarithm of the degree falls about evenly, so there is no exponential
    // cut.
    let at = |rank: usize| (degrees[rank] as f64).log2();
    let slope = (at(16) - at(1024)) / 6.0;
    assert!((0.3..0.9).contains(&slope), "{slope}");
}

const SCHEMA: &str = r#"
    [[property]]
    key = "name"
    type = "string"
    size = 40
    [[property]]
    key = "age"
    type = "int"
    [[property]]
    key = "weight"
    type = "double"
    [[property]]
    key = "seen"
    type = "bool"

    [[vertex]]
    label = "Person::Author"
    share = 62.5
    properties = ["name", "age"]
    [[vertex]]
    label = "a thing/with a|name"
    share = 30
    properties = ["name"]
    [[vertex]]
    label = "Rare"
    share = 7.5

    [[edge]]
    label = "knows"
    from = "Person::Author"
    to = "Person::Author"
    properties = ["weight", "seen"]
    [[edge]]
    label = "rest"
"#;

#[test]
fn a_schema_is_followed() {
    let spec = KroneckerSpec { schema: Schema::parse(SCHEMA).unwrap(), ..spec(11) };
    let db = database(&|sink| spec.generate(sink));
    for (label, share) in [("Person", 0.625), ("Rare", 0.075), ("a thing/with a|name", 0.3)] {
        let count = number(&db, &format!("g.V().hasLabel('{label}').count()")) as f64;
        assert!((count / 2048.0 - share).abs() < 0.001, "{label}: {count}");
    }
    assert_eq!(number(&db, "g.V().has('age').not(hasLabel('Author')).count()"), 0);
    assert_eq!(number(&db, "g.V().hasLabel('Rare').properties().count()"), 0);
    let people = "where(outV().hasLabel('Person')).where(inV().hasLabel('Person'))";
    let between_people = number(&db, &format!("g.E().{people}.count()"));
    assert!(between_people > 0);
    assert_eq!(number(&db, "g.E().hasLabel('knows').count()"), between_people);
    assert_eq!(
        number(&db, &format!("g.E().hasLabel('knows').{people}.has('weight').has('seen').count()")),
        between_people
    );
    assert_eq!(number(&db, "g.E().hasLabel('rest').properties().count()"), 0);
}

#[test]
fn files_load_to_the_same_graph() {
    for (name, schema) in
        [("kronecker-default", Schema::with_counts(20, 13)), ("kronecker-own", Schema::parse(SCHEMA).unwrap())]
    {
        let spec = KroneckerSpec { schema, edge_factor: 4, ..spec(9) };
        let folder = folder(name);
        let mut files = CsvSink::new(&folder).unwrap();
        spec.generate(&mut files).unwrap();
        assert!(files.finish().unwrap() > 1000);
        check_same(&dump(&loaded(&folder), "id()"), &dump(&database(&|sink| spec.generate(sink)), "id()"));
        let again = CsvSink::new(&folder).unwrap_err();
        assert!(again.message().contains("is not empty"), "{again}");
    }
}

#[test]
fn a_program_may_choose_labels_and_values_itself() {
    let mut schema = Schema::with_counts(4, 2);
    schema.own_edge_label = Some(Arc::new(|source, target| usize::from(source == target)));
    schema.properties[0].own = Some(Arc::new(|number, _| Value::I64(number as i64 * 3)));
    let db = database(&|sink| KroneckerSpec { schema: schema.clone(), edge_factor: 2, ..spec(6) }.generate(sink));
    let key = &schema.properties[0].key;
    assert_eq!(number(&db, &format!("g.V(7).values('{key}')")), 21);
    let crossing =
        "g.E().hasLabel('E1').as('e').outV().label().as('a').select('e').inV().label().where(neq('a')).count()";
    assert_eq!(number(&db, crossing), 0);
    schema.own_edge_label = Some(Arc::new(|_, _| 9));
    let error = KroneckerSpec { schema, ..spec(6) }.generate(&mut Degrees(Vec::new())).unwrap_err();
    assert!(error.message().contains("a label"), "{error}");
}

#[test]
fn sizes_beyond_the_limits_are_refused() {
    for spec in [spec(0), spec(41), KroneckerSpec { edge_factor: 1 << 17, ..spec(4) }] {
        assert!(spec.generate(&mut Degrees(Vec::new())).is_err());
    }
}

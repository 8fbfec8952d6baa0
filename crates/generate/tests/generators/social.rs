//! Social networks: their shape, and that a seed decides all of them.

use std::collections::BTreeMap;

use mangrove::Database;
use mangrove_generate::social::SocialSpec;
use mangrove_generate::{CsvSink, GraphSink};

use crate::common::{ask, check_same, counts, database, dump, folder, loaded, number};

fn spec(persons: u64) -> SocialSpec {
    SocialSpec { persons, ..SocialSpec::default() }
}

fn small() -> Database {
    database(&|sink: &mut dyn GraphSink| spec(300).generate(sink))
}

#[test]
fn the_network_does_not_depend_on_threads_and_is_what_it_was() {
    let digest = |threads, seed| counts(&|sink| SocialSpec { threads, seed, ..spec(200) }.generate(sink)).digest;
    let one = digest(1, 1);
    assert_eq!((digest(2, 1), digest(7, 1)), (one, one));
    assert_ne!(digest(1, 2), one);
    assert_eq!(one, 0xd556f5a02b118bf2, "the generator makes another network than it did: {one:#x}");
}

#[test]
fn the_smallest_network_is_one() {
    for persons in [2, 3, 20] {
        assert_eq!(counts(&|sink| spec(persons).generate(sink)).vertices_by_label["Person"], persons);
    }
    assert!(spec(1).generate(&mut mangrove_generate::NullSink).is_err());
}

/// How much there is of each kind in LDBC's data set of scale factor 0.1, with 1,528 persons (counted from its files).
const LDBC: [(&str, f64); 12] = [
    ("knows", 14_073.0),
    ("hasInterest", 35_475.0),
    ("workAt", 3_313.0),
    ("studyAt", 1_209.0),
    ("hasModerator", 13_750.0),
    ("hasMember", 123_268.0),
    ("containerOf", 135_701.0),
    ("replyOf", 151_043.0),
    ("likes", 47_215.0 + 62_225.0),
    ("hasTag", 51_118.0 + 191_303.0 + 47_697.0),
    ("hasCreator", 286_744.0),
    ("isLocatedIn", 286_744.0 + 1_528.0 + 7_955.0),
];

#[test]
fn averages_are_near_those_of_ldbc() {
    let counts = counts(&|sink| spec(1_528).generate(sink));
    let vertices = [
        ("Tag", 16_080.0),
        ("TagClass", 71.0),
        ("Place::City", 1_343.0),
        ("Place::Country", 111.0),
        ("Organisation::Company", 1_575.0),
        ("Organisation::University", 6_380.0),
    ];
    let ratio = |found: u64, expected: f64| found as f64 / expected;
    let edges = LDBC.iter().map(|(label, expected)| (label, ratio(counts.edges_by_label[*label], *expected)));
    let vertices = vertices.iter().map(|(label, expected)| (label, ratio(counts.vertices_by_label[*label], *expected)));
    let ratios: Vec<(&&str, f64)> = edges.chain(vertices).collect();
    assert!(ratios.iter().all(|(_, ratio)| (0.5..1.5).contains(ratio)), "{ratios:.2?}");
    assert!(ratios[..LDBC.len()].iter().all(|(_, ratio)| (0.8..1.25).contains(ratio)), "{ratios:.2?}");
}

#[test]
fn every_kind_of_edge_joins_what_it_joins_at_ldbc() {
    let db = small();
    for (source, label, target) in [
        ("Person", "knows", "Person"),
        ("Person", "isLocatedIn", "City"),
        ("Person", "hasInterest", "Tag"),
        ("Person", "studyAt", "University"),
        ("Person", "workAt", "Company"),
        ("Person", "likes", "Post"),
        ("Person", "likes", "Comment"),
        ("Forum", "hasMember", "Person"),
        ("Forum", "hasModerator", "Person"),
        ("Forum", "containerOf", "Post"),
        ("Forum", "hasTag", "Tag"),
        ("Post", "hasCreator", "Person"),
        ("Post", "hasTag", "Tag"),
        ("Post", "isLocatedIn", "Country"),
        ("Comment", "hasCreator", "Person"),
        ("Comment", "hasTag", "Tag"),
        ("Comment", "isLocatedIn", "Country"),
        ("Comment", "replyOf", "Post"),
        ("Comment", "replyOf", "Comment"),
        ("Tag", "hasType", "TagClass"),
        ("TagClass", "isSubclassOf", "TagClass"),
        ("City", "isPartOf", "Country"),
        ("Country", "isPartOf", "Continent"),
        ("Company", "isLocatedIn", "Country"),
        ("University", "isLocatedIn", "City"),
    ] {
        let count = number(&db, &format!("g.V().hasLabel('{source}').out('{label}').hasLabel('{target}').count()"));
        assert!(count > 0, "{source} {label} {target}");
    }
    // Relations of which every element has exactly one.
    for (of, edge) in [
        ("Post", "out('hasCreator')"),
        ("Comment", "out('hasCreator')"),
        ("Comment", "out('replyOf')"),
        ("Post", "in('containerOf')"),
        ("Forum", "out('hasModerator')"),
        ("Tag", "out('hasType')"),
        ("Person", "out('isLocatedIn')"),
    ] {
        assert_eq!(
            number(&db, &format!("g.V().hasLabel('{of}').where({edge}.count().is(neq(1))).count()")),
            0,
            "{of} {edge}"
        );
    }
    assert_eq!(number(&db, "g.V().hasLabel('Person').as('p').where(both('knows').as('p')).count()"), 0);
}

#[test]
fn nothing_is_before_what_it_needs() {
    let db = small();
    let created = "values('creationDate')";
    for (what, from, later, earlier) in [
        ("a friendship, one end", "g.E().hasLabel('knows')", created, "outV().values('creationDate')"),
        ("a friendship, other end", "g.E().hasLabel('knows')", created, "inV().values('creationDate')"),
        ("a forum", "g.V().hasLabel('Forum')", created, "out('hasModerator').values('creationDate')"),
        ("a member, the person", "g.E().hasLabel('hasMember')", "values('joinDate')", "inV().values('creationDate')"),
        ("a member, the forum", "g.E().hasLabel('hasMember')", "values('joinDate')", "outV().values('creationDate')"),
        ("a post, its forum", "g.V().hasLabel('Post')", created, "in('containerOf').values('creationDate')"),
        ("a post, its author", "g.V().hasLabel('Post')", created, "out('hasCreator').values('creationDate')"),
        ("a comment, its author", "g.V().hasLabel('Comment')", created, "out('hasCreator').values('creationDate')"),
        ("a comment, what it is about", "g.V().hasLabel('Comment')", created, "out('replyOf').values('creationDate')"),
        ("a like, the message", "g.E().hasLabel('likes')", created, "inV().values('creationDate')"),
        ("a like, the person", "g.E().hasLabel('likes')", created, "outV().values('creationDate')"),
    ] {
        let script = format!(
            "{from}.as('x').{later}.as('later').select('x').{earlier}.as('earlier').where('later', lt('earlier')).count()"
        );
        assert_eq!(number(&db, &script), 0, "{what}");
        let script =
            format!("{from}.{later}.is(outside(1262304000000L, 1356998399999L)).is(neq(1262304000000L)).count()");
        assert_eq!(number(&db, &script), 0, "{what}: in time");
    }
    // The author of a comment or a post is a member by then, or the moderator.
    let strangers = "g.V().hasLabel('Post').as('m').out('hasCreator').as('p').select('m').in('containerOf') \
        .where(__.not(union(out('hasMember'), out('hasModerator')).where(eq('p')))).count()";
    assert_eq!(number(&db, strangers), 0);
    let strangers = "g.V().hasLabel('Comment').as('m').out('hasCreator').as('p').select('m') \
        .repeat(out('replyOf')).until(hasLabel('Post')).in('containerOf') \
        .where(__.not(union(out('hasMember'), out('hasModerator')).where(eq('p')))).count()";
    assert_eq!(number(&db, strangers), 0);
    assert_eq!(number(&db, "g.E().hasLabel('workAt').values('workFrom').is(outside(1995, 2013)).count()"), 0);
}

#[test]
fn ids_are_distinct_within_a_kind() {
    let db = small();
    for label in ["Person", "Forum", "Tag", "TagClass", "Place", "Organisation"] {
        let count = number(&db, &format!("g.V().hasLabel('{label}').count()"));
        assert_eq!(number(&db, &format!("g.V().hasLabel('{label}').values('id').dedup().count()")), count, "{label}");
    }
    let messages = "g.V().hasLabel('Post', 'Comment')";
    assert_eq!(
        number(&db, &format!("{messages}.values('id').dedup().count()")),
        number(&db, &format!("{messages}.count()"))
    );
    assert_eq!(
        number(&db, "g.V().hasLabel('Tag').values('name').dedup().count()"),
        number(&db, "g.V().hasLabel('Tag').count()")
    );
}

#[test]
fn degrees_are_skewed_and_friends_are_alike() {
    let db = database(&|sink| spec(1_000).generate(sink));
    let mut degrees: Vec<i64> = ask(&db, "g.V().hasLabel('Person').map(both('knows').count())")
        .iter()
        .map(|degree| if let mangrove::Value::I64(degree) = degree { *degree } else { panic!("{degree:?}") })
        .collect();
    degrees.sort_unstable();
    let (median, largest) = (degrees[500], degrees[999]);
    assert!(median >= 5 && largest > 6 * median, "{median} {largest}");
    // By chance it would be one in twenty.
    let pairs = number(&db, "g.E().hasLabel('knows').count()") as f64;
    let alike = number(
        &db,
        "g.E().hasLabel('knows').as('e').outV().out('isLocatedIn').out('isPartOf').as('a').select('e').inV() \
         .out('isLocatedIn').out('isPartOf').where(eq('a')).count()",
    ) as f64;
    assert!(alike / pairs > 0.15, "{} of the pairs live in one country", alike / pairs);
    let triangles = number(
        &db,
        "g.V().hasLabel('Person').limit(50).as('a').both('knows').both('knows').where(both('knows').as('a')).count()",
    );
    assert!(triangles > 200, "{triangles}");
}

/// A person with as much around as possible, by the id.
fn hub(db: &Database) -> String {
    let script =
        "g.V().hasLabel('Person').where(out('workAt')).order().by(both('knows').count(), desc).limit(1).values('id')";
    match ask(db, script).as_slice() {
        [mangrove::Value::I64(id)] => format!("g.V().has('Person', 'id', {id}L)"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn queries_of_the_papers_have_answers() {
    let db = small();
    let person = hub(&db);
    let country = "__.in('hasCreator').out('hasTag').out('hasType').has('name', 'Country')";
    let mut empty = Vec::new();
    let queries: BTreeMap<&str, String> = BTreeMap::from([
        ("CQ1", format!("{person}.repeat(both('knows')).times(3).dedup().limit(100)")),
        ("CQ2", format!(
            "{person}.sideEffect(out('workAt').store('c')).repeat(both('knows')).emit(out('workAt').where(within('c'))).times(3).dedup().limit(20)"
        ).replace("store('c')", "aggregate('c')")),
        ("CQ3", format!("{person}.union(both('knows'), both('knows').both('knows')).dedup().where({country}).order().by('id').limit(10)")),
        ("CQ5", format!("{person}.repeat(both('knows')).times(2).emit().dedup().where(out('workAt')).where({country}).limit(5)")),
        ("IC1", format!("{person}.repeat(both('knows')).times(2).emit().dedup().has('firstName')")),
        ("IC2", format!("{person}.both('knows').in('hasCreator').order().by('creationDate', desc).limit(20)")),
        ("IC3", format!("{person}.out('isLocatedIn').out('isPartOf').as('home').select('home').in('isPartOf').in('isLocatedIn').in('hasCreator').out('isLocatedIn').where(neq('home'))")),
        ("IC4", format!("{person}.both('knows').in('hasCreator').hasLabel('Post').out('hasTag').groupCount().by('name')")),
        ("IC5", format!("{person}.both('knows').inE('hasMember').has('joinDate', gt(1262304000000L)).outV().out('containerOf')")),
        ("IC6", format!("{person}.both('knows').in('hasCreator').hasLabel('Post').out('hasTag').dedup().limit(10)")),
        ("IC7", format!("{person}.in('hasCreator').inE('likes').order().by('creationDate', desc).outV().limit(20)")),
        ("IC8", format!("{person}.in('hasCreator').in('replyOf').order().by('creationDate', desc).limit(20)")),
        ("IC9", format!("{person}.both('knows').both('knows').dedup().in('hasCreator').has('creationDate', lt(1356998400000L)).limit(20)")),
        ("IC11", format!("{person}.both('knows').outE('workAt').has('workFrom', lt(2012)).inV().out('isLocatedIn').has('name')")),
        ("IC12", format!("{person}.both('knows').in('hasCreator').hasLabel('Comment').out('replyOf').hasLabel('Post').out('hasTag').out('hasType').repeat(out('isSubclassOf')).until(has('name', 'Person'))")),
        ("IS1", format!("{person}.project('f', 'l', 'b', 'ip', 'c', 'g', 's', 'e').by('firstName').by('lastName').by('birthday').by('locationIP').by(out('isLocatedIn').values('id')).by('gender').by(values('speaks').fold()).by(values('email').fold())")),
        ("IS2", format!("{person}.in('hasCreator').hasLabel('Comment').repeat(out('replyOf')).until(hasLabel('Post')).out('hasCreator')")),
        ("IS6", "g.V().hasLabel('Comment').limit(5).repeat(out('replyOf')).until(hasLabel('Post')).in('containerOf').out('hasModerator')".to_owned()),
        ("Q-1", "g.V().hasLabel('Forum').limit(20).out('hasMember')".to_owned()),
        ("Q-2", "g.V().hasLabel('Post').limit(20).in('containerOf')".to_owned()),
        ("Q-3", format!("{person}.both('knows').both('knows')")),
        ("Q-4", format!("{person}.out('workAt').out('isLocatedIn')")),
        ("Q-5", format!("{person}.both('knows').out('hasInterest').out('hasType')")),
        ("Q-6", "g.V().hasLabel('Post').limit(20).in('containerOf').out('hasTag').out('hasType')".to_owned()),
        ("Q-7", "g.V().hasLabel('Comment').limit(20).out('hasCreator').out('hasInterest').out('hasType').out('isSubclassOf')".to_owned()),
    ]);
    for (name, query) in queries {
        if number(&db, &format!("{query}.count()")) == 0 {
            empty.push(name);
        }
    }
    assert_eq!(empty, Vec::<&str>::new());
}

#[test]
fn files_load_to_the_same_network() {
    let spec = spec(40);
    let folder = folder("social");
    let mut files = CsvSink::new(&folder).unwrap();
    spec.generate(&mut files).unwrap();
    files.finish().unwrap();
    let name = "map(union(label(), values('id')).fold())";
    check_same(&dump(&loaded(&folder), name), &dump(&database(&|sink| spec.generate(sink)), name));
    // Names are LDBC's, so the mapping for its data reads them as well.
    let header = |file: &str| std::fs::read_to_string(folder.join(file)).unwrap().lines().next().unwrap().to_owned();
    assert_eq!(header("Forum_hasMember_Person.csv"), ":START_ID(Forum)|:END_ID(Person)|joinDate:long");
    assert_eq!(header("Place.csv"), "id:ID(Place)|:LABEL|name:string|url:string");
}

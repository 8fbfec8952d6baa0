//! The seeds: frames of real clients, scripts of the tests, small files of every format, and the disk of a new
//! database.

use std::sync::Arc;

use mangrove::{Database, DatabaseOptions};
use mangrove_durable::disk::{SimDisk, read_file};
use rand::rngs::SmallRng;
use rand::{Rng, RngCore, SeedableRng};
use uuid::Uuid;

/// The size of a block of the log, in bytes. Batches begin at its multiples.
const BLOCK: usize = 4096;

/// Lines `name hex` of a fixture file.
fn hex_lines(text: &str) -> Vec<Vec<u8>> {
    let bytes = |line: &str| -> Option<Vec<u8>> {
        let hex = line.split(' ').nth(1)?;
        (0..hex.len() / 2).map(|at| u8::from_str_radix(hex.get(2 * at..2 * at + 2)?, 16).ok()).collect()
    };
    text.lines().filter_map(bytes).collect()
}

/// Lines `name text` of a fixture file.
fn text_lines(text: &str) -> Vec<Vec<u8>> {
    text.lines().filter_map(|line| Some(line.split_once(' ')?.1.as_bytes().to_vec())).collect()
}

fn texts(texts: &[&str]) -> Vec<Vec<u8>> {
    texts.iter().map(|text| text.as_bytes().to_vec()).collect()
}

/// Values as gremlinpython encodes them.
pub fn graphbinary_values() -> Vec<Vec<u8>> {
    hex_lines(include_str!("../../crates/gremlin/tests/fixtures/values.txt"))
}

/// Requests of gremlinpython.
pub fn graphbinary_requests() -> Vec<Vec<u8>> {
    hex_lines(include_str!("../../crates/gremlin/tests/fixtures/requests.txt"))
}

/// The server's responses.
pub fn graphbinary_responses() -> Vec<Vec<u8>> {
    hex_lines(include_str!("../../crates/gremlin/tests/fixtures/responses.txt"))
}

/// Values of gremlinpython, in both versions of GraphSON.
pub fn graphson_values() -> Vec<Vec<u8>> {
    let mut seeds = text_lines(include_str!("../../crates/gremlin/tests/fixtures/values-graphson3.txt"));
    seeds.extend(text_lines(include_str!("../../crates/gremlin/tests/fixtures/values-graphson2.txt")));
    seeds
}

/// Requests of gremlinpython in both versions of GraphSON, and bodies as written by hand for curl.
pub fn graphson_requests() -> Vec<Vec<u8>> {
    let mut seeds = text_lines(include_str!("../../crates/gremlin/tests/fixtures/requests-graphson3.txt"));
    seeds.extend(text_lines(include_str!("../../crates/gremlin/tests/fixtures/requests-graphson2.txt")));
    seeds.extend(texts(&[
        r#"{"gremlin":"g.V(x)","bindings":{"x":1},"aliases":{"g":"gsi"},"batchSize":7,"evaluationTimeout":500}"#,
        r#"{"requestId":"41d2e28a-20a4-4ab0-b379-d810dede3786","op":"eval","processor":"session","args":{"gremlin":"1","session":"s"}}"#,
    ]));
    seeds
}

/// Query strings of `GET` requests.
pub fn http_queries() -> Vec<Vec<u8>> {
    texts(&[
        "gremlin=g.V%28x%29&bindings.x=1&bindings.y=a+b%C3%A9&aliases.g=gsi&batchSize=7&evaluationTimeout=500",
        "gremlin=g.V()&language=gremlin-lang&materializeProperties=tokens&accepts=application/json",
    ])
}

/// Values of the header `Accept`.
pub fn http_accepts() -> Vec<Vec<u8>> {
    texts(&[
        "application/vnd.gremlin-v3.0+json;types=false, application/json;q=0.5, */*;q=0.1",
        "application/vnd.graphbinary-v1.0",
    ])
}

/// Scripts of the project's tests: each has a pair of adjacent steps that no script before it has.
pub fn scripts() -> Vec<Vec<u8>> {
    include_str!("../seeds/scripts.txt").lines().map(|line| line.as_bytes().to_vec()).collect()
}

/// Tables with headers of several kinds.
pub fn tables() -> Vec<Vec<u8>> {
    texts(&[
        "~id,~label,name:string,age:int,tags:string[]\n1,person,ada,36,a;b\n2,person,\"b \"\"c\"\"\",,\n",
        ":ID|:LABEL|born:date|at:datetime|ok:boolean|w:double\n1|x|2020-02-29|2020-01-01T00:00:00Z|true|1.5\n",
        "id,name,price\n1,a,1.5\n2,b,NaN\n3,,\n",
        "\u{feff}id;name\r\n1;\"a;\nb\"\r\n",
    ])
}

/// GraphSON in adjacency form.
pub fn graphson_files() -> Vec<Vec<u8>> {
    texts(&[
        r#"{"id":{"@type":"g:Int32","@value":1},"label":"p","outE":{"k":[{"id":"e","inV":2,"properties":{"w":{"@type":"g:Property","@value":{"key":"w","value":3}}}}]},"properties":{"n":[{"id":0,"value":"x"}]}}
{"id":2,"label":"p","inE":{"k":[{"id":"e","outV":1}]}}
"#,
        r#"{"id":"a","label":"x","properties":{"n":[{"id":1,"value":{"@type":"g:List","@value":[1,"a",null]},"properties":{"since":2}}]}}
"#,
    ])
}

/// GraphML.
pub fn graphml_files() -> Vec<Vec<u8>> {
    texts(&[r#"<?xml version="1.0"?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
<key id="labelV" for="node" attr.name="labelV" attr.type="string"/>
<key id="labelE" for="edge" attr.name="labelE" attr.type="string"/>
<key id="d0" for="node" attr.name="name" attr.type="string"/>
<key id="d1" for="node" attr.name="age" attr.type="int"><default>18</default></key>
<key id="d2" for="edge" attr.name="weight" attr.type="double"/>
<graph id="G" edgedefault="directed">
<node id="a&amp;b"><data key="labelV">person</data><data key="d0">A &lt; &#233; <![CDATA[<x>]]></data></node>
<node id="2"><data key="d1">30</data></node>
<edge id="7" source="a&amp;b" target="2"><data key="labelE">knows</data><data key="d2">0.5</data></edge>
</graph></graphml>
"#])
}

/// Parquet files that Arrow wrote: with dictionaries, lists and maps; with delta encodings and data pages of version 2;
/// with several row groups.
pub fn parquet_files() -> Vec<Vec<u8>> {
    let files: [&[u8]; 3] = [
        include_bytes!("../seeds/types.parquet"),
        include_bytes!("../seeds/edges.parquet"),
        include_bytes!("../seeds/old.parquet"),
    ];
    files.map(<[u8]>::to_vec).to_vec()
}

/// The mappings that ship with the project.
pub fn mappings() -> Vec<Vec<u8>> {
    texts(&[
        include_str!("../../mappings/openflights.toml"),
        include_str!("../../mappings/tinysnb.toml"),
        include_str!("../../mappings/snap.toml"),
    ])
}

/// A users file.
pub fn user_lists() -> Vec<Vec<u8>> {
    texts(&[
        "[users.ada]\npassword = \"$argon2id$v=19$m=19456,t=2,p=1$c2FsdHNhbHQ$aGFzaGhhc2hoYXNoaGFzaA\"\nroles = { \"*\" = \"admin\", books = \"read\" }\n",
    ])
}

/// The disk of a database that was created, written, checkpointed and written again.
fn disk() -> SimDisk {
    let disk = SimDisk::new();
    let mut options = DatabaseOptions::default();
    options.durability.checkpoint_log_bytes = Some(0);
    // Every file contains these bytes: with random ones, each run would have other inputs.
    options.durability.new_database = Some(Uuid::from_u128(1));
    (options.durability.log.segment_bytes_min, options.durability.log.segment_bytes_max) = (64 << 10, 64 << 10);
    let database = Database::open_on(Arc::new(disk.clone()), &options).expect("a new disk takes a database");
    let run =
        |script: &str| database.query(script).and_then(|rows| rows.collect().map(drop)).expect("the script is right");
    for script in [
        "g.addV('person').property(id,'a').property('name','ada').property('age',36).as('a').addV('person').property(id,2).property(list,'tag','x').property(list,'tag',1.5d).addE('knows').to('a').property('since',2020)",
        "g.call('mangrove.index.create').with('label','person').with('key','name')",
    ] {
        run(script);
    }
    database.checkpoint().expect("the disk has room");
    run("g.addV('book').property('title','t').property('ok',true)");
    run("g.V('a').property('age',37).outE().drop()");
    disk
}

/// The files in a folder of that disk.
fn files(folder: &str) -> Vec<Vec<u8>> {
    let disk = disk();
    let names = disk.files().into_iter().filter(|(path, _)| path.starts_with(folder));
    names.map(|(path, _)| read_file(&disk, &path).expect("the file is in the list")).collect()
}

/// Log segments, up to their last written byte.
pub fn log_segments() -> Vec<Vec<u8>> {
    let written = |segment: Vec<u8>| {
        let end = segment.iter().rposition(|byte| *byte != 0).map_or(0, |last| (last / BLOCK + 1) * BLOCK);
        segment[..end].to_vec()
    };
    files("wal/").into_iter().map(written).filter(|segment| !segment.is_empty()).collect()
}

/// Manifests.
pub fn manifests() -> Vec<Vec<u8>> {
    files("manifest/")
}

/// The first record of each batch in the log, without the batch's header.
pub fn log_records() -> Vec<Vec<u8>> {
    /// The size of a batch's header.
    const HEADER: usize = 64;
    let segments = log_segments();
    let batches = segments.iter().flat_map(|segment| segment.chunks(BLOCK).skip(1));
    // After the header: the record's length, which takes one byte for these short records, and the record.
    let records = batches.filter_map(|batch| {
        let length = usize::from(*batch.get(HEADER)?);
        batch.get(HEADER + 1..HEADER + 1 + length).map(<[u8]>::to_vec)
    });
    records.filter(|record| !record.is_empty()).collect()
}

/// The blocks of packs, without their frames.
pub fn stored_blocks() -> Vec<Vec<u8>> {
    files("pack/").iter().flat_map(|file| blocks_of(file)).collect()
}

/// The blocks of the checkpoint files of a database of format 1, without their frames.
pub fn blocks_of_format_1() -> Vec<Vec<u8>> {
    let files: [&[u8]; 3] = [
        include_bytes!("../../crates/db/tests/formats/1/segment/e7cfcb8e-00001-0000000000000003"),
        include_bytes!("../../crates/db/tests/formats/1/segment/ed7f318e-names-0000000000000003"),
        include_bytes!("../../crates/db/tests/formats/1/segment/f674cdf3-00002-0000000000000003"),
    ];
    files.iter().flat_map(|file| blocks_of(file)).collect()
}

/// The bodies of the blocks of a checkpoint file. The frame of a block begins with its length.
fn blocks_of(file: &[u8]) -> Vec<Vec<u8>> {
    /// The size of a checkpoint file's header.
    const HEADER: usize = 64;
    let (mut blocks, mut rest) = (Vec::new(), file.get(HEADER..).unwrap_or_default());
    while let Some((frame, after)) = rest.split_first_chunk::<8>() {
        let length = u32::from_le_bytes([frame[0], frame[1], frame[2], frame[3]]) as usize;
        let Some((body, after)) = after.split_at_checked(length) else { break };
        blocks.push(body.to_vec());
        rest = after;
    }
    blocks
}

/// Encoded values: each tag with a few bytes, and the records of the log, which contain values.
pub fn stored_values() -> Vec<Vec<u8>> {
    let mut seeds: Vec<Vec<u8>> = (0..32u8).map(|tag| vec![tag, 3, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10]).collect();
    seeds.extend(log_records());
    seeds
}

/// Bytes that compose queries; any bytes do.
pub fn compositions() -> Vec<Vec<u8>> {
    let mut random = SmallRng::seed_from_u64(1);
    let seed = |_| {
        let mut bytes = vec![0; random.random_range(1..120)];
        random.fill_bytes(&mut bytes);
        bytes
    };
    (0..200).map(seed).collect()
}

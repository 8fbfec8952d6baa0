//! Rules of the schema in a process that is killed: rules are made and dropped while others write, as often against the
//! rules as not. Whatever the moment of the kill, a rule that was acknowledged is there, one whose drop was
//! acknowledged is not, and every rule that is there holds of all that is there, and is enforced.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::time::Duration;

use mangrove::{
    Database, DatabaseOptions, DurabilityOptions, ElementKind, ErrorKind, LogOptions, Result, RuleDefinition, RuleId,
    Value,
};

use crate::chance::Chance;
use crate::embedded::{lines, say};
use crate::{Folder, kills};

const DIRECTORY: &str = "MANGROVE_KILL_RULES";
const SEED: &str = "MANGROVE_KILL_SEED";
/// A database is replaced by a new one after this many kills.
const KILLS_A_DATABASE: u64 = 8;
const WRITERS: u64 = 2;
const READY: &str = "ready";

/// The rules that are made: of vertices, of edges, and of both ends of an edge.
fn definitions() -> [RuleDefinition; 4] {
    let (person, at) = ("person", "at");
    [
        RuleDefinition::Required { kind: ElementKind::Vertex, label: person.into(), key: "name".into() },
        RuleDefinition::Typed {
            kind: ElementKind::Vertex,
            label: person.into(),
            key: "name".into(),
            value_type: "string".into(),
        },
        RuleDefinition::Required { kind: ElementKind::Edge, label: at.into(), key: "since".into() },
        RuleDefinition::Ends { label: at.into(), pairs: vec![(person.into(), "company".into())] },
    ]
}

/// A traversal that finds the elements that break a rule.
fn breaking(rule: &RuleDefinition) -> &'static str {
    match rule {
        RuleDefinition::Required { kind: ElementKind::Vertex, .. } => "g.V().hasLabel('person').hasNot('name')",
        RuleDefinition::Required { kind: ElementKind::Edge, .. } => "g.E().hasLabel('at').hasNot('since')",
        RuleDefinition::Typed { .. } => {
            "g.V().hasLabel('person').properties('name').not(value().is(typeOf(GType.STRING)))"
        }
        RuleDefinition::Ends { .. } => {
            "g.E().hasLabel('at').not(and(outV().hasLabel('person'), inV().hasLabel('company')))"
        }
    }
}

/// A change that the rule refuses.
fn refused(rule: &RuleDefinition) -> &'static str {
    match rule {
        RuleDefinition::Required { kind: ElementKind::Vertex, .. } => "g.addV('person')",
        RuleDefinition::Typed { .. } => "g.addV('person').property('name', 7)",
        RuleDefinition::Required { kind: ElementKind::Edge, .. } => {
            "g.addV('person').property('name', 'x').as('a').addV('company').addE('at').from('a')"
        }
        RuleDefinition::Ends { .. } => {
            "g.addV('company').as('a').addV('company').addE('at').from('a').property('since', 1)"
        }
    }
}

/// A random change; half of the changes break some rule.
fn change(chance: &mut Chance) -> String {
    let name =
        ["", ".property('name', 'x')", ".property('name', 'y')", ".property('name', 7)"][chance.below(4) as usize];
    let since = ["", ".property('since', 1)"][chance.below(2) as usize];
    let target = ["company", "company", "person"][chance.below(3) as usize];
    match chance.below(4) {
        0 => "g.V().hasLabel('person').limit(1).properties('name').drop()".into(),
        1 => "g.V().limit(3).drop()".into(),
        2 => format!("g.addV('person'){name}"),
        _ => {
            let other = if target == "person" { "person').property('name', 'z" } else { target };
            format!("g.addV('person'){name}.as('a').addV('{other}').addE('at').from('a'){since}")
        }
    }
}

#[test]
fn rules_outlive_kills_and_hold_of_what_is_left() {
    let folder = Folder::new("rules");
    let data = folder.path().join("data");
    // The rules that are known to exist.
    let mut before = BTreeSet::new();
    let (mut made, mut dropped) = (0, 0);
    for (round, seed) in kills(2).enumerate() {
        if (round as u64).is_multiple_of(KILLS_A_DATABASE) {
            let _ = std::fs::remove_dir_all(&data);
            before.clear();
        }
        let told = run_and_kill(&data, seed);
        made += told.made.len();
        dropped += told.dropped.len();
        before = check(&data, &before, &told, seed);
    }
    println!("{made} rules were made and {dropped} dropped, as far as was told");
    assert!(made > 0 && dropped > 0, "every process was killed before it did anything");
}

/// The reports of a process before it was killed.
#[derive(Default)]
struct Told {
    made: BTreeSet<u32>,
    /// The rules whose drop had begun.
    dropping: BTreeSet<u32>,
    dropped: BTreeSet<u32>,
}

fn run_and_kill(data: &Path, seed: u64) -> Told {
    let mut chance = Chance::new(seed);
    let mut child: Child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "rules::driver", "--nocapture", "--quiet"])
        .env(DIRECTORY, data)
        .env(SEED, seed.to_string())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = lines(&mut child);
    let mut said: Vec<String> = Vec::new();
    if !seed.is_multiple_of(4) {
        said.extend(lines.iter().take_while(|line| !line.ends_with(READY)));
    }
    std::thread::sleep(Duration::from_micros(chance.below(120_000)));
    child.kill().unwrap();
    child.wait().unwrap();
    let mut told = Told::default();
    for line in said.into_iter().chain(lines) {
        assert!(!line.starts_with("error"), "seed {seed}: {line}");
        if let Some((what, id)) = line.split_once(' ')
            && let Ok(id) = id.parse()
        {
            match what {
                "made" => drop(told.made.insert(id)),
                "dropping" => drop(told.dropping.insert(id)),
                "dropped" => drop(told.dropped.insert(id)),
                _ => {}
            }
        }
    }
    told
}

/// Opens the database and checks its rules. Returns the rules that exist.
fn check(data: &Path, before: &BTreeSet<u32>, told: &Told, seed: u64) -> BTreeSet<u32> {
    let db = Database::open(data.to_str().expect("a temporary directory has a name of text"), &options())
        .unwrap_or_else(|error| panic!("seed {seed}: {error}"));
    let there: BTreeSet<u32> = db.rules().iter().map(|rule| rule.id.0).collect();
    for id in before.union(&told.made).filter(|id| !told.dropping.contains(id)) {
        assert!(there.contains(id), "seed {seed}: rule {id} was acknowledged, and {there:?} are there");
    }
    for id in &told.dropped {
        assert!(!there.contains(id), "seed {seed}: the drop of rule {id} was acknowledged");
    }
    for rule in db.rules() {
        let broken = ask(&db, &format!("{}.count()", breaking(&rule.definition))).unwrap();
        assert_eq!(broken, [Value::I64(0)], "seed {seed}: {} does not hold", rule.text);
        let error = ask(&db, refused(&rule.definition)).expect_err(&rule.text);
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "seed {seed}: {error}");
    }
    there
}

fn options() -> DatabaseOptions {
    let log = LogOptions { segment_bytes_min: 32 << 10, segment_bytes_max: 32 << 10, ..LogOptions::default() };
    let durability = DurabilityOptions { log, checkpoint_log_bytes: Some(64 << 10), ..DurabilityOptions::default() };
    DatabaseOptions { tablet_count: 4, durability, ..DatabaseOptions::default() }
}

fn ask(db: &Database, script: &str) -> Result<Vec<Value>> {
    db.query(script)?.collect()
}

/// The process that is killed. As a test of its own it does nothing.
#[test]
fn driver() {
    let Ok(directory) = std::env::var(DIRECTORY) else { return };
    let seed = std::env::var(SEED).unwrap().parse().unwrap();
    if let Err(error) = drive(&directory, seed) {
        say(&format!("error: {error}"));
    }
}

fn drive(directory: &str, seed: u64) -> Result<()> {
    let db = Database::open(directory, &options())?;
    say(READY);
    let failed: Mutex<Option<String>> = Mutex::new(None);
    let fail = |what: String| {
        failed.lock().unwrap().get_or_insert(what);
    };
    std::thread::scope(|scope| {
        for writer in 0..WRITERS {
            let (db, fail) = (&db, &fail);
            scope.spawn(move || {
                let mut chance = Chance::new(seed ^ ((writer + 1) << 32));
                loop {
                    match ask(db, &change(&mut chance)) {
                        Ok(_) => {}
                        Err(error) if error.kind() == ErrorKind::Conflict => {}
                        Err(error) if error.message().contains("rule ") => {}
                        Err(error) => break fail(format!("a writer: {error}")),
                    }
                }
            });
        }
        let mut chance = Chance::new(seed);
        while failed.lock().unwrap().is_none() {
            if let Err(error) = make_or_drop(&db, &mut chance) {
                fail(format!("a rule: {error}"));
            }
        }
        // Writers go on until they are killed.
        say(&format!("error: {:?}", failed.lock().unwrap()));
        std::process::exit(1);
    })
}

/// Drops a rule if it exists. Otherwise deletes the elements that break it, and tries to create it.
fn make_or_drop(db: &Database, chance: &mut Chance) -> Result<()> {
    if chance.once_in(4) {
        return db.checkpoint().map(drop);
    }
    let definition = &definitions()[chance.below(4) as usize];
    if let Some(rule) = db.rules().into_iter().find(|rule| rule.definition == *definition) {
        let RuleId(id) = rule.id;
        say(&format!("dropping {id}"));
        db.drop_rule(rule.id)?;
        say(&format!("dropped {id}"));
        return Ok(());
    }
    match ask(db, &format!("{}.drop()", breaking(definition))) {
        Err(error) if error.kind() != ErrorKind::Conflict && !error.message().contains("rule ") => return Err(error),
        _ => {}
    }
    match db.define_rule(definition) {
        Ok(RuleId(id)) => say(&format!("made {id}")),
        // Another thread has added an element that breaks it.
        Err(error) if error.kind() == ErrorKind::InvalidArgument => {}
        Err(error) => return Err(error),
    }
    Ok(())
}

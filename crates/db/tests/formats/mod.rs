//! Files of every format that was ever released are read by every later version: they are kept beside this test.

mod graph;

use std::path::{Path, PathBuf};

use mangrove::{Database, verify};

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let (path, name) = entry.map(|entry| (entry.path(), entry.file_name())).unwrap();
        match path.is_dir() {
            true => copy(&path, &to.join(name)),
            false => drop(std::fs::copy(&path, to.join(name)).unwrap()),
        }
    }
}

#[test]
fn databases_of_every_format_are_opened() {
    let kept = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/formats");
    let mut formats: Vec<PathBuf> = std::fs::read_dir(kept).unwrap().map(|entry| entry.unwrap().path()).collect();
    formats.retain(|path| path.is_dir());
    assert!(!formats.is_empty());
    for format in formats {
        let name = format.file_name().unwrap().to_str().unwrap().to_owned();
        let copied = std::env::temp_dir().join(format!("mangrove-formats-{}-{name}", std::process::id()));
        copy(&format, &copied);
        let directory = copied.to_str().unwrap();
        verify(directory, &|_| {}).unwrap_or_else(|error| panic!("{name}: {error}"));
        // Checked when it is opened, and again after this version has changed it.
        for _ in 0..2 {
            let db = Database::open(directory, &graph::options()).unwrap();
            graph::check(&db);
            db.query("g.V(1).property(single, 'seen', true)").unwrap().collect().unwrap();
            db.query("g.V(1).properties('seen').drop()").unwrap().collect().unwrap();
        }
        std::fs::remove_dir_all(&copied).unwrap();
    }
}

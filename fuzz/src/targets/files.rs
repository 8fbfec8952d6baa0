//! Targets for files that the loader reads, and for the users file of the server.

use std::cell::RefCell;
use std::path::PathBuf;

use mangrove_graph::{Result, TabletId, VertexId};
use mangrove_load::{EdgeBatch, LoadFormat, LoadOptions, LoadSink, Mapping, VertexBatch, load};
use mangrove_server::inputs;

/// A sink that counts elements and checks the order, lengths and ends that the loader promises.
#[derive(Default)]
struct Count {
    vertices: u64,
    edges: u64,
}

impl LoadSink for Count {
    fn vertices(&mut self, _: &str, batch: VertexBatch) -> Result<Vec<VertexId>> {
        assert!(self.edges == 0, "all vertices come before the first edge");
        assert!(batch.columns.iter().all(|column| column.values.len() == batch.len));
        let first = self.vertices;
        self.vertices += batch.len as u64;
        Ok((first..self.vertices).map(|slot| VertexId::new(TabletId(1), slot)).collect())
    }

    fn edges(&mut self, _: &str, batch: EdgeBatch) -> Result<()> {
        assert!(batch.columns.iter().all(|column| column.values.len() == batch.ends.len()));
        let is_known = |vertex: &VertexId| vertex.slot() < self.vertices;
        assert!(batch.ends.iter().all(|(source, target)| is_known(source) && is_known(target)));
        self.edges += batch.ends.len() as u64;
        Ok(())
    }
}

thread_local! {
    /// The file for the current input, because the loader reads files.
    static FILE: RefCell<Option<Scratch>> = const { RefCell::new(None) };
}

/// A file that is removed when its thread ends.
struct Scratch(PathBuf);

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Loads the bytes as a file. Returns true if the file has a vertex and no error.
fn loads(bytes: &[u8], format: LoadFormat) -> bool {
    let path = FILE.with_borrow_mut(|file| {
        let new = || {
            let name = format!("mangrove-fuzz-{}-{:?}.txt", std::process::id(), std::thread::current().id());
            Scratch(std::env::temp_dir().join(name))
        };
        file.get_or_insert_with(new).0.clone()
    });
    std::fs::write(&path, bytes).expect("the folder for temporary files takes one");
    let options = LoadOptions { format: Some(format), ..LoadOptions::default() };
    let mut sink = Count::default();
    load(&[path], &options, &mut sink, &mut |_| {}).is_ok_and(|_| sink.vertices > 0)
}

/// CSV and other delimited text.
pub fn table(bytes: &[u8]) -> bool {
    loads(bytes, LoadFormat::Table)
}

/// GraphSON in adjacency form.
pub fn graphson(bytes: &[u8]) -> bool {
    loads(bytes, LoadFormat::GraphSon)
}

/// GraphML.
pub fn graphml(bytes: &[u8]) -> bool {
    loads(bytes, LoadFormat::GraphMl)
}

/// Parquet.
pub fn parquet(bytes: &[u8]) -> bool {
    loads(bytes, LoadFormat::Parquet)
}

/// Mappings of tables.
pub fn mapping(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).is_ok_and(|text| Mapping::parse(text).is_ok())
}

/// Users files, with hashes and roles.
pub fn users(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).is_ok_and(inputs::users)
}

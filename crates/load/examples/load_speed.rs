//! Times the loading of files into a sink that forgets them: the cost of reading alone.
//!
//! ```text
//! cargo run --release -p mangrove-load --example load_speed -- [--map MAPPING.toml] FILES…
//! ```

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

use mangrove_graph::{Error, Result, TabletId, VertexId};
use mangrove_load::{EdgeBatch, LoadOptions, LoadSink, Mapping, VertexBatch, load};

/// Numbers vertices and forgets everything.
#[derive(Default)]
struct Forgetful {
    vertices: u64,
}

impl LoadSink for Forgetful {
    fn vertices(&mut self, _label: &str, batch: VertexBatch) -> Result<Vec<VertexId>> {
        let first = self.vertices;
        self.vertices += batch.len as u64;
        Ok((first..self.vertices).map(|slot| VertexId::new(TabletId(1), slot)).collect())
    }

    fn edges(&mut self, _label: &str, _batch: EdgeBatch) -> Result<()> {
        Ok(())
    }
}

fn run(mut arguments: Vec<String>) -> Result<()> {
    let mut options = LoadOptions::default();
    if arguments.first().is_some_and(|first| first == "--map") {
        let mapping = arguments.get(1).ok_or_else(|| Error::invalid("--map needs a file"))?;
        options.mapping = Some(Mapping::read(Path::new(mapping))?);
        arguments.drain(..2);
    }
    #[allow(clippy::disallowed_methods, reason = "a program at the edge brings the time")]
    let start = Instant::now();
    options.clock = Arc::new(move || start.elapsed());
    let files: Vec<PathBuf> = arguments.into_iter().map(PathBuf::from).collect();
    let (mut rows, mut bytes) = (0, 0);
    let report = load(&files, &options, &mut Forgetful::default(), &mut |progress| {
        (rows, bytes) = (progress.rows, progress.bytes_read);
    })?;
    println!(
        "{} vertices, {} edges, {} rejects in {:.3} s: {:.2} M rows/s, {:.0} MB/s",
        report.vertices,
        report.edges,
        report.rejects,
        report.seconds,
        rows as f64 / report.seconds / 1e6,
        bytes as f64 / report.seconds / 1e6,
    );
    Ok(())
}

fn main() -> ExitCode {
    match run(std::env::args().skip(1).collect()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

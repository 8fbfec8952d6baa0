//! Two analytical reads, each in Gremlin and on the typed interface, of one snapshot: a sum over all persons, and how
//! the use of tags changed. Prints both answers of each, with their times.
//!
//! ```sh
//! cargo run --release --package mangrove --example analytical_reads                    # a generated graph
//! cargo run --release --package mangrove --example analytical_reads -- FOLDER          # CSV files of LDBC SNB
//! ```
//!
//! `pages.rs` deals the pages of the graph to threads, `reads.rs` has the queries, `generated.rs` the graph.

mod generated;
mod pages;
mod reads;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use mangrove::{Database, LoadOptions, Mapping, Result, Tenant};

use crate::pages::Pages;
use crate::reads::TagEvolution;

/// 1 January 2012, and 1 July 2011, in milliseconds since 1970.
const GENERATED_FROM: i64 = 1_325_376_000_000;
const LDBC_FROM: i64 = 1_309_478_400_000;
/// How often a read is measured.
const RUNS: usize = 9;

fn main() -> Result<()> {
    let db = Database::in_memory();
    let question = match std::env::args().nth(1).map(PathBuf::from) {
        None => {
            generated::graph(&db, 100_000, GENERATED_FROM)?;
            TagEvolution::new("class 1", GENERATED_FROM)
        }
        Some(folder) => {
            let options = LoadOptions { mapping: Mapping::shipped("ldbc-snb"), ..LoadOptions::default() };
            db.load(&[folder], &options, &mut |_| {})?;
            TagEvolution::new("OfficeHolder", LDBC_FROM)
        }
    };
    for threads in [1, 0] {
        let transaction = db.begin_read()?;
        let team = db.team_of(&Tenant::default(), threads)?;
        let pages = Pages::new(transaction.view());
        let threads = if threads == 1 { "one thread" } else { "all threads" };
        timed(&format!("owners of red cars, typed, {threads}"), || reads::red_cars(&pages, &team))?;
        timed(&format!("evolution of tags, typed, {threads}"), || Ok(question.rows(&pages, &team)?.len()))?;
    }
    timed("owners of red cars, Gremlin", || reads::red_cars_in_gremlin(&db))?;
    timed("evolution of tags, Gremlin", || Ok(question.rows_in_gremlin(&db)?.len()))?;
    for row in question.rows_in_gremlin(&db)?.iter().take(5) {
        println!("{row:?}");
    }
    Ok(())
}

/// Runs a read several times, and prints the shortest time.
#[allow(clippy::disallowed_methods, reason = "a program that measures looks at the clock")]
fn timed<T: std::fmt::Display>(name: &str, read: impl Fn() -> Result<T>) -> Result<()> {
    let mut answer = read()?;
    let mut shortest = Duration::MAX;
    for _ in 0..RUNS {
        let begin = Instant::now();
        answer = read()?;
        shortest = shortest.min(begin.elapsed());
    }
    println!("{:8.2} ms  {name}: {answer}", shortest.as_secs_f64() * 1000.0);
    Ok(())
}

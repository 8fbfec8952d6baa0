//! The program `mangrove-reference`: checks the corpus, runs random cases, or runs one script.

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use mangrove_oracle::generate::Options;
use mangrove_reference::{cases, corpus, engine, notation, reference::Reference};

/// Compare the engine with TinkerPop's own TinkerGraph.
#[derive(Parser)]
struct Arguments {
    /// The class path with TinkerGraph and the compiled `Reference`.
    class_path: String,
    #[command(subcommand)]
    question: Question,
}

#[derive(Subcommand)]
enum Question {
    /// Check if the reference answers as recorded in the corpus.
    Corpus {
        /// Record the current answers of both sides.
        #[arg(long)]
        record: bool,
        /// Only files whose name contains this text.
        #[arg(long, default_value = "")]
        only: String,
    },
    /// Run random cases on both sides.
    Cases {
        /// The first seed.
        first: u64,
        /// The number of cases.
        count: u64,
        /// The fraction of cases that write.
        #[arg(long, default_value_t = 0.15)]
        writes: f64,
        /// Compare the interpreter of the oracle with the reference, instead of the engine.
        #[arg(long)]
        oracle: bool,
        /// Also print cases that differ for these known reasons.
        #[arg(long)]
        tell: Vec<String>,
    },
    /// Run one script on a graph of the corpus, on both sides.
    Ask {
        /// The graph.
        graph: String,
        /// The script.
        script: String,
    },
}

fn main() -> Result<ExitCode, Box<dyn std::error::Error>> {
    let arguments = Arguments::parse();
    // Some random cases never end, so their limit is short. A record must not depend on the load of the machine.
    let seconds_max = if matches!(arguments.question, Question::Cases { .. }) { 2 } else { 60 };
    let mut reference = Reference::start(&arguments.class_path, seconds_max)?;
    let failed = match arguments.question {
        Question::Corpus { record, only } => check_or_record_corpus(reference, record, &only)?,
        Question::Cases { first, count, writes, oracle, tell: reasons } => {
            let options = Options { write_share: writes, ..Options::default() };
            let tell = &mut |difference: String| println!("{difference}\n");
            let side = if oracle { cases::Side::Oracle } else { cases::Side::Engine };
            let report = cases::run(&mut reference, first..first + count, &options, side, &reasons, tell)?;
            for (why, seeds) in &report.skipped {
                println!("not compared, {why}: {} ({seeds:?})", seeds.len());
            }
            println!("known: {:?}; errors out of reach: {}", report.known, report.out_of_reach);
            println!("{} passed, {} failed", report.agreed + report.out_of_reach, report.differed);
            report.differed
        }
        Question::Ask { graph, script } => {
            let case = corpus::Case { scripts: vec![script], ordered: true, reference: None, ours: None };
            let theirs = corpus::Theirs::new(reference).ask(&graph, &case)?;
            let database = engine::graph(corpus::folder(), &graph)?;
            let ours = engine::ask(&database, &case.scripts[0]).map(|results| notation::written(&results, true));
            println!("{}", corpus::beside(&theirs, &ours.map_err(|error| error.to_string())));
            0
        }
    };
    Ok(if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Compares the reference with the record, or records the answers of both sides. Returns the number of wrong answers.
fn check_or_record_corpus(reference: Reference, record: bool, only: &str) -> Result<usize, Box<dyn std::error::Error>> {
    let (mut right, mut wrong) = (0, 0);
    let (mut theirs, mut ours) = (corpus::Theirs::new(reference), corpus::Ours::default());
    for file in corpus::files()? {
        if !file.to_string_lossy().contains(only) {
            continue;
        }
        let mut items =
            corpus::parse(&std::fs::read_to_string(&file)?).map_err(|error| format!("{}: {error}", file.display()))?;
        for (graph, case) in corpus::cases(&mut items) {
            if record {
                corpus::record(&mut theirs, &mut ours, &graph, case)?;
                continue;
            }
            let now = theirs.ask(&graph, case)?;
            match case.reference.as_ref().is_some_and(|recorded| corpus::agree(recorded, &now)) {
                true => right += 1,
                false => {
                    wrong += 1;
                    println!("{}: on record is {:?}\n  now: {now:?}", case.scripts.join(" ; "), case.reference);
                }
            }
        }
        if record {
            std::fs::write(&file, corpus::render(&items))?;
        }
    }
    println!("{right} passed, {wrong} failed");
    Ok(wrong)
}

//! The program `mangrove-fuzz`: shows targets mutated inputs for a given time, or single files.
//!
//! It writes its results only to the folder of `--findings`. Its exit code is a failure if an input did harm.

#![forbid(unsafe_code)]

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use clap::Parser;
use mangrove_fuzz::drive::{Effort, MemoryCounter, Options, Shown, drive};
use mangrove_fuzz::{TARGETS, Target};
use peak_alloc::PeakAlloc;

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

/// The bytes that were allocated when the current count began.
static BEFORE: AtomicUsize = AtomicUsize::new(0);

/// Show mutated inputs to every decoder of untrusted input
#[derive(Parser, Debug)]
#[command(name = "mangrove-fuzz", max_term_width = 100)]
struct Cli {
    /// The targets; all of them if none is named
    #[arg(long, value_delimiter = ',')]
    target: Vec<String>,
    /// The time of each target, in seconds
    #[arg(long, default_value_t = 10.0)]
    seconds: f64,
    /// The seed of the random numbers
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// The folder for inputs that did harm
    #[arg(long, value_name = "DIR", default_value = "target/fuzz")]
    findings: PathBuf,
    /// Write each input to this folder before it is shown: if the process aborts, the last one did it
    #[arg(long)]
    trail: bool,
    /// Print the names of the targets and exit
    #[arg(long)]
    list: bool,
    /// Show these files to the target, once each, and no mutations
    files: Vec<PathBuf>,
}

fn main() -> ExitCode {
    match run(&Cli::parse()) {
        Ok(0) => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(cli: &Cli) -> Result<usize, String> {
    let unknown = |name: &String| {
        let known: Vec<&str> = TARGETS.iter().map(|target| target.name).collect();
        format!("there is no target `{name}`; there are {}", known.join(", "))
    };
    let targets: Vec<&'static Target> = match cli.target.is_empty() {
        true => TARGETS.iter().collect(),
        false => {
            cli.target.iter().map(|name| Target::find(name).ok_or_else(|| unknown(name))).collect::<Result<_, _>>()?
        }
    };
    if cli.list {
        targets.iter().for_each(|target| println!("{}", target.name));
        return Ok(0);
    }
    let cannot = |path: &Path, error: std::io::Error| format!("{}: {error}", path.display());
    let mut harm_count = 0;
    if !cli.files.is_empty() {
        // The first input pays for lazy initialization, which should not count.
        targets.iter().for_each(|target| drop(Shown::by(target, None, b"")));
        for (target, file) in targets.iter().flat_map(|target| cli.files.iter().map(move |file| (target, file))) {
            let input = std::fs::read(file).map_err(|error| cannot(file, error))?;
            // The input is printed first, because its run may not end.
            println!("{} {}: {}", target.name, file.display(), target.text(&input));
            let shown = Shown::by(target, Some(MEMORY), &input);
            let harm = shown.harm(target, PATIENCE, &input);
            harm_count += usize::from(harm.is_some());
            let outcome =
                harm.unwrap_or_else(|| if shown.outcome == Ok(true) { "accepted" } else { "refused" }.to_owned());
            println!("    {outcome}, took {}", taken(shown.elapsed, shown.peak_bytes));
        }
        return Ok(harm_count);
    }
    std::fs::create_dir_all(&cli.findings).map_err(|error| cannot(&cli.findings, error))?;
    // A finding has the message of its panic. Thousands of messages on the terminal would hide everything else.
    std::panic::set_hook(Box::new(|_| {}));
    for target in targets {
        let options = Options {
            effort: Effort::Time(Duration::from_secs_f64(cli.seconds)),
            seed: cli.seed,
            memory: Some(MEMORY),
            patience: PATIENCE,
            trail: cli.trail.then(|| cli.findings.join(format!("{}.trail", target.name))),
            on_finding: |target, finding| {
                println!("{}: {}: {}", target.name, finding.harm, target.text(&finding.input))
            },
        };
        let report = drive(target, &options);
        println!(
            "{:20} {:>10} inputs, {:>9} accepted, at most {}, {} found",
            target.name,
            report.executions,
            report.accepted,
            taken(report.longest.amount, report.largest.amount),
            report.findings.len()
        );
        for (what, input) in [("longest", &report.longest.input), ("largest", &report.largest.input)] {
            let path = cli.findings.join(format!("{}-{what}", target.name));
            std::fs::write(&path, input).map_err(|error| cannot(&path, error))?;
        }
        for (number, finding) in report.findings.iter().enumerate() {
            let path = cli.findings.join(format!("{}-{number}", target.name));
            std::fs::write(&path, &finding.input).map_err(|error| cannot(&path, error))?;
            println!("    {}: {}: {}", path.display(), finding.harm, target.text(&finding.input));
        }
        harm_count += report.findings.len();
    }
    Ok(harm_count)
}

/// Time and memory as text.
fn taken(elapsed: Duration, peak_bytes: usize) -> String {
    format!("{elapsed:.1?} and {:.1} MiB", peak_bytes as f64 / f64::from(1 << 20))
}

/// The factor for time limits if the program is not optimized.
const PATIENCE: u32 = if cfg!(debug_assertions) { 5 } else { 1 };

/// Counts the bytes that [`ALLOCATOR`] holds.
const MEMORY: MemoryCounter = MemoryCounter {
    reset: || {
        ALLOCATOR.reset_peak_usage();
        BEFORE.store(ALLOCATOR.current_usage(), Ordering::Relaxed);
    },
    peak: || ALLOCATOR.peak_usage().saturating_sub(BEFORE.load(Ordering::Relaxed)),
};

//! Shows every target its corpus and mutations of it: the same ones on every machine.
//!
//! `MANGROVE_TIMES` multiplies their number. `MANGROVE_FUZZ_SECONDS` shows each target mutations for a time instead.
//! `MANGROVE_FIRST` sets the seed.

use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};

use mangrove_fuzz::TARGETS;
use mangrove_fuzz::drive::{Effort, MemoryCounter, Options, drive};
use peak_alloc::PeakAlloc;

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

static BEFORE: AtomicUsize = AtomicUsize::new(0);

const MEMORY: MemoryCounter = MemoryCounter {
    reset: || {
        ALLOCATOR.reset_peak_usage();
        BEFORE.store(ALLOCATOR.current_usage(), Ordering::Relaxed);
    },
    peak: || ALLOCATOR.peak_usage().saturating_sub(BEFORE.load(Ordering::Relaxed)),
};

/// A program without optimization takes longer; the harm that this test looks for takes minutes.
const PATIENCE: u32 = 20;

fn main() -> ExitCode {
    let effort = Effort::from_environment();
    let seed = std::env::var("MANGROVE_FIRST").ok().and_then(|text| text.parse().ok()).unwrap_or(1);
    std::panic::set_hook(Box::new(|_| {}));
    let (mut failed, mut inputs) = (0, 0);
    for target in TARGETS {
        let options =
            Options { effort, seed, memory: Some(MEMORY), patience: PATIENCE, trail: None, on_finding: |_, _| {} };
        let report = drive(target, &options);
        inputs += report.executions;
        println!("{}: {} inputs, {} accepted", target.name, report.executions, report.accepted);
        failed += usize::from(!report.findings.is_empty());
        for finding in &report.findings {
            println!("{}: {} on {}", target.name, finding.harm, target.text(&finding.input));
            println!("    bytes: {}", finding.input.iter().map(|byte| format!("{byte:02x}")).collect::<String>());
        }
    }
    println!("{inputs} inputs, seed {seed}");
    // The last line has the form of cargo's own tests, so that it can be counted.
    let outcome = if failed == 0 { "ok" } else { "FAILED" };
    println!("test result: {outcome}. {} passed; {failed} failed", TARGETS.len() - failed);
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

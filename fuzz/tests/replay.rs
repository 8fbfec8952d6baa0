//! Every target is shown its corpus, and mutations of it for a moment.
//!
//! `MANGROVE_FUZZ_SECONDS` says how long that moment is, of each target, and `MANGROVE_FIRST` where random numbers begin.

use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use mangrove_fuzz::TARGETS;
use mangrove_fuzz::drive::{Memory, Options, drive};
use peak_alloc::PeakAlloc;

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

static BEFORE: AtomicUsize = AtomicUsize::new(0);

const MEMORY: Memory = Memory {
    reset: || {
        ALLOCATOR.reset_peak_usage();
        BEFORE.store(ALLOCATOR.current_usage(), Ordering::Relaxed);
    },
    peak: || ALLOCATOR.peak_usage().saturating_sub(BEFORE.load(Ordering::Relaxed)),
};

/// Others may be busy on the machine: what is looked for takes minutes.
const PATIENCE: u32 = 20;

fn main() -> ExitCode {
    let number = |name: &str| std::env::var(name).ok()?.parse::<f64>().ok();
    let seconds = number("MANGROVE_FUZZ_SECONDS").unwrap_or(1.0);
    let seed = number("MANGROVE_FIRST").unwrap_or(1.0) as u64;
    std::panic::set_hook(Box::new(|_| {}));
    let (mut failed, mut inputs) = (0, 0);
    for target in TARGETS {
        let options = Options {
            time: Duration::from_secs_f64(seconds),
            seed,
            memory: Some(MEMORY),
            patience: PATIENCE,
            trail: None,
        };
        let report = drive(target, &options);
        inputs += report.executions;
        failed += usize::from(!report.findings.is_empty());
        for finding in &report.findings {
            let input = String::from_utf8_lossy(&finding.input).escape_debug().to_string();
            println!("{}: {} on {input}", target.name, finding.harm);
            println!("    bytes: {}", finding.input.iter().map(|byte| format!("{byte:02x}")).collect::<String>());
        }
    }
    println!("{inputs} inputs, seed {seed}");
    // As cargo's own tests say it, for who counts.
    let outcome = if failed == 0 { "ok" } else { "FAILED" };
    println!("test result: {outcome}. {} passed; {failed} failed; {seconds} s each", TARGETS.len() - failed);
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

//! The programs of the GAP Benchmark Suite (Beamer, Asanović and Patterson, 2015), for figures beside ours.
//!
//! They read the same edges, run in the same minutes on as many threads, and print a time for each trial.

use std::path::{Path, PathBuf};
use std::process::Command;

use mangrove::{Error, Result};

use crate::harness::Timing;

/// The directory with the programs, and the files of the graph.
pub(super) struct Gap {
    pub(super) programs: PathBuf,
    pub(super) edges: PathBuf,
    pub(super) weighted: PathBuf,
}

impl Gap {
    /// Runs a program on the graph and returns the times of its trials.
    pub(super) fn times(&self, program: &str, threads: usize, arguments: &[String]) -> Result<Vec<f64>> {
        Ok(times_of(&self.output(program, threads, arguments)?))
    }

    /// Counts triangles: the times, and the number.
    pub(super) fn triangles(&self, threads: usize, trials: usize) -> Result<(Timing, u64)> {
        let text = self.output("tc", threads, &["-a".to_owned(), "-n".to_owned(), trials.to_string()])?;
        let mut numbers = text.lines().filter_map(|line| line.strip_suffix(" triangles")?.trim().parse().ok());
        let Some(number) = numbers.next() else {
            return Err(Error::invalid("tc of the GAP suite has printed no number of triangles"));
        };
        Ok((timing_of(times_of(&text), "tc")?, number))
    }

    /// Runs a program on the graph and returns what it prints.
    fn output(&self, program: &str, threads: usize, arguments: &[String]) -> Result<String> {
        let file = if program == "sssp" { &self.weighted } else { &self.edges };
        let path = self.programs.join(program);
        let output = Command::new(&path)
            .env("OMP_NUM_THREADS", threads.to_string())
            .arg("-f")
            .arg(file)
            // Both directions of each edge.
            .arg("-s")
            .args(arguments)
            .output()
            .map_err(|error| Error::from(error).context(path.display()))?;
        if !output.status.success() {
            let message = String::from_utf8_lossy(&output.stderr).into_owned();
            return Err(Error::invalid(format!("{} ended with {}: {message}", path.display(), output.status)));
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// As [`Gap::times`], as one timing.
    pub(super) fn timing(&self, program: &str, threads: usize, arguments: &[&str]) -> Result<Timing> {
        let arguments: Vec<String> = arguments.iter().map(|&argument| argument.to_owned()).collect();
        timing_of(self.times(program, threads, &arguments)?, program)
    }

    /// The median over several sources, one run of the program for each.
    pub(super) fn of_sources(&self, program: &str, threads: usize, sources: &[u32], trials: usize) -> Result<Timing> {
        let mut times = Vec::new();
        for source in sources {
            let arguments = ["-r".to_owned(), source.to_string(), "-n".to_owned(), trials.to_string()];
            times.extend(self.times(program, threads, &arguments)?);
        }
        timing_of(times, program)
    }
}

/// The times of trials, in nanoseconds.
fn times_of(text: &str) -> Vec<f64> {
    let times = text.lines().filter_map(|line| line.strip_prefix("Trial Time:"));
    times.filter_map(|time| time.trim().parse::<f64>().ok()).map(|seconds| seconds * 1e9).collect()
}

fn timing_of(times: Vec<f64>, program: &str) -> Result<Timing> {
    if times.is_empty() {
        return Err(Error::invalid(format!("{program} of the GAP suite has printed no time")));
    }
    Ok(Timing::of(times))
}

/// Says whether a directory has the programs.
pub(super) fn check(programs: &Path) -> Result<()> {
    for program in ["bfs", "pr", "cc", "sssp", "tc", "bc"] {
        if !programs.join(program).is_file() {
            return Err(Error::invalid(format!(
                "{} has no program {program}: run `make` in a checkout of the GAP Benchmark Suite",
                programs.display()
            )));
        }
    }
    Ok(())
}

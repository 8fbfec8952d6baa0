//! The dated page of results: `bench/results/YYYY-MM-DD.md`, one section a suite.
//!
//! A run replaces the sections of its own suites and leaves the others, so the suites of one day can be run one by one. Each
//! section names machine, commit, build and size of its run. Each row has both sides of its ratio and the spread of its
//! repetitions. Touches the one file only.

use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use mangrove::{DateTime, Error, Result};

use crate::options::{Options, Suite};
use crate::report::{Figure, Report};

/// Writes the sections of a report into today's page below a directory, which is made if it does not exist. Returns the path of
/// the page.
pub(crate) fn write(directory: &Path, report: &Report, options: &Options) -> Result<PathBuf> {
    let date = today()?;
    let path = directory.join(format!("{date}.md"));
    let of_path = |error: std::io::Error| Error::from(error).context(path.display());
    std::fs::create_dir_all(directory).map_err(of_path)?;
    let known = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
        Err(error) => return Err(of_path(error)),
    };
    let conditions = conditions(&report.environment, options);
    let sections =
        report.tables().into_iter().map(|(suite, table)| (suite.to_owned(), format!("{conditions}\n{table}")));
    std::fs::write(&path, merged(&date, &known, sections)).map_err(of_path)?;
    Ok(path)
}

/// The date in UTC, as `YYYY-MM-DD`.
fn today() -> Result<String> {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    let seconds = since.ok().and_then(|since| i64::try_from(since.as_secs()).ok());
    let seconds = seconds.ok_or_else(|| Error::invalid("the clock of this machine stands before 1970; set it"))?;
    let text = DateTime { seconds, nanos: 0, offset_seconds: 0 }.to_string();
    Ok(text.chars().take_while(|c| *c != 'T').collect())
}

/// Machine, commit, build and size of a run, as a list.
fn conditions(environment: &[Figure], options: &Options) -> String {
    let mut text = String::new();
    for Figure { case, variant, metric, value, unit, .. } in environment {
        text += &match *unit {
            "B" => format!("- {case}: {:.1} GiB\n", value / f64::from(1 << 30)),
            "flag" => format!("- {case}: {variant}\n"),
            _ => format!("- {case}: {variant}; {metric}: {value}\n"),
        };
    }
    let (log, seconds, threads) = (options.scale.log_vertices(), options.seconds, options.threads);
    let graphs = format!("2^{log} vertices (social networks: see their rows)");
    text + &format!("- run: {graphs}, {seconds} s a case, client threads: {threads}\n")
}

/// The text of a page in which sections replace those of the same name. Sections stand in the order of [`Suite::ALL`].
fn merged(date: &str, known: &str, sections: impl Iterator<Item = (String, String)>) -> String {
    let mut all: Vec<(String, String)> = known
        .split("\n## ")
        .skip(1)
        .filter_map(|section| section.split_once('\n'))
        .map(|(suite, text)| (suite.trim().to_owned(), text.trim().to_owned()))
        .collect();
    for (suite, text) in sections {
        all.retain(|(other, _)| *other != suite);
        all.push((suite, text.trim().to_owned()));
    }
    let place = |suite: &str| Suite::ALL.iter().position(|known| known.name() == suite).unwrap_or(usize::MAX);
    all.sort_by_key(|(suite, _)| place(suite));
    let mut page = format!(
        "# Results of {date}\n\n\
         Written by `mangrove-bench --page`; the method is in [README.md](../README.md). The value is the median of the repetitions,\n\
         between the smallest and the largest. *Limit* is the other side: a hand-written loop, another system, or the machine itself.\n\
         *Times* says how many times worse than the limit the value is. A target that is met has a check mark.\n"
    );
    for (suite, text) in all {
        page += &format!("\n## {suite}\n\n{text}\n");
    }
    page
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_replaces_its_own_sections() {
        let section = |suite: &str, text: &str| (suite.to_owned(), text.to_owned());
        let first = merged("2026-01-02", "", [section("hop", "old"), section("wire", "w")].into_iter());
        let second = merged("2026-01-02", &first, [section("hop", "new"), section("point", "p")].into_iter());
        let expected = [section("point", "p"), section("hop", "new"), section("wire", "w")];
        assert_eq!(second, merged("2026-01-02", "", expected.into_iter()));
        assert!(!second.contains("old"));
    }

    #[test]
    fn a_date_has_ten_characters() {
        assert_eq!(today().unwrap().len(), "2026-01-02".len());
    }
}

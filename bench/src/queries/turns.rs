//! The time of a query at each number of executors, and the ceiling of the machine in the same run.
//!
//! A *way* is one of: the query on a database with N executors; on the thread of its client alone; two independent
//! copies, each on the thread of its client, side by side. The last two run on the database with two executors: the same
//! graph in another place of memory may be a tenth slower. All ways take turns in rounds, and every round begins with
//! another way, so none of them has the warmest caches each time. A round runs the query the same number of times in
//! each way, with all its parameters.
//!
//! Rounds are short, and there are many. Where the host of a virtual machine limits the time of its cores, it stops a core
//! for some milliseconds when both were busy for long. Few rounds meet such a stop then, and the median does not show it.
//!
//! The *ceiling* is the throughput of the two copies divided by that of one. The machine has no second core for one
//! query that it does not have for a second copy. So the time on one thread divided by the ceiling is the limit of the
//! time on several executors.
//!
//! If the ceiling is low, other programs use the cores (or there is only one), and the ratios of this run say nothing.
//! Then the rows have no pass marks, and a note says why.
//!
//! No way is timed before its answers have been checked. Every timed run must return as many rows as the checked one.

use std::time::Instant;

use mangrove::Result;

use super::asked::Asked;
use super::network::Replicas;
use super::station::{Place, Station};
use crate::environment::processor_seconds;
use crate::harness::{REPETITION_COUNT, Timing, wrong};
use crate::options::{Options, Suite};
use crate::report::{Growing, Metric, Row};

/// The variant by which `--only` selects the queries of these suites.
const VARIANT: &str = "executors";

/// Returns true if a query is to be measured.
pub fn is_wanted(options: &Options, case: &str) -> bool {
    options.wants(case, VARIANT)
}

/// A query shorter than this may be up to [`SLOWER_MAX`] times slower on two executors.
const SHORT_NS: f64 = 2e6;
/// See [`SHORT_NS`].
const SLOWER_MAX: f64 = 1.1;
/// A query shorter than this, and not short, must be [`MEDIUM_SPEEDUP`] times faster on two executors.
const MEDIUM_NS: f64 = 5e6;
/// See [`MEDIUM_NS`].
const MEDIUM_SPEEDUP: f64 = 1.3;
/// A longer query must reach this part of the ceiling.
const PART_OF_CEILING: f64 = 0.9;
/// More than two executors must reach this part of the throughput of two.
const PART_OF_TWO: f64 = 0.95;

/// Below this ceiling, a run has no pass marks. Two copies reach 1.66 to 2.03 on two idle cores.
const CEILING_MIN: f64 = 1.3;

/// The length of a round in each way, unless the query takes longer.
const ROUND_SECONDS: f64 = 0.01;
/// The most rounds of a query.
const ROUNDS_MAX: usize = 101;

/// The cores that a query kept busy are told only if processor time was measured over at least this long, because the
/// system counts it in hundredths of a second.
const CORES_SECONDS_MIN: f64 = 0.2;

/// The pass mark of two executors, as a multiple of the throughput of one; `None` below [`CEILING_MIN`].
fn speedup_mark(one_ns: f64, ceiling: f64) -> Option<f64> {
    let mark = match one_ns {
        short if short < SHORT_NS => 1.0 / SLOWER_MAX,
        medium if medium < MEDIUM_NS => MEDIUM_SPEEDUP,
        _ => PART_OF_CEILING * ceiling,
    };
    (ceiling >= CEILING_MIN).then_some(mark)
}

/// The seconds of each round, by way.
struct Samples {
    /// By number of executors, in the order of the replicas.
    executors: Vec<Vec<f64>>,
    client: Vec<f64>,
    pair: Vec<f64>,
    /// Processor seconds and seconds of all rounds on two executors.
    on_two: (f64, f64),
}

/// Checks a query, times it in all ways, and reports. `bare` is the time of a hand-written loop on one core.
pub fn measure(
    options: &Options,
    suite: Suite,
    replicas: &Replicas,
    asked: &Asked,
    bare: Option<f64>,
    report: &mut Growing<'_>,
) -> Result<()> {
    if !is_wanted(options, &asked.case) {
        return Ok(());
    }
    let stations: Vec<Station<'_>> =
        replicas.all().iter().map(|replica| Station::new(&replica.database, &asked.text)).collect::<Result<_>>()?;
    let counts = stations[0].check(asked, Place::Client)?;
    for (station, replica) in stations.iter().zip(replicas.all()) {
        let found = station.check(asked, Place::Executors)?;
        if found != counts {
            let message = format!("{}: another number of rows on {} executors", asked.case, replica.executors);
            return Err(wrong(message));
        }
    }
    let numbers: Vec<usize> = replicas.all().iter().map(|replica| replica.executors).collect();
    let (samples, passes) = take(options, &stations, &numbers, asked, &counts)?;
    let nanos = 1e9 / (passes * asked.runs.len() as u64) as f64;
    Reporter { suite, case: &asked.case, numbers: &numbers, samples: &samples, nanos, bare }.all(report);
    Ok(())
}

fn take(
    options: &Options,
    stations: &[Station<'_>],
    numbers: &[usize],
    asked: &Asked,
    counts: &[u64],
) -> Result<(Samples, u64)> {
    let timed = |run: &dyn Fn() -> Result<()>| -> Result<f64> {
        let begin = Instant::now();
        run()?;
        Ok(begin.elapsed().as_secs_f64())
    };
    let once = timed(&|| stations[0].pass(asked, counts, Place::Executors, 1))?;
    let passes = ((ROUND_SECONDS.min(options.seconds) / once.max(1e-9)) as u64).max(1);
    let round_count = (options.seconds / once.max(ROUND_SECONDS)) as usize;
    let mut samples =
        Samples { executors: vec![Vec::new(); stations.len()], client: vec![], pair: vec![], on_two: (0.0, 0.0) };
    let way_count = stations.len() + 2;
    let alone = &stations[numbers.iter().position(|number| *number == 2).unwrap_or(0)];
    for round in 0..round_count.clamp(REPETITION_COUNT, ROUNDS_MAX) {
        for turn in 0..way_count {
            match (round + turn) % way_count {
                way if way < stations.len() => {
                    let before = processor_seconds();
                    let seconds = timed(&|| stations[way].pass(asked, counts, Place::Executors, passes))?;
                    if numbers[way] == 2 {
                        samples.on_two.0 += processor_seconds() - before;
                        samples.on_two.1 += seconds;
                    }
                    samples.executors[way].push(seconds);
                }
                way if way == stations.len() => {
                    samples.client.push(timed(&|| alone.pass(asked, counts, Place::Client, passes))?);
                }
                _ => samples.pair.push(timed(&|| alone.pair(asked, counts, passes))?),
            }
        }
    }
    Ok((samples, passes))
}

/// Writes the rows of a query.
struct Reporter<'a> {
    suite: Suite,
    case: &'a str,
    numbers: &'a [usize],
    samples: &'a Samples,
    /// Nanoseconds of one run for each second of a round.
    nanos: f64,
    bare: Option<f64>,
}

impl Reporter<'_> {
    fn all(&self, report: &mut Growing<'_>) {
        let Samples { executors, client, pair, on_two } = self.samples;
        let ceiling = rounds(client, pair, |one, two| 2.0 * one / two);
        let alone = self.timing(client);
        let limit = alone.median / ceiling.median;
        report.push(Row::time(self.suite.name(), self.case, "client's thread", alone).beside(self.bare));
        let two = self.of(2).map(|samples| self.timing(samples).median).filter(|_| ceiling.median >= CEILING_MIN);
        for (number, samples) in self.numbers.iter().zip(executors) {
            let mark = if *number > 2 { two.map(|two| two / PART_OF_TWO) } else { None };
            let limit = if *number == 1 { alone.median } else { limit };
            let variant = format!("{number} executor{}", if *number == 1 { "" } else { "s" });
            let row = Row::time(self.suite.name(), self.case, &variant, self.timing(samples));
            report.push(row.beside(limit).aiming_at(mark));
        }
        report.push(self.ratio("ceiling: two copies", ceiling));
        if ceiling.median < CEILING_MIN {
            let (case, median) = (self.case, ceiling.median);
            let why =
                format!("{case} has no pass marks: its ceiling is {median:.2}, so the machine had no two free cores.");
            report.note(self.suite.name(), why);
        }
        if let Some(two) = self.of(2) {
            let speedup = rounds(client, two, |one, two| one / two);
            let mark = speedup_mark(alone.median, ceiling.median);
            report.push(self.ratio("2 executors : client", speedup).beside(ceiling.median).aiming_at(mark));
        }
        if on_two.1 >= CORES_SECONDS_MIN && on_two.0 > 0.0 {
            let (suite, cores) = (self.suite.name(), on_two.0 / on_two.1);
            report.push(Row::single(suite, self.case, "cores busy, 2 executors", Metric::Count, cores, ""));
        }
    }

    /// The samples of this number of executors.
    fn of(&self, number: usize) -> Option<&[f64]> {
        let at = self.numbers.iter().position(|known| *known == number)?;
        Some(&self.samples.executors[at])
    }

    /// The time of one run.
    fn timing(&self, samples: &[f64]) -> Timing {
        most(samples.iter().map(|seconds| seconds * self.nanos).collect())
    }

    fn ratio(&self, variant: &str, ratio: Timing) -> Row {
        let row = Row::single(self.suite.name(), self.case, variant, Metric::Speedup, ratio.median, "×");
        row.between(ratio.min, ratio.max)
    }
}

/// A ratio of two ways over the rounds. See [`most`].
fn rounds(one: &[f64], other: &[f64], ratio: impl Fn(f64, f64) -> f64) -> Timing {
    most(one.iter().zip(other).map(|(one, other)| ratio(*one, *other)).collect())
}

/// The median, and the values between which four fifths of the samples lie; of few samples, all.
fn most(mut samples: Vec<f64>) -> Timing {
    samples.sort_unstable_by(f64::total_cmp);
    let left_out = samples.len() / 10;
    let (min, max) = (samples[left_out], samples[samples.len() - 1 - left_out]);
    Timing { median: samples[samples.len() / 2], min, max }
}

#[cfg(test)]
mod tests {
    use mangrove::Parameters;
    use mangrove_queries::Comparison;
    use serde_json::json;

    use super::*;
    use crate::queries::asked::Run;
    use crate::report::Report;

    fn asked(text: &str, expected: i64) -> Asked {
        Asked {
            case: "numbers".into(),
            text: text.into(),
            runs: vec![Run { parameters: Parameters::new(), expected: vec![json!(expected)] }],
            comparison: Comparison::Ordered,
            unordered: vec![],
        }
    }

    fn measured(options: &Options, asked: &Asked) -> Result<Vec<Row>> {
        let replicas = Replicas::fill(options, &|_| Ok(()))?;
        let mut ignore = |_: &Row| {};
        let mut report = Report::growing(vec![], &mut ignore);
        measure(options, Suite::KHop, &replicas, asked, Some(100.0), &mut report)?;
        Ok(report.finish().rows)
    }

    #[test]
    fn a_row_for_each_number_of_executors_and_the_ceiling() {
        let rows = measured(&Options::for_tests(&[]), &asked("g.inject(1, 2).count()", 2)).unwrap();
        let variants: Vec<&str> = rows.iter().map(|row| row.variant.as_str()).collect();
        let expected = [
            "client's thread",
            "1 executor",
            "2 executors",
            "4 executors",
            "8 executors",
            "ceiling: two copies",
            "2 executors : client",
        ];
        assert_eq!(variants, expected);
        assert_eq!(rows[0].limit, Some(100.0));
        let (speedup, ceiling) = (&rows[6], rows[5].value);
        assert_eq!((speedup.limit, speedup.target), (Some(ceiling), speedup_mark(rows[0].value, ceiling)));
        assert!((rows[2].limit.unwrap() * ceiling - rows[0].value).abs() < 1e-6);
        assert_eq!([1, 2, 3].map(|row| rows[row].target.is_some()), [false, false, ceiling >= CEILING_MIN]);
    }

    #[test]
    fn a_wrong_answer_is_refused() {
        let error = measured(&Options::for_tests(&[]), &asked("g.inject(1, 2).count()", 3)).unwrap_err();
        assert!(error.message().contains("numbers of"), "{error}");
    }

    #[test]
    fn a_tenth_at_either_end_is_left_out_of_the_spread() {
        let timing = most((1..=20).map(f64::from).rev().collect());
        assert_eq!((timing.min, timing.median, timing.max), (3.0, 11.0, 18.0));
        let timing = most(vec![5.0, 1.0, 2.0]);
        assert_eq!((timing.min, timing.median, timing.max), (1.0, 2.0, 5.0));
    }

    #[test]
    fn pass_marks_depend_on_the_length_of_the_query() {
        assert_eq!([1e6, 3e6, 5e6].map(|nanos| speedup_mark(nanos, 2.0)), [1.0 / 1.1, 1.3, 1.8].map(Some));
        assert_eq!(speedup_mark(5e6, 1.29), None);
    }
}

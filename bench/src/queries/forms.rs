//! Several forms of one question, timed in turns for each set of parameters.
//!
//! The papers show the spread over parameters (box plots), so each set of parameters is timed alone. Rounds begin with
//! another form each time. No form is timed before all its answers were checked.

use std::time::Instant;

use mangrove::{Database, Result};

use super::asked::Asked;
use super::station::{Place, Station};
use crate::harness::{REPETITION_COUNT, Schedule, Timing};
use crate::options::Options;

/// Times forms of a question, all with the same parameters. Returns the nanoseconds of each form by parameters, the
/// median of the rounds.
pub fn measure(options: &Options, database: &Database, forms: &[Asked], place: Place) -> Result<Vec<Vec<f64>>> {
    let station = |asked: &Asked| {
        let station = Station::new(database, &asked.text)?;
        let counts = station.check(asked, place)?;
        Ok((station, counts))
    };
    let stations = forms.iter().map(station).collect::<Result<Vec<_>>>()?;
    let run_count = forms[0].runs.len();
    let slice = Schedule::of(options).slice_seconds / run_count as f64;
    let mut times = vec![Vec::with_capacity(run_count); forms.len()];
    for at in 0..run_count {
        let once = |form: usize| -> Result<f64> {
            let (station, counts) = &stations[form];
            let begin = Instant::now();
            station.once(&forms[form], at, counts[at], place)?;
            Ok(begin.elapsed().as_secs_f64())
        };
        let mut passes = Vec::with_capacity(forms.len());
        for form in 0..forms.len() {
            passes.push(((slice / once(form)?.max(1e-9)) as u64).max(1));
        }
        let mut samples = vec![Vec::with_capacity(REPETITION_COUNT); forms.len()];
        for round in 0..REPETITION_COUNT {
            for turn in 0..forms.len() {
                let form = (round + turn) % forms.len();
                let begin = Instant::now();
                for _ in 0..passes[form] {
                    once(form)?;
                }
                samples[form].push(begin.elapsed().as_secs_f64() * 1e9 / passes[form] as f64);
            }
        }
        times.iter_mut().zip(samples).for_each(|(times, samples)| times.push(Timing::of(samples).median));
    }
    Ok(times)
}

/// The ratio of two forms by parameters.
pub fn ratios(one: &[f64], other: &[f64]) -> Vec<f64> {
    one.iter().zip(other).map(|(one, other)| one / other).collect()
}

#[cfg(test)]
mod tests {
    use mangrove::Parameters;
    use mangrove_queries::Comparison;
    use serde_json::json;

    use super::*;
    use crate::queries::asked::Run;

    fn asked(text: &str) -> Asked {
        let run = || Run { parameters: Parameters::new(), expected: vec![json!(3)] };
        let runs = vec![run(), run()];
        Asked { case: "sum".into(), text: text.into(), runs, comparison: Comparison::Ordered, unordered: vec![] }
    }

    #[test]
    fn each_form_has_a_time_for_each_set_of_parameters() {
        let database = Database::in_memory();
        let forms = [asked("g.inject(1, 2).sum()"), asked("g.inject(3)"), asked("g.inject(1, 1, 1).count()")];
        let times = measure(&Options::for_tests(&[]), &database, &forms, Place::Executors).unwrap();
        assert_eq!(times.iter().map(Vec::len).collect::<Vec<_>>(), [2, 2, 2]);
        assert!(times.iter().flatten().all(|nanos| *nanos > 0.0));
    }

    #[test]
    fn a_form_with_another_answer_is_refused() {
        let forms = [asked("g.inject(1, 2).sum()"), asked("g.inject(4)")];
        let error = measure(&Options::for_tests(&[]), &Database::in_memory(), &forms, Place::Executors).unwrap_err();
        assert!(error.message().contains("sum of"), "{error}");
    }
}

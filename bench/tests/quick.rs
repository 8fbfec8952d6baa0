//! Every suite runs on a tiny graph, verifies its answers, and writes figures of the agreed shape. No time is
//! asserted.

use mangrove_bench::{Choices, Operations, Options, Report, Scale, Suite};

/// Every suite on a tiny graph.
fn options(threads: usize) -> Options {
    let choices = Choices::default();
    Options { suites: Suite::ALL.to_vec(), scale: Scale::Tiny, seconds: 0.0, threads, only: None, choices }
}

fn run(threads: usize) -> Report {
    mangrove_bench::run(&options(threads), &mut |_| {}).unwrap()
}

#[test]
fn every_suite_reports_figures_of_the_agreed_shape() {
    let report = run(1);
    let figures: serde_json::Value = serde_json::from_str(&report.to_json().unwrap()).unwrap();
    let figures = figures.as_array().unwrap();
    for figure in figures {
        let object = figure.as_object().unwrap();
        assert_eq!(object.len(), 6, "{figure}");
        for name in ["suite", "case", "variant", "metric", "unit"] {
            assert!(object[name].is_string(), "{name} of {figure}");
        }
        assert!(object["value"].as_f64().is_some_and(f64::is_finite), "{figure}");
    }
    for suite in Suite::ALL {
        assert!(figures.iter().any(|figure| figure["suite"] == suite.name()), "{suite:?} reports nothing");
    }
    assert!(figures.iter().any(|figure| figure["suite"] == "run" && figure["case"] == "commit"));
    for row in report.rows {
        let (min, max) = row.spread.unwrap_or((row.value, row.value));
        assert!(min <= row.value && row.value <= max, "{row}");
    }
}

#[test]
fn two_threads_do_the_same_thing_at_once() {
    // How many kinds of aborts there are is up to the moment.
    let cases = |report: Report| report.rows.into_iter().filter(|row| row.suite == "insert").count();
    assert_eq!(cases(run(2)), cases(run(1)));
}

#[test]
fn options_that_cannot_be_run_are_refused() {
    assert!(options(0).check().unwrap_err().message().contains("0 threads"));
    assert!(Options { seconds: f64::NAN, ..options(1) }.check().is_err());
    assert!(Options { choices: Choices { churn_seconds: -1.0, ..Choices::default() }, ..options(1) }.check().is_err());
    for (suite, operations) in [(Suite::LinkBench, Operations::Lbv), (Suite::Lbv, Operations::Gdi)] {
        let choices = Choices { operations: Some(operations), ..Choices::default() };
        let refused = Options { suites: vec![suite], choices, ..options(1) }.check().unwrap_err();
        assert!(refused.message().contains("no form with --ops"), "{refused}");
    }
}

//! Every suite runs on a tiny graph, verifies its answers, and writes figures of the agreed shape. No time is
//! asserted.

use mangrove_bench::{Options, Report, Scale, Suite};

fn run(threads: usize) -> Report {
    let options = Options { suites: Suite::ALL.to_vec(), scale: Scale::Tiny, seconds: 0.0, threads, only: None };
    mangrove_bench::run(&options, &mut |_| {}).unwrap()
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
    assert_eq!(run(2).rows.len(), run(1).rows.len());
}

#[test]
fn options_that_cannot_be_run_are_refused() {
    let options = Options { suites: Vec::new(), scale: Scale::Tiny, seconds: 1.0, threads: 0, only: None };
    assert!(options.check().unwrap_err().message().contains("0 threads"));
    assert!(Options { seconds: f64::NAN, threads: 1, ..options }.check().is_err());
}

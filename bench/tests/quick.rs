//! Every suite runs on a tiny graph, checks its answers, and writes figures in the agreed form. No test asserts a time.

use mangrove_bench::{Api, Choices, Figure, Operations, Options, Report, Scale, Skew, Suite};

/// Runs suites on a tiny graph.
fn options(suites: &[Suite], threads: usize) -> Options {
    let choices = Choices::default();
    Options { suites: suites.to_vec(), scale: Scale::Tiny, seconds: 0.0, threads, only: None, choices }
}

fn run(options: &Options) -> Report {
    mangrove_bench::run(options, &mut |_| {}).unwrap()
}

#[test]
fn every_suite_reports_figures_of_the_agreed_shape() {
    let report = run(&options(&Suite::ALL, 1));
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
    let of = |threads| run(&options(&[Suite::Point, Suite::Insert, Suite::Supernode], threads)).rows.len();
    assert_eq!(of(2), of(1));
}

/// The sum of a metric over the rows of a suite.
fn sum(figures: &[Figure], suite: &str, metric: &str) -> f64 {
    figures.iter().filter(|figure| figure.suite == suite && figure.metric == metric).map(|figure| figure.value).sum()
}

/// Suites of transactions fail if edges are lost or their counts differ from the database's. This test checks that
/// their reports add up.
#[test]
fn transactions_add_up_through_every_interface() {
    let choices = Choices {
        apis: vec![Api::Typed, Api::Gremlin, Api::Server],
        skews: vec![Skew::Zipf(0.99)],
        ..Choices::default()
    };
    let suites = [Suite::LinkBench, Suite::WriteIntensive, Suite::Lbv];
    let figures = run(&Options { choices, ..options(&suites, 3) }).figures();
    for suite in suites.map(Suite::name) {
        assert_eq!(sum(&figures, suite, "done"), sum(&figures, suite, "transactions"), "{suite}");
        let interfaces = ["typed, serializable", "gremlin, snapshot", "server, serializable"];
        for interface in interfaces {
            let is_there = |figure: &Figure| figure.suite == suite && figure.variant.starts_with(interface);
            assert!(figures.iter().any(is_there), "{suite}: nothing through {interface}");
        }
    }
    let shares: Vec<_> =
        figures.iter().filter(|figure| figure.suite == "linkbench" && figure.metric == "share_in_paper").collect();
    assert_eq!(shares.len() % 7, 0, "LinkBench has seven operations");
    assert!(shares.iter().any(|figure| figure.case.contains("get edges") && figure.value == 51.2));
}

#[test]
fn options_that_cannot_be_run_are_refused() {
    assert!(options(&[], 0).check().unwrap_err().message().contains("0 threads"));
    assert!(Options { seconds: f64::NAN, ..options(&[], 1) }.check().is_err());
    let choices = Choices { churn_seconds: -1.0, ..Choices::default() };
    assert!(Options { choices, ..options(&[], 1) }.check().is_err());
    for (suite, operations) in [(Suite::LinkBench, Operations::Lbv), (Suite::Lbv, Operations::Gdi)] {
        let choices = Choices { operations: Some(operations), ..Choices::default() };
        let refused = Options { choices, ..options(&[suite], 1) }.check().unwrap_err();
        assert!(refused.message().contains("no form with --ops"), "{refused}");
    }
}

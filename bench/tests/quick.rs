//! Every suite runs on a tiny graph, checks its answers, and writes figures in the agreed form. No test asserts a time.

use mangrove_bench::{
    AnalyticsChoices, Api, Choices, Figure, Operations, Options, QueryChoices, Report, Scale, Skew, Suite,
};

/// Runs suites on a tiny graph.
fn options(suites: &[Suite], threads: usize) -> Options {
    let (choices, queries) = (Choices::default(), QueryChoices::default());
    Options {
        suites: suites.to_vec(),
        scale: Scale::Tiny,
        seconds: 0.0,
        threads,
        only: None,
        choices,
        queries,
        analytics: AnalyticsChoices::default(),
    }
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
    both_sides_of_experiments_are_there(&report);
    for row in report.rows {
        let (min, max) = row.spread.unwrap_or((row.value, row.value));
        assert!(min <= row.value && row.value <= max, "{row}");
    }
}

/// The suites that repeat experiments of papers have a row for each side of their comparisons.
fn both_sides_of_experiments_are_there(report: &Report) {
    let count = |suite: Suite, variant: &str| {
        report.rows.iter().filter(|row| row.suite == suite.name() && row.variant == variant).count()
    };
    assert_eq!([count(Suite::Scopes, "scopes"), count(Suite::Scopes, "without scopes")], [4, 6]);
    assert_eq!(["as planned", "scopes, bfs", "scopes, dfs"].map(|variant| count(Suite::Scopes, variant)), [2; 3]);
    assert_eq!([count(Suite::Instances, "to the end"), count(Suite::Instances, "to the end, without scopes")], [3, 3]);
    // CQ1 and CQ6 with five limits each.
    assert_eq!([count(Suite::Policies, "default"), count(Suite::Policies, "fifo")], [10, 10]);
    assert_eq!(count(Suite::Policies, "at most 10 instances"), 2);
    // 1, 10, 100 and 1,000 instances.
    assert_eq!([count(Suite::Instances, "canceled"), count(Suite::Instances, "hop and filter: memory")], [4, 4]);
    // Sixteen queries, from one client and from 32.
    assert_eq!([count(Suite::Adaptive, "at most 1"), count(Suite::Adaptive, "at most 8")], [32, 32]);
    // A property and neighbors, by three distributions.
    assert_eq!([count(Suite::Caches, "store"), count(Suite::Caches, "cache of 1024")], [6, 6]);
    let shares = report.rows.iter().filter(|row| row.suite == "shares" && row.variant.starts_with("share"));
    assert!((shares.map(|row| row.value).sum::<f64>() - 100.0).abs() < 1e-6);
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

/// The suites that run queries on several executors.
const QUERIES: [Suite; 6] =
    [Suite::KHop, Suite::Lsqb, Suite::ShortReads, Suite::ComplexReads, Suite::Cq, Suite::Grasper];

#[test]
fn queries_have_a_row_for_each_number_of_executors() {
    let queries = QueryChoices { executors: vec![1, 2], data: None };
    let only = Some("executors".to_owned());
    let report = run(&Options { queries, only, ..options(&QUERIES, 1) });
    for suite in QUERIES.map(Suite::name) {
        let count =
            |variant: &str| report.rows.iter().filter(|row| row.suite == suite && row.variant == variant).count();
        let queries = count("1 executor");
        assert!(queries >= 4, "{suite}: {queries} queries");
        for variant in ["2 executors", "client's thread", "ceiling: two copies", "2 executors : client"] {
            assert_eq!(count(variant), queries, "{suite}: {variant}");
        }
        assert!(report.notes.iter().any(|(of, note)| *of == suite && note.contains("--data")), "{suite} left data out");
    }
    assert!(report.table().contains("was left out, because --data names no directory"));
}

/// Runs the queries whose name contains `only` on a data set. Skips the test if the data set is missing.
fn on_data(name: &str, suite: Suite, only: &str) -> Option<Report> {
    let folder = mangrove_testdata::dataset(name)?;
    let data = folder.parent().map(std::path::Path::to_owned);
    let queries = QueryChoices { executors: vec![2], data };
    Some(run(&Options { queries, only: Some(only.to_owned()), ..options(&[suite], 1) }))
}

fn nothing_was_left_out(report: &Report) -> bool {
    !report.notes.iter().any(|(_, note)| note.contains("left out"))
}

#[test]
fn patterns_of_lsqb_have_their_published_counts() {
    let Some(report) = on_data("lsqb_sf0.1", Suite::Lsqb, "LSQB 0.1, q4") else { return };
    let cases: Vec<&str> = report.rows.iter().map(|row| row.case.as_str()).collect();
    assert!(cases.contains(&"LSQB 0.1, q4"), "{cases:?}");
    assert!(nothing_was_left_out(&report), "{:?}", report.notes);
}

#[test]
fn short_reads_of_ldbc_have_their_published_answers() {
    let Some(report) = on_data("ldbc_snb_sf0.1", Suite::ShortReads, "LDBC 0.1, LDBC's") else { return };
    for number in 1..=7 {
        let case = format!("LDBC 0.1, LDBC's IS{number}");
        assert!(report.rows.iter().any(|row| row.case == case && row.variant == "2 executors"), "{case}");
    }
    assert!(nothing_was_left_out(&report), "{:?}", report.notes);
}

#[test]
fn the_latency_of_short_reads_is_plotted_beside_each_number_of_heavy_queries() {
    let plot = std::env::temp_dir().join(format!("mangrove-bench-isolation-{}.svg", std::process::id()));
    let choices = Choices { plot: Some(plot.clone()), ..Choices::default() };
    let report = run(&Options { choices, ..options(&[Suite::Isolation], 1) });
    let svg = std::fs::read_to_string(&plot).unwrap();
    std::fs::remove_file(&plot).unwrap();
    // Six lines of short reads for each place; and four lines for each place and each of three numbers of clients.
    assert_eq!((svg.matches("<polyline").count(), svg.matches("beside 64 heavy").count()), (12 + 24, 2));
    for place in ["embedded", "server"] {
        for heavy in [1, 4, 8, 64] {
            let case = format!("{place}, beside {heavy} heavy");
            let row = report.rows.iter().find(|row| row.case == case && row.variant == "short, p99").unwrap();
            assert!(row.target.unwrap() >= row.limit.unwrap() + 1e6, "{case}");
        }
    }
}

#[test]
fn workloads_of_gdi_grow_in_scale_and_threads_and_are_plotted() {
    let folder = std::env::temp_dir().join(format!("mangrove-bench-gdi-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let choices = Choices { plot: Some(folder.join("gdi.svg")), ..Choices::default() };
    let queries = QueryChoices { executors: vec![1, 2], data: None };
    let analytics = AnalyticsChoices { scales: vec![7, 9], ..AnalyticsChoices::default() };
    let report = run(&Options { choices, queries, analytics, ..options(&[Suite::Gdi], 1) });
    let count = |what: &str| report.rows.iter().filter(|row| row.case.starts_with(what)).count();
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get).min(2);
    for workload in ["bfs", "pagerank", "cdlp", "wcc", "lcc", "2-hop", "3-hop", "4-hop", "bi2", "new projection"] {
        assert_eq!(count(workload), 2 * cores, "{workload}");
    }
    // Three numbers of labels, of properties and of edges; three measures.
    assert_eq!(count("grid: "), 81);
    let lines = |file: &str| std::fs::read_to_string(folder.join(file)).unwrap().matches("<polyline").count();
    assert_eq!([lines("gdi.svg"), lines("gdi-threads.svg"), lines("gdi-grid.svg")], [9 * cores, 9 * 2, 27]);
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn algorithms_have_rows_on_each_graph_and_name_their_marks() {
    let path = std::env::temp_dir().join(format!("mangrove-bench-star-{}.el", std::process::id()));
    std::fs::write(&path, "# a star with a triangle\n10 20 5\n10 30 2\n10 40 1\n20 30 9\n").unwrap();
    let analytics = AnalyticsChoices { graphs: vec![path.clone()], ..AnalyticsChoices::default() };
    let report = run(&Options { analytics, ..options(&[Suite::Analytics], 1) });
    std::fs::remove_file(&path).unwrap();
    let star = path.file_stem().unwrap().to_string_lossy().into_owned();
    for graph in ["kronecker 10", "road 10", &star] {
        for threads in ["1 thread", "2 threads"] {
            for (algorithm, mark) in
                [("bfs", "1.1 × gap"), ("triangles", "1.2 × gap"), ("betweenness, 1 source", "1.2 × gap")]
            {
                let case = format!("{algorithm}, {graph}, {threads}");
                let row = report.rows.iter().find(|row| row.case == case && row.variant == "projection").unwrap();
                assert_eq!(row.rule.as_deref(), Some(mark), "{case}");
            }
            let case = format!("pagerank, 10 rounds, {graph}, {threads}");
            assert!(report.rows.iter().any(|row| row.case == case && row.variant == "bare"), "{case}");
        }
    }
    assert!(report.table().contains("(1.2 × gap)"));
}

#[test]
fn numbers_of_executors_that_cannot_be_run_are_refused() {
    for (executors, problem) in [(vec![], "0 numbers"), (vec![0], "0 executors"), (vec![2, 1], "do not ascend")] {
        let queries = QueryChoices { executors, data: None };
        let refused = Options { queries, ..options(&[Suite::KHop], 1) }.check().unwrap_err();
        assert!(refused.message().contains(problem), "{refused}");
    }
    let choices = Choices { plot: Some("one.svg".into()), ..Choices::default() };
    let both = Options { choices, ..options(&[Suite::Collection, Suite::Isolation], 1) };
    assert!(both.check().unwrap_err().message().contains("--plot"));
    for (scales, problem) in [(vec![16, 14], "do not ascend"), (vec![60], "from 6 to 24")] {
        let analytics = AnalyticsChoices { scales, ..AnalyticsChoices::default() };
        let refused = Options { analytics, ..options(&[Suite::Gdi], 1) }.check().unwrap_err();
        assert!(refused.message().contains(problem), "{refused}");
    }
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

use mangrove::{Database, DatabaseOptions, Parameters, QueryOptions};
use std::time::Instant;
fn main() {
    let dir = std::env::args().nth(1).unwrap();
    let file = std::env::args().nth(2).unwrap();
    let rounds: usize = std::env::args().nth(3).map_or(5, |r| r.parse().unwrap());
    let db = Database::open(std::path::Path::new(&dir), &DatabaseOptions::default()).unwrap();
    for q in std::fs::read_to_string(file).unwrap().lines().filter(|l| !l.trim().is_empty()) {
        let p = db.prepare(q).unwrap();
        let mut best = [f64::MAX; 3];
        let mut ans = [const { String::new() }; 3];
        for _ in 0..rounds {
            for n in [1usize, 2] {
                let o = QueryOptions { workers_max: n, ..QueryOptions::default() };
                let t = Instant::now();
                let r = db.run_with(&p, &Parameters::default(), &o).unwrap().collect_bulked().unwrap();
                best[n] = best[n].min(t.elapsed().as_secs_f64() * 1e3);
                let mut all: Vec<String> = r.iter().map(|x| format!("{x:?}")).collect();
                if !q.contains("order()") {
                    all.sort();
                }
                ans[n] = all.join(",").chars().take(2000).collect();
            }
        }
        // ceiling: two copies with one worker each
        let o = QueryOptions { workers_max: 1, ..QueryOptions::default() };
        let mut two = f64::MAX;
        for _ in 0..rounds.min(3) {
            let t = Instant::now();
            std::thread::scope(|s| {
                for _ in 0..2 {
                    s.spawn(|| db.run_with(&p, &Parameters::default(), &o).unwrap().collect_bulked().unwrap());
                }
            });
            two = two.min(t.elapsed().as_secs_f64() * 1e3);
        }
        println!(
            "{:9.2} {:9.2} ms  {:5.2}x  ceiling {:4.2}x {} {}",
            best[1],
            best[2],
            best[1] / best[2],
            2.0 * best[1] / two,
            if ans[1] == ans[2] { "same" } else { "DIFF" },
            q
        );
        if ans[1] != ans[2] && std::env::var("SHOW").is_ok() {
            println!("  {:.300}\n  {:.300}", ans[1], ans[2]);
        }
    }
}

use std::io::BufRead;
use std::path::PathBuf;
fn main() {
    let mut args = std::env::args().skip(1);
    let mapping = args.next().unwrap();
    let index = args.next().unwrap();
    let files: Vec<PathBuf> = args.map(PathBuf::from).collect();
    let db = mangrove::Database::in_memory();
    let mapping = (mapping != "-").then(|| mangrove::Mapping::read(std::path::Path::new(&mapping)).unwrap());
    let options = mangrove::LoadOptions { mapping, ..Default::default() };
    #[allow(clippy::disallowed_methods)]
    let now = std::time::Instant::now;
    let t = now();
    let report = db.load(&files, &options, &mut |_| {}).unwrap();
    println!("loaded {} {} rejects {} in {:?}", report.vertices, report.edges, report.rejects, t.elapsed());
    for i in index.split(',').filter(|i| i.len() > 1) {
        db.create_index(Some(i), "id", false, false).unwrap();
    }
    for line in std::io::stdin().lock().lines() {
        let line = line.unwrap();
        if line.trim().is_empty() || line.starts_with('#') {
            continue;
        }
        let t = now();
        let r = db.query(&line).and_then(|s| s.collect());
        let e = t.elapsed();
        println!("> {line}   [{e:?}]");
        match r {
            Ok(v) => {
                println!("  {} results", v.len());
                for v in v.iter().take(40) {
                    if let mangrove::Value::String(s) = v { println!("  {s}") } else { println!("  {v:?}") }
                }
            }
            Err(e) => println!("  ERROR {e}"),
        }
    }
}

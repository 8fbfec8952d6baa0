//! Compares the engine with the recorded answers of the reference.

use mangrove_reference::corpus;

#[test]
fn the_engine_answers_as_tinkergraph_does() {
    let (mut ours, mut count, mut wrong) = (corpus::Ours::default(), 0, Vec::new());
    for file in corpus::files().unwrap() {
        let text = std::fs::read_to_string(&file).unwrap();
        let mut items = corpus::parse(&text).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        assert_eq!(corpus::render(&items), text, "{} is not written as run.sh records it", file.display());
        for (graph, case) in corpus::cases(&mut items) {
            count += 1;
            wrong.extend(corpus::check(&mut ours, &graph, case).err());
        }
    }
    assert!(count > 0);
    assert!(wrong.is_empty(), "{} of {count}:\n{}", wrong.len(), wrong.join("\n"));
}

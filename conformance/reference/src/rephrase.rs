//! Rephrases a script so that both sides agree, if a known reason is the cause of their difference.
//!
//! The test of a reason looks at the script's text, so it may also cover a difference with another cause. A difference
//! therefore counts as known only if the two sides agree once the script avoids the step that they treat differently.

/// The scripts for the reference and for the engine that must have equal answers if this reason is the cause. `None` if
/// there is no rephrased script.
pub fn rephrased(reason: &str, script: &str) -> Option<[String; 2]> {
    let theirs = |words: String| [words, script.to_owned()];
    Some(match reason {
        // The list contains each value once for every traverser.
        "fold-of-merged" => theirs(script.replace(".fold(0", ".fold().unfold().fold(0")),
        // A barrier reads all matches, so none is left over.
        "match-left-over" => {
            theirs(every_call(script, "match(", &|arguments| format!("match({arguments}).fold().unfold()")))
        }
        "call-of-merged" => theirs(without_service(script)),
        "partition-by" => theirs(by_values(script)),
        "filter-of-objects" => theirs(script.replace("filter(P.", "is(P.")),
        "identity-removed" => {
            theirs(script.replace("flatMap(__.identity().identity())", "flatMap(__.union(__.identity()))"))
        }
        // After a barrier, the step is no look-up.
        "has-id-twice" => theirs(script.replace(".hasId(", ".fold().unfold().hasId(")),
        // The property then belongs to an existing vertex.
        "partition-property-of-new" => {
            let apart = every_call(script, ".addV(", &|label| format!(".addV({label}).fold().unfold()"));
            [apart.clone(), apart]
        }
        "partition-key-shown" if !script.contains("Map()") => {
            let other = ".properties().not(__.hasKey('part'))";
            let properties = script.replace(".properties()", other);
            [script.to_owned(), properties.replace(".values()", &format!("{other}.value()"))]
        }
        // A barrier would lose the labels of the script.
        "barrier-before-writes" if !script.contains(".as('") => theirs(writes_apart(script)),
        "hop-without-edge" => [script.to_owned(), hops_by_edges(script)],
        _ => return None,
    })
}

/// Replaces the service by steps that count edges.
fn without_service(script: &str) -> String {
    const CALL: &str = "call('tinker.degree.centrality'";
    let mut parts = script.split(CALL);
    let mut words = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let after = part.find(')').map_or("", |end| &part[end + 1..]);
        let option = after.strip_prefix(".with('direction', ");
        let direction = option.or_else(|| part.strip_prefix(", ['direction': ")).unwrap_or("Direction.IN");
        let direction = direction.split([')', ']']).next().unwrap_or_default();
        let rest = option.map_or(after, |option| option.split_once(')').map_or("", |(_, rest)| rest));
        words += &format!("map(__.toE({direction}).count()){rest}");
    }
    words
}

/// Replaces modulators with a key by steps, to which strategies apply. The values of a group are lists.
fn by_values(script: &str) -> String {
    let lists = every_call(script, ".group().by(T.label).by('", &|rest| {
        let key = rest.trim_end_matches('\'');
        format!(".group().by(T.label).by(__.map(__.values('{key}')).fold())")
    });
    every_call(&lists, ".by('", &|rest| format!(".by(__.values('{rest}))"))
}

/// The script with a barrier before and after each step that writes; the barriers merge nothing.
fn writes_apart(script: &str) -> String {
    const WRITES: [&str; 6] = ["addE(", "addV(", "drop(", "mergeV(", "mergeE(", "property("];
    let (source, steps) = script.split_at(script.find(").V(").or_else(|| script.find("g.V(")).map_or(0, |at| at + 1));
    let (mut words, mut wrote, mut adds) = (source.to_owned(), false, false);
    for step in steps_of(steps) {
        let writes = WRITES.iter().any(|write| step.contains(write));
        let option = step.starts_with(".option(");
        let of_new = adds && [".from(__", ".to(__", ".property("].iter().any(|part| step.starts_with(part));
        if (writes || wrote) && !option && !of_new {
            words += ".fold().unfold()";
        }
        words += step;
        wrote = writes || option || of_new;
        adds = of_new || step.starts_with(".add");
    }
    words
}

/// The steps of a chain, each with the dot before it.
fn steps_of(chain: &str) -> Vec<&str> {
    let (mut steps, mut rest) = (Vec::new(), chain);
    while let Some(open) = rest.find('(') {
        let end = (open + 1 + end_of_call(&rest[open + 1..], false) + 1).min(rest.len());
        steps.push(&rest[..end]);
        rest = &rest[end..];
    }
    steps
}

/// Replaces hops by steps to edges and to the other vertex, after the start of the traversal.
fn hops_by_edges(script: &str) -> String {
    let start = script.find(").V(").or_else(|| script.find(").E(")).unwrap_or_default();
    let (source, steps) = script.split_at(start);
    let mut steps = steps.to_owned();
    for hop in ["in", "out", "both", "to"] {
        let call = format!(".{hop}(");
        steps = every_call(&steps, &call, &|arguments| format!(".{hop}E({arguments}).otherV()"));
    }
    source.to_owned() + &steps
}

/// Replaces each call that begins with `begin`. `words` makes the replacement from the text up to the end of the
/// call.
fn every_call(script: &str, begin: &str, words: &dyn Fn(&str) -> String) -> String {
    let mut result = String::new();
    let mut rest = script;
    while let Some(at) = rest.find(begin) {
        result += &rest[..at];
        let inside = &rest[at + begin.len()..];
        let end = end_of_call(inside, begin.ends_with('\''));
        result += &words(&inside[..end]);
        rest = inside.get(end + 1..).unwrap_or_default();
    }
    result + rest
}

/// The end of the call whose inside this is. The text may begin within a literal.
fn end_of_call(inside: &str, mut in_text: bool) -> usize {
    let mut depth = 0_usize;
    for (at, c) in inside.char_indices() {
        match c {
            '\'' => in_text = !in_text,
            '(' if !in_text => depth += 1,
            ')' if !in_text && depth == 0 => return at,
            ')' if !in_text => depth -= 1,
            _ => {}
        }
    }
    inside.len()
}

#[cfg(test)]
mod tests {
    use super::rephrased;

    fn theirs(reason: &str, script: &str) -> String {
        rephrased(reason, script).unwrap()[0].clone()
    }

    #[test]
    fn the_service_becomes_a_count_of_edges() {
        let script = "g.V().call('tinker.degree.centrality').with('direction', Direction.OUT).union(\
                      __.call('tinker.degree.centrality'), __.V(1).call('tinker.degree.centrality', \
                      ['direction': Direction.BOTH]).is(1))";
        assert_eq!(
            theirs("call-of-merged", script),
            "g.V().map(__.toE(Direction.OUT).count()).union(__.map(__.toE(Direction.IN).count()), \
             __.V(1).map(__.toE(Direction.BOTH).count()).is(1))"
        );
    }

    #[test]
    fn keys_of_modulators_become_steps() {
        assert_eq!(
            theirs("partition-by", "g.V().group().by('age').by(__.count())"),
            "g.V().group().by(__.values('age')).by(__.count())"
        );
        assert_eq!(
            theirs("partition-by", "g.V().group().by(T.label).by('age')"),
            "g.V().group().by(T.label).by(__.map(__.values('age')).fold())"
        );
    }

    #[test]
    fn matches_are_read_to_the_end() {
        assert_eq!(
            theirs("match-left-over", "g.V().not(__.match(__.as(')').out('a').as('b')).select('b'))"),
            "g.V().not(__.match(__.as(')').out('a').as('b')).fold().unfold().select('b'))"
        );
    }

    #[test]
    fn writes_stand_apart() {
        assert_eq!(
            theirs("barrier-before-writes", "g.V().both('a').addE('b').to(__.V(1)).property('c', ')').values('c')"),
            "g.V().both('a').fold().unfold().addE('b').to(__.V(1)).property('c', ')').fold().unfold().values('c')"
        );
    }

    #[test]
    fn hops_pass_edges() {
        let source = "g.withStrategies(new SubgraphStrategy(edges: __.not(__.inV().out())))";
        let [_, ours] =
            rephrased("hop-without-edge", &format!("{source}.V().repeat(__.in('a')).both().path()")).unwrap();
        assert_eq!(ours, format!("{source}.V().repeat(__.inE('a').otherV()).bothE().otherV().path()"));
    }
}

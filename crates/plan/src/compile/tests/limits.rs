//! The allowed size of a traversal, and the allowed nesting of its values.

use super::*;
use crate::limits::{INSTRUCTIONS_MAX, LEVELS_MAX, MATCH_PATTERNS_MAX};
use crate::logical::Step;

fn repeated(name: &str, arguments: &[Argument], times: usize) -> Bytecode {
    let steps = std::iter::repeat_with(|| call(name, arguments.to_vec())).take(times);
    wire(std::iter::once(call("V", vec![])).chain(steps).collect())
}

#[test]
fn collections_of_collections_have_a_bound() {
    let wrapped = |times| compile(&repeated("fold", &[], times));
    assert!(wrapped(LEVELS_MAX).is_ok());
    let message = "the traversal makes collections of collections more than 256 deep; split it";
    assert_eq!(wrapped(LEVELS_MAX + 1).unwrap_err().message(), message);
    assert_eq!(compile(&repeated("group", &[], LEVELS_MAX / 2 + 1)).unwrap_err().message(), message);
    // Nested traversals count as well.
    let inner = wire(repeated("fold", &[], LEVELS_MAX).steps.split_off(1));
    let outer = wire(vec![call("V", vec![]), call("fold", vec![]), call("map", vec![Argument::Traversal(inner)])]);
    assert_eq!(compile(&outer).unwrap_err().message(), message);
    // Trees bound their own depth when they are made.
    assert!(compile(&repeated("tree", &[], 2 * LEVELS_MAX)).is_ok());
    // Values that go into side effects and come from labels get no deeper by that.
    assert!(compile(&repeated("aggregate", &[text("x")], 2 * LEVELS_MAX)).is_ok());
    assert!(compile(&repeated("select", &[text("x")], 2 * LEVELS_MAX)).is_ok());
    // Consecutive steps do not make each other's collections deeper.
    let fold = Argument::Traversal(wire(vec![call("out", vec![]), call("fold", vec![])]));
    assert!(compile(&repeated("where", std::slice::from_ref(&fold), LEVELS_MAX)).is_ok());
    assert!(compile(&wire(vec![call("V", vec![]), call("union", vec![fold; 2 * LEVELS_MAX])])).is_ok());
}

#[test]
fn a_traversal_has_a_bound() {
    let message = "the traversal has more than 16384 steps; split it, or give lists of values as parameters";
    assert!(compile(&repeated("out", &[], INSTRUCTIONS_MAX - 1)).is_ok());
    assert_eq!(compile(&repeated("out", &[], INSTRUCTIONS_MAX)).unwrap_err().message(), message);
    let inner = Argument::Traversal(wire(vec![call("out", vec![]); 100]));
    assert_eq!(compile(&repeated("where", &[inner], INSTRUCTIONS_MAX / 100)).unwrap_err().message(), message);
    let patterns: Vec<Argument> = (0..=MATCH_PATTERNS_MAX)
        .map(|n| {
            let (from, to) = (text(&format!("v{n}")), text(&format!("v{}", n + 1)));
            Argument::Traversal(wire(vec![call("as", vec![from]), call("out", vec![]), call("as", vec![to])]))
        })
        .collect();
    wire_fails(
        vec![call("V", vec![]), call("match", patterns)],
        "`match` (step 2): has 257 patterns; at most 256 are solved",
    );
}

/// Every rule that joins two steps takes time in proportion to the steps: the longest allowed chain is planned at once.
#[test]
fn the_longest_chain_is_planned_in_proportion() {
    let has = [text("a"), text("b")];
    let test = Argument::Traversal(wire(vec![call("has", has.to_vec()), call("has", has.to_vec())]));
    let hops = (0..INSTRUCTIONS_MAX / 2 - 1).flat_map(|_| [call("outE", vec![]), call("inV", vec![])]);
    for (bytecode, steps) in [
        (repeated("has", &has, INSTRUCTIONS_MAX - 1), 1),
        (repeated("where", &[test], INSTRUCTIONS_MAX / 4), 1),
        (wire(std::iter::once(call("V", vec![])).chain(hops).collect()), INSTRUCTIONS_MAX / 2),
    ] {
        let mut compiled = compile(&bytecode).unwrap();
        crate::rules::rewrite(&mut compiled.traversal, &compiled.configuration);
        assert_eq!(compiled.traversal.steps.len(), steps);
        assert!(matches!(compiled.traversal.steps[0].step, Step::Vertices { .. }));
    }
}
